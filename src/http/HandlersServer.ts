/**
 * What may be asked without a credential: whether the server lives, and to be signed in.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Unavailable } from "../domain/RunError.js"
import { RunEngine } from "../engine/RunEngine.js"
import { Authentication } from "./Auth.js"
import * as Body from "./Body.js"
import { RunsApi, sessionCookie } from "./RunsApi.js"
import { SessionBody } from "./RunsSchemas.js"
import { Serving } from "./Serving.js"

const decodeSession = Body.decode(SessionBody)

const cookieOptions = (request: HttpServerRequest) => ({
  path: "/",
  httpOnly: true,
  sameSite: "strict" as const,
  // A page that was loaded through TLS says so; the server itself can not know what stands in front of it.
  secure: request.headers.origin?.startsWith("https:") === true
})

const signIn = Effect.gen(function* () {
  const request = yield* HttpServerRequest
  const authentication = yield* Authentication
  const { token } = yield* decodeSession(yield* Body.smallJson)
  const session = yield* authentication.signIn(Redacted.make(token))
  const response = HttpServerResponse.empty({ status: 204 })
  return Option.match(session, {
    onNone: () => response,
    onSome: ({ forMs, value }) =>
      HttpServerResponse.unsafeSetCookie(response, sessionCookie, Redacted.value(value), {
        ...cookieOptions(request),
        maxAge: Duration.millis(forMs)
      })
  })
})

const signOut = Effect.map(HttpServerRequest, (request) =>
  HttpServerResponse.expireCookie(HttpServerResponse.empty({ status: 204 }), sessionCookie, cookieOptions(request))
)

/**
 * The handlers of the calls about the server and the session of its page.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "server", (handlers) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const serving = yield* Serving
    const ok = { status: "ok" as const }
    return handlers
      .handle("health", () => Effect.succeed(ok))
      .handle("ready", () =>
        Effect.gen(function* () {
          yield* serving.accepting
          if (yield* engine.ready) return ok
          return yield* new Unavailable({
            message: "The store does not answer, or the engine is stopping.",
            retryAfterMs: 1000
          })
        })
      )
      .handleRaw("signIn", () => signIn)
      .handle("signOut", () => signOut)
  })
)
