import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { OfferedTool } from "../../src/domain/RunInput.js"
import * as Demo from "../../src/model/Demo.js"
import { withFallback } from "../../src/model/Fallback.js"
import { type Model, ModelError, type ModelPart } from "../../src/model/Model.js"
import * as ModelContract from "../../src/testing/ModelContract.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Upstream from "../../src/testing/UpstreamScript.js"
import { modelAt, undici } from "../model/support.js"

const tool: OfferedTool = {
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object", properties: { q: { type: "string" } } }
}

const secret = "sk-canary-77f0a1"

const questions = { answer: "answer", calls: "calls", cut: "cut", fails: "fails", hangs: "hangs" }

const scripted = (continuesDraft = false): Model =>
  Script.make(
    (request) => {
      const last = request.messages.at(-1)
      if (last?.role === "tool") return Script.turn(Script.text("It is ", "42."))
      if (last?.role === "assistant") return Script.turn(Script.text("and the rest of it."))
      switch (last?.role === "user" ? last.content : "") {
        case "calls":
          return Script.turn(Script.call("lookup", { q: "x" }), Script.call("lookup", { q: "y" }, "c2"))
        case "cut":
          return Script.turn(Script.text("Half "), Script.truncate)
        case "fails":
          return Script.turn(Script.fail("overloaded"))
        case "hangs":
          return Script.turn(Script.hang)
        default:
          return { ...Script.turn(Script.reasoning("Hm. "), Script.text("A ", "whole ", "answer.")), side: { s: 1 } }
      }
    },
    { continuesDraft }
  )

const upstream: Upstream.Script = (request) => {
  const last = Upstream.messagesOf(request).at(-1)
  if (last?.role === "tool") return Upstream.answer("It is ", "42.")
  if (last?.role === "assistant") return Upstream.answer("and the rest of it.")
  switch (Upstream.lastUserText(request)) {
    case "calls":
      return Upstream.calls({ id: "c1", name: "lookup", args: '{"q":"x"}' }, { id: "c2", name: "lookup", args: "{}" })
    case "cut":
      return Upstream.reply([Upstream.text("Half "), Upstream.wait(10)], { framing: "close" })
    case "fails":
      return Upstream.body(
        500,
        "application/json",
        JSON.stringify({ error: { message: `key ${secret} at /srv/app.py` } })
      )
    case "hangs":
      return Upstream.reply([], { head: "never" })
    default:
      return Upstream.answer("A ", "whole ", "answer.")
  }
}

const subjectOf = (model: Model, more: Partial<ModelContract.Subject["Type"]> = {}) =>
  Layer.succeed(ModelContract.Subject, { model, questions, tool, secrets: [secret], ...more })

/** Over a real connection, to a server that refuses what a strict provider refuses. */
const openAiCompatible = Layer.scoped(
  ModelContract.Subject,
  Effect.gen(function* () {
    const { url } = yield* ScriptedUpstream.make({ script: upstream, strict: true })
    const model = yield* modelAt(url, { apiKey: Redacted.make(secret), draft: { message: { prefix: true } } })
    return { model, questions, tool, secrets: [secret] }
  })
).pipe(Layer.provide(undici))

const busy: Model = Script.make(() => Script.turn(Script.fail("overloaded")))

/** The first one fails at once, so that all is up to the second. */
const viaFallback = Layer.map(openAiCompatible, (context) => {
  const subject = Context.get(context, ModelContract.Subject)
  const { continuesDraft } = subject.model
  return Context.make(ModelContract.Subject, {
    ...subject,
    model: withFallback({ ...busy, continuesDraft }, subject.model)
  })
})

const subjects: Record<string, Layer.Layer<ModelContract.Subject>> = {
  "the scripted model": subjectOf(scripted()),
  "the scripted model, going on with drafts": subjectOf(scripted(true)),
  "the demo model": subjectOf(Demo.make({ pace: 0 }), {
    questions: { answer: "/long 12", calls: '/call lookup {"q":"x"}', cut: "/cut /long 12" }
  }),
  "an OpenAI-compatible model": openAiCompatible,
  "a model with a fallback that is not needed": subjectOf(withFallback(scripted(), busy)),
  "a model with a fallback that is needed": viaFallback
}

const demoCan = (needs: ModelContract.Situation) => needs !== "fails" && needs !== "hangs"

for (const [name, subject] of Object.entries(subjects)) {
  describe(name, () => {
    for (const one of ModelContract.cases) {
      if (name !== "the demo model" || demoCan(one.needs)) it.live(one.name, () => Effect.provide(one.run, subject))
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
