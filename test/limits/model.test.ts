import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import type * as OpenAiCompatible from "../../src/model/OpenAiCompatible.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { bytesOf, collect, modelAt, textOf } from "../model/support.js"
import { counts } from "./support/Reached.js"

/** A model whose server sends its headers at once, and what it says when it is told to. */
const asked = (options: Partial<OpenAiCompatible.Options>) =>
  Effect.gen(function* () {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    const client = HttpClient.make((request, _, signal) =>
      Effect.sync(() => {
        const body = new ReadableStream<Uint8Array>({
          start: (made) => {
            controller = made
            // As a real one does whose request is given up.
            signal.addEventListener("abort", () => made.error(new Error("aborted")))
          }
        })
        return HttpClientResponse.fromWeb(
          request,
          new Response(body, { headers: { "content-type": "text/event-stream" } })
        )
      })
    )
    const model = yield* Effect.provide(
      modelAt("http://model.example/v1", options),
      Layer.succeed(HttpClient.HttpClient, client)
    )
    const turn = yield* Effect.fork(collect(model))
    yield* TestClock.adjust(0)
    return {
      /** Says something after so many milliseconds of silence. */
      tell: (ms: number, ...steps: ReadonlyArray<Script.Step>) =>
        Effect.gen(function* () {
          yield* TestClock.adjust(ms)
          yield* Effect.sync(() => {
            try {
              controller?.enqueue(bytesOf(steps))
            } catch {
              // Nobody listens any more, which the outcome tells.
            }
          })
          // The pieces of a web stream arrive in turns of the event loop, which a test clock does not move.
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          yield* TestClock.adjust(0)
        }),
      outcome: Effect.zipRight(TestClock.adjust(60_000), Fiber.join(turn))
    }
  })

const end = [Script.finish("stop"), Script.done]

describe("firstChunkTimeoutMs", () => {
  for (const [ms, code] of [
    [999, undefined],
    [1_000, "timeout"],
    [1_001, "timeout"]
  ] as const) {
    it.effect(`of 1000 with a first word after ${ms}`, () =>
      Effect.gen(function* () {
        const { tell, outcome } = yield* asked({ firstChunkTimeoutMs: 1_000, chunkTimeoutMs: 500 })
        yield* tell(ms, Script.text("Hello"), ...end)
        const { error, parts } = yield* outcome
        expect([error?.code, textOf(parts)]).toEqual([code, code === undefined ? "Hello" : ""])
      })
    )
  }
})

describe("chunkTimeoutMs", () => {
  for (const [ms, code] of [
    [499, undefined],
    [500, "timeout"],
    [501, "timeout"]
  ] as const) {
    it.effect(`of 500 with a silence of ${ms} between two words`, () =>
      Effect.gen(function* () {
        const { tell, outcome } = yield* asked({ firstChunkTimeoutMs: 1_000, chunkTimeoutMs: 500 })
        yield* tell(10, Script.text("Hello"))
        yield* tell(ms, Script.text(", world"), ...end)
        const { error, parts } = yield* outcome
        expect([error?.code, textOf(parts)]).toEqual([code, code === undefined ? "Hello, world" : "Hello"])
      })
    )
  }
})

describe("maxModelResponseBytes", () => {
  const answer = [Script.text("x".repeat(500)), ...end]
  const size = bytesOf(answer).length
  for (const [maxResponseBytes, code] of [
    [size + 1, undefined],
    [size, undefined],
    [size - 1, "too_long"],
    [10, "too_long"]
  ] as const) {
    it.effect(`of ${maxResponseBytes} with an answer of ${size}`, () =>
      Effect.gen(function* () {
        const { tell, outcome } = yield* asked({ maxResponseBytes })
        for (const step of answer) yield* tell(1, step)
        const { error } = yield* outcome
        expect([error?.code, error?.retryable ?? false]).toEqual([code, false])
      })
    )
  }
})

it.effect("whatever ended for a limit was counted", () =>
  Effect.gen(function* () {
    expect(yield* counts()).toEqual({ firstChunkTimeoutMs: 2, chunkTimeoutMs: 2, maxModelResponseBytes: 2 })
  })
)
