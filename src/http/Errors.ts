/**
 * How failures look from outside: `{ "_tag", "message", … }`, and nothing of how the server is made.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpServerError from "@effect/platform/HttpServerError"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Metrics from "../domain/Metrics.js"
import * as RunError from "../domain/RunError.js"
import { pathText } from "../tool/JsonText.js"
import { Authentication } from "./Auth.js"
import * as Api from "./RunsApi.js"
import { Serving } from "./Serving.js"

const Known = Schema.Union(
  RunError.NotFound,
  RunError.Conflict,
  RunError.Unprocessable,
  RunError.InvalidCursor,
  RunError.Compacted,
  RunError.LimitReached,
  RunError.Unavailable,
  Api.BadRequest,
  Api.Unauthorized,
  Api.Forbidden,
  Api.MethodNotAllowed,
  Api.PayloadTooLarge,
  Api.UnsupportedMediaType,
  Api.InternalError
)
type Known = typeof Known.Type

const isKnown = Schema.is(Known)
const encode = Schema.encodeSync(Known)

const status: { readonly [Tag in Known["_tag"]]: number } = {
  BadRequest: 400,
  InvalidCursor: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  Conflict: 409,
  Compacted: 410,
  PayloadTooLarge: 413,
  UnsupportedMediaType: 415,
  Unprocessable: 422,
  LimitReached: 429,
  InternalError: 500,
  Unavailable: 503
}

const headers = (error: Known): Record<string, string> => {
  switch (error._tag) {
    case "LimitReached":
    case "Unavailable":
      return error.retryAfterMs === undefined
        ? {}
        : { "retry-after": String(Math.max(1, Math.ceil(error.retryAfterMs / 1000))) }
    case "Unauthorized":
      return { "www-authenticate": 'Bearer realm="runlet"' }
    case "MethodNotAllowed":
      return { allow: error.allow.join(", ") }
    default:
      return {}
  }
}

/**
 * The answer for a failure.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toResponse = (error: Known): HttpServerResponse.HttpServerResponse => {
  if (error._tag === "LimitReached" || error._tag === "PayloadTooLarge") Metrics.limitReached(error.limit ?? "size")
  return HttpServerResponse.unsafeJson(encode(error), {
    // What will not pass by itself is no lack of service.
    status: error._tag === "Unavailable" && error.retryAfterMs === undefined ? 500 : status[error._tag],
    headers: { "cache-control": "no-store", ...headers(error) }
  })
}

const notFound = new RunError.NotFound({ message: "There is nothing here. See /docs for what there is." })
const failed = new Api.InternalError({ message: "The server failed. Try again; its log says more." })

type Allow = (path: string) => ReadonlyArray<string>

/** The methods that a path knows, by the routes that were registered. */
const allowOf = (routes: ReadonlyArray<{ readonly method: string; readonly path: string }>): Allow => {
  const byPath = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
  for (const { method, path } of routes) {
    const entry = byPath.get(path) ?? {
      pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/:[A-Za-z]+/g, "[^/]+")}$`),
      methods: new Set(["OPTIONS"])
    }
    entry.methods.add(method)
    if (method === "GET") entry.methods.add("HEAD")
    byPath.set(path, entry)
  }
  const entries = [...byPath.values()]
  // The router overlooks doubled and trailing slashes, and so must this.
  const plain = (path: string) => path.replace(/\/+/g, "/").replace(/(.)\/$/, "$1")
  return (path) =>
    [...new Set(entries.flatMap((entry) => (entry.pattern.test(plain(path)) ? [...entry.methods] : [])))].sort()
}

const pathOf = (url: string) => url.split("?", 1)[0] ?? url

const unrouted = (request: HttpServerRequest, allow: Allow) => {
  const methods = allow(pathOf(request.url))
  // A path that looks right and was not routed has an id that no id can be.
  if (methods.length === 0 || methods.includes(request.method) !== (request.method === "OPTIONS"))
    return toResponse(notFound)
  if (request.method === "OPTIONS") {
    return HttpServerResponse.empty({ status: 204, headers: { allow: methods.join(", ") } })
  }
  return toResponse(new Api.MethodNotAllowed({ message: `This resource knows ${methods.join(", ")}.`, allow: methods }))
}

const fromError = (error: unknown, request: HttpServerRequest, allow: Allow) => {
  if (isKnown(error)) return Option.some(toResponse(error))
  if (error instanceof HttpServerError.RouteNotFound) return Option.some(unrouted(request, allow))
  if (error instanceof HttpApiDecodeError) {
    const issue = error.issues[0]
    const path = pathText(issue?.path.filter((key): key is string | number => typeof key !== "object") ?? [])
    return Option.some(
      toResponse(new Api.BadRequest({ message: `${path}: ${issue?.message ?? "not as expected"}`, path }))
    )
  }
  return Option.none()
}

/**
 * Wraps every call: refuses what must not come in, turns failures into answers, writes what nobody foresaw into the
 * log, and closes connections while the server drains.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<never, never, Authentication | Serving | HttpApiBuilder.Router> =
  HttpApiBuilder.middleware(
    Effect.gen(function* () {
      const authentication = yield* Authentication
      const serving = yield* Serving
      const router = yield* HttpApiBuilder.Router
      const allow = yield* Effect.cached(
        Effect.map(router.router, ({ routes }) => allowOf(Chunk.toReadonlyArray(routes)))
      )

      const onCause = (request: HttpServerRequest, allow: Allow, cause: Cause.Cause<unknown>) => {
        const answer = Option.flatMap(Cause.failureOption(cause), (error) => fromError(error, request, allow))
        if (Option.isSome(answer)) return Effect.succeed(answer.value)
        if (Cause.isInterrupted(cause)) return Effect.failCause(Cause.stripFailures(cause))
        return Effect.as(
          Effect.annotateLogs(Effect.logError("request failed", cause), {
            method: request.method,
            path: pathOf(request.url)
          }),
          toResponse(failed)
        )
      }

      return (app) =>
        Effect.flatMap(HttpServerRequest, (request) =>
          Effect.zipRight(authentication.guard(request), app).pipe(
            Effect.catchAllCause((cause) => Effect.flatMap(allow, (allow) => onCause(request, allow, cause))),
            Effect.zipWith(serving.draining, (response, draining) =>
              HttpServerResponse.setHeaders(response, {
                "x-content-type-options": "nosniff",
                ...(draining && { connection: "close" })
              })
            )
          )
        )
    })
  )
