import { execFileSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import * as Disk from "./support/Disk.js"
import * as FrozenDisk from "./support/FrozenDisk.js"
import * as Refusing from "./support/Refusing.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

/** A directory that can be made read-only: for whoever may mount a disk of its own, else by its mode. */
const directory = () => {
  const disk = Disk.make(16 * 1024 * 1024)
  if (typeof disk !== "string") {
    cleanup.push(disk.stop)
    const mount = (mode: string) => () => execFileSync("mount", ["-o", `remount,${mode}`, disk.path])
    return { path: disk.path, lock: mount("ro"), unlock: mount("rw") }
  }
  const path = mkdtempSync(join(tmpdir(), "runlet-readonly-"))
  cleanup.push(() => rmSync(path, { recursive: true, force: true }))
  const mode = (all: number, one: number) => () => {
    chmodSync(join(path, "runlet.db"), one)
    chmodSync(path, all)
  }
  return { path, lock: mode(0o555, 0o444), unlock: mode(0o755, 0o644) }
}

test("a server whose data may not be written says so at its start, and starts when it may", async () => {
  const { lock, path, unlock } = directory()
  const world = await World.start({ directory: path })
  cleanup.push(world.stop)
  const run = await world.client.start("Before")
  await world.client.settled(run.runId)
  await world.server().stop()
  lock()
  const begun = Date.now()
  const message = await world.restart().then(
    () => "ready",
    (error: Error) => error.message
  )
  expect(Date.now() - begun).toBeLessThan(15_000)
  expect(message).toMatch(/ended with 1 /)
  expect(message).toContain(`The database ${world.data} can not be opened. Check that it may be written`)
  expect(message).not.toMatch(/\n\s+at |Sqlite(Error)?:/)
  unlock()
  await world.restart()
  expect((await world.client.snapshot(run.runId)).status).toBe("completed")
  await world.check(run)
}, 60_000)

/** A run that has said a little, and says more when it is let go on. */
const talker = async (world: World.World, message: string) => {
  const words = (from: number) => Array.from({ length: 20 }, (_, n) => Script.text(`${from + n} `))
  const end = [Script.finish("stop"), Script.done]
  world.upstream.script(message, [
    Script.reply([words(0), Script.gate(message), words(20), ...end]),
    Script.reply([words(0), words(20), ...end])
  ])
  const reading = await world.client.chat(message)
  await reading.until("its first words", ({ type }) => type === "text-delta")
  return { reading, runId: reading.headers.get("x-run-id") ?? "" }
}
const wholeText = Array.from({ length: 40 }, (_, n) => `${n} `).join("")

/** Who asks what is stored gets it; who wants something new, or to change something, is told to come again. */
const refuses = async (world: World.World, runs: { readonly ended: string; readonly waiting: string }) => {
  const { call, log, snapshot } = world.client
  const refused = await eventually("a refusal", async () => {
    const answer = await call("POST", "/chat", { message: "Anything new", background: true })
    return answer.status === 202 ? undefined : answer
  })
  const { approvalId, previewHash } = (await snapshot(runs.waiting)).pendingApprovals[0] ?? {}
  const path = `/runs/${runs.waiting}`
  for (const answer of [
    refused,
    await call("POST", `${path}/approvals/${approvalId}`, { decision: "approve", previewHash }),
    await call("POST", `${path}/cancel`, {}),
    await call("DELETE", `/runs/${runs.ended}`)
  ]) {
    expect(answer.status).toBe(503)
    expect(answer.body).toEqual({ _tag: "Unavailable", message: expect.any(String), retryAfterMs: expect.any(Number) })
    expect(answer.text).not.toMatch(/SQLITE|EROFS|read.?only|\/tmp/i)
  }
  expect((await call("GET", "/healthz")).status).toBe(200)
  expect((await snapshot(runs.ended)).status).toBe("completed")
  expect((await log(runs.ended)).at(-1)?.event.type).toBe("finish")
  expect((await snapshot(runs.waiting)).status).toBe("waiting_approval")
  expect((await call("GET", "/conversations")).body.items.length).toBeGreaterThanOrEqual(3)
}

/** A run that has ended, one that waits for a person, and one that talks. */
const three = async (world: World.World, name: string) => {
  const ended = (await world.client.start("Before")).runId
  await world.client.settled(ended)
  world.upstream.script(`Save, ${name}`, [
    Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"t"}' }),
    Script.answer("Saved.")
  ])
  const waiting = (await world.client.start(`Save, ${name}`)).runId
  await world.client.waiting(waiting)
  return { ended, waiting, talking: await talker(world, `Talk, ${name}`) }
}

const allGoOn = async (world: World.World, runs: Awaited<ReturnType<typeof three>>, seen: number) => {
  const end = await world.client.settled(runs.talking.runId)
  expect([end.status, end.text]).toEqual(["completed", wholeText])
  // What was shown is what is stored.
  const log = await world.client.log(runs.talking.runId)
  expect(runs.talking.reading.envelopes.slice(0, seen)).toEqual(log.slice(0, seen))
  expect(
    (await world.client.decide(runs.waiting, (await world.client.waiting(runs.waiting)).approvalId, "approve")).status
  ).toBe(200)
  expect((await world.client.settled(runs.waiting)).text).toBe("Saved.")
  expect(world.tools.of(runs.waiting, "commit")).toHaveLength(1)
  for (const runId of [runs.ended, runs.waiting, runs.talking.runId]) await world.check(runId)
}

test("a disk that may only be read from now on, under a server that runs: what is stored is read, and a restart on the mended disk goes on", async (context) => {
  const disk = FrozenDisk.make(64 * 1024 * 1024)
  if (typeof disk === "string") {
    console.warn(`SKIPPED: ${disk}`)
    return context.skip(disk)
  }
  cleanup.push(disk.stop)
  const world = await World.start({ directory: join(disk.path, "data"), resume: { leaseTtlMs: 1_000 } })
  cleanup.push(world.stop)
  const runs = await three(world, "frozen")
  disk.freeze()
  await world.upstream.release("Talk, frozen")
  await refuses(world, { ended: runs.ended, waiting: runs.waiting })
  const seen = runs.talking.reading.envelopes.length
  await refuses(world, { ended: runs.ended, waiting: runs.waiting })
  // Nothing that is not stored was shown.
  expect(runs.talking.reading.envelopes).toHaveLength(seen)
  expect((await world.client.snapshot(runs.talking.runId)).lastSeq).toBe(seen)
  await world.server().stop()
  disk.repair()
  await world.restart()
  await allGoOn(world, runs, seen)
}, 120_000)

test.for([
  { forMs: 0, leaseTtlMs: 30_000, attempts: 1 },
  { forMs: 7_000, leaseTtlMs: 1_000, attempts: 2 }
])(
  "a file that may not be written for a while ($forMs ms), under a server that runs: what is stored is read, and everything goes on",
  { timeout: 120_000 },
  async ({ attempts, forMs, leaseTtlMs }, context) => {
    const reason = Refusing.unavailable()
    if (reason !== undefined) {
      console.warn(`SKIPPED: ${reason}`)
      return context.skip(reason)
    }
    const world = await World.start({ resume: { leaseTtlMs } })
    cleanup.push(world.stop)
    const name = `for ${forMs}`
    const runs = await three(world, name)
    const end = await Refusing.begin(world.server().pid)
    cleanup.push(end)
    await world.upstream.release(`Talk, ${name}`)
    await refuses(world, runs)
    await pause(forMs)
    await refuses(world, runs)
    const seen = runs.talking.reading.envelopes.length
    expect((await world.client.snapshot(runs.talking.runId)).lastSeq).toBe(seen)
    await end()
    await allGoOn(world, runs, seen)
    expect(await runs.talking.reading.ended).toEqual(await world.client.log(runs.talking.runId))
    expect((await world.client.snapshot(runs.talking.runId)).attempt).toBe(attempts)
  }
)
