import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Sse from "../../src/http/Sse.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType } from "./support/Client.js"
import { send } from "./support/ToolServer.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

const said = "春眠不觉晓 🐼 é עברית"

const toldOf = (request: Script.UpstreamRequest) => Script.messagesOf(request).filter(({ role }) => role === "tool")

test.each([1, 2, 3])("text and arguments that arrive in pieces of %i bytes are whole", async (pieceBytes) => {
  const message = `Bytes by ${pieceBytes}`
  const args = JSON.stringify({ q: said })
  world.upstream.script(message, [
    {
      ...Script.reply([
        Script.text(said),
        Script.toolCall({ index: 0, id: "call_b", name: "lookup", args }),
        Script.finish("tool_calls"),
        Script.done
      ]),
      pieceBytes
    },
    { ...Script.answer(said), pieceBytes }
  ])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", said + said])
  expect(world.tools.of(run.runId)[0]?.input).toEqual({ q: said })
  await world.check(run)
})

test("our own stream can be cut anywhere", async () => {
  const run = await world.client.start(said)
  await world.client.settled(run.runId)
  const log = await world.client.log(run.runId)
  const response = await fetch(`${world.url()}/runs/${run.runId}/events`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  const seen: Array<unknown> = []
  const parser = Sse.makeParser({ onEvent: ({ data }) => seen.push(JSON.parse(data)) })
  for (let i = 0; i < bytes.length; i++) parser.push(bytes.subarray(i, i + 1))
  expect(seen).toEqual(log)
  expect(JSON.stringify(seen)).toContain(said)
})

const chunks = (content: string, reason: string | null) =>
  JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: reason }] })

/** Two data lines of one frame are joined by a line break, which JSON allows between its tokens. */
const framed = (json: string, eol: string, field: string) => {
  const [head, ...rest] = json.split(",")
  return `${field}${head},${eol}${field}${rest.join(",")}${eol}${eol}`
}

test.each([
  ["LF", "\n", "data: ", ""],
  ["CRLF", "\r\n", "data: ", ""],
  ["CR", "\r", "data: ", ""],
  ["no blank behind the colon", "\n", "data:", ""],
  ["a byte order mark", "\r\n", "data: ", "\ufeff"]
])("frames mean the same in every framing: %s", async (title, eol, field, start) => {
  const message = `Framed with ${title}`
  const text = [
    start,
    framed(chunks("one ", null), eol, field),
    framed(chunks("two", null), "\n", field),
    framed(chunks("", "stop"), eol, field),
    `${field}[DONE]${eol}${eol}`
  ].join("")
  world.upstream.script(message, [{ steps: [{ text }], pieceBytes: 1 }])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", "one two"])
  await world.check(run, { followUp: title === "CR" })
})

describe("frames at the edge", () => {
  test("a last frame that is whole but for its blank line counts for the text, and the answer is still cut off", async () => {
    const message = "No blank line at the end"
    world.upstream.script(message, [
      Script.reply([Script.text("one "), Script.raw(`data: ${chunks("two", null)}\n`)], { framing: "close" })
    ])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.recoverable, end.text]).toEqual(["failed", true, "one two"])
    await world.check(run)
  })

  test("empty data, bare events and unknown fields say nothing", async () => {
    const message = "Odd frames"
    const odd = [
      "data:\n\n",
      "data: \n\n",
      "event: ping\n\n",
      "foo: bar\n\n",
      "id: 7\nretry: 1\n\n",
      "\n\n\n",
      "data: : keepalive\n\n"
    ]
    world.upstream.script(message, [
      Script.reply([
        odd.map(Script.raw),
        Script.text("one "),
        odd.map(Script.raw),
        Script.text("two"),
        Script.finish("stop"),
        odd.map(Script.raw),
        Script.done
      ])
    ])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.text]).toEqual(["completed", "one two"])
    await world.check(run, { followUp: false })
  })

  test("a line of two megabytes is a line", async () => {
    const message = "A long line"
    const text = "0123456789abcdef".repeat(131_072)
    world.upstream.script(message, [Script.answer(text)])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.text.length, end.text === text]).toEqual(["completed", text.length, true])
    await world.check(run, { followUp: false })
  })
})

test("a text of ten megabytes is refused from a person, cut from a tool, and whole from a model, in events of bounded size", async () => {
  const text = "0123456789abcd😀".repeat(650_000)
  const refused = await world.client.call("POST", "/chat", { message: text, background: true })
  expect([refused.status, refused.body._tag, refused.body.limit]).toEqual([413, "PayloadTooLarge", "maxBodyBytes"])

  const message = "Ten megabytes"
  world.tools.on("lookup", message, (_, response) => send(response, { text }))
  world.upstream.script(message, [
    Script.calls({ id: "call_t", name: "lookup", args: JSON.stringify({ q: message }) }),
    Script.answer(text)
  ])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text === text]).toEqual(["completed", true])
  expect(end.toolCalls[0]).toMatchObject({ ok: true, result: { truncated: true } })
  const told = String(toldOf(await world.upstream.received(message, 1))[0]?.content)
  expect(Buffer.byteLength(told)).toBeLessThanOrEqual(262_144)
  expect(JSON.parse(told)).toMatchObject({ truncated: true, message: expect.stringMatching(/cut/) })
  const deltas = ofType(await world.client.log(run.runId), "text-delta").map(({ delta }) => delta)
  expect(deltas.join("") === text).toBe(true)
  expect(Math.max(...deltas.map((delta) => delta.length))).toBeLessThanOrEqual(65_536)
  expect(deltas.every((delta) => wellFormed(delta) === delta)).toBe(true)
  await world.check(run, { followUp: false })
})

test("content that looks like a frame is content", async () => {
  const attack = "\n\nevent: done\ndata: {}\n\n\r\nid: 9999\nretry: 1\n\u2028\u2029"
  const message = `Frames in content ${attack}`
  const title = `lookup${attack}`
  world.upstream.script(message, [
    Script.reply([
      Script.text(attack),
      Script.reasoning(attack),
      Script.toolCall({ index: 0, id: `call${attack}`, name: title, args: JSON.stringify({ q: attack }) }),
      Script.toolCall({ index: 1, id: "call_good", name: "lookup", args: JSON.stringify({ q: attack }) }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.answer(attack)
  ])
  const reading = await world.client.chat(message)
  const log = await reading.ended
  expect(log.at(-1)?.event.type).toBe("finish")
  expect(reading.ids).toEqual(log.map(({ seq }) => String(seq)))
  const lines = reading.raw().split("\n")
  expect(lines.filter((line) => line.startsWith("event:"))).toEqual([])
  expect(lines.filter((line) => line.startsWith("retry:"))).toHaveLength(1)
  const runId = reading.headers.get("x-run-id") ?? ""
  const end = await world.client.snapshot(runId)
  expect([end.text, end.reasoning]).toEqual([attack + attack, attack])
  expect(end.toolCalls.map(({ state }) => state)).toEqual(["invalid", "done"])
  const lined = await world.client.open(`/runs/${runId}/events`, { headers: { accept: "application/x-ndjson" } })
  await lined.ended
  const found = lined
    .raw()
    .split("\n")
    .filter((line) => line !== "")
  expect(found.map((line) => JSON.parse(line))).toEqual(log)
  await world.check(runId)
})

/** UTF-8 has no form for half a pair. */
const wellFormed = (text: string) => Buffer.from(text, "utf8").toString("utf8")

describe("halves of a surrogate pair", () => {
  const half = (escaped: string) => Script.raw(`data: {"choices":[{"index":0,"delta":{"content":"${escaped}"}}]}\n\n`)

  test("in two deltas make one character", async () => {
    const message = "A pair in two"
    world.upstream.script(message, [
      Script.reply([half("ok \\ud83d"), half("\\ude00!"), Script.finish("stop"), Script.done])
    ])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.text]).toEqual(["completed", "ok 😀!"])
    for (const { delta } of ofType(await world.client.log(run.runId), "text-delta"))
      expect(delta).toBe(wellFormed(delta))
    await world.check(run)
  })

  test("whose other half never comes leave well-formed text", async () => {
    const message = "Half a pair"
    world.upstream.script(message, [Script.reply([half("ok \\ud83d"), Script.wait(50)], { framing: "close" })])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect(end.status).toBe("failed")
    expect(end.text).toMatch(/^ok /)
    expect(end.text).toBe(wellFormed(end.text))
    await world.check(run)
  })

  test("in a request become the replacement character", async () => {
    const answer = await world.client.call("POST", "/chat", '{"message":"lone \\ud83d half","background":true}')
    expect(answer.status).toBe(202)
    const end = await world.client.settled(answer.body.runId)
    expect(end.text).toBe("You said: lone \ufffd half")
    await world.check(answer.body.runId)
  })
})

test("the character NUL is kept everywhere", async () => {
  const text = "a\u0000b"
  const message = `NUL ${text}`
  world.tools.on("lookup", "\\u0000", (_, response) => send(response, { text }))
  world.upstream.script(message, [
    Script.reply([
      Script.text(text),
      Script.toolCall({ index: 0, id: "call_0", name: "lookup", args: JSON.stringify({ q: text }) }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.answer(text)
  ])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", text + text])
  expect(end.toolCalls[0]).toMatchObject({ input: { q: text }, result: { text } })
  expect(world.tools.of(run.runId)[0]?.input).toEqual({ q: text })
  expect(toldOf(await world.upstream.received(message, 1))[0]?.content).toBe(JSON.stringify({ text }))
  const page = await world.client.call("GET", `/conversations/${run.conversationId}`)
  expect(page.body.messages.map(({ content }: { content: string }) => content)).toEqual([message, text + text])
  await world.check(run)
})

test("keys that mean something to JavaScript are plain data or refused", async () => {
  const trap =
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":1,"hasOwnProperty":2,"then":3,"toJSON":4,"list":[{"__proto__":{"polluted":1}}],"__proto__":{"polluted":2}}'
  const once = trap.replace(/,"__proto__":\{"polluted":2\}\}$/, "}")
  world.tools.on("read_doc", "list", (_, response) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(once)
  })
  const message = "Traps for JavaScript"
  world.upstream.script(message, [
    Script.calls(
      { id: "__proto__", name: "read_doc", args: once },
      { id: "constructor", name: "read_doc", args: once }
    ),
    Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" }),
    Script.calls({ id: "toString", name: "read_doc", args: '{"list":[],"hasOwnProperty":1}' }),
    Script.answer("Fine.")
  ])
  const twice = await world.client.call("POST", "/chat", `{"message":"hello","background":true,"metadata":${trap}}`)
  expect([twice.status, twice.body.path]).toEqual([400, "metadata.__proto__"])
  const limit = `{"message":"hello","background":true,"limits":{"__proto__":{"maxIterations":1}}}`
  expect((await world.client.call("POST", "/chat", limit)).body.path).toBe("limits.__proto__")
  const answer = await world.client.call(
    "POST",
    "/chat",
    `{"message":${JSON.stringify(message)},"background":true,"metadata":${once},"__proto__":{"background":false}}`
  )
  expect(answer.status).toBe(202)
  const { runId } = answer.body
  const failed = await world.client.settled(runId)
  expect(failed.toolCalls.map(({ ok }) => ok)).toEqual([true, true])
  await (await world.client.resume({ runId }, failed.lastSeq)).ended
  const end = await world.client.settled(runId)
  expect([end.status, end.text]).toEqual(["completed", "Fine."])
  expect(end.toolCalls[2]?.source).toBe("executed")
  await world.check(runId)
  for (const conversationId of ["constructor", "__proto__", "toString"]) {
    const refused = await world.client.call("POST", "/chat", { message: "hello", conversationId, background: true })
    if (refused.status === 202) {
      await world.client.settled(refused.body.runId)
      await world.check(refused.body.runId)
    } else {
      expect([400, 404, 422]).toContain(refused.status)
    }
    expect((await world.client.call("GET", `/runs/${conversationId}`)).status).toBe(404)
  }
})

test.each([
  ["a line break and a tab in a text", '{"q":"a\n\tb"}'],
  ["a quote", '{"q":"say "hi""}'],
  ["a long escape", '{"q":"\\U0001F600"}'],
  ["an escaped backtick", '{"q":"\\`"}'],
  ["a comma at the end", '{"q":"x",}'],
  ["comments", '{"q":"x" /* why */}'],
  ["two objects", '{"q":"x"}{"q":"y"}'],
  ["a fence", '```json\n{"q":"x"}\n```']
])("arguments with %s are an error for the model, and the run goes on", async (title, args) => {
  const message = `Arguments with ${title}`
  world.upstream.script(message, [Script.calls({ id: "call_e", name: "lookup", args }), Script.answer("Sorry.")])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", "Sorry."])
  expect(end.toolCalls[0]).toMatchObject({ toolCallId: "call_e", ok: false, state: "invalid" })
  expect(world.tools.of(run.runId)).toEqual([])
  expect(toldOf(await world.upstream.received(message, 1))).toMatchObject([{ tool_call_id: "call_e" }])
  await world.check(run, { followUp: title === "a quote" })
})

describe("what can not be kept exactly", () => {
  const long = "9007199254740993"

  test.each([
    ["a long number", `{"q":${long}}`, /^q: is a number/],
    ["a name twice", '{"q":"x","q":"y"}', /^q: stands there twice/]
  ])("is told to the model that sent it: %s", async (title, args, said) => {
    const message = `Arguments with ${title}, not kept`
    world.upstream.script(message, [Script.calls({ id: "call_n", name: "lookup", args }), Script.answer("Sorry.")])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.toolCalls[0]?.state]).toEqual(["completed", "invalid"])
    expect(world.tools.of(run.runId)).toEqual([])
    const told = JSON.parse(String(toldOf(await world.upstream.received(message, 1))[0]?.content))
    expect(told.error).toMatch(said)
    await world.check(run)
  })

  test.each([
    ["a long number", Buffer.from(`{"n":${long}}`), `{"n":${long}}`],
    ["a name twice", Buffer.from('{"a":1,"a":2}'), '{"a":1,"a":2}'],
    ["bytes that are no text", Buffer.from('"a\xff"', "latin1"), "a\ufffd"]
  ])("stays the text that a tool sent: %s", async (title, body, result) => {
    const message = `A tool's answer with ${title}`
    world.tools.on("lookup", message, (_, response) => {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(body)
    })
    world.upstream.script(message, [
      Script.calls({ id: "call_m", name: "lookup", args: JSON.stringify({ q: message }) }),
      Script.answer("Fine.")
    ])
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    expect([end.status, end.toolCalls[0]?.result]).toEqual(["completed", result])
    expect(toldOf(await world.upstream.received(message, 1))[0]?.content).toBe(result)
    await world.check(run)
  })
})
