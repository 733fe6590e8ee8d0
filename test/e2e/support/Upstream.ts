/** The model server of a test file: strict, and scripted by the user's message, so that tests do not share answers. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as ScriptedUpstream from "../../../src/testing/ScriptedUpstream.js"
import { byDirective } from "../../../src/testing/UpstreamBehaviours.js"
import * as Script from "../../../src/testing/UpstreamScript.js"
import { eventually } from "./Waiting.js"

type Answers = ReadonlyArray<Script.Reply> | ((request: Script.UpstreamRequest, n: number) => Script.Reply)

export interface Upstream {
  readonly url: string
  readonly requests: ReadonlyArray<Script.UpstreamRequest>
  /** Answers requests whose last user message is this one, in order; the last answer is for all further ones. */
  readonly script: (message: string, answers: Answers) => void
  /** The requests whose last user message is this one. */
  readonly asked: (message: string) => ReadonlyArray<Script.UpstreamRequest>
  readonly received: (message: string, n?: number) => Promise<Script.UpstreamRequest>
  readonly closed: (message: string, n?: number) => Promise<Script.UpstreamRequest>
  readonly release: (gate: string) => Promise<void>
  readonly stop: () => Promise<void>
}

export const start = async (): Promise<Upstream> => {
  const scripts = new Map<string, Answers>()
  const scope = Effect.runSync(Scope.make())
  const asked = (message: string) => upstream.requests.filter((request) => Script.lastUserText(request) === message)
  const upstream: ScriptedUpstream.ScriptedUpstream = await Effect.runPromise(
    Scope.extend(
      ScriptedUpstream.make({
        strict: true,
        script: (request) => {
          const message = Script.lastUserText(request)
          const answers = scripts.get(message)
          if (answers === undefined) return byDirective(request)
          const n = asked(message).filter((other) => other.refused === undefined).length - 1
          if (typeof answers === "function") return answers(request, n)
          return answers[n] ?? answers.at(-1) ?? Script.answer("Done.")
        }
      }),
      scope
    )
  )
  const nth = (message: string, n: number, what: string, wanted: (request: Script.UpstreamRequest) => boolean) =>
    eventually(`request ${n} for ${JSON.stringify(message)} to be ${what}`, () => {
      const request = asked(message)[n]
      return request !== undefined && wanted(request) ? request : undefined
    })
  return {
    url: upstream.url,
    requests: upstream.requests,
    script: (message, answers) => void scripts.set(message, answers),
    asked,
    received: (message, n = 0) => nth(message, n, "received", () => true),
    closed: (message, n = 0) => nth(message, n, "closed", (request) => request.closedAt !== undefined),
    release: (gate) => Effect.runPromise(upstream.release(gate)),
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
