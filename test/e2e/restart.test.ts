import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, type Reading, typesOf } from "./support/Client.js"
import { hang } from "./support/ToolServer.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

/** Recovery is left to people here, so that the tests see what a dead process left behind. */
let world: World.World
const shutdownGraceMs = 4000
beforeAll(async () => {
  world = await World.start({ resume: { policy: "manual" }, limits: { shutdownGraceMs } })
})
afterAll(() => world.stop())

const runOf = (reading: Reading) => reading.headers.get("x-run-id") ?? ""

test("what a dead process left can be cancelled, continued or passed over; a waiting run just waits", async () => {
  const cancelled = await world.client.start("Left to be cancelled [slow 1000 20]")
  world.upstream.script("Left to be continued", [
    Script.reply([Script.text("half"), Script.gate("never")]),
    Script.answer("Whole.")
  ])
  const continued = await world.client.start("Left to be continued")
  world.tools.on("lookup", "half done", hang)
  world.upstream.script("Left with two calls", [
    Script.calls(
      { id: "call_a", name: "lookup", args: '{"q":"done"}' },
      { id: "call_b", name: "lookup", args: '{"q":"half done"}' }
    )
  ])
  const passed = await world.client.start("Left with two calls")
  world.upstream.script("Left to a person", [
    Script.calls({ id: "call_w", name: "save_note", args: '{"doc":"d","text":"t"}' }),
    Script.answer("Saved.")
  ])
  const waiting = await world.client.start("Left to a person")
  const pending = await world.client.waiting(waiting.runId)
  await world.client.until(cancelled.runId, "streaming", ({ text }) => text !== "")
  await world.client.until(continued.runId, "streaming", ({ text }) => text === "half")
  await world.client.until(passed.runId, "half done", ({ toolCalls }) => toolCalls[0]?.state === "done")
  await world.tools.received("lookup", "half done")
  const seen = await world.client.log(continued.runId)
  await world.restart()

  const { body } = await world.client.cancel(cancelled.runId)
  expect(body.status).toBe("cancelled")
  const reading = await world.client.resume(cancelled, 0)
  expect((await reading.ended).at(-1)?.event).toMatchObject({ type: "cancelled", by: "user" })
  expect(world.upstream.asked("Left to be cancelled [slow 1000 20]")).toHaveLength(1)
  await world.check(cancelled)

  const failed = await world.client.settled(continued.runId)
  expect([failed.status, failed.recoverable, failed.text]).toEqual(["failed", true, "half"])
  const log = await world.client.log(continued.runId)
  expect(log.slice(0, seen.length)).toEqual(seen)
  expect(log.at(-1)?.event.type).toBe("error")
  await (await world.client.resume(continued, failed.lastSeq)).ended
  expect((await world.client.snapshot(continued.runId)).text).toBe("Whole.")
  await world.check(continued)

  const left = await world.client.settled(passed.runId)
  expect([left.status, left.toolCalls.map(({ state }) => state)]).toEqual(["failed", ["done", "interrupted"]])
  await world.check(passed)
  expect((await world.client.settled(passed.runId)).cancelled?.by).toBe("superseded")

  const still = await world.client.snapshot(waiting.runId)
  expect([still.status, still.pendingApprovals]).toEqual(["waiting_approval", [pending]])
  await world.client.decide(waiting.runId, pending.approvalId, "approve", { previewHash: pending.previewHash })
  const end = await world.client.until(waiting.runId, "completed", ({ status }) => status === "completed")
  expect(end.text).toBe("Saved.")
  expect(world.tools.of(waiting.runId).map(({ phase }) => phase)).toEqual(["preview", "commit"])
  await world.check(waiting)
}, 120_000)

test("a server that is told to stop ends its streams cleanly, in time, and loses nothing", async () => {
  const message = "Streams until the end [slow 5000 20]"
  world.tools.on("lookup", "never ends", hang)
  world.upstream.script("A tool that never ends", [
    Script.calls({ id: "call_n", name: "lookup", args: '{"q":"never ends"}' })
  ])
  const streams = await Promise.all([0, 1, 2].map((i) => world.client.chat(`${i} ${message}`)))
  const tool = await world.client.chat("A tool that never ends")
  const silent = await world.client.chat("Waits for the model [hang]")
  const viewers = [
    ...streams,
    tool,
    silent,
    ...(await Promise.all(Array.from({ length: 5 }, (_, i) => world.client.events(runOf(streams[i % 3] ?? tool)))))
  ]
  await Promise.all(streams.map((reading) => reading.until("text", ({ type }) => type === "text-delta")))
  await world.tools.received("lookup", "never ends")
  const asked = Date.now()
  world.server().signal("SIGTERM")
  const refused = await eventually("new work to be refused", async () => {
    const answer = await world.client.call("POST", "/chat", { message: "Too late", background: true }).catch(() => null)
    return answer === null || answer.status === 503 ? { status: answer?.status } : undefined
  })
  expect([503, undefined]).toContain(refused.status)
  const logs = await Promise.all(viewers.map(({ ended }) => ended))
  const { code } = await world.server().exited
  expect(code).toBe(0)
  expect(Date.now() - asked).toBeLessThan(shutdownGraceMs + 3000)
  for (const log of logs) {
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
    for (const type of ["finish", "error", "cancelled"]) expect(typesOf(log)).not.toContain(type)
  }
  await world.restart()
  for (const [index, reading] of [...streams, tool, silent].entries()) {
    const left = await world.client.settled(runOf(reading))
    expect([left.status, left.recoverable]).toEqual(["failed", true])
    const log = await world.client.log(runOf(reading))
    expect(log.slice(0, logs[index]?.length)).toEqual(logs[index])
    expect(ofType(log, "error")).toHaveLength(1)
    await world.check(runOf(reading), { followUp: reading === tool })
  }
}, 120_000)
