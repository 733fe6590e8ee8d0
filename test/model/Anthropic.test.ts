import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Anthropic from "../../src/model/Anthropic.js"
import type { ModelMessage } from "../../src/model/Model.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { lookup, provider, secret, withTools } from "./provider.js"
import { callsOf, collect, finishOf, request, textOf, undici } from "./support.js"
import * as Wire from "./wire/Messages.js"

const { answering, ask, modelAt } = provider(Anthropic.make, "claude-sonnet-4-5")

describe("Anthropic's Messages interface", () => {
  it.scopedLive("is asked with our key and the tools' own schemas", () =>
    Effect.gen(function* () {
      const { error, parts, requests } = yield* ask(
        Wire.strict(() => Wire.turn([{ text: ["Hello ", "you"] }])),
        { ...withTools, messages: [{ role: "system", content: "Be brief." }, ...request.messages] }
      )
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("Hello you")
      expect(requests[0]?.headers["x-api-key"]).toBe(secret)
      expect(requests[0]?.headers.traceparent).toBeUndefined()
      expect(requests[0]?.body).toMatchObject({
        model: "claude-sonnet-4-5",
        max_tokens: 16_000,
        system: [{ type: "text", text: "Be brief." }],
        tools: [{ name: "lookup", description: lookup.description, input_schema: lookup.parameters }]
      })
      expect(requests[0]?.body).not.toHaveProperty("thinking")
    })
  )

  it.scopedLive("is found at an address with and without the version, and takes headers and fields of others", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: Wire.strict(() => Wire.turn([{ text: ["x"] }])) })
      for (const url of [upstream.url, `${upstream.url}/`, upstream.url.replace("/v1", "")]) {
        const model = yield* modelAt(url, {
          headers: { "x-team": Redacted.make("seven") },
          extraBody: { max_tokens: 99, metadata: { user_id: "u" } }
        })
        expect((yield* collect(model)).error).toBeUndefined()
      }
      expect(upstream.requests.map(({ path }) => path)).toEqual(["/v1/messages", "/v1/messages", "/v1/messages"])
      expect(upstream.requests[0]?.headers["x-team"]).toBe("seven")
      expect(upstream.requests[0]?.body).toMatchObject({ max_tokens: 99, metadata: { user_id: "u" } })
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("asks for reasoning when the run does", () =>
    Effect.gen(function* () {
      const thinking = { ...request, enableThinking: true }
      const script = Wire.strict(() =>
        Wire.turn([{ thinking: ["Hm. ", "Well."], signature: "sig:Hm. Well." }, { text: ["x"] }])
      )
      const { error, parts, requests } = yield* ask(script, thinking)
      expect(error).toBeUndefined()
      expect(textOf(parts, "reasoning-delta")).toBe("Hm. Well.")
      expect(requests[0]?.body).toMatchObject({ thinking: { type: "enabled", budget_tokens: 8_000 } })
      const other = yield* ask(script, thinking, { thinkingBody: { thinking: { type: "adaptive" } } })
      expect(other.requests[0]?.body).toMatchObject({ thinking: { type: "adaptive" } })
    })
  )

  it.scopedLive("is asked for no more than is left, reasoning included", () =>
    Effect.gen(function* () {
      const script = Wire.strict(() => Wire.turn([{ text: ["x"] }]))
      const body = (maxOutputTokens: number | undefined, enableThinking: boolean, options = {}) =>
        Effect.map(ask(script, { ...request, enableThinking, maxOutputTokens }, options), ({ error, requests }) => {
          expect(error).toBeUndefined()
          const { max_tokens, thinking } = (requests[0]?.body ?? {}) as Record<string, unknown>
          return [max_tokens, thinking]
        })
      const enabled = (budget_tokens: number) => ({ type: "enabled", budget_tokens })
      expect(yield* body(100, false)).toEqual([100, undefined])
      expect(yield* body(100_000, false)).toEqual([16_000, undefined])
      expect(yield* body(undefined, false, { maxOutputTokens: 50_000 })).toEqual([50_000, undefined])
      expect(yield* body(100, false, { maxOutputTokens: 50, extraBody: { max_tokens: 70 } })).toEqual([50, undefined])
      expect(yield* body(8_001, true)).toEqual([8_001, enabled(8_000)])
      expect(yield* body(8_000, true)).toEqual([8_000, enabled(4_000)])
      expect(yield* body(2_048, true)).toEqual([2_048, enabled(1_024)])
      expect(yield* body(2_047, true)).toEqual([2_047, undefined])
      const adaptive = { thinking: { type: "adaptive" } }
      expect(yield* body(2_000, true, { thinkingBody: adaptive })).toEqual([2_000, adaptive.thinking])
    })
  )

  it.scopedLive("tells usage with what the cache gave, and why it ended", () =>
    Effect.gen(function* () {
      const ends: ReadonlyArray<readonly [string, string]> = [
        ["end_turn", "stop"],
        ["stop_sequence", "stop"],
        ["max_tokens", "length"],
        ["model_context_window_exceeded", "length"],
        ["refusal", "content_filter"],
        ["a_reason_of_tomorrow", "stop"]
      ]
      for (const [stopReason, reason] of ends) {
        const { parts } = yield* ask([Wire.turn([{ text: ["x"] }], stopReason)])
        expect(finishOf(parts)).toMatchObject({
          reason,
          usage: { inputTokens: 120, cachedInputTokens: 64, outputTokens: 40, totalTokens: 160 }
        })
      }
    })
  )

  it.scopedLive("passes over events that no schema knows yet", () =>
    Effect.gen(function* () {
      const { error, parts } = yield* ask([
        Wire.begun([{ text: ["a"] }], [Wire.event("weather", { rain: true }), Wire.ping, ...Wire.end("end_turn")])
      ])
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("a")
    })
  )

  it.scopedLive("goes through a turn with tools, and gets its signed reasoning back with it", () =>
    Effect.gen(function* () {
      const { model, upstream } = yield* answering(
        Wire.strict(({ n }) =>
          n === 0
            ? Wire.turn([
                { thinking: ["I look ", "it up."], signature: "sig:I look it up." },
                { redacted: "opaque" },
                { text: ["One moment. "] },
                { call: "toolu_1", name: "lookup", args: ['{"q":', '"tide"}'] },
                { call: "toolu_2", name: "lookup", args: ['{"q":"ebb"}'] }
              ])
            : Wire.turn([{ text: ["It is high."] }])
        )
      )
      const asked = { ...withTools, enableThinking: true }
      const first = yield* collect(model, asked)
      const finish = finishOf(first.parts)
      expect(finish?.reason).toBe("tool_calls")
      expect(callsOf(first.parts)).toEqual([
        { id: "toolu_1", name: "lookup", args: '{"q":"tide"}' },
        { id: "toolu_2", name: "lookup", args: '{"q":"ebb"}' }
      ])
      expect(JSON.stringify(first.parts.slice(0, -1))).not.toMatch(/sig:|opaque/)
      const call = (toolCallId: string, q: string) =>
        ({ type: "tool-call", toolCallId, toolName: "lookup", argumentsText: JSON.stringify({ q }) }) as const
      const messages: ReadonlyArray<ModelMessage> = [
        ...request.messages,
        {
          role: "assistant",
          content: [
            // What was shown may have been cleaned; what was signed must not be.
            { type: "reasoning", text: "I look [redacted]" },
            { type: "text", text: "One moment. " },
            call("toolu_1", "tide"),
            call("toolu_2", "ebb")
          ],
          side: JSON.parse(JSON.stringify(finish?.side))
        },
        { role: "tool", toolCallId: "toolu_1", toolName: "lookup", result: { level: 3 }, isError: false },
        { role: "tool", toolCallId: "toolu_2", toolName: "lookup", result: "gone", isError: true }
      ]
      const second = yield* collect(model, { ...asked, messages, iteration: 2 })
      expect(second.error).toBeUndefined()
      expect(Wire.messagesOf(upstream.requests[1] ?? { body: {} }).slice(1)).toMatchObject([
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "I look it up.", signature: "sig:I look it up." },
            { type: "redacted_thinking", data: "opaque" },
            { type: "text", text: "One moment. " },
            { type: "tool_use", id: "toolu_1", name: "lookup", input: { q: "tide" } },
            { type: "tool_use", id: "toolu_2" }
          ]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: '{"level":3}', is_error: false },
            { type: "tool_result", tool_use_id: "toolu_2", content: '{"error":"gone"}', is_error: true }
          ]
        }
      ])

      const other = yield* modelAt(upstream.url, { model: "claude-haiku-4-5" })
      const third = yield* collect(other, { ...asked, messages, iteration: 2 })
      expect(third.error, "another model goes on without reasoning").toBeUndefined()
      expect(upstream.requests[2]?.body).not.toHaveProperty("thinking")
      expect(JSON.stringify(upstream.requests[2]?.body)).not.toContain("sig:")
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("accepts what other models left behind: odd ids, blank text, calls of tools that are gone", () =>
    Effect.gen(function* () {
      const messages: ReadonlyArray<ModelMessage> = [
        { role: "user", content: "Hello" },
        {
          role: "assistant",
          content: [
            { type: "text", text: " \n" },
            { type: "tool-call", toolCallId: "functions.lookup:0", toolName: "look up!", argumentsText: "[]" },
            { type: "tool-call", toolCallId: "functions.lookup:1", toolName: "lookup", argumentsText: "{}" }
          ],
          side: { reasoning_content: "mine" }
        },
        { role: "tool", toolCallId: "functions.lookup:0", toolName: "look up!", result: null, isError: true },
        { role: "tool", toolCallId: "functions.lookup:1", toolName: "lookup", result: "x", isError: false },
        { role: "assistant", content: [{ type: "text", text: "Done. " }] },
        { role: "user", content: "Thanks" }
      ]
      const script = Wire.strict(() => Wire.turn([{ text: ["x"] }]))
      for (const tools of [[], [lookup]]) {
        const { error, requests } = yield* ask(script, { ...request, messages, tools, enableThinking: true })
        expect(error).toBeUndefined()
        expect(JSON.stringify(requests[0]?.body)).not.toContain("mine")
      }
    })
  )

  const bad: ReadonlyArray<readonly [name: string, block: Wire.Block]> = [
    ["of a tool that nobody offered", { call: "toolu_1", name: "delete_all", args: ["{}"] }],
    ["with arguments that are no JSON", { call: "toolu_1", name: "lookup", args: ['{"q": "ti'] }],
    ["with arguments that are no object", { call: "toolu_1", name: "lookup", args: ["[1]"] }]
  ]
  for (const [name, block] of bad) {
    it.scopedLive(`hands on a call ${name}, with all that comes before and behind it`, () =>
      Effect.gen(function* () {
        const { error, parts } = yield* ask(
          [Wire.turn([{ text: ["Well. "] }, block, { call: "toolu_2", name: "lookup", args: ['{"q":"x"}'] }])],
          withTools
        )
        expect(error).toBeUndefined()
        expect(textOf(parts)).toBe("Well. ")
        expect(callsOf(parts)).toEqual([
          "call" in block ? { id: "toolu_1", name: block.name, args: block.args.join("") } : undefined,
          { id: "toolu_2", name: "lookup", args: '{"q":"x"}' }
        ])
        expect(finishOf(parts)).toMatchObject({ reason: "tool_calls", usage: { totalTokens: 160 } })
      })
    )
  }

  it.scopedLive("reads a call without arguments as one with none", () =>
    Effect.gen(function* () {
      const { parts } = yield* ask([Wire.turn([{ call: "toolu_1", name: "lookup", args: [] }])], withTools)
      expect(callsOf(parts).map(({ args }) => (args === "" ? "{}" : args))).toEqual(["{}"])
    })
  )

  it.scopedLive("comes through a real socket byte by byte", () =>
    Effect.gen(function* () {
      const content = "春眠不觉晓 🐼 é עברית"
      const args = JSON.stringify({ q: content })
      const { error, parts } = yield* ask(
        [{ ...Wire.turn([{ text: [content] }, { call: "c", name: "lookup", args: [args] }]), pieceBytes: 1 }],
        withTools
      )
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe(content)
      expect(callsOf(parts)).toEqual([{ id: "c", name: "lookup", args }])
    })
  )
})

describe("failures of Anthropic's Messages interface", () => {
  const half: ReadonlyArray<Wire.Block> = [{ text: ["Half "] }]
  const refusals: ReadonlyArray<
    readonly [name: string, reply: Script.Reply, expected: { readonly [key: string]: unknown }]
  > = [
    [
      "a limit of requests",
      Wire.refusal(429, "rate_limit_error", { "retry-after": "7" }),
      { code: "rate_limited", retryable: true, retryAfterMs: 7_000 }
    ],
    ["an overload", Wire.refusal(529, "overloaded_error"), { code: "overloaded", retryable: true }],
    ["a wrong key", Wire.refusal(401, "authentication_error"), { code: "unauthorized", retryable: false }],
    ["an unknown model", Wire.refusal(404, "not_found_error"), { code: "model_not_found", retryable: false }],
    ["an invalid request", Wire.refusal(400, "invalid_request_error"), { code: "bad_request", retryable: false }],
    [
      "too long a conversation",
      Wire.refusal(400, "invalid_request_error", undefined, "prompt is too long: 210000 tokens > 200000 maximum"),
      { code: "context_length", retryable: false, recoverable: false }
    ],
    ["too large a request", Wire.refusal(413, "request_too_large"), { code: "context_length", retryable: false }],
    ["a fault of the server", Wire.refusal(500, "api_error"), { code: "server_error", retryable: true }],
    [
      "an overload in the middle of a stream, which stays open",
      Wire.begun(half, [Wire.errorEvent("overloaded_error")], { end: "open" }),
      { code: "overloaded", retryable: true }
    ],
    ["a stream without an end", Wire.begun(half, []), { code: "truncated", retryable: true, recoverable: true }],
    [
      "a connection that is reset",
      Wire.begun(half, [Script.wait(20)], { end: "reset" }),
      { code: "truncated", retryable: true }
    ]
  ]
  for (const [name, reply, expected] of refusals) {
    it.scopedLive(`tells ${name} in our own words`, () =>
      Effect.gen(function* () {
        const { error, parts } = yield* ask([reply])
        expect(error).toMatchObject(expected)
        expect(finishOf(parts)).toBeUndefined()
        expect(JSON.stringify(error)).not.toContain(secret)
      })
    )
  }

  it.scopedLive("tells that nobody listens there", () =>
    Effect.gen(function* () {
      const model = yield* modelAt("http://127.0.0.1:1/v1")
      expect((yield* collect(model)).error).toMatchObject({ code: "connection", retryable: true })
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("does not follow a redirect", () =>
    Effect.gen(function* () {
      const { error, requests } = yield* ask([
        { status: 307, headers: { location: "http://127.0.0.1:1/v1/messages" }, steps: [] }
      ])
      expect(error).toMatchObject({ code: "invalid_response" })
      expect(requests).toHaveLength(1)
    })
  )

  it.scopedLive("ends a silence, but not one in which keep-alives come", () =>
    Effect.gen(function* () {
      const timeouts = { firstChunkTimeoutMs: 400, chunkTimeoutMs: 400 }
      const silent = yield* ask([Wire.begun(half, [], { end: "open" })], request, timeouts)
      expect(silent.error).toMatchObject({ code: "timeout", retryable: true })
      const hanging = yield* ask([Script.reply([], { head: "never" })], request, timeouts)
      expect(hanging.error).toMatchObject({ code: "timeout", retryable: true })
      const slow = Wire.begun(half, [
        ...Array.from({ length: 8 }, () => [Wire.ping, Script.wait(100)]).flat(),
        ...Wire.end("end_turn")
      ])
      expect((yield* ask([slow], request, timeouts)).error).toBeUndefined()
    })
  )

  it.scopedLive("gives an answer without an end up", () =>
    Effect.gen(function* () {
      const { error } = yield* ask([Wire.turn([{ text: ["x".repeat(10_000)] }])], request, { maxResponseBytes: 5_000 })
      expect(error).toMatchObject({ code: "too_long", retryable: false })
    })
  )

  const moments: ReadonlyArray<readonly [name: string, reply: Script.Reply]> = [
    ["before its headers", Script.reply([], { head: "never" })],
    ["before its first word", Wire.begun([], [], { end: "open" })],
    ["in the middle of its words", Wire.begun(half, [], { end: "open" })],
    ["in the middle of a refusal", { ...Wire.refusal(500, "api_error"), end: "open" }]
  ]
  for (const [name, reply] of moments) {
    it.scopedLive(`closes the provider's socket when a run is cancelled ${name}`, () =>
      Effect.gen(function* () {
        const { model, upstream } = yield* answering([reply])
        const begun = yield* Deferred.make<void>()
        const fiber = yield* model.stream(request).pipe(
          Stream.runForEach(() => Deferred.succeed(begun, undefined)),
          Effect.fork
        )
        yield* upstream.received(0)
        if (name.endsWith("words")) yield* Deferred.await(begun)
        else yield* Effect.sleep("50 millis")
        yield* Fiber.interrupt(fiber)
        const closed = yield* Effect.timeout(upstream.closed(0), "10 seconds")
        expect(closed.aborted).toBe(true)
      }).pipe(Effect.provide(undici))
    )
  }
})
