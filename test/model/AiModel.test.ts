import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/agent/Agent.js"
import * as AiAgent from "../../src/agent/AiAgent.js"
import * as AiModel from "../../src/model/AiModel.js"
import { sideOf } from "../../src/model/AiPrompt.js"
import type { ModelRequest } from "../../src/model/Model.js"
import { callsOf, collect, finishOf, request, textOf } from "./support.js"

type Part = Response.StreamPartEncoded

const usage = { inputTokens: 100, outputTokens: 10, totalTokens: 110, cachedInputTokens: 40, reasoningTokens: 3 }
const finish = (reason: Response.FinishReason = "stop"): Part => ({ type: "finish", reason, usage })
const text = (delta: string): ReadonlyArray<Part> => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta },
  { type: "text-end", id: "t" }
]
const call = (id: string, name: string, args: string, params: unknown): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name },
  { type: "tool-params-delta", id, delta: args },
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params }
]

/** A layer as somebody else would write it. */
const layerOf = (
  stream: Stream.Stream<Part, AiError.AiError>,
  seen: Array<LanguageModel.ProviderOptions> = []
): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.die("nobody asks for a whole answer"),
      streamText: (options) => {
        seen.push(options)
        return stream
      }
    })
  )

const modelOf = (...args: Parameters<typeof layerOf>) =>
  AiModel.fromLanguageModel({ name: "mine", price: { input: 2, output: 10, cachedInput: 1 } }).pipe(
    Effect.provide(layerOf(...args))
  )

const chunks = (...all: ReadonlyArray<ReadonlyArray<Part>>) =>
  Stream.fromChunks(...all.map((parts) => Chunk.fromIterable(parts)))

const withTools: ModelRequest = {
  ...request,
  tools: [
    {
      name: "lookup",
      description: "Looks a word up",
      kind: "readonly",
      parameters: { type: "object", properties: { n: { type: "integer", minimum: 3 } }, required: ["n"] }
    }
  ]
}

describe("a language model of @effect/ai", () => {
  it.effect("is a model of a run, with usage and cost", () =>
    Effect.gen(function* () {
      const { error, parts } = yield* collect(yield* modelOf(chunks(text("Hello"), [finish()])))
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("Hello")
      expect(finishOf(parts)).toEqual({
        type: "finish",
        reason: "stop",
        usage: { ...usage, costUsd: (60 * 2 + 40 * 1 + 10 * 10) / 1e6 }
      })
    })
  )

  it.effect("is the model of an agent by one layer", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.Agent
      expect([...agent.models.keys(), agent.defaultModel, agent.instructions]).toEqual(["mine", "mine", "Be brief."])
      const model = agent.models.get("mine")
      expect(model === undefined ? undefined : textOf((yield* collect(model)).parts)).toBe("Hello")
    }).pipe(
      Effect.provide(
        Layer.provide(
          AiAgent.layer({ name: "mine", instructions: "Be brief." }),
          layerOf(chunks(text("Hello"), [finish()]))
        )
      )
    )
  )

  it.effect("is offered tools with their own schemas, which it need not keep to", () =>
    Effect.gen(function* () {
      const seen: Array<LanguageModel.ProviderOptions> = []
      const model = yield* modelOf(
        chunks(call("a", "lookup", '{"n":"one"}', { n: "one" }), [finish("tool-calls")]),
        seen
      )
      const { error, parts } = yield* collect(model, withTools)
      expect(error).toBeUndefined()
      expect(callsOf(parts)).toEqual([{ id: "a", name: "lookup", args: '{"n":"one"}' }])
      expect(finishOf(parts)?.reason).toBe("tool_calls")
      expect(seen[0]?.tools.map(({ description, name }) => [name, description])).toEqual([
        ["lookup", "Looks a word up"]
      ])
    })
  )

  it.effect("may give the arguments of a call whole", () =>
    Effect.gen(function* () {
      const whole: Part = { type: "tool-call", id: "a", name: "lookup", params: { n: 4 } }
      const { parts } = yield* collect(yield* modelOf(chunks([whole, finish("tool-calls")])), withTools)
      expect(callsOf(parts)).toEqual([{ id: "a", name: "lookup", args: '{"n":4}' }])
    })
  )

  it.effect("keeps the calls that its provider runs itself to itself", () =>
    Effect.gen(function* () {
      const search: ReadonlyArray<Part> = [
        { type: "tool-params-start", id: "s", name: "search", providerExecuted: true },
        { type: "tool-params-delta", id: "s", delta: "{}" },
        { type: "tool-params-end", id: "s" }
      ]
      const { parts } = yield* collect(yield* modelOf(chunks(search, text("Found."), [finish()])))
      expect(callsOf(parts)).toEqual([])
      expect(finishOf(parts)?.reason).toBe("stop")
    })
  )

  it.effect("may call a tool that nobody offered, although its library gives up at that", () =>
    Effect.gen(function* () {
      const model = yield* modelOf(
        // Piece by piece, as it comes: of the piece that a library can not read, all is lost.
        chunks(...[...text("Well. "), ...call("a", "delete_all", "{}", {}), finish("tool-calls")].map((part) => [part]))
      )
      const { error, parts } = yield* collect(model, withTools)
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("Well. ")
      expect(callsOf(parts)).toEqual([{ id: "a", name: "delete_all", args: "{}" }])
      expect(finishOf(parts)?.reason).toBe("tool_calls")
    })
  )

  it.effect("gives back what its provider said, in the turn's side data alone and under its name", () =>
    Effect.gen(function* () {
      const signed: ReadonlyArray<Part> = [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "Hm." },
        { type: "reasoning-delta", id: "r", delta: "", metadata: { other: { signature: "s1", gone: undefined } } },
        { type: "reasoning-end", id: "r", metadata: { other: { more: 2 } } }
      ]
      const { parts } = yield* collect(yield* modelOf(chunks(signed, text("x"), [finish()])))
      const side = finishOf(parts)?.side
      expect(sideOf(side, "mine")).toEqual([
        { type: "reasoning", text: "Hm.", metadata: { other: { signature: "s1", more: 2 } } },
        { type: "text" }
      ])
      expect(sideOf(side, "another")).toBeUndefined()
      expect(JSON.stringify(parts.slice(0, -1))).not.toContain("s1")
    })
  )

  it.effect("is told only its own side data again", () =>
    Effect.gen(function* () {
      const seen: Array<LanguageModel.ProviderOptions> = []
      const model = yield* modelOf(chunks([finish()]), seen)
      const turn = (by: string, says: string) =>
        ({
          role: "assistant",
          content: [{ type: "text", text: says }],
          side: {
            by,
            parts: [{ type: "reasoning", text: "R", metadata: { p: { signature: says } } }, { type: "text" }]
          }
        }) as const
      const user = { role: "user", content: "And?" } as const
      yield* collect(model, { ...request, messages: [user, turn("mine", "one"), user, turn("theirs", "two"), user] })
      const [, first, , second] = seen[0]?.prompt.content ?? []
      expect(first?.content).toMatchObject([
        { type: "reasoning", text: "R", options: { p: { signature: "one" } } },
        { type: "text", text: "one" }
      ])
      expect(second?.content).toMatchObject([{ type: "text", text: "two" }])
    })
  )

  const errors: ReadonlyArray<
    readonly [name: string, Stream.Stream<Part, AiError.AiError>, expected: { readonly [key: string]: unknown }]
  > = [
    ["ends without a finish", chunks(text("Half")), { code: "truncated", retryable: true }],
    ["ends with a fault", chunks([finish("error")]), { code: "server_error", retryable: true }],
    [
      "sends an error",
      chunks([{ type: "error", error: { type: "overloaded_error", message: "sk-1" } }]),
      { code: "overloaded", retryable: true }
    ],
    [
      "sends what its library can not read",
      Stream.fail(new AiError.MalformedOutput({ module: "M", method: "m", description: "sk-1" })),
      { code: "invalid_response", retryable: true }
    ],
    [
      "is given what its library can not send",
      Stream.fail(new AiError.MalformedInput({ module: "M", method: "m", description: "sk-1" })),
      { code: "bad_request", retryable: false, recoverable: false }
    ],
    [
      "fails for a reason that nobody knows",
      Stream.fail(new AiError.UnknownError({ module: "M", method: "m", description: "sk-1" })),
      { code: "upstream_error", retryable: true }
    ],
    [
      "is refused",
      Stream.fail(
        new AiError.HttpResponseError(
          {
            module: "M",
            method: "m",
            request: { url: "http://x", method: "POST", headers: {}, urlParams: [], hash: Option.none() },
            response: { status: 429, headers: { "retry-after": "3" } },
            body: JSON.stringify({ error: { type: "rate_limit_error", message: "sk-1" } }),
            reason: "StatusCode"
          },
          { disableValidation: true }
        )
      ),
      { code: "rate_limited", retryable: true, retryAfterMs: 3_000 }
    ]
  ]
  for (const [name, stream, expected] of errors) {
    it.effect(`${name}: the loop is told in its own words`, () =>
      Effect.gen(function* () {
        const { error } = yield* collect(yield* modelOf(stream))
        expect(error).toMatchObject(expected)
        expect(JSON.stringify(error)).not.toContain("sk-1")
      })
    )
  }
})
