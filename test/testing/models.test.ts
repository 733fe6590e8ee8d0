import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Model, ModelError, type ModelPart } from "../../src/model/Model.js"
import * as ModelContract from "../../src/testing/ModelContract.js"
import { all, secret, subjectOf } from "./subjects.js"

for (const [name, { can, subject }] of Object.entries(all)) {
  describe(name, () => {
    for (const { name, needs, run } of ModelContract.cases) {
      if (can(needs)) it.live(name, () => Effect.provide(run, subject))
    }
  })
}

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
const finish: ModelPart = { type: "finish", reason: "stop", usage }
const say = (delta: string): ModelPart => ({ type: "text-delta", id: "t", delta })
const saying = (...parts: ReadonlyArray<ModelPart>): Model => ({ stream: () => Stream.fromIterable(parts) })

let turns = 0

/** A mistake, and the beginning of the case that notices. */
const mistakes: ReadonlyArray<readonly [string, string, Model]> = [
  ["goes on behind its finish", "a turn is its parts", saying(say("a"), finish, say("b"))],
  ["finishes twice", "a turn is its parts", saying(say("a"), finish, finish)],
  ["says nothing", "a turn is its parts", saying(finish)],
  ["counts backwards", "a turn is its parts", saying(say("a"), { ...finish, usage: { ...usage, outputTokens: -1 } })],
  ["throws", "a turn is its parts", { stream: () => Stream.die(new Error("oh")) }],
  [
    "mixes two requests up",
    "two requests at once",
    { stream: () => Stream.suspend(() => (turns++ % 2 === 0 ? Stream.make(say("a"), finish) : Stream.make(finish))) }
  ],
  [
    "changes the request",
    "a turn is its parts",
    {
      stream: (request) =>
        Stream.suspend(() => {
          Object.assign(request.messages[0] ?? {}, { content: "changed" })
          return Stream.make(say("a"), finish)
        })
    }
  ],
  [
    "does not know tool messages",
    "every history",
    {
      stream: ({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? Stream.fail(
              new ModelError({
                code: "bad_request",
                message: "The role is unknown.",
                retryable: false,
                recoverable: false
              })
            )
          : Stream.make(say("a"), finish)
    }
  ],
  [
    "repeats the draft",
    "a draft is gone on with",
    { continuesDraft: true, stream: () => Stream.make(say("the whole answer, from its beginning"), finish) }
  ],
  [
    "gives two calls one id",
    "calls have a name",
    saying(
      { type: "tool-call-start", call: "0", toolCallId: "c", toolName: "lookup" },
      { type: "tool-call-start", call: "1", toolCallId: "c", toolName: "lookup" },
      { ...finish, reason: "tool_calls" }
    )
  ],
  [
    "sends arguments before their call",
    "calls have a name",
    saying({ type: "tool-call-delta", call: "0", delta: "{}" }, { ...finish, reason: "tool_calls" })
  ],
  ["takes a cut for an end", "a turn that the provider cuts off", saying(say("a"), finish)],
  [
    "tells its key",
    "a provider that fails",
    {
      stream: () =>
        Stream.fail(
          new ModelError({
            code: "unauthorized",
            message: `The key ${secret} is wrong.`,
            retryable: false,
            recoverable: false
          })
        )
    }
  ]
]

describe("the contract of models", () => {
  for (const [mistake, noticed, model] of mistakes) {
    it.live(`notices a model that ${mistake}`, () =>
      Effect.gen(function* () {
        const one = ModelContract.cases.find(({ name }) => name.startsWith(noticed))
        if (one === undefined) return yield* Effect.dieMessage("there is no such case")
        const { message } = yield* Effect.flip(Effect.provide(one.run, subjectOf(model)))
        expect(message).not.toBe("")
      })
    )
  }
})
