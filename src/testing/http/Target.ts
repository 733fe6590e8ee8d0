/**
 * A server under test, as a client meets it: requests, and streams read with nothing overlooked.
 *
 * @since 0.1.0
 */

import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import type { HttpMethod } from "@effect/platform/HttpMethod"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Wire from "./Wire.js"

/**
 * The server did not answer as HTTP does: it is away, or broke off.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", { message: Schema.String }) {}

/**
 * Which server, and what may be asked of it.
 *
 * - `url`: where it is, without a path
 * - `token`: whose runs the checks make; `otherToken`: of another user, whom they must not concern
 * - `message`, `longMessage`: what to ask a model for a short answer, and for one that takes some seconds. The built-in
 *   demo model is known and needs neither
 * - `heartbeatMs`: the longest silence of a stream that the server promises (default 15 s)
 * - `patienceMs`: how long one check may take (default 90 s)
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly url: string
  readonly token?: Redacted.Redacted | undefined
  readonly otherToken?: Redacted.Redacted | undefined
  readonly message?: string | undefined
  readonly longMessage?: string | undefined
  readonly heartbeatMs?: number | undefined
  readonly patienceMs?: number | undefined
}

/**
 * Whose credential goes with a request.
 *
 * @since 0.1.0
 * @category models
 */
export type Who = "owner" | "other" | "nobody"

/**
 * A request. `body` is sent as JSON, or as it is when it is text.
 *
 * @since 0.1.0
 * @category models
 */
export interface Ask {
  readonly method: HttpMethod
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly as?: Who | undefined
}

/**
 * An answer, read to its end. `json` is `undefined` when the body is no JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  readonly json: unknown
}

/**
 * A stream as far as it was read. `ended`: the server closed it; `silenceMs`: the longest time without a byte.
 *
 * @since 0.1.0
 * @category models
 */
export interface Watched extends Omit<Answer, "json"> {
  readonly frames: ReadonlyArray<Wire.Frame>
  readonly beats: number
  readonly retries: number
  readonly strange: ReadonlyArray<string>
  readonly ended: boolean
  readonly silenceMs: number
}

/**
 * How a stream is read: `until` looks at everything so far and says whether that is enough; `onFrames` is run with the
 * frames of each piece.
 *
 * @since 0.1.0
 * @category models
 */
export interface Watching {
  readonly until?: ((soFar: Wire.Wire) => boolean) | undefined
  readonly onFrames?: ((frames: ReadonlyArray<Wire.Frame>) => Effect.Effect<void, Unreachable>) | undefined
}

/**
 * The server under test.
 *
 * @since 0.1.0
 * @category services
 */
export class Target extends Context.Tag("runlet/testing/Target")<
  Target,
  {
    readonly options: Options
    readonly request: (ask: Ask) => Effect.Effect<Answer, Unreachable>
    readonly watch: (ask: Ask, how?: Watching) => Effect.Effect<Watched, Unreachable>
    /** Everything that was received until now, for a look for what must not be in it. */
    readonly received: () => ReadonlyArray<string>
  }
>() {}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Node answers the reason of a failed connection at the bottom of a chain of causes. */
const reasonOf = (error: unknown): string => {
  let at = error
  while (at instanceof Error && at.cause !== undefined) at = at.cause
  return at instanceof Error ? at.message : String(at)
}

/**
 * The server at an address, by way of an HTTP client.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Target["Type"], never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const base = options.url.replace(/\/+$/, "")
    const received: Array<string> = []
    const unreachable = (error: unknown) =>
      new Unreachable({ message: `The connection to ${base} failed: ${reasonOf(error)}` })

    const execute = ({
      as = "owner",
      body,
      headers = {},
      method,
      path
    }: Ask): Effect.Effect<HttpClientResponse.HttpClientResponse, Unreachable> => {
      const token = { owner: options.token, other: options.otherToken, nobody: undefined }[as]
      const request = HttpClientRequest.make(method)(`${base}${path}`)
      const filled =
        body === undefined
          ? request
          : HttpClientRequest.bodyText(
              request,
              typeof body === "string" ? body : JSON.stringify(body),
              headers["content-type"] ?? "application/json"
            )
      return client
        .execute(
          HttpClientRequest.setHeaders(filled, {
            ...headers,
            ...(token !== undefined && { authorization: `Bearer ${Redacted.value(token)}` })
          })
        )
        .pipe(Effect.withTracerEnabled(false), Effect.mapError(unreachable))
    }

    const request = (ask: Ask): Effect.Effect<Answer, Unreachable> =>
      Effect.gen(function* () {
        const response = yield* execute(ask)
        const text = yield* Effect.mapError(response.text, unreachable)
        received.push(text, JSON.stringify(response.headers))
        return { status: response.status, headers: response.headers, text, json: parse(text) }
      })

    const watch = (ask: Ask, { onFrames, until }: Watching = {}): Effect.Effect<Watched, Unreachable> =>
      Effect.gen(function* () {
        const response = yield* execute(ask)
        const wire = new Wire.Wire(
          response.headers["content-type"]?.startsWith("application/x-ndjson") === true ? "ndjson" : "sse"
        )
        let silenceMs = 0
        let last = yield* Clock.currentTimeMillis
        let enough = until?.(wire) === true
        if (!enough) {
          yield* response.stream.pipe(
            Stream.mapError(unreachable),
            Stream.runForEachWhile((bytes) =>
              Effect.gen(function* () {
                const now = yield* Clock.currentTimeMillis
                silenceMs = Math.max(silenceMs, now - last)
                last = now
                const frames = wire.push(bytes)
                if (onFrames !== undefined && frames.length > 0) yield* onFrames(frames)
                enough = until?.(wire) === true
                return !enough
              })
            )
          )
        }
        received.push(wire.text, JSON.stringify(response.headers))
        const { beats, frames, retries, strange, text } = wire
        const { headers, status } = response
        return { status, headers, text, frames, beats, retries, strange, ended: !enough, silenceMs }
      })

    return { options, request, watch, received: () => received }
  })
