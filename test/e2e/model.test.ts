import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, typesOf } from "./support/Client.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

test("a call whose later fragments repeat an empty id and name is one call", async () => {
  const message = "Fragments with empty ids"
  world.upstream.script(message, [
    Script.reply([
      Script.toolCall({ index: 0, id: "call_a", name: "lookup", args: '{"q":' }),
      Script.toolCall({ index: 0, id: "", name: "", args: '"x' }),
      Script.toolCall({ index: 0, id: "", name: "", args: " y" }),
      Script.toolCall({ index: 0, id: "", name: "", args: '"}' }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.answer("Found.")
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("completed")
  expect(end.toolCalls.map((call) => [call.toolCallId, call.toolName, call.input])).toEqual([
    ["call_a", "lookup", { q: "x y" }]
  ])
  expect(world.tools.of(runId)).toHaveLength(1)
  const messages = Script.messagesOf(await world.upstream.received(message, 1))
  expect(messages.filter(({ tool_call_id }) => tool_call_id === "call_a")).toHaveLength(1)
  expect(JSON.stringify(messages).split('"call_a"')).toHaveLength(3)
  await world.check(runId)
})

const interleaved = (pieces: (args: string) => ReadonlyArray<string>) => {
  const steps: Array<Script.Step> = [
    Script.toolCall({ index: 0, id: "call_A", name: "lookup", args: "" }),
    Script.toolCall({ index: 1, id: "call_B", name: "read_doc", args: "" })
  ]
  const first = pieces('{"q":"for-A"}')
  const second = pieces('{"id":"for-B"}')
  for (let i = 0; i < Math.max(first.length, second.length); i++) {
    if (first[i] !== undefined) steps.push(Script.toolCall({ index: 0, args: first[i] }))
    if (second[i] !== undefined) steps.push(Script.toolCall({ index: 1, args: second[i] }))
  }
  return Script.reply([steps, Script.finish("tool_calls"), Script.done])
}

test.each([
  ["whole", (args: string) => [args]],
  ["one character each", (args: string) => [...args]]
])("fragments without an id belong to the call of their index: %s", async (title, pieces) => {
  const message = `Two calls at once, ${title}`
  world.upstream.script(message, [interleaved(pieces), Script.answer("Both.")])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("completed")
  expect(
    world.tools
      .of(runId)
      .map(({ input, tool }) => [tool, input])
      .sort()
  ).toEqual([
    ["lookup", { q: "for-A" }],
    ["read_doc", { id: "for-B" }]
  ])
  const log = await world.client.log(runId)
  const argumentsOf = (id: string) =>
    ofType(log, "tool-call-delta")
      .filter(({ toolCallId }) => toolCallId === id)
      .map(({ delta }) => delta)
      .join("")
  expect(argumentsOf("call_A")).toBe('{"q":"for-A"}')
  expect(argumentsOf("call_B")).toBe('{"id":"for-B"}')
  await world.check(runId)
})

test("a call without any id gets one, which stays the same everywhere, also after a resume", async () => {
  const message = "A call without an id"
  world.upstream.script(message, [
    Script.reply([
      Script.toolCall({ index: 0, name: "lookup", args: '{"q":"a"}' }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.reply([Script.text("Half"), Script.wait(50)], { framing: "close" }),
    Script.answer("Whole.")
  ])
  const run = await world.client.start(message)
  expect((await world.client.settled(run.runId)).status).toBe("failed")
  const resumed = await world.client.resume(run, 0)
  await resumed.ended
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", "Whole."])
  const [call] = end.toolCalls
  expect(call?.toolCallId).toMatch(/./)
  const ids = resumed.envelopes.flatMap(({ event }) => ("toolCallId" in event ? [event.toolCallId] : []))
  expect(new Set(ids)).toEqual(new Set([call?.toolCallId]))
  expect(world.tools.of(run.runId)).toHaveLength(1)
  for (const request of world.upstream.asked(message).slice(1)) {
    const [answer] = Script.messagesOf(request).filter(({ role }) => role === "tool")
    expect(answer?.tool_call_id).toBe(call?.toolCallId)
  }
  await world.check(run)
})

test("bytes that end without a finish reason are a failure that can be continued, without repeating anything", async () => {
  const message = "Ten pieces, then the end of the connection"
  world.upstream.script(message, [
    Script.reply([Array.from({ length: 10 }, (_, i) => Script.text(`${i} `)), Script.wait(50)], { framing: "close" }),
    Script.answer("0 1 2 3 4 5 6 7 8 9 10")
  ])
  const run = await world.client.start(message)
  const cut = await world.client.settled(run.runId)
  expect([cut.status, cut.recoverable, cut.text]).toEqual(["failed", true, "0 1 2 3 4 5 6 7 8 9 "])
  expect(cut.error?.code).toBe("truncated")
  await world.check(run, { followUp: false })
  const resumed = await world.client.resume(run, cut.lastSeq, { assistantMessageId: run.assistantMessageId })
  expect(typesOf(await resumed.ended)[0]).toBe("run-resumed")
  expect(resumed.controls[0]).toEqual({
    type: "resume-start",
    runId: run.runId,
    fromSeq: cut.lastSeq,
    replayedCount: 1
  })
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text, end.attempt]).toEqual(["completed", "0 1 2 3 4 5 6 7 8 9 10", 2])
  await world.check(run)
})

test.each([
  ["silence", []],
  ["keep-alives", Array.from({ length: 30 }, () => [Script.wait(200), Script.comment("keep-alive")]).flat()],
  ["more text", [Script.wait(50), Script.text("never shown")]]
])("an answer is over at its end marker, whatever the connection does: %s", async (title, rest) => {
  const message = `An end marker and then ${title}`
  world.upstream.script(message, [
    Script.reply([Script.text("All of it."), Script.finish("stop"), Script.done, ...rest], { end: "open" })
  ])
  const asked = Date.now()
  const reading = await world.client.chat(message)
  await reading.ended
  const request = await world.upstream.closed(message)
  expect((request.closedAt ?? 0) - asked).toBeLessThan(5000)
  const runId = reading.headers.get("x-run-id") ?? ""
  const end = await world.client.snapshot(runId)
  expect([end.status, end.text]).toEqual(["completed", "All of it."])
  await world.check(runId, { followUp: title === "silence" })
})

const busy = { error: { type: "overloaded_error", message: "busy" } }
const three = [Script.text("one "), Script.text("two "), Script.text("three")]

test.each([
  ["a frame", [...three, Script.data(busy)]],
  [
    "a frame in the middle of a call",
    [...three, Script.toolCall({ index: 0, id: "call_half", name: "lookup", args: '{"q":"ha' }), Script.data(busy)]
  ],
  ["an error event", [...three, Script.raw(`event: error\ndata: ${JSON.stringify(busy.error)}\n\n`)]]
])("an error inside the stream fails the run and keeps its text: %s", async (title, steps) => {
  const message = `An error as ${title}`
  world.upstream.script(message, [Script.reply(steps)])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.recoverable, end.text]).toEqual(["failed", true, "one two three"])
  expect(world.tools.of(runId)).toEqual([])
  expect(typesOf(await world.client.log(runId))).not.toContain("finish")
  await world.check(runId)
})

test.each([
  ["an error as JSON", Script.body(200, "application/json", '{"error":{"message":"model not loaded"}}')],
  ["a login page", Script.body(200, "text/html", "<!doctype html><title>Sign in</title><form>secret-form</form>")],
  ["no bytes at all", Script.reply([])],
  ["a gateway's page with the request's key", Script.body(502, "text/html", `<html>Bearer ${World.apiKey}</html>`)],
  [
    "a refusal with the request's key",
    Script.body(401, "application/json", `{"error":{"message":"bad key ${World.apiKey}"}}`)
  ]
])("an answer that is no stream fails the run in readable words: %s", async (title, reply) => {
  const message = `Instead of a stream ${title}`
  world.upstream.script(message, [reply])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("failed")
  expect(end.error?.message).toMatch(/^[A-Z].{10,300}\.$/)
  expect(JSON.stringify(await world.client.log(runId))).not.toMatch(/<html|doctype|secret-form|canary/)
  expect(world.upstream.asked(message).length).toBeLessThan(8)
  await world.check(runId)
})

test.each([
  ["cut in the middle", `{"doc":"a","text":"${"x".repeat(2000)}`],
  ["cut where it happens to be whole", '{"doc":"a","text":"b"}']
])("a call whose turn was cut off is neither previewed nor run: %s", async (title, args) => {
  const message = `A write ${title}`
  world.upstream.script(message, [
    Script.reply([Script.toolCall({ index: 0, id: "call_w", name: "save_note", args }), Script.wait(50)], {
      framing: "close"
    })
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.recoverable]).toEqual(["failed", true])
  expect(world.tools.of(runId)).toEqual([])
  expect(end.pendingApprovals).toEqual([])
  await world.check(runId)
})

test.each([
  ["an unfinished text", '{"q":"unterminated'],
  ["bare words", "{q: x}"],
  ["null", "null"],
  ["a list", "[]"],
  ["a text", '"text"'],
  ["a number", "42"]
])("arguments that are no JSON object are answered to the model and never run: %s", async (title, args) => {
  const message = `Bad arguments: ${title}`
  world.upstream.script(message, [
    Script.calls({ id: "call_bad", name: "lookup", args }),
    Script.calls({ id: "call_good", name: "lookup", args: '{"q":"x"}' }),
    Script.answer("Found.")
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("completed")
  expect(world.tools.of(runId).map(({ input }) => input)).toEqual([{ q: "x" }])
  expect(
    ofType(await world.client.log(runId), "tool-call-result").map(({ ok, toolCallId }) => [toolCallId, ok])
  ).toEqual([
    ["call_bad", false],
    ["call_good", true]
  ])
  const told = Script.messagesOf(await world.upstream.received(message, 1)).find(
    ({ tool_call_id }) => tool_call_id === "call_bad"
  )
  expect(told?.content).toMatch(/argument|JSON/i)
  await world.check(runId, { followUp: args === "null" || args.startsWith("{") })
})

test("empty arguments of a tool without parameters count as an empty object", async () => {
  const message = "What time is it?"
  world.upstream.script(message, [Script.calls({ id: "call_now", name: "now", args: "" }), Script.answer("Noon.")])
  const { runId } = await world.client.start(message)
  expect((await world.client.settled(runId)).status).toBe("completed")
  expect(world.tools.of(runId).map(({ input }) => input)).toEqual([{}])
  await world.check(runId)
})

test("a whole call is run whatever the finish reason says", async () => {
  const message = "A call and a stop"
  world.upstream.script(message, [
    Script.reply([
      Script.toolCall({ index: 0, id: "call_s", name: "lookup", args: '{"q":"x"}' }),
      Script.finish("stop"),
      Script.done
    ]),
    Script.answer("Found.")
  ])
  const { runId } = await world.client.start(message)
  expect((await world.client.settled(runId)).text).toBe("Found.")
  expect(world.tools.of(runId)).toHaveLength(1)
  await world.check(runId)
})

test.each([
  ["text", [Script.text("Just text.")], "completed"],
  ["text and an empty list", [Script.text("Just text."), Script.delta({ tool_calls: [] })], "completed"],
  ["nothing", [], "failed"],
  ["an empty list", [Script.delta({ tool_calls: [] })], "failed"]
])("a turn that announces calls and has none comes to an end: %s", async (title, steps, status) => {
  const message = `Announced calls with ${title}`
  world.upstream.script(message, [Script.reply([...steps, Script.finish("tool_calls"), Script.done])])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe(status)
  if (status === "failed") expect(end.error?.message).toMatch(/\w/)
  expect(world.upstream.asked(message)).toHaveLength(1)
  await world.check(runId)
})

test.each([
  ["an empty list", { choices: [] }],
  ["null", { choices: null }],
  ["nothing", {}]
])("chunks without a choice are no trouble, and their usage counts: %s", async (title, chunk) => {
  const message = `Chunks whose choices are ${title}`
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
  world.upstream.script(message, [
    Script.reply([
      Script.text("one "),
      Script.data(chunk),
      Script.text("two"),
      Script.finish("stop"),
      Script.data({ ...chunk, usage }),
      Script.done
    ])
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.text, end.usage.inputTokens, end.usage.outputTokens]).toEqual(["completed", "one two", 7, 3])
  await world.check(runId, { followUp: false })
})

test("reasoning comes before text, with null where there is none", async () => {
  const message = "Fifty thoughts"
  const thoughts = Array.from({ length: 50 }, (_, i) => Script.reasoning(`t${i} `))
  const words = Array.from({ length: 10 }, (_, i) => Script.delta({ content: `w${i} `, reasoning_content: null }))
  world.upstream.script(message, [Script.reply([thoughts, words, Script.finish("stop"), Script.done])])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("completed")
  expect(end.reasoning.trim().split(" ")).toHaveLength(50)
  expect(end.text.trim().split(" ")).toHaveLength(10)
  expect(end.parts.map((part) => part.type)).toEqual(["reasoning", "text"])
  await world.check(runId)
})

test("thoughts without an answer end the run after few requests, with words for the user", async () => {
  const message = "Only thoughts"
  world.upstream.script(message, [Script.reply([Script.reasoning("Hm."), Script.finish("stop"), Script.done])])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect(end.status).toBe("failed")
  expect(end.error?.code).toBe("empty_answer")
  expect(end.error?.message).toMatch(/\w/)
  expect(world.upstream.asked(message).length).toBeLessThanOrEqual(3)
  await world.check(runId)
})

test("markup of another protocol in the text runs no tool", async () => {
  const message = "Markup as text"
  const pieces = ["Sure <｜DS", 'ML｜tool_calls><｜DSML｜invoke name="save_note">{"doc":"a"}', "</｜DSML｜tool_calls>"]
  world.upstream.script(message, [Script.answer(...pieces)])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.text, end.toolCalls]).toEqual(["completed", pieces.join(""), []])
  expect(world.tools.of(runId)).toEqual([])
  await world.check(runId)
})

test.each([
  ["text", [Script.text("The tide tur")], Script.answer("The tide turns at noon."), "The tide turns at noon."],
  [
    "arguments",
    [Script.toolCall({ index: 0, id: "call_r", name: "lookup", args: '{"q":"ti' })],
    Script.answer("The tide turns at noon."),
    "The tide turns at noon."
  ]
])("output of two tries is never joined: %s", async (title, first, second, text) => {
  const message = `A reset in the middle of ${title}`
  world.upstream.script(message, [Script.reply([...first, Script.wait(50)], { end: "reset" }), second])
  const run = await world.client.start(message)
  const cut = await world.client.settled(run.runId)
  expect([cut.status, cut.recoverable]).toEqual(["failed", true])
  expect(world.upstream.asked(message)).toHaveLength(1)
  const resumed = await world.client.resume(run, cut.lastSeq)
  await resumed.ended
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text, end.toolCalls]).toEqual(["completed", text, []])
  expect(world.tools.of(run.runId)).toEqual([])
  await world.check(run)
})

test("a failure before any output is tried again", async () => {
  const message = "Busy at first"
  world.upstream.script(message, [
    Script.body(429, "application/json", "{}", { "retry-after": "0" }),
    Script.answer("Now.")
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.text]).toEqual(["completed", "Now."])
  expect(typesOf(await world.client.log(runId))).toContain("model-retry")
  await world.check(runId, { followUp: false })
})

test.each([
  ["a typing error", "lookupp"],
  ["constructor", "constructor"],
  ["toString", "toString"],
  ["__proto__", "__proto__"],
  ["nothing", ""],
  ["10 kB", "x".repeat(10_000)]
])("an unknown tool is answered with the names of the known ones: %s", async (title, name) => {
  const message = `A tool named ${title}`
  world.upstream.script(message, [
    Script.calls({ id: "call_u", name, args: '{"q":"x"}' }),
    Script.calls({ id: "call_k", name: "lookup", args: '{"q":"x"}' }),
    Script.answer("Found.")
  ])
  const { runId } = await world.client.start(message)
  const end = await world.client.settled(runId)
  expect([end.status, end.text]).toEqual(["completed", "Found."])
  expect(world.tools.of(runId)).toHaveLength(1)
  const second = Script.messagesOf(await world.upstream.received(message, 1))
  expect(second.find(({ role }) => role === "tool")?.content).toMatch(/lookup.*save_note/)
  await world.check(runId, { followUp: name === "" || name.length > 1000 })
})
