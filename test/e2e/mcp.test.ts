/** Servers of the Model Context Protocol, as a configuration names them and the built server uses them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { isAlive, journalOf, serverFile, token } from "../tool/mcp/support.js"
import { ofType } from "./support/Client.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
const dir = mkdtempSync(join(tmpdir(), "runlet-mcp-e2e-"))
const file = join(dir, "journal")
const journal = () => journalOf(file)
const calls = (name: string) => journal().filter(({ called }) => called === name)

beforeAll(async () => {
  const server = await serverFile()
  world = await World.start({
    config: {
      mcpServers: {
        box: { command: process.execPath, args: [server], env: { JOURNAL: file, API_TOKEN: token } },
        absent: { command: join(dir, "no-such-program") }
      }
    }
  })
})
afterAll(async () => {
  const pids = journal().map(({ pid }) => pid)
  await world.stop()
  expect(new Set(pids).size).toBeGreaterThan(0)
  await eventually("the end of all processes", () => (pids.some(isAlive) ? undefined : true))
  rmSync(dir, { recursive: true, force: true })
})

const asking = (message: string, name: string, args: object) => {
  world.upstream.script(message, [
    Script.calls({ id: "call_1", name, args: JSON.stringify(args) }),
    Script.answer("Done.")
  ])
  return world.client.start(message)
}

test("a tool that only reads runs at once, tells its progress, and its server's secrets are in no event", async () => {
  const { runId } = await asking("Count, please", "box_count", {})
  const end = await world.client.settled(runId)
  expect(end.status).toBe("completed")
  expect(end.toolCalls).toMatchObject([{ toolName: "box_count", kind: "readonly", state: "done", result: "counted" }])
  const log = await world.client.log(runId)
  const said = ofType(log, "tool-result-delta").map(({ delta }) => delta)
  expect(said.join("")).toMatch(/^1\/32\/3nearly there, \[/)
  const echoed = await asking("Echo, please", "box_echo", { q: "hi" })
  await world.client.settled(echoed.runId)
  for (const run of [runId, echoed.runId]) {
    expect(JSON.stringify(await world.client.log(run))).not.toContain(token)
    await world.check(run)
  }
})

test("a tool that writes shows its exact call, and is called once when a person has approved it", async () => {
  const { runId } = await asking("Save, please", "box_save", { q: "this" })
  const pending = await world.client.waiting(runId)
  expect(pending).toMatchObject({
    reason: "write",
    input: { q: "this" },
    preview: { toolName: "box_save", input: { q: "this" } }
  })
  expect(calls("save")).toEqual([])
  await world.client.decide(runId, pending.approvalId, "approve", { previewHash: pending.previewHash })
  const end = await world.client.settled(runId)
  expect(end.toolCalls).toMatchObject([{ state: "applied", result: "saved this" }])
  expect(calls("save")).toMatchObject([{ input: { q: "this" }, key: pending.approvalId }])
  await world.check(runId)
})

test("a tool that says nothing of itself needs an approval", async () => {
  const { runId } = await asking("Do it, please", "box_unsaid", { q: "that" })
  const pending = await world.client.waiting(runId)
  expect(pending.reason).toBe("effectful")
  await world.client.decide(runId, pending.approvalId, "reject")
  expect((await world.client.settled(runId)).toolCalls).toMatchObject([{ state: "rejected" }])
  expect(calls("unsaid")).toEqual([])
})

test("cancelling a run tells the server", async () => {
  const { runId } = await asking("Hang, please", "box_hang", {})
  await eventually("the call", () => calls("hang")[0])
  await world.client.cancel(runId)
  await eventually("the cancellation", () => journal().find(({ cancelled }) => cancelled === "hang"))
  expect((await world.client.snapshot(runId)).status).toBe("cancelled")
  await world.check(runId)
})

test("a server that dies in the middle of a writing call leaves it in doubt, and is there for the next one", async () => {
  const { runId } = await asking("Die while writing", "box_die_write", {})
  const first = await world.client.waiting(runId)
  await world.client.decide(runId, first.approvalId, "approve", { previewHash: first.previewHash })
  const doubt = await world.client.until(
    runId,
    "in doubt",
    ({ pendingApprovals: [pending] }) => pending?.reason === "in_doubt"
  )
  expect(calls("die_write")).toHaveLength(1)
  await world.client.decide(runId, doubt.pendingApprovals[0]?.approvalId ?? "", "abandon")
  expect((await world.client.settled(runId)).toolCalls).toMatchObject([{ state: "in_doubt" }])
  const next = await asking("Echo after that", "box_echo", { q: "again" })
  expect((await world.client.settled(next.runId)).toolCalls).toMatchObject([{ state: "done" }])
})

test("a crash of the server in the middle of a writing call does not repeat it: a person is asked", async () => {
  const { runId } = await asking("Crash while writing", "box_hang_write", {})
  const first = await world.client.waiting(runId)
  await world.client.decide(runId, first.approvalId, "approve", { previewHash: first.previewHash })
  await eventually("the call", () => calls("hang_write")[0])
  const before = journal().map(({ pid }) => pid)
  process.kill(world.server().pid, "SIGKILL")
  await world.restart()
  const doubt = await world.client.until(
    runId,
    "in doubt",
    ({ pendingApprovals: [pending] }) => pending?.reason === "in_doubt"
  )
  expect(calls("hang_write")).toHaveLength(1)
  await world.client.decide(runId, doubt.pendingApprovals[0]?.approvalId ?? "", "abandon")
  expect((await world.client.settled(runId)).toolCalls).toMatchObject([{ state: "in_doubt" }])
  await eventually("the old process to end with its input", () => (before.some(isAlive) ? undefined : true))
  await world.check(runId)
})
