import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, typesOf } from "./support/Client.js"
import { hang, send } from "./support/ToolServer.js"
import { eventually, pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start({ tools: [], limits: { maxConcurrentRuns: 20 } })
})
afterAll(() => world.stop())

const slowly = (count: number, waitMs: number) =>
  Script.reply([
    Array.from({ length: count }, (_, i) => [Script.text(`${i} `), Script.wait(waitMs)]).flat(),
    Script.finish("stop"),
    Script.done
  ])

const streaming = (runId: string) => world.client.until(runId, "streaming", ({ text }) => text.length > 3)

test("a cancel closes the connection to the model and keeps the text", async () => {
  const message = "Stop me"
  world.upstream.script(message, [slowly(600, 50)])
  const run = await world.client.start(message)
  const viewer = await world.client.events(run.runId)
  await streaming(run.runId)
  const asked = Date.now()
  const answer = await world.client.cancel(run.runId)
  expect([answer.status, answer.body.status]).toEqual([200, "cancelled"])
  const request = await world.upstream.closed(message)
  expect(request.aborted).toBe(true)
  expect((request.closedAt ?? 0) - asked).toBeLessThan(1000)
  const log = await viewer.ended
  expect(log.at(-1)?.event).toMatchObject({ type: "cancelled", by: "user" })
  expect(answer.body.lastSeq).toBe(log.at(-1)?.seq)
  const shown = await world.client.snapshot(run.runId)
  expect(shown.text).toMatch(/^0 1 /)
  await pause(300)
  expect(await world.client.snapshot(run.runId)).toEqual(shown)
  await world.check(run)
})

test("a run does not need a viewer, and any viewer can stop it", async () => {
  const alone = "Nobody looks"
  world.upstream.script(alone, [slowly(40, 20)])
  const reading = await world.client.chat(alone)
  await eventually("three events", () => (reading.envelopes.length > 2 ? true : undefined))
  reading.close()
  const runId = reading.headers.get("x-run-id") ?? ""
  expect((await world.client.settled(runId)).status).toBe("completed")
  await world.check(runId)

  const shared = "Somebody else looks"
  world.upstream.script(shared, [slowly(1000, 20)])
  const first = await world.client.chat(shared)
  await first.until("text", ({ type }) => type === "text-delta")
  first.close()
  const other = first.headers.get("x-run-id") ?? ""
  const viewers = await Promise.all([world.client.events(other), world.client.events(other, 3)])
  await world.client.cancel(other)
  for (const viewer of viewers) expect((await viewer.ended).at(-1)?.event.type).toBe("cancelled")
  expect((await world.upstream.closed(shared)).aborted).toBe(true)
  await world.check(other)
})

test("what was there when a run was stopped stays, and is told to the model", async () => {
  const message = "A tool, and text, and a stop"
  world.upstream.script(message, [
    Script.calls({ id: "call_t", name: "lookup", args: '{"q":"x"}' }),
    Script.reply([Script.text("y".repeat(200)), Script.gate("never")])
  ])
  const run = await world.client.start(message)
  await world.client.until(run.runId, "at its text", ({ text }) => text.length === 200)
  await world.client.cancel(run.runId)
  const shown = await world.client.snapshot(run.runId)
  expect([shown.status, shown.text.length, shown.toolCalls[0]?.state]).toEqual(["cancelled", 200, "done"])
  await world.check(run)
  const told = Script.messagesOf(await world.upstream.received(`And then? ${run.runId}`))
  expect(told.filter(({ role }) => role !== "system").map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
    "user"
  ])
})

test("a cancel that meets the end of a run agrees with it", async () => {
  const outcomes = new Set<string>()
  for (let round = 0; round < 4; round++) {
    await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const message = `Short ${round} ${i}`
        world.upstream.script(message, [slowly(3, 5)])
        const run = await world.client.start(message)
        await world.upstream.received(message)
        await pause(Math.random() * 40)
        const { body, status } = await world.client.cancel(run.runId)
        expect(status).toBe(200)
        const shown = await world.client.snapshot(run.runId)
        const log = await world.client.log(run.runId)
        const last = log.at(-1)
        expect([body.status, body.lastSeq]).toEqual([shown.status, shown.lastSeq])
        expect([last?.event.type, last?.seq]).toEqual([
          shown.status === "completed" ? "finish" : "cancelled",
          shown.lastSeq
        ])
        outcomes.add(shown.status)
        if (i === 0) {
          await world.check(run)
          expect(await world.client.log(run.runId)).toEqual(log)
        }
      })
    )
  }
  expect(outcomes).toContain("cancelled")
})

test("a run that is cancelled in the queue never starts, and does not hold up the next", async () => {
  const first = await world.client.start("Busy [slow 100 30]")
  const { conversationId } = first
  const second = await world.client.start({ message: "Never asked", conversationId })
  const third = await world.client.start({ message: "Comes third", conversationId })
  expect([second.status, third.status]).toEqual(["queued", "queued"])
  const places = await Promise.all([second, third].map(({ runId }) => world.client.snapshot(runId)))
  expect(Number(places[1]?.queuePosition) - Number(places[0]?.queuePosition)).toBe(1)
  const answer = await world.client.cancel(second.runId)
  expect(answer.body.status).toBe("cancelled")
  expect(["running", "streaming"]).toContain((await world.client.snapshot(first.runId)).status)
  expect((await world.client.settled(third.runId)).status).toBe("completed")
  expect((await world.client.snapshot(first.runId)).status).toBe("completed")
  expect(world.upstream.asked("Never asked")).toEqual([])
  for (const { runId } of [first, second, third]) await world.check(runId, { followUp: runId === third.runId })
})

test("a cancel closes the connection to a tool that never answers", async () => {
  const message = "A tool that hangs"
  world.tools.on("lookup", "hangs", hang)
  world.upstream.script(message, [Script.calls({ id: "call_h", name: "lookup", args: '{"q":"hangs"}' })])
  const run = await world.client.start(message)
  await world.tools.received("lookup", "hangs")
  const asked = Date.now()
  await world.client.cancel(run.runId)
  const request = await world.tools.closed("lookup", "hangs")
  expect(request.aborted).toBe(true)
  expect((request.closedAt ?? 0) - asked).toBeLessThan(1000)
  await world.check(run)
})

test("a tool's late answer changes nothing", async () => {
  const message = "A tool that is late"
  world.tools.on("lookup", "late", (_, response) => void setTimeout(() => send(response, "late"), 400))
  world.upstream.script(message, [Script.calls({ id: "call_l", name: "lookup", args: '{"q":"late"}' })])
  const run = await world.client.start(message)
  await world.tools.received("lookup", "late")
  const { body } = await world.client.cancel(run.runId)
  expect(body.status).toBe("cancelled")
  const log = await world.client.log(run.runId)
  await pause(700)
  expect(await world.client.log(run.runId)).toEqual(log)
  expect(world.upstream.asked(message)).toHaveLength(1)
  await world.check(run)
})

test.each([
  [
    "while arguments come",
    Script.reply([
      Script.text("I look."),
      Script.toolCall({ index: 0, id: "call_1", name: "lookup", args: '{"q":' }),
      Script.gate("never")
    ]),
    (runId: string) => world.client.until(runId, "calling", ({ toolCalls }) => toolCalls.length === 1)
  ],
  [
    "while a tool runs",
    Script.calls({ id: "call_2", name: "lookup", args: '{"q":"alone"}' }),
    () => world.tools.received("lookup", "alone")
  ],
  [
    "while one of two tools runs",
    Script.calls(
      { id: "call_3", name: "lookup", args: '{"q":"done"}' },
      { id: "call_4", name: "lookup", args: '{"q":"in parallel"}' }
    ),
    (runId: string) => world.client.until(runId, "half done", ({ toolCalls }) => toolCalls[0]?.state === "done")
  ]
])("after a stop %s a strict model still understands the conversation", async (title, reply, ready) => {
  world.tools.on("lookup", "alone", hang)
  world.tools.on("lookup", "in parallel", hang)
  const message = `Stopped ${title}`
  world.upstream.script(message, [reply])
  const run = await world.client.start(message)
  await ready(run.runId)
  await world.client.cancel(run.runId)
  await world.check(run)
})

test("a new message after a stop is a new run that ends with this message", async () => {
  world.tools.on("lookup", "stopped", hang)
  world.upstream.script("First a tool", [Script.calls({ id: "call_5", name: "lookup", args: '{"q":"stopped"}' })])
  world.upstream.script("First a write", [
    Script.calls({ id: "call_6", name: "save_note", args: '{"doc":"a","text":"b"}' })
  ])
  for (const message of ["First a tool", "First a write"]) {
    const run = await world.client.start(message)
    if (message === "First a tool") await world.tools.received("lookup", "stopped")
    else await world.client.waiting(run.runId)
    await world.client.cancel(run.runId)
    const next = `start over: hello (${message})`
    const again = await world.client.start({ message: next, conversationId: run.conversationId })
    expect(again.runId).not.toBe(run.runId)
    expect((await world.client.settled(again.runId)).status).toBe("completed")
    const told = Script.messagesOf(await world.upstream.received(next))
    expect(told.at(-1)).toMatchObject({ role: "user", content: next })
    expect(told.filter(({ content }) => content === next)).toHaveLength(1)
    await world.check(run, { followUp: false })
    await world.check(again)
  }
  expect(world.tools.ledger.filter(({ phase }) => phase === "commit")).toEqual([])
})

test("cancelling again and again, and cancelling what has ended, answers with the final state", async () => {
  const run = await world.client.start("Ten times [hang]")
  await world.upstream.received("Ten times [hang]")
  const answers = await Promise.all(Array.from({ length: 10 }, () => world.client.cancel(run.runId)))
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect(answers[0]?.status).toBe(200)
  expect(ofType(await world.client.log(run.runId), "cancelled")).toHaveLength(1)
  await world.check(run)

  const over = await world.client.start("Over before")
  await world.client.settled(over.runId)
  expect((await world.client.cancel(over.runId)).body.status).toBe("completed")
  await world.check(over)

  world.upstream.script("Broken for good", [Script.body(401, "application/json", "{}")])
  const failed = await world.client.start("Broken for good")
  await world.client.settled(failed.runId)
  expect((await world.client.cancel(failed.runId)).body.status).toBe("failed")
  expect((await world.client.cancel(run.runId)).body.status).toBe("cancelled")
  await world.check(failed)

  const unknown = await world.client.cancel("run_00000000-0000-7000-8000-000000000000")
  expect([unknown.status, unknown.body._tag]).toEqual([404, "NotFound"])
})

test("a failure that could be continued can be cancelled, and is not revived then", async () => {
  const message = "Failed, then given up"
  world.upstream.script(message, [Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" })])
  const run = await world.client.start(message)
  await world.client.settled(run.runId)
  const { body } = await world.client.cancel(run.runId)
  expect(body.status).toBe("cancelled")
  const reading = await world.client.resume(run, body.lastSeq)
  expect(await reading.ended).toEqual([])
  expect((await world.client.snapshot(run.runId)).status).toBe("cancelled")
  expect(world.upstream.asked(message)).toHaveLength(1)
  await world.check(run)
})

test("regenerating twice and then going on keeps each answer to itself", async () => {
  const message = "Say it again"
  world.upstream.script(message, (_, n) => slowly(n === 2 ? 5 : 500, 20))
  const first = await world.client.start(message)
  const regenerate = (runId: string) => world.client.call("POST", `/runs/${runId}/regenerate`, { background: true })
  await streaming(first.runId)
  const second = (await regenerate(first.runId)).body
  await streaming(second.runId)
  const third = (await regenerate(second.runId)).body
  const next = "And now something else"
  const fourth = await world.client.start({ message: next, conversationId: first.conversationId })
  expect((await world.client.settled(third.runId)).status).toBe("completed")
  expect((await world.client.settled(fourth.runId)).status).toBe("completed")
  const runs = await Promise.all([first, second, third].map(({ runId }) => world.client.snapshot(runId)))
  expect(runs.map(({ regeneratedFrom, status }) => [status, regeneratedFrom])).toEqual([
    ["cancelled", undefined],
    ["cancelled", first.runId],
    ["completed", second.runId]
  ])
  expect(new Set(runs.map(({ userMessageId }) => userMessageId)).size).toBe(1)
  expect(new Set(runs.map(({ assistantMessageId }) => assistantMessageId)).size).toBe(3)
  expect(runs[0]?.cancelled?.by).toBe("superseded")
  expect(runs[2]?.text).toBe("0 1 2 3 4 ")
  const told = Script.messagesOf(await world.upstream.received(next))
  expect(told.filter(({ role }) => role !== "system").map(({ content }) => content)).toEqual([
    message,
    "0 1 2 3 4 ",
    next
  ])
  for (const { runId } of runs) await world.check(runId, { followUp: runId === third.runId })
})

test("a reload asks the model nothing, and a regenerated answer asks it once", async () => {
  const message = "Reloaded"
  world.upstream.script(message, [slowly(30, 20)])
  const run = await world.client.start(message)
  await streaming(run.runId)
  for (let i = 0; i < 3; i++) {
    await world.client.snapshot(run.runId)
    ;(await world.client.events(run.runId)).close()
  }
  await world.client.settled(run.runId)
  expect(world.upstream.asked(message)).toHaveLength(1)
  const reading = await world.client.open(`/runs/${run.runId}/regenerate`, { body: {} })
  expect(reading.headers.get("location")).toBe(`/runs/${reading.headers.get("x-run-id")}`)
  expect(typesOf(await reading.ended).at(-1)).toBe("finish")
  expect(world.upstream.asked(message)).toHaveLength(2)
  await world.check(reading.headers.get("x-run-id") ?? "")
})
