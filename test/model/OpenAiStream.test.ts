import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import type { ModelPart } from "../../src/model/Model.js"
import * as OpenAiStream from "../../src/model/OpenAiStream.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { bytesOf, callsOf, cut, decode, decodeReply, finishOf, textOf } from "./support.js"

const { data, delta, done, finish, raw, reasoning, reply, text, toolCall, usage } = Script

const stop = [finish("stop"), done]
const callsEnd = [finish("tool_calls"), done]

describe("tool call fragments", () => {
  it("an empty id or name in a later fragment changes nothing", () => {
    const { error, parts } = decodeReply(
      reply([
        toolCall({ index: 0, id: "call_a", name: "lookup", args: '{"q":' }),
        toolCall({ index: 0, id: "", name: "", args: '"x' }),
        toolCall({ index: 0, id: "", name: "", args: " " }),
        toolCall({ index: 0, id: null, name: null, args: 'y"}' }),
        callsEnd
      ])
    )
    expect(error).toBeUndefined()
    expect(callsOf(parts)).toEqual([{ id: "call_a", name: "lookup", args: '{"q":"x y"}' }])
    expect(finishOf(parts)?.reason).toBe("tool_calls")
  })

  it("fragments without an id go to the call of their index", () => {
    const a = '{"q":"for-A"}'
    const b = '{"id":"for-B"}'
    const starts = [
      toolCall({ index: 0, id: "A", name: "lookup", args: "" }),
      toolCall({ index: 1, id: "B", name: "read_doc", args: "" })
    ]
    const expected = [
      { id: "A", name: "lookup", args: a },
      { id: "B", name: "read_doc", args: b }
    ]
    const whole = reply([starts, toolCall({ index: 0, args: a }), toolCall({ index: 1, args: b }), callsEnd])
    expect(callsOf(decodeReply(whole).parts)).toEqual(expected)
    const alternating = Array.from({ length: Math.max(a.length, b.length) }, (_, i) => [
      ...(i < a.length ? [toolCall({ index: 0, args: a.charAt(i) })] : []),
      ...(i < b.length ? [toolCall({ index: 1, args: b.charAt(i) })] : [])
    ]).flat()
    expect(callsOf(decodeReply(reply([starts, alternating, callsEnd])).parts)).toEqual(expected)
  })

  it("a call without any id is one call without an id", () => {
    const { parts } = decodeReply(
      reply([toolCall({ index: 0, name: "lookup", args: '{"q":' }), toolCall({ index: 0, args: '"x"}' }), callsEnd])
    )
    expect(callsOf(parts)).toEqual([{ id: undefined, name: "lookup", args: '{"q":"x"}' }])
    expect(parts[0]).not.toHaveProperty("toolCallId")
  })

  it("calls that all claim index 0 are told apart by their ids", () => {
    const { parts } = decodeReply(
      reply([
        toolCall({ index: 0, id: "A", name: "lookup", args: '{"q":1}' }),
        toolCall({ index: 0, id: "B", name: "lookup", args: '{"q":' }),
        toolCall({ index: 0, args: "2}" }),
        toolCall({ index: 0, id: "C", name: "now", args: "" }),
        toolCall({ index: 0, id: "D", name: "now", args: "" }),
        callsEnd
      ])
    )
    expect(callsOf(parts)).toEqual([
      { id: "A", name: "lookup", args: '{"q":1}' },
      { id: "B", name: "lookup", args: '{"q":2}' },
      { id: "C", name: "now", args: "" },
      { id: "D", name: "now", args: "" }
    ])
  })

  it("an id made up for each fragment does not make new calls", () => {
    const { parts } = decodeReply(
      reply([
        toolCall({ index: 0, id: "r1", name: "lookup", args: '{"q"' }),
        toolCall({ index: 0, id: "r2", args: ':"x"' }),
        toolCall({ index: 0, id: "r3", name: "lookup", args: "}" }),
        callsEnd
      ])
    )
    expect(callsOf(parts)).toEqual([{ id: "r1", name: "lookup", args: '{"q":"x"}' }])
  })

  it("repeated ids and names, and an id that comes late, do not make new calls", () => {
    const repeated = reply([
      toolCall({ index: 0, id: "A", name: "lookup", args: '{"q":' }),
      toolCall({ index: 0, id: "A", name: "lookup", args: "1}" }),
      callsEnd
    ])
    expect(callsOf(decodeReply(repeated).parts)).toEqual([{ id: "A", name: "lookup", args: '{"q":1}' }])
    const late = reply([
      toolCall({ index: 0, name: "lookup", args: "" }),
      toolCall({ index: 0, id: "A", name: "lookup", args: "{}" }),
      callsEnd
    ])
    expect(callsOf(decodeReply(late).parts)).toEqual([{ id: undefined, name: "lookup", args: "{}" }])
  })

  it("without an index, ids and names tell the calls apart", () => {
    const byId = reply([
      toolCall({ id: "A", name: "lookup", args: '{"q":' }),
      toolCall({ id: "B", name: "lookup", args: '{"q":' }),
      toolCall({ id: "A", args: "1}" }),
      toolCall({ id: "B", args: "2}" }),
      callsEnd
    ])
    expect(callsOf(decodeReply(byId).parts).map((call) => call.args)).toEqual(['{"q":1}', '{"q":2}'])
    const byName = reply([
      toolCall({ name: "lookup", args: '{"q":' }),
      toolCall({ args: "1}" }),
      toolCall({ name: "lookup", args: '{"q":2}' }),
      toolCall({ name: "now", args: "{}" }),
      callsEnd
    ])
    expect(callsOf(decodeReply(byName).parts).map((call) => call.args)).toEqual(['{"q":1}', '{"q":2}', "{}"])
    const byPlace = reply([
      delta({
        tool_calls: [{ function: { name: "a", arguments: "" } }, { function: { name: "b", arguments: "" } }]
      }),
      delta({ tool_calls: [{ function: { arguments: "{}" } }, { function: { arguments: '{"b":1}' } }] }),
      callsEnd
    ])
    expect(callsOf(decodeReply(byPlace).parts).map((call) => call.args)).toEqual(["{}", '{"b":1}'])
  })

  it("a name that comes after the first arguments begins the call with them", () => {
    const { parts } = decodeReply(
      reply([
        toolCall({ index: 0, id: "A", args: '{"q"' }),
        toolCall({ index: 0, name: "lookup", args: ":1}" }),
        callsEnd
      ])
    )
    expect(callsOf(parts)).toEqual([{ id: "A", name: "lookup", args: '{"q":1}' }])
  })

  it("a call that never gets a name is still there to be answered", () => {
    const { parts } = decodeReply(reply([toolCall({ index: 0, id: "A", name: "", args: "{}" }), callsEnd]))
    expect(callsOf(parts)).toEqual([{ id: "A", name: "", args: "{}" }])
    expect(finishOf(parts)?.reason).toBe("tool_calls")
  })

  it("names and ids are plain data, whatever they are", () => {
    const names = ["constructor", "toString", "__proto__", "x".repeat(10_240), "a\n\nevent: done\ndata: {}\n\n"]
    const { parts } = decodeReply(
      reply([
        names.map((name, index) =>
          toolCall({ index, id: `__proto__${index || ""}`, name, args: '{"__proto__":{"x":1}}' })
        ),
        callsEnd
      ])
    )
    expect(callsOf(parts).map((call) => call.name)).toEqual(names)
    expect(callsOf(parts)[0]?.id).toBe("__proto__")
    expect({}).not.toHaveProperty("x")
  })

  it("arguments of any form pass unchanged", () => {
    const args = [
      "",
      "null",
      "[]",
      '"text"',
      "42",
      "{q: x}",
      '{"q":"unterminated',
      '{"a":"raw\n\tbreak"}',
      "{}{}",
      "```json\n{}\n```"
    ]
    const { parts } = decodeReply(
      reply([args.map((text, index) => toolCall({ index, id: `c${index}`, name: "lookup", args: text })), callsEnd])
    )
    expect(callsOf(parts).map((call) => call.args)).toEqual(args)
  })

  it("arguments that come as an object become their text", () => {
    const { parts } = decodeReply(
      reply([delta({ tool_calls: [{ function: { name: "lookup", arguments: { q: "x" } } }] }), callsEnd])
    )
    expect(callsOf(parts)).toEqual([{ id: undefined, name: "lookup", args: '{"q":"x"}' }])
  })

  it("fragments that are no fragments are skipped", () => {
    const { error, parts } = decodeReply(
      reply([
        delta({ tool_calls: null }),
        delta({ tool_calls: "x" }),
        delta({
          tool_calls: [null, 1, [], {}, { index: 0 }, { index: 0, function: null }, { function: { arguments: "" } }]
        }),
        text("fine"),
        stop
      ])
    )
    expect(error).toBeUndefined()
    expect(callsOf(parts)).toEqual([])
    expect(finishOf(parts)?.reason).toBe("stop")
  })
})

describe("the end of a turn", () => {
  const ends: ReadonlyArray<readonly [label: string, reason: string]> = [
    ["stop", "stop"],
    ["length", "length"],
    ["max_tokens", "length"],
    ["content_filter", "content_filter"],
    ["eos", "stop"],
    ["tool_calls", "stop"],
    ["function_call", "stop"]
  ]
  it.each(ends)("text that ends with %s ends with %s", (label, reason) => {
    const { error, parts } = decodeReply(reply([text("x"), finish(label), done]))
    expect(error).toBeUndefined()
    expect(finishOf(parts)?.reason).toBe(reason)
  })

  it("calls are calls, whatever the label says", () => {
    const call = toolCall({ index: 0, id: "A", name: "lookup", args: "{}" })
    for (const label of ["stop", "tool_calls", "function_call", "weird"]) {
      expect(finishOf(decodeReply(reply([call, finish(label), done])).parts)?.reason).toBe("tool_calls")
    }
    expect(finishOf(decodeReply(reply([call, finish("length"), done])).parts)?.reason).toBe("length")
  })

  it("the label of calls without calls is a plain stop", () => {
    for (const steps of [[text("x")], [], [delta({ tool_calls: [] })]]) {
      expect(finishOf(decodeReply(reply([steps, finish("tool_calls"), done])).parts)?.reason).toBe("stop")
    }
  })

  it("without a finish reason it is a truncation, even behind an end mark", () => {
    const texts = Array.from({ length: 10 }, (_, i) => text(`${i} `))
    for (const rest of [[], [done], [usage(1, 1), done], [finish(""), done]]) {
      const { error, parts } = decodeReply(reply([texts, rest]))
      expect(error).toMatchObject({ code: "truncated", recoverable: true, retryable: true })
      expect(textOf(parts)).toBe("0 1 2 3 4 5 6 7 8 9 ")
      expect(finishOf(parts)).toBeUndefined()
    }
  })

  it("arguments that happen to parse are no end", () => {
    const { error } = decodeReply(reply([toolCall({ index: 0, id: "A", name: "save", args: '{"n":1}' })]))
    expect(error).toMatchObject({ code: "truncated", recoverable: true })
  })

  it("a server that gave up says so in the finish reason", () => {
    const { error, parts } = decodeReply(reply([text("x"), finish("insufficient_system_resource"), done]))
    expect(textOf(parts)).toBe("x")
    expect(error).toMatchObject({ code: "overloaded", recoverable: true, retryable: true })
  })

  it("nothing behind the end mark counts", () => {
    const { parts } = decodeReply(reply([text("x"), stop, text("late"), data({ error: { message: "late" } })]))
    expect(textOf(parts)).toBe("x")
    expect(finishOf(parts)?.reason).toBe("stop")
  })
})

describe("chunks", () => {
  it("usage is taken from whatever chunk it comes in, and text around it is kept", () => {
    const counts = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
    for (const odd of [{ choices: [], usage: counts }, { choices: null, usage: counts }, { usage: counts }]) {
      for (const steps of [
        [text("a"), data(odd), text("b"), stop],
        [text("ab"), finish("stop"), data(odd), done]
      ]) {
        const { error, parts } = decodeReply(reply(steps.flat()))
        expect(error).toBeUndefined()
        expect(textOf(parts)).toBe("ab")
        expect(finishOf(parts)?.usage).toEqual({ inputTokens: 9, outputTokens: 4, totalTokens: 13 })
      }
    }
  })

  it("usage has its details and its price, and a null does not undo it", () => {
    const decoder = OpenAiStream.make({
      price: { input: 1, cachedInput: 0.1, output: 4 },
      keepReasoning: false,
      maxFrame: 1_000_000
    })
    const parts: Array<ModelPart> = []
    const steps = reply([
      text("x"),
      finish("stop"),
      usage(1_000, 500, { cached: 400, reasoning: 100 }),
      data({ choices: [], usage: null }),
      done
    ]).steps
    decoder.push(bytesOf(steps), parts)
    expect(decoder.end(parts)).toBeUndefined()
    const found = finishOf(parts)?.usage
    expect(found).toMatchObject({ cachedInputTokens: 400, reasoningTokens: 100, totalTokens: 1_500 })
    expect(found?.costUsd).toBeCloseTo((600 * 1 + 400 * 0.1 + 500 * 4) / 1e6, 12)
  })

  it("usage that is no usage is none", () => {
    const bad = [{ prompt_tokens: -1, completion_tokens: "7", total_tokens: null }, "many", 7, []]
    for (const value of bad) {
      const { parts } = decodeReply(reply([data({ usage: value }), text("x"), stop]))
      expect(finishOf(parts)?.usage).toEqual({ inputTokens: 0, outputTokens: 0, totalTokens: 0 })
    }
  })

  it("reasoning and text come in order, nulls and other non-strings are skipped", () => {
    const { error, parts } = decodeReply(
      reply([
        delta({ role: "assistant", content: "" }),
        Array.from({ length: 50 }, (_, i) => reasoning(`r${i} `)),
        Array.from({ length: 10 }, (_, i) => delta({ content: `t${i} `, reasoning_content: null })),
        delta({ content: 7 }),
        delta({ content: ["x"] }),
        delta(null),
        data({ choices: [null] }),
        data({ choices: [{}] }),
        stop
      ])
    )
    expect(error).toBeUndefined()
    expect(parts.map((part) => part.type)).toEqual([
      ...Array.from({ length: 50 }, () => "reasoning-delta"),
      ...Array.from({ length: 10 }, () => "text-delta"),
      "finish"
    ])
    expect(new Set(parts.flatMap((part) => ("id" in part ? [part.id] : []))).size).toBe(2)
  })

  it("both names of reasoning are read, and never twice", () => {
    const { parts } = decodeReply(
      reply([
        delta({ reasoning: "a" }),
        delta({ reasoning: "b", reasoning_content: "b" }),
        delta({ reasoning: { effort: 1 }, content: "t" }),
        stop
      ])
    )
    expect(textOf(parts, "reasoning-delta")).toBe("ab")
    expect(textOf(parts)).toBe("t")
  })

  it("each stretch of text or reasoning is a part of its own", () => {
    const { parts } = decodeReply(
      reply([
        reasoning("a"),
        text("b"),
        reasoning("c"),
        text("d"),
        toolCall({ index: 0, id: "A", name: "lookup", args: "{}" }),
        text("e"),
        callsEnd
      ])
    )
    const ids = parts.flatMap((part) => ("id" in part ? [part.id] : []))
    expect(new Set(ids).size).toBe(5)
  })

  it("other choices than the first are not mixed in", () => {
    const { parts } = decodeReply(
      reply([
        data({ choices: [{ index: 1, delta: { content: "no" } }] }),
        data({
          choices: [
            { index: 1, delta: { content: "no" } },
            { index: 0, delta: { content: "yes" } }
          ]
        }),
        stop
      ])
    )
    expect(textOf(parts)).toBe("yes")
  })

  it("a refusal is text", () => {
    expect(textOf(decodeReply(reply([delta({ content: null, refusal: "I can not." }), stop])).parts)).toBe("I can not.")
  })

  it("the reasoning goes into the side record when it is wanted back", () => {
    const decoder = OpenAiStream.make({ keepReasoning: true, maxFrame: 1_000_000 })
    const parts: Array<ModelPart> = []
    decoder.push(bytesOf(reply([reasoning("a"), reasoning("b"), text("c"), stop]).steps), parts)
    decoder.end(parts)
    expect(finishOf(parts)?.side).toEqual({ reasoning_content: "ab" })
  })

  it("markup of tools in text stays text", () => {
    const { parts } = decodeReply(
      reply([text("Sure <｜DS"), text('ML｜tool_calls><｜DSML｜invoke name="commit_write">'), stop])
    )
    expect(callsOf(parts)).toEqual([])
    expect(textOf(parts)).toContain("<｜DSML｜invoke")
  })
})

describe("errors inside the stream", () => {
  const frames: ReadonlyArray<readonly [name: string, frame: string, expected: object]> = [
    [
      "overload",
      'data: {"error":{"type":"overloaded_error","message":"busy"}}',
      { code: "overloaded", recoverable: true }
    ],
    ["an error event", 'event: error\ndata: {"type":"overloaded_error"}', { code: "overloaded", recoverable: true }],
    ["an error event of plain text", "event: error\ndata: busy", { code: "upstream_error", recoverable: true }],
    [
      "an error event with an error",
      'event: error\ndata: {"error":{"code":"rate_limit_exceeded"}}',
      { code: "rate_limited" }
    ],
    ["a text as error", 'data: {"error":"something"}', { code: "upstream_error", recoverable: true }],
    ["a numeric code", 'data: {"error":{"code":429}}', { code: "rate_limited", retryable: true }],
    ["an object called error", 'data: {"object":"error","code":503,"message":"x"}', { code: "overloaded" }],
    ["a bad request", 'data: {"error":{"type":"invalid_request_error"}}', { code: "bad_request", recoverable: false }]
  ]
  it.each(frames)("%s fails the turn and keeps the text", (_name, frame, expected) => {
    for (const before of [
      [text("a"), text("b")],
      [text("ab"), toolCall({ index: 0, id: "A", name: "save", args: '{"x' })]
    ]) {
      const { error, parts } = decodeReply(reply([before, raw(`${frame}\n\n`), stop]))
      expect(textOf(parts)).toBe("ab")
      expect(finishOf(parts)).toBeUndefined()
      expect(error).toMatchObject(expected)
    }
  })

  it("an error that is null is none", () => {
    const { error, parts } = decodeReply(reply([data({ error: null, choices: [{ delta: { content: "x" } }] }), stop]))
    expect(error).toBeUndefined()
    expect(textOf(parts)).toBe("x")
  })

  it("what the server says is not repeated", () => {
    const secret = "sk-canary_value"
    const said = [
      { error: { message: secret, type: secret, code: secret, param: secret } },
      { error: secret },
      { object: "error", message: secret, type: secret, code: secret },
      { error: { type: "overloaded_error", code: secret, message: `${secret}?key=${secret}` } }
    ]
    for (const value of said) {
      for (const frame of [
        data(value),
        raw(`event: error\ndata: ${JSON.stringify(value)}\n\n`),
        raw(JSON.stringify(value))
      ]) {
        const { error } = decodeReply(reply([frame]))
        expect(error).toBeDefined()
        expect(JSON.stringify(error)).not.toContain("canary")
        expect(String(error?.stack)).not.toContain("canary")
      }
    }
  })
})

describe("bodies that are no stream", () => {
  it("a JSON error is read as one", () => {
    const { error, parts } = decodeReply(reply([raw('{"error":{"message":"model not loaded"}}')]))
    expect(parts).toEqual([])
    expect(error).toMatchObject({ code: "upstream_error", recoverable: true })
  })

  it("a whole completion, a web page and nothing at all are failures with a readable message", () => {
    const bodies = [
      '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}',
      "\n <!DOCTYPE html><html>x</html>",
      "",
      "\n\n"
    ]
    for (const content of bodies) {
      const { error, parts } = decodeReply(reply([raw(content)]))
      expect(parts).toEqual([])
      expect(error).toMatchObject({ code: "invalid_response", recoverable: true })
      expect(error?.message).toMatch(/^The model server/)
      expect(error?.message).not.toMatch(/<|hi/)
    }
  })

  it("an endless JSON body is given up", () => {
    const decoder = OpenAiStream.make({ keepReasoning: false, maxFrame: 1_000_000 })
    decoder.push(Buffer.from("["), [])
    for (let i = 0; i < 100 && decoder.phase() !== "failed"; i++) decoder.push(Buffer.from("1,".repeat(1_000)), [])
    expect(decoder.phase()).toBe("failed")
  })
})

describe("framing", () => {
  const keepAlives = [
    ": PROCESSING\n\n",
    "data: : keepalive\n\n",
    "event: ping\n\n",
    "\n\n\n",
    "data:\n\n",
    "data\n\n",
    "id: 7\nretry: 5\nfoo: bar\nfoo\n\n",
    'event: ping\ndata: {"type":"ping"}\n\n',
    "data: ping\n\n"
  ]
  it.each(keepAlives)("%j is no output", (frame) => {
    const { error, parts } = decodeReply(
      reply([raw(frame.repeat(3)), text("a"), raw(frame), text("b"), raw(frame), stop])
    )
    expect(error).toBeUndefined()
    expect(textOf(parts)).toBe("ab")
  })

  it("keep-alives do not begin a turn", () => {
    const decoder = OpenAiStream.make({ keepReasoning: false, maxFrame: 1_000 })
    const parts: Array<ModelPart> = []
    decoder.push(Buffer.from(keepAlives.join("")), parts)
    decoder.push(bytesOf([delta({ role: "assistant", content: "" })]), parts)
    expect(parts).toEqual([])
    expect(decoder.phase()).toBe("waiting")
    decoder.push(bytesOf([text("a")]), parts)
    expect(decoder.phase()).toBe("streaming")
    decoder.push(bytesOf([finish("stop")]), parts)
    expect(decoder.phase()).toBe("finishing")
    decoder.push(bytesOf([done]), parts)
    expect(decoder.phase()).toBe("done")
  })

  const chunk = (content: string) => `{"choices":[{"delta":\n{"content":${JSON.stringify(content)}}}]}`
  const lines = [
    ...["ok ", "é🐼"].flatMap((content) => [
      ...chunk(content)
        .split("\n")
        .map((line) => `data: ${line}`),
      ""
    ]),
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}',
    "",
    "data: [DONE]",
    "",
    ""
  ]
  const mixed = (i: number) => ["\r\n", "\n", "\r"][i % 3] ?? "\n"
  const framings: ReadonlyArray<readonly [name: string, content: string]> = [
    ["LF", lines.join("\n")],
    ["CRLF", lines.join("\r\n")],
    ["CR", lines.join("\r")],
    ["a byte order mark", `\ufeff${lines.join("\n")}`],
    ["no space", lines.join("\n").replaceAll("data: ", "data:")],
    // A lone CR before an LF would be one line end, so the mixture repeats blank lines in full.
    ["a mixture", lines.map((line, i) => line + (line === "" ? "\n" : mixed(i))).join("")]
  ]
  it.each(framings)("%s is read alike, also byte by byte", (_name, content) => {
    const bytes = Buffer.from(content)
    const whole = decode([bytes])
    expect(whole.error).toBeUndefined()
    expect(textOf(whole.parts)).toBe("ok é🐼")
    expect(decode(cut(bytes, 1))).toEqual(whole)
    expect(decode(cut(bytes, 2))).toEqual(whole)
  })

  it("with bare CRs every frame is given at once", () => {
    const decoder = OpenAiStream.make({ keepReasoning: false, maxFrame: 1_000 })
    const parts: Array<ModelPart> = []
    decoder.push(Buffer.from('data: {"choices":[{"delta":{"content":"a"}}]}\r\r'), parts)
    expect(textOf(parts)).toBe("a")
  })

  it("a last frame without its blank line counts, and changes nothing about the end", () => {
    const frame = 'data: {"choices":[{"delta":{"content":"b"}}]}'
    for (const last of [frame, `${frame}\n`, `${frame}\r`]) {
      const { error, parts } = decodeReply(reply([text("a"), raw(last)]))
      expect(textOf(parts)).toBe("ab")
      expect(error).toMatchObject({ code: "truncated" })
    }
    const cutOff = decodeReply(reply([text("a"), raw(frame.slice(0, -3))]))
    expect(textOf(cutOff.parts)).toBe("a")
    expect(cutOff.error).toMatchObject({ code: "truncated" })
    const finished = decodeReply(reply([text("a"), raw('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}')]))
    expect(finished.error).toBeUndefined()
    expect(finishOf(finished.parts)?.reason).toBe("stop")
  })

  it("frames without a blank line between them are read", () => {
    const { error, parts } = decodeReply(
      reply([
        raw('data: {"choices":[{"delta":{"content":"a"}}]}\ndata: {"choices":[{"delta":{"content":"b"}}]}\n\n'),
        stop
      ])
    )
    expect(error).toBeUndefined()
    expect(textOf(parts)).toBe("ab")
  })

  it("a frame that can not be read is no silent loss", () => {
    const { error, parts } = decodeReply(reply([text("a"), raw('data: {"choices":[{"delta"\n\n'), text("b"), stop]))
    expect(textOf(parts)).toBe("a")
    expect(error).toMatchObject({ code: "invalid_response", recoverable: true })
  })

  it("a line of 2 MB is read in linear time, and one over the bound is refused", () => {
    const content = "春".repeat(700_000)
    const bytes = bytesOf(reply([text(content), stop]).steps)
    const { error, parts } = decode(cut(bytes, 1_000))
    expect(error).toBeUndefined()
    expect(textOf(parts) === content).toBe(true)
    const bounded = decode(cut(bytes, 1_000), { maxFrame: 100_000 })
    expect(bounded.error).toMatchObject({ code: "invalid_response", retryable: false })
    expect(bounded.parts).toEqual([])
  })

  it("content that looks like frames stays content", () => {
    const content = "\n\nevent: done\ndata: {}\n\n\r\nid: 9999\n\nretry: 1\n\u2028\u2029"
    expect(textOf(decodeReply(reply([text(content), stop])).parts)).toBe(content)
  })

  it("a NUL and everything behind it is kept", () => {
    const { parts } = decodeReply(
      reply([text("a\u0000b"), toolCall({ index: 0, id: "A", name: "lookup", args: '{"q":"a\\u0000b"}' }), callsEnd])
    )
    expect(textOf(parts)).toBe("a\u0000b")
    expect(callsOf(parts)[0]?.args).toBe('{"q":"a\\u0000b"}')
  })

  it("halves of a surrogate pair in separate deltas come through in order", () => {
    const { error, parts } = decodeReply(
      reply([
        raw('data: {"choices":[{"delta":{"content":"ok \\ud83d"}}]}\n\n'),
        raw('data: {"choices":[{"delta":{"content":"\\ude00!"}}]}\n\n'),
        stop
      ])
    )
    expect(error).toBeUndefined()
    expect(textOf(parts)).toBe("ok 😀!")
  })
})

describe("cuts", () => {
  const content = "春眠不觉晓 🐼 é עברית"
  const bytes = bytesOf(
    reply([
      reasoning("想 🤔"),
      text(content),
      toolCall({ index: 0, id: "A", name: "lookup", args: JSON.stringify({ q: content }) }),
      finish("tool_calls"),
      usage(3, 4),
      done
    ]).steps
  )
  const whole = decode([bytes])

  it("the uncut stream is read", () => {
    expect(whole.error).toBeUndefined()
    expect(textOf(whole.parts)).toBe(content)
    expect(callsOf(whole.parts)[0]?.args).toBe(JSON.stringify({ q: content }))
  })

  it("every byte by itself, and every single cut, give the same", () => {
    expect(decode(cut(bytes, 1))).toEqual(whole)
    for (let at = 0; at <= bytes.length; at++) {
      const pieces = [bytes.subarray(0, at), bytes.subarray(at)]
      expect(decode(pieces).parts).toEqual(whole.parts)
    }
  })

  const scripts = FastCheck.array(
    FastCheck.oneof(
      FastCheck.fullUnicodeString({ minLength: 1 }).map((s) => text(s)),
      FastCheck.fullUnicodeString({ minLength: 1 }).map((s) => reasoning(s)),
      FastCheck.record({
        index: FastCheck.nat(2),
        id: FastCheck.constantFrom("", "a", "b", undefined),
        name: FastCheck.constantFrom("", "lookup", undefined),
        args: FastCheck.constantFrom("", '{"q"', ":1}", "🐼")
      }).map((fragment) => toolCall(fragment)),
      FastCheck.constantFrom(
        raw(": ping\r\n\r\n"),
        raw("\r"),
        raw("\n"),
        raw("event: x\rdata: {}\r\r"),
        usage(1, 2),
        data({ choices: null })
      )
    ),
    { maxLength: 12 }
  )
  const endings = FastCheck.constantFrom(stop, callsEnd, [done], [], [data({ error: { type: "overloaded" } })])

  it.prop(
    "any cuts of any stream give the same",
    [scripts, endings, FastCheck.array(FastCheck.nat(), { maxLength: 20 })],
    ([steps, ending, places]) => {
      const all = bytesOf([...steps, ...ending])
      const cuts = [...new Set([0, all.length, ...places.map((place) => place % (all.length + 1))])].sort(
        (a, b) => a - b
      )
      const pieces = cuts.slice(1).map((to, i) => all.subarray(cuts[i], to))
      const [once, split] = [decode([all]), decode(pieces)]
      expect(split.parts).toEqual(once.parts)
      expect(split.error?.code).toBe(once.error?.code)
      for (const part of once.parts) if ("delta" in part) expect(part.delta).not.toBe("")
    },
    { fastCheck: { numRuns: 400 } }
  )
})
