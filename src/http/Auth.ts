/**
 * Who asks. Without configured credentials a server serves the one local user and trusts the machine: it is reachable
 * through the loopback interface only, and refuses what a foreign page or a foreign name sent there.
 *
 * @since 0.1.0
 */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { HttpServerRequest as Request } from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Unavailable } from "../domain/RunError.js"
import type { Credentials, Session } from "./Credentials.js"
import * as JwtCredentials from "./JwtCredentials.js"
import { Authorization, Forbidden, sessionCookie, Unauthorized } from "./RunsApi.js"
import * as TokenCredentials from "./TokenCredentials.js"

type HttpRequest = HttpServerRequest.HttpServerRequest

/**
 * - `limited`: whether the limits per user apply
 * - `guard`: refuses a request for where it comes from or was sent to, before anything else is done with it
 * - `authenticate`: the user's id
 * - `signIn`: what the page's cookie holds for a token; none when there is nothing to sign in to
 *
 * @since 0.1.0
 * @category services
 */
export class Authentication extends Context.Tag("runlet/Authentication")<
  Authentication,
  {
    readonly limited: boolean
    readonly guard: (request: HttpRequest) => Effect.Effect<void, Forbidden>
    readonly authenticate: (request: HttpRequest) => Effect.Effect<string, Unauthorized | Unavailable>
    readonly signIn: (token: Redacted.Redacted) => Effect.Effect<Option.Option<Session>, Unauthorized | Unavailable>
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
 * Whether a request comes from a page of this server, or from no page at all. What a browser says of where it comes
 * from no page can forge; older browsers say it with `Origin` alone. Following a link is nobody's doing but the
 * person's, and changes nothing.
 *
 * @since 0.1.0
 * @category predicates
 */
export const fromOwnPage = (request: HttpRequest): boolean => {
  const site = request.headers["sec-fetch-site"]
  const navigation = request.method === "GET" && request.headers["sec-fetch-mode"] === "navigate"
  return site === undefined ? sameOrigin(request) : site === "same-origin" || site === "none" || navigation
}

/**
 * No authentication: everybody is the local user. `Host` must name this machine, so that a name that an attacker
 * points here is refused, and a browser must not come from another page.
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
    return sameOrigin(request) && fromOwnPage(request) ? Effect.void : foreignPage
  },
  authenticate: () => Effect.succeed("local"),
  signIn: () => Effect.succeed(Option.none())
})

const unauthorized = new Unauthorized({ message: "Send a valid token as `Authorization: Bearer <token>`, or sign in." })

/**
 * Whoever one of these ways knows, asked in order. A page may sign in once and then sends a cookie; requests with it
 * must come from this server's own pages.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCredentials = (ways: ReadonlyArray<Credentials>): Layer.Layer<Authentication> => {
  const first = <A>(ask: (way: Credentials) => Effect.Effect<Option.Option<A>, Unavailable>) =>
    Effect.flatMap(
      Effect.reduce(ways, Option.none<A>(), (found, way) => (Option.isSome(found) ? Effect.succeed(found) : ask(way))),
      (found): Effect.Effect<A, Unauthorized> => (Option.isSome(found) ? Effect.succeed(found.value) : unauthorized)
    )
  return Layer.succeed(Authentication, {
    limited: true,
    guard: (request) =>
      request.headers.authorization !== undefined || fromOwnPage(request) ? Effect.void : foreignPage,
    authenticate: (request) => {
      const { authorization } = request.headers
      if (authorization !== undefined) {
        const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? []
        return token === undefined ? unauthorized : first((way) => way.user(token))
      }
      const cookie = request.cookies[sessionCookie]
      return cookie === undefined ? unauthorized : first((way) => way.sessionUser(cookie))
    },
    signIn: (token) =>
      Effect.map(
        first((way) => way.session(Redacted.value(token))),
        Option.some
      )
  })
}

/**
 * Bearer tokens that the configuration lists.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerTokens = (
  tokens: ReadonlyArray<{ readonly token: Redacted.Redacted; readonly user: string }>
): Layer.Layer<Authentication> => layerCredentials([TokenCredentials.make(tokens)])

/**
 * JSON Web Tokens.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerJwt = (options: JwtCredentials.Options): Layer.Layer<Authentication> =>
  Layer.unwrapEffect(Effect.map(JwtCredentials.make(options), (way) => layerCredentials([way])))

/**
 * The contract's middleware on top of `Authentication`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerAuthorization: Layer.Layer<Authorization, never, Authentication> = Layer.effect(
  Authorization,
  Effect.map(Authentication, (authentication) => {
    // Which of the two credentials counts is decided in one place, and once; the scheme that the contract names is not.
    const asked = new WeakMap<HttpRequest, Exit.Exit<string, Unauthorized | Unavailable>>()
    const authenticate = Effect.flatMap(Request, (request) => {
      const known = asked.get(request)
      return (
        known ??
        Effect.onExit(authentication.authenticate(request), (exit) => Effect.sync(() => asked.set(request, exit)))
      )
    })
    return { bearer: () => authenticate, cookie: () => authenticate }
  })
)
