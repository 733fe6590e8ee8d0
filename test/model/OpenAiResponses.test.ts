import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { ModelMessage } from "../../src/model/Model.js"
import * as OpenAiResponses from "../../src/model/OpenAiResponses.js"
import type { Options } from "../../src/model/ProviderOptions.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { lookup, provider, secret, withTools } from "./provider.js"
import { callsOf, collect, finishOf, request, textOf, undici } from "./support.js"
import * as Wire from "./wire/Responses.js"

const { answering, ask, modelAt } = provider(OpenAiResponses.make, "gpt-5")

describe("OpenAI's Responses interface", () => {
  it.scopedLive("is asked with our key, the tools' own schemas and nothing stored", () =>
    Effect.gen(function* () {
      const { error, parts, requests } = yield* ask(
        Wire.strict(() => Wire.turn([{ text: ["Hello ", "you"] }])),
        { ...withTools, messages: [{ role: "system", content: "Be brief." }, ...request.messages] }
      )
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("Hello you")
      expect(requests[0]?.headers.authorization).toBe(`Bearer ${secret}`)
      expect(requests[0]?.headers.traceparent).toBeUndefined()
      expect(requests[0]?.body).toMatchObject({
        model: "gpt-5",
        store: false,
        stream: true,
        include: ["reasoning.encrypted_content"],
        tools: [{ type: "function", name: "lookup", parameters: lookup.parameters, strict: false }]
      })
      expect(requests[0]?.body).not.toHaveProperty("reasoning")
      expect(Wire.inputOf(requests[0] ?? { body: {} })[0]).toMatchObject({ role: "developer", content: "Be brief." })
    })
  )

  it.scopedLive("asks for reasoning when the run does, and of models that have some", () =>
    Effect.gen(function* () {
      const thinking = { ...request, enableThinking: true }
      const body = (options: Partial<Options>) =>
        Effect.map(ask([Wire.turn([{ text: ["x"] }])], thinking, options), ({ requests }) => requests[0]?.body)
      expect(yield* body({})).toMatchObject({ reasoning: { summary: "auto" } })
      expect(yield* body({ thinkingBody: { reasoning: { effort: "high" } } })).toMatchObject({
        reasoning: { effort: "high" }
      })
      expect(yield* body({ model: "gpt-4o", extraBody: { top_p: 0.5 } })).toMatchObject({ include: [], top_p: 0.5 })
    })
  )

  it.scopedLive("is asked for no more than is left", () =>
    Effect.gen(function* () {
      const most = (maxOutputTokens: number | undefined, options: Partial<Options>) =>
        Effect.map(
          ask([Wire.turn([{ text: ["x"] }])], { ...request, maxOutputTokens }, options),
          ({ requests }) => ((requests[0]?.body ?? {}) as Record<string, unknown>).max_output_tokens
        )
      expect(yield* most(undefined, {})).toBeUndefined()
      expect(yield* most(100, {})).toBe(100)
      expect(yield* most(100, { maxOutputTokens: 60, extraBody: { max_output_tokens: 50 } })).toBe(50)
      // The interface takes no less.
      expect(yield* most(3, {})).toBe(16)
    })
  )

  it.scopedLive("tells usage with cached and reasoning tokens, and why it ended", () =>
    Effect.gen(function* () {
      const { parts } = yield* ask([Wire.turn([{ reasoning: ["Hm. ", "Well."], encrypted: "e1" }, { text: ["x"] }])])
      expect(textOf(parts, "reasoning-delta")).toBe("Hm. Well.")
      expect(finishOf(parts)).toMatchObject({
        reason: "stop",
        usage: { inputTokens: 120, cachedInputTokens: 64, outputTokens: 40, reasoningTokens: 16, totalTokens: 160 }
      })
      const cut = yield* ask([Wire.turn([{ text: ["x"] }], { incomplete_details: { reason: "max_output_tokens" } })])
      expect(finishOf(cut.parts)?.reason).toBe("length")
      const filtered = yield* ask([Wire.turn([{ text: ["x"] }], { incomplete_details: { reason: "content_filter" } })])
      expect(finishOf(filtered.parts)?.reason).toBe("content_filter")
    })
  )

  it.scopedLive("understands an end with values that no schema knows yet", () =>
    Effect.gen(function* () {
      const { error, parts } = yield* ask([
        Wire.turn([{ text: ["x"] }], {
          service_tier: "warp",
          reasoning: { effort: "extreme" },
          tools: [{ type: "new" }]
        })
      ])
      expect(error).toBeUndefined()
      expect(finishOf(parts)?.usage.totalTokens).toBe(160)
    })
  )

  it.scopedLive("goes through a turn with tools, and gets its encrypted reasoning back with it", () =>
    Effect.gen(function* () {
      const { model, upstream } = yield* answering(
        Wire.strict(({ n }) =>
          n === 0
            ? Wire.turn([
                { reasoning: ["I look ", "it up."], encrypted: "secret-thought" },
                { text: ["One moment. "] },
                { call: "call_1", name: "lookup", args: ['{"q":', '"tide"}'] },
                { call: "call_2", name: "lookup", args: ['{"q":"ebb"}'] }
              ])
            : Wire.turn([{ text: ["It is high."] }])
        )
      )
      const first = yield* collect(model, withTools)
      const finish = finishOf(first.parts)
      expect(finish?.reason).toBe("tool_calls")
      expect(callsOf(first.parts)).toEqual([
        { id: "call_1", name: "lookup", args: '{"q":"tide"}' },
        { id: "call_2", name: "lookup", args: '{"q":"ebb"}' }
      ])
      expect(JSON.stringify(first.parts.slice(0, -1))).not.toContain("secret-thought")
      const call = (toolCallId: string, q: string) =>
        ({ type: "tool-call", toolCallId, toolName: "lookup", argumentsText: JSON.stringify({ q }) }) as const
      const messages: ReadonlyArray<ModelMessage> = [
        ...request.messages,
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "I look it up." },
            { type: "text", text: "One moment. " },
            call("call_1", "tide"),
            call("call_2", "ebb")
          ],
          side: JSON.parse(JSON.stringify(finish?.side))
        },
        { role: "tool", toolCallId: "call_1", toolName: "lookup", result: { level: 3 }, isError: false },
        { role: "tool", toolCallId: "call_2", toolName: "lookup", result: "gone", isError: true }
      ]
      const second = yield* collect(model, { ...withTools, messages, iteration: 2 })
      expect(second.error).toBeUndefined()
      const sent = Wire.inputOf(upstream.requests[1] ?? { body: {} })
      expect(sent.slice(1)).toMatchObject([
        {
          type: "reasoning",
          id: "rs_0",
          encrypted_content: "secret-thought",
          summary: [{ type: "summary_text", text: "I look it up." }]
        },
        { role: "assistant", id: "msg_1", content: [{ type: "output_text", text: "One moment. " }] },
        { type: "function_call", id: "fc_2", call_id: "call_1", name: "lookup", arguments: '{"q":"tide"}' },
        { type: "function_call", id: "fc_3", call_id: "call_2" },
        { type: "function_call_output", call_id: "call_1", output: '{"level":3}' },
        { type: "function_call_output", call_id: "call_2", output: '{"error":"gone"}' }
      ])

      const other = yield* modelAt(upstream.url, { model: "gpt-5-mini" })
      yield* collect(other, { ...withTools, messages, iteration: 2 })
      expect(JSON.stringify(upstream.requests[2]?.body)).not.toContain("secret-thought")
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("keeps reasoning that has no summary", () =>
    Effect.gen(function* () {
      const { parts } = yield* ask([
        Wire.turn([
          { reasoning: [], encrypted: "silent" },
          { call: "call_1", name: "lookup", args: ["{}"] }
        ])
      ])
      expect(textOf(parts, "reasoning-delta")).toBe("")
      expect(JSON.stringify(finishOf(parts)?.side)).toContain("silent")
    })
  )

  const bad: ReadonlyArray<readonly [name: string, item: Wire.Item]> = [
    ["of a tool that nobody offered", { call: "call_1", name: "delete_all", args: ["{}"] }],
    ["with arguments that are no JSON", { call: "call_1", name: "lookup", args: ['{"q": "ti'] }],
    ["with arguments that are no object", { call: "call_1", name: "lookup", args: ["[1]"] }],
    ["with arguments that would change every object", { call: "call_1", name: "lookup", args: ['{"__proto__":{}}'] }]
  ]
  for (const [name, item] of bad) {
    it.scopedLive(`hands on a call ${name}, with all that comes before and behind it`, () =>
      Effect.gen(function* () {
        const { error, parts } = yield* ask(
          [Wire.turn([{ text: ["Well. "] }, item, { call: "call_2", name: "lookup", args: ['{"q":"x"}'] }])],
          withTools
        )
        expect(error).toBeUndefined()
        expect(textOf(parts)).toBe("Well. ")
        expect(callsOf(parts)).toEqual([
          "call" in item ? { id: "call_1", name: item.name, args: item.args.join("") } : undefined,
          { id: "call_2", name: "lookup", args: '{"q":"x"}' }
        ])
        expect(finishOf(parts)).toMatchObject({ reason: "tool_calls", usage: { totalTokens: 160 } })
      })
    )
  }

  it.scopedLive("shows a refusal as text", () =>
    Effect.gen(function* () {
      const { parts } = yield* ask([Wire.turn([{ refusal: ["I can ", "not."] }])])
      expect(textOf(parts)).toBe("I can not.")
    })
  )

  it.scopedLive("comes through a real socket byte by byte", () =>
    Effect.gen(function* () {
      const content = "春眠不觉晓 🐼 é עברית"
      const args = JSON.stringify({ q: content })
      const { error, parts } = yield* ask([
        { ...Wire.turn([{ text: [content] }, { call: "c", name: "lookup", args: [args] }]), pieceBytes: 1 }
      ])
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe(content)
      expect(callsOf(parts)).toEqual([{ id: "c", name: "lookup", args }])
    })
  )

  it.scopedLive("takes a large piece of many events at once", () =>
    Effect.gen(function* () {
      const pieces = Array.from({ length: 2_000 }, (_, i) => `${i} `)
      const whole = Wire.turn([{ text: pieces }])
      const all = whole.steps.map((step) => ("text" in step ? step.text : "")).join("")
      const { error, parts } = yield* ask([{ ...whole, steps: [{ text: all }] }])
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe(pieces.join(""))
    })
  )
})

describe("failures of OpenAI's Responses interface", () => {
  const refusals: ReadonlyArray<
    readonly [name: string, reply: Script.Reply, expected: { readonly [key: string]: unknown }]
  > = [
    [
      "a limit of requests",
      Wire.refusal(429, "rate_limit_exceeded", "requests", { "retry-after": "7" }),
      { code: "rate_limited", retryable: true, retryAfterMs: 7_000 }
    ],
    [
      "a used-up quota",
      Wire.refusal(429, "insufficient_quota", "insufficient_quota"),
      { code: "quota_exceeded", retryable: false }
    ],
    [
      "a wrong key",
      Wire.refusal(401, "invalid_api_key", "invalid_request_error"),
      { code: "unauthorized", retryable: false }
    ],
    ["an unknown model", Wire.refusal(404, "model_not_found", "invalid_request_error"), { code: "model_not_found" }],
    [
      "too long a conversation",
      Wire.refusal(400, "context_length_exceeded", "invalid_request_error"),
      { code: "context_length", retryable: false, recoverable: false }
    ],
    ["a fault of the server", Wire.refusal(500, null, "server_error"), { code: "server_error", retryable: true }],
    [
      "a refusal that never ends",
      { ...Wire.refusal(503, null, "x"), end: "open" },
      { code: "overloaded", retryable: true }
    ],
    ["a web page", Script.body(502, "text/html", "<html></html>"), { code: "server_error", retryable: true }],
    [
      "an error in the stream",
      Wire.begun([{ text: ["Half "] }], (say) => [
        say("error", { code: "rate_limit_exceeded", message: `No ${secret}`, param: null })
      ]),
      { code: "rate_limited", retryable: true }
    ],
    [
      "a failed response",
      Wire.begun([{ text: ["Half "] }], (say) => [Wire.failed(say, "server_error")], { end: "open" }),
      { code: "server_error", retryable: true }
    ],
    [
      "a stream without an end",
      Wire.begun([{ text: ["Half "] }], () => []),
      { code: "truncated", retryable: true, recoverable: true }
    ],
    [
      "a connection that is reset",
      Wire.begun([{ text: ["Half "] }], () => [Script.wait(20)], { end: "reset" }),
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
        { status: 307, headers: { location: "http://127.0.0.1:1/v1/responses" }, steps: [] }
      ])
      expect(error).toMatchObject({ code: "invalid_response" })
      expect(requests).toHaveLength(1)
    })
  )

  it.scopedLive("ends a silence, but not one in which keep-alives come", () =>
    Effect.gen(function* () {
      const timeouts = { firstChunkTimeoutMs: 400, chunkTimeoutMs: 400 }
      const silent = yield* ask([Wire.begun([{ text: ["Half "] }], () => [], { end: "open" })], request, timeouts)
      expect(silent.error).toMatchObject({ code: "timeout", retryable: true })
      const hanging = yield* ask([Script.reply([], { head: "never" })], request, timeouts)
      expect(hanging.error).toMatchObject({ code: "timeout", retryable: true })
      const slow = Wire.begun([{ text: ["Half "] }], (say) =>
        Array.from({ length: 8 }, () => [Wire.keepalive(say), Script.wait(100)])
          .flat()
          .concat(Wire.turn([]).steps.at(-1) ?? [])
      )
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
    ["before its first word", Wire.begun([], () => [], { end: "open" })],
    ["in the middle of its words", Wire.begun([{ text: ["Half "] }], () => [], { end: "open" })],
    ["in the middle of a refusal", { ...Wire.refusal(500, null, "x"), end: "open" }]
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
