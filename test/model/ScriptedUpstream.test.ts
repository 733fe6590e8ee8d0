import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ModelMessage } from "../../src/model/Model.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { callsOf, collect, finishOf, modelAt, request, textOf, undici } from "./support.js"

const user = (content: string): ModelMessage => ({ role: "user", content })
const asked = (...messages: ReadonlyArray<ModelMessage>) => ({ ...request, messages })

describe("a strict server", () => {
  const call = (id: string, args = "{}", name = "lookup") => ({
    id,
    type: "function",
    function: { name, arguments: args }
  })
  const assistant = (...calls: ReadonlyArray<object>) => ({ role: "assistant", content: null, tool_calls: calls })
  const tool = (id: string) => ({ role: "tool", tool_call_id: id, content: "x" })
  const ask = { role: "user", content: "x" }

  const sound = [
    [ask],
    [{ role: "system", content: "s" }, ask, { role: "assistant", content: "a" }, ask],
    [ask, assistant(call("a"), call("b")), tool("b"), tool("a")],
    [ask, assistant(call("a")), tool("a"), assistant(call("a")), tool("a"), ask]
  ]
  const unsound = [
    [],
    [ask, { role: "assistant", content: "a" }],
    [ask, assistant(call("a"))],
    [ask, assistant(call("a")), ask],
    [ask, assistant(call("a"), call("b")), tool("a"), ask],
    [ask, assistant(call("a")), tool("a"), tool("a")],
    [ask, assistant(call("a")), tool("b")],
    [ask, tool("a")],
    [ask, assistant(call("a"), call("a")), tool("a")],
    [ask, assistant(call("a", '{"q":')), tool("a")],
    [ask, assistant(call("a", "[]")), tool("a")],
    [ask, assistant(call("", "{}")), tool("")],
    [ask, assistant(call("a", "{}", "")), tool("a")],
    [ask, assistant(), ask],
    [ask, { role: "assistant", content: "" }, ask],
    [{ role: "wizard", content: "x" }, ask],
    [{ role: "user", content: null }]
  ]
  it("accepts sound histories only", () => {
    for (const messages of sound) expect(Script.objection(messages)).toBeUndefined()
    for (const messages of unsound) expect(Script.objection(messages)).toBeTypeOf("string")
  })

  it.scopedLive("answers an unsound one with status 400 and remembers why", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ strict: true, script: [Script.answer("fine")] })
      const model = yield* modelAt(upstream.url)
      const bad = asked(user("x"), {
        role: "tool",
        toolCallId: "a",
        toolName: "lookup",
        result: 1,
        isError: false
      })
      expect((yield* collect(model, bad)).error).toMatchObject({ code: "bad_request" })
      expect(upstream.requests[0]?.refused).toContain("answers no open call")
      expect(textOf((yield* collect(model)).parts)).toBe("fine")
      expect(upstream.requests[1]?.refused).toBeUndefined()
    }).pipe(Effect.provide(undici))
  )
})

describe("a script", () => {
  it.scopedLive("goes answer by answer, repeats the last, survives JSON and can be replaced", () =>
    Effect.gen(function* () {
      const script = JSON.parse(JSON.stringify([Script.answer("one"), Script.answer("t", "wo")])) as Script.Script
      const upstream = yield* ScriptedUpstream.make({ script })
      const model = yield* modelAt(upstream.url)
      const said: Array<string> = []
      for (let i = 0; i < 3; i++) said.push(textOf((yield* collect(model)).parts))
      expect(said).toEqual(["one", "two", "two"])
      yield* upstream.use((sent) => Script.answer(`request ${sent.n}`))
      expect(textOf((yield* collect(model)).parts)).toBe("request 3")
      expect(upstream.requests.map((sent) => sent.n)).toEqual([0, 1, 2, 3])
      for (const sent of upstream.requests) expect(sent.closedAt).toBeGreaterThanOrEqual(sent.at)
    }).pipe(Effect.provide(undici))
  )
})

describe("directives", () => {
  it.scopedLive("choose the answer by the last user message", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ strict: true })
      const model = yield* modelAt(upstream.url, { firstChunkTimeoutMs: 300, chunkTimeoutMs: 300 })
      const say = (content: string) => collect(model, asked(user(content)))
      expect(textOf((yield* say("hello")).parts)).toBe("You said: hello")
      expect(textOf((yield* say("go [slow 5 1]")).parts)).toBe("1 2 3 4 5 ")
      expect(textOf((yield* say("go [thinking 2]")).parts, "reasoning-delta")).toBe("thought 1 thought 2 ")
      const cut = yield* say("go [cut 3]")
      expect(textOf(cut.parts)).toBe("1 2 3 ")
      expect(cut.error).toMatchObject({ code: "truncated" })
      expect((yield* say("go [reset 3]")).error).toMatchObject({ code: "truncated" })
      expect((yield* say("go [busy 9]")).error).toMatchObject({ code: "rate_limited", retryAfterMs: 9_000 })
      expect((yield* say("go [overloaded]")).error).toMatchObject({ code: "overloaded" })
      expect((yield* say("go [hang]")).error).toMatchObject({ code: "timeout" })
      expect(textOf((yield* say("go [stall]")).parts)).toBe("1 2 ")
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("call tools, in rounds", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ strict: true })
      const model = yield* modelAt(upstream.url)
      const messages: Array<ModelMessage> = [user('go [rounds 2 lookup {"q":["$n"]}]')]
      const args: Array<string> = []
      for (let round = 1; round <= 2; round++) {
        const { parts } = yield* collect(model, asked(...messages))
        expect(finishOf(parts)?.reason).toBe("tool_calls")
        for (const { args: argumentsText, id: toolCallId = "", name: toolName } of callsOf(parts)) {
          args.push(argumentsText)
          messages.push(
            { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, argumentsText }] },
            { role: "tool", toolCallId, toolName, result: `answer ${round}`, isError: false }
          )
        }
      }
      expect(args).toEqual(['{"q":["1"]}', '{"q":["2"]}'])
      expect(textOf((yield* collect(model, asked(...messages))).parts)).toBe("Result: answer 2")
    }).pipe(Effect.provide(undici))
  )
})

describe("start", () => {
  it("serves without Effect until it is stopped", async () => {
    const upstream = await ScriptedUpstream.start({ script: [Script.answer("hi")] })
    const post = () =>
      fetch(`${upstream.url}/chat/completions`, { method: "POST", body: JSON.stringify({ messages: [] }) })
    const answer = await (await post()).text()
    expect(answer).toContain('"content":"hi"')
    expect(upstream.requests).toHaveLength(1)
    await upstream.stop()
    await expect(post()).rejects.toThrow()
  })
})
