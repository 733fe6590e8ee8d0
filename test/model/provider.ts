/** What the tests of every provider's interface need: a tool, a secret key, and a model at a scripted upstream. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { OfferedTool } from "../../src/domain/RunInput.js"
import type { Model, ModelRequest } from "../../src/model/Model.js"
import type { Options } from "../../src/model/ProviderOptions.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import type * as Script from "../../src/testing/UpstreamScript.js"
import { collect, limits, request, undici } from "./support.js"

export const secret = "sk-canary-77f0a1"

export const lookup: OfferedTool = {
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] }
}

export const withTools: ModelRequest = { ...request, tools: [lookup] }

/** The ways to ask a provider's model `name`, made by `make`. */
export const provider = <E, R>(make: (options: Options) => Effect.Effect<Model, E, R>, name: string) => {
  const modelAt = (baseUrl: string, options: Partial<Options> = {}) =>
    make({ ...limits, model: name, baseUrl, apiKey: Redacted.make(secret), ...options })

  const answering = (script: Script.Script, options: Partial<Options> = {}) =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script })
      return { upstream, model: yield* modelAt(upstream.url, options) }
    })

  const ask = (script: Script.Script, asked: ModelRequest = request, options: Partial<Options> = {}) =>
    Effect.gen(function* () {
      const { model, upstream } = yield* answering(script, options)
      return { ...(yield* collect(model, asked)), requests: upstream.requests }
    }).pipe(Effect.provide(undici))

  return { modelAt, answering, ask }
}
