/**
 * Who asks. Without configured tokens a server serves the one local user and trusts the machine: it is reachable
 * through the loopback interface only, and refuses what a foreign page or a foreign name sent there.
 *
 * @since 0.1.0
 */
import { createHash, timingSafeEqual } from "node:crypto"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { HttpServerRequest as Request } from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Authorization, Forbidden, sessionCookie, Unauthorized } from "./RunsApi.js"

type HttpRequest = HttpServerRequest.HttpServerRequest

/**
 * - `limited`: whether the limits per user apply
 * - `guard`: refuses a request for where it comes from or was sent to, before anything else is done with it
 * - `authenticate`: the user's id
 * - `signIn`: the value of the page's cookie for a token; none when there is nothing to sign in to
 *
 * @since 0.1.0
 * @category services
 */
export class Authentication extends Context.Tag("runlet/Authentication")<
  Authentication,
  {
    readonly limited: boolean
    readonly guard: (request: HttpRequest) => Effect.Effect<void, Forbidden>
    readonly authenticate: (request: HttpRequest) => Effect.Effect<string, Unauthorized>
    readonly signIn: (token: Redacted.Redacted) => Effect.Effect<Option.Option<string>, Unauthorized>
  }
>() {}

/**
 * Whether a name or address leads back to this machine. Port and brackets are not part of it.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" ||
  hostname.endsWith(".localhost") ||
  hostname === "::1" ||
  hostname === "[::1]" ||
  /^127(\.\d{1,3}){3}$/.test(hostname)

const urlOf = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)

const sameOrigin = (request: HttpRequest): boolean => {
  const { host, origin } = request.headers
  if (origin === undefined) return true
  const from = urlOf(origin)
  return from !== undefined && host !== undefined && from.host === urlOf(`${from.protocol}//${host}`)?.host
}

const foreignPage = new Forbidden({
  message: "Requests of other pages are refused. Open this server's own page instead."
})

/**
 * No authentication: everybody is the local user. `Host` must name this machine, so that a name that an attacker
 * points here is refused, and `Origin`, when a browser sends it, must be this server.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNone: Layer.Layer<Authentication> = Layer.succeed(Authentication, {
  limited: false,
  guard: (request) => {
    const hostname = urlOf(`http://${request.headers.host ?? ""}`)?.hostname
    if (hostname === undefined || !isLoopback(hostname)) {
      return new Forbidden({ message: "Without authentication this server answers only to localhost." })
    }
    return sameOrigin(request) ? Effect.void : foreignPage
  },
  authenticate: () => Effect.succeed("local"),
  signIn: () => Effect.succeed(Option.none())
})

const hash = (text: string) => createHash("sha256").update(text, "utf8").digest()

/** Not the token itself, so that what a browser keeps is of no use elsewhere, and gone when the token is revoked. */
const sessionOf = (token: string) => createHash("sha256").update(`runlet session\0${token}`, "utf8").digest("base64url")

const unauthorized = new Unauthorized({ message: "Send a valid token as `Authorization: Bearer <token>`, or sign in." })

/**
 * Static bearer tokens. All of them are compared, each in constant time, so that neither the time nor the answer says
 * how near a guess was. A page may sign in once and then sends a cookie; requests with it must come from this server's
 * own pages.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerTokens = (
  tokens: ReadonlyArray<{ readonly token: Redacted.Redacted; readonly user: string }>
): Layer.Layer<Authentication> =>
  Layer.sync(Authentication, () => {
    const known = tokens.map(({ token, user }) => {
      const session = sessionOf(Redacted.value(token))
      return { user, session, tokenHash: hash(Redacted.value(token)), sessionHash: hash(session) }
    })
    type Known = (typeof known)[number]

    const find = (text: string, of: (known: Known) => Buffer): Known | undefined => {
      const wanted = hash(text)
      let found: Known | undefined
      for (const each of known) {
        if (timingSafeEqual(of(each), wanted)) found = each
      }
      return found
    }
    const byToken = (token: string) => find(token, (_) => _.tokenHash)
    const orUnauthorized = (found: Known | undefined) => (found === undefined ? unauthorized : Effect.succeed(found))

    return {
      limited: true,
      guard: (request) => {
        if (request.headers.authorization !== undefined) return Effect.void
        const site = request.headers["sec-fetch-site"]
        const navigation = request.method === "GET" && request.headers["sec-fetch-mode"] === "navigate"
        const own = site === undefined ? sameOrigin(request) : site === "same-origin" || site === "none" || navigation
        return own ? Effect.void : foreignPage
      },
      authenticate: (request) => {
        const { authorization } = request.headers
        if (authorization !== undefined) {
          const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? []
          return Effect.map(orUnauthorized(token === undefined ? undefined : byToken(token)), (_) => _.user)
        }
        const cookie = request.cookies[sessionCookie]
        return Effect.map(
          orUnauthorized(cookie === undefined ? undefined : find(cookie, (_) => _.sessionHash)),
          (_) => _.user
        )
      },
      signIn: (token) => Effect.map(orUnauthorized(byToken(Redacted.value(token))), (_) => Option.some(_.session))
    }
  })

/**
 * The contract's middleware on top of `Authentication`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerAuthorization: Layer.Layer<Authorization, never, Authentication> = Layer.effect(
  Authorization,
  Effect.map(Authentication, (authentication) => {
    // Which of the two credentials counts is decided in one place; the scheme that the contract names is not.
    const authenticate = Effect.flatMap(Request, authentication.authenticate)
    return { bearer: () => authenticate, cookie: () => authenticate }
  })
)
