import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, type Reading, typesOf } from "./support/Client.js"
import { hang } from "./support/ToolServer.js"
import { pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

const heartbeatMs = 300
const chunkTimeoutMs = 1500

let world: World.World
beforeAll(async () => {
  world = await World.start({
    limits: { chunkTimeoutMs, firstChunkTimeoutMs: 2500, heartbeatMs, approvalTtlMs: 2500, toolTimeoutMs: 60_000 }
  })
})
afterAll(() => world.stop())

const runOf = (reading: Reading) => reading.headers.get("x-run-id") ?? ""

test("a model that falls silent fails the run, which can be continued", async () => {
  const message = "Two pieces and silence"
  world.upstream.script(message, [
    Script.reply([Script.text("one "), Script.text("two")], { end: "open" }),
    Script.answer("one two three")
  ])
  const run = await world.client.start(message)
  const cut = await world.client.settled(run.runId)
  expect([cut.status, cut.recoverable, cut.text]).toEqual(["failed", true, "one two"])
  const request = await world.upstream.closed(message)
  expect(request.aborted).toBe(true)
  expect((request.closedAt ?? 0) - request.at).toBeGreaterThanOrEqual(chunkTimeoutMs)
  await (await world.client.resume(run, cut.lastSeq)).ended
  expect((await world.client.settled(run.runId)).text).toBe("one two three")
  await world.check(run)
})

test("a model that is slow but not silent is left alone", async () => {
  const message = "A piece now and then"
  const pieces = Array.from({ length: 7 }, (_, i) => [Script.text(`${i} `), Script.wait(700)]).flat()
  world.upstream.script(message, [Script.reply([pieces, Script.finish("stop"), Script.done])])
  const run = await world.client.start(message)
  expect((await world.client.settled(run.runId)).text).toBe("0 1 2 3 4 5 6 ")
  await world.check(run, { followUp: false })
})

test.each([
  ["comments", ": PROCESSING\n\n"],
  ["comments as data", "data: : keepalive\n\n"],
  ["bare events", "event: ping\n\n\n\n"]
])("a model that says it is working is waited for, and its words are not shown: %s", async (title, raw) => {
  const message = `Not yet, by ${title}`
  const alive = Array.from({ length: 10 }, () => [Script.raw(raw), Script.wait(350)]).flat()
  world.upstream.script(message, [
    Script.reply([alive, Script.text("The answer."), Script.finish("stop"), Script.done])
  ])
  const reading = await world.client.chat(message)
  const log = await reading.ended
  expect(log.at(-1)?.event.type).toBe("finish")
  expect(JSON.stringify(log)).not.toMatch(/PROCESSING|keepalive|ping/)
  expect(reading.comments.length).toBeGreaterThan(5)
  expect((await world.client.snapshot(runOf(reading))).text).toBe("The answer.")
  await world.check(runOf(reading), { followUp: false })
})

/** The longest time in which nothing came, once the first thing had. */
const longestSilence = (reading: Reading): number => {
  const moments = [...reading.times, ...reading.comments, Date.now()].sort((a, b) => a - b)
  return Math.max(0, ...moments.slice(1).map((at, index) => at - (moments[index] ?? at)))
}

test("a connection is never idle for long, whatever the run waits for", async () => {
  const quiet = async (reading: Reading) => {
    await pause(1800)
    expect(reading.comments.length).toBeGreaterThanOrEqual(3)
    expect(longestSilence(reading)).toBeLessThan(heartbeatMs * 4)
    reading.close()
  }
  // The first token does not come.
  const first = await world.client.chat("No first token [hang]")
  // Another run of the conversation waits behind it.
  await first.until("the start", ({ type }) => type === "run-start")
  const { conversationId } = await world.client.snapshot(runOf(first))
  const queued = await world.client.chat({ message: "In the queue", conversationId })
  await queued.until("its place", (event) => event.type === "run-status" && event.status === "queued")
  // A tool takes its time.
  world.tools.on("lookup", "slow tool", hang)
  world.upstream.script("A slow tool", [
    Script.calls({ id: "call_s", name: "lookup", args: '{"q":"slow tool"}' }),
    Script.answer("Done.")
  ])
  const tool = await world.client.chat("A slow tool")
  await tool.until("the tool", ({ type }) => type === "tool-start")
  const late = await world.client.events(runOf(tool))
  await Promise.all([first, queued, tool, late].map(quiet))
  for (const reading of [queued, first, tool]) {
    await world.client.cancel(runOf(reading))
    await world.check(runOf(reading), { followUp: reading === tool })
  }
})

test("a proposal that nobody decides on expires, and the run goes on without it", async () => {
  const message = "Nobody decides"
  world.upstream.script(message, [
    Script.calls({ id: "call_x", name: "save_note", args: '{"doc":"d","text":"t"}' }),
    Script.answer("Then not.")
  ])
  const reading = await world.client.chat(message)
  const runId = runOf(reading)
  const pending = await world.client.waiting(runId)
  const log = await reading.ended
  expect(reading.comments.length).toBeGreaterThanOrEqual(3)
  expect(ofType(log, "approval-decision").map(({ decision }) => decision)).toEqual(["expired"])
  const end = await world.client.snapshot(runId)
  expect([end.status, end.text, end.toolCalls[0]?.state, end.pendingApprovals]).toEqual([
    "completed",
    "Then not.",
    "expired",
    []
  ])
  for (const decision of ["approve", "reject"]) {
    expect((await world.client.decide(runId, pending.approvalId, decision)).status).toBe(409)
  }
  expect(world.tools.of(runId, "commit")).toEqual([])
  expect(typesOf(await world.client.log(runId))).toEqual(typesOf(log))
  await world.check(runId)
  const again = await world.client.start({ message: "Anything else?", conversationId: end.conversationId })
  expect((await world.client.settled(again.runId)).status).toBe("completed")
})
