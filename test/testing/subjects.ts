/** The models of this package, as the contract of models meets them. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { OfferedTool } from "../../src/domain/RunInput.js"
import * as Anthropic from "../../src/model/Anthropic.js"
import * as Demo from "../../src/model/Demo.js"
import { withFallback } from "../../src/model/Fallback.js"
import type { Model } from "../../src/model/Model.js"
import * as OpenAiResponses from "../../src/model/OpenAiResponses.js"
import * as ModelContract from "../../src/testing/ModelContract.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Upstream from "../../src/testing/UpstreamScript.js"
import { limits, modelAt, undici } from "../model/support.js"
import * as Messages from "../model/wire/Messages.js"
import * as Responses from "../model/wire/Responses.js"

const tool: OfferedTool = {
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object", properties: { q: { type: "string" } } }
}

export const secret = "sk-canary-77f0a1"

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

export const subjectOf = (model: Model, more: Partial<ModelContract.Subject["Type"]> = {}) =>
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

/** Over a real connection, to a server that speaks OpenAI's Responses interface and refuses what that refuses. */
const openAi = Layer.scoped(
  ModelContract.Subject,
  Effect.gen(function* () {
    const { url } = yield* ScriptedUpstream.make({
      script: Responses.strict((request) => {
        if (Responses.inputOf(request).at(-1)?.type === "function_call_output") {
          return Responses.turn([{ text: ["It is ", "42."] }])
        }
        switch (Responses.lastUserText(request)) {
          case "calls":
            return Responses.turn([
              { reasoning: ["Hm."], encrypted: "e1" },
              { call: "c1", name: "lookup", args: ['{"q":', '"x"}'] },
              { call: "c2", name: "lookup", args: ["{}"] }
            ])
          case "cut":
            return Responses.begun([{ text: ["Half "] }], () => [Upstream.wait(10)], { framing: "close" })
          case "fails":
            return Responses.refusal(500, null, "server_error")
          case "hangs":
            return Upstream.reply([], { head: "never" })
          default:
            return Responses.turn([{ reasoning: ["Hm."], encrypted: "e2" }, { text: ["A ", "whole ", "answer."] }])
        }
      })
    })
    const model = yield* OpenAiResponses.make({
      ...limits,
      model: "gpt-5",
      baseUrl: url,
      apiKey: Redacted.make(secret)
    })
    return { model, questions, tool, secrets: [secret] }
  })
).pipe(Layer.provide(undici))

/** The same for Anthropic's Messages interface. */
const anthropic = Layer.scoped(
  ModelContract.Subject,
  Effect.gen(function* () {
    const { url } = yield* ScriptedUpstream.make({
      script: Messages.strict((request) => {
        if (JSON.stringify(Messages.messagesOf(request).at(-1)).includes("tool_result")) {
          return Messages.turn([{ text: ["It is ", "42."] }])
        }
        switch (Messages.lastUserText(request)) {
          case "calls":
            return Messages.turn([
              { thinking: ["Hm."], signature: "sig:Hm." },
              { call: "toolu_1", name: "lookup", args: ['{"q":', '"x"}'] },
              { call: "toolu_2", name: "lookup", args: [] }
            ])
          case "cut":
            return Messages.begun([{ text: ["Half "] }], [Upstream.wait(10)], { framing: "close" })
          case "fails":
            return Messages.refusal(529, "overloaded_error")
          case "hangs":
            return Upstream.reply([], { head: "never" })
          default:
            return Messages.turn([{ thinking: ["Hm."], signature: "sig:Hm." }, { text: ["A ", "whole ", "answer."] }])
        }
      })
    })
    const model = yield* Anthropic.make({
      ...limits,
      model: "claude-sonnet-4-5",
      baseUrl: url,
      apiKey: Redacted.make(secret)
    })
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

/** Fails after it has said something, where nobody may go on in its place. */
const always: Model = Script.make(() => Script.turn(Script.text("and whole.")))
const broken: Model = Script.make(() => Script.turn(Script.text("Half "), Script.fail("overloaded")))

interface Named {
  readonly subject: Layer.Layer<ModelContract.Subject>
  readonly can: (needs: ModelContract.Situation) => boolean
}

const everything = (subject: Named["subject"]): Named => ({ subject, can: () => true })

export const all: Record<string, Named> = {
  "the scripted model": everything(subjectOf(scripted())),
  "the scripted model, going on with drafts": everything(subjectOf(scripted(true))),
  "the demo model": {
    subject: subjectOf(Demo.make({ pace: 0 }), {
      questions: { answer: "/long 12", calls: '/call lookup {"q":"x"}', cut: "/cut /long 12" }
    }),
    can: (needs) => needs !== "fails" && needs !== "hangs"
  },
  "an OpenAI-compatible model": everything(openAiCompatible),
  "OpenAI's Responses interface": everything(openAi),
  "Anthropic's Messages interface": everything(anthropic),
  "a model with a fallback that is not needed": everything(subjectOf(withFallback(scripted(), busy))),
  "a model with a fallback that is needed": everything(viaFallback),
  "a model that fails too late for its fallback": {
    subject: subjectOf(withFallback(broken, always)),
    can: (needs) => needs === "fails"
  }
}
