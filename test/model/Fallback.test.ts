import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { withFallback } from "../../src/model/Fallback.js"
import { type Model, ModelError, type ModelPart, type ModelRequest } from "../../src/model/Model.js"
import { finishOf, request } from "./support.js"

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

/** A model that wants its name back, and writes down what it got. It fails when it is told to. */
const named = (name: string) => {
  const got: Array<unknown> = []
  const self = { fails: false }
  const model: Model = {
    stream: ({ messages }) => {
      got.push(messages.flatMap((message) => (message.role === "assistant" ? [message.side] : [])))
      return self.fails
        ? Stream.fail(new ModelError({ code: "connection", message: "gone", retryable: false, recoverable: true }))
        : Stream.make<[ModelPart]>({ type: "finish", reason: "stop", usage, side: { of: name } })
    }
  }
  return { model, got, self }
}

/** Asks again and again, with every turn so far in the request. */
const conversation = (model: Model) => {
  const turns: Array<ModelRequest["messages"][number]> = []
  return Effect.gen(function* () {
    const parts = yield* Stream.runCollect(model.stream({ ...request, messages: [...request.messages, ...turns] }))
    const side = Option.fromNullable(finishOf([...parts])?.side)
    turns.push({
      role: "assistant",
      content: [{ type: "text", text: "a" }],
      ...(Option.isSome(side) && { side: JSON.parse(JSON.stringify(side.value)) })
    })
  })
}

it.effect("each model gets back what it wanted kept of its own turns, and nothing of another's", () =>
  Effect.gen(function* () {
    const [a, b, c] = [named("a"), named("b"), named("c")]
    const ask = conversation(withFallback(a.model, withFallback(b.model, c.model)))
    yield* ask
    a.self.fails = true
    yield* ask
    b.self.fails = true
    yield* ask
    a.self.fails = false
    yield* ask
    a.self.fails = true
    b.self.fails = false
    yield* ask
    b.self.fails = true
    yield* ask
    expect(a.got.at(3)).toEqual([{ of: "a" }, undefined, undefined])
    expect(b.got.at(-1)).toEqual([undefined, { of: "b" }, undefined, undefined, { of: "b" }])
    expect(c.got.at(-1)).toEqual([undefined, undefined, { of: "c" }, undefined, undefined])
  })
)

it.effect("what was kept before there was a fallback goes to nobody", () =>
  Effect.gen(function* () {
    const [a, b] = [named("a"), named("b")]
    const old = { role: "assistant", content: [{ type: "text", text: "a" }], side: { of: "a" } } as const
    yield* Stream.runDrain(withFallback(a.model, b.model).stream({ ...request, messages: [old] }))
    expect(a.got).toEqual([[undefined]])
  })
)

it.effect("a turn costs what the model that made it costs", () =>
  Effect.gen(function* () {
    const [a, b] = [named("a"), named("b")]
    const dear = { ...a.model, price: { input: 1_000_000, output: 0 } }
    const cheap = { ...b.model, price: { input: 3, output: 0 } }
    const model = withFallback(dear, cheap)
    const cost = Effect.map(Stream.runCollect(model.stream(request)), (parts) => finishOf([...parts])?.usage.costUsd)
    expect(yield* cost).toBe(1)
    a.self.fails = true
    expect(yield* cost).toBe(3e-6)
  })
)
