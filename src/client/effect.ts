/**
 * The client for Effect: a run's events as a stream that comes back by itself, and all calls derived from the contract.
 *
 * @since 0.1.0
 */
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Envelope } from "../domain/Envelope.js"
import * as RunError from "../domain/RunError.js"
import * as RunsApi from "../http/RunsApi.js"
import * as Sse from "../http/Sse.js"

/**
 * Why a run can not be watched. Everything else (a lost connection, a server that is away or busy) is waited out.
 *
 * @since 0.1.0
 * @category errors
 */
export type WatchError =
  | RunError.Unavailable
  | RunsApi.InternalError
  | RunError.NotFound
  | RunError.InvalidCursor
  | RunError.Compacted
  | RunsApi.Unauthorized
  | RunsApi.Forbidden
  | ParseResult.ParseError

/**
 * - `baseUrl`: where the server is
 * - `after`: the seq of the last event that was applied; 0, the start, by default
 * - `heartbeat`: how often the server says that it lives (15 seconds). What is silent for two and a half times as long
 *   is taken for dead
 * - `maxDelay`: the longest wait between two attempts to reach the server (15 seconds)
 * - `onLink`: is told when a connection is lost, each time it is tried in vain, and when it is open again
 *
 * @since 0.1.0
 * @category options
 */
export interface WatchOptions {
  readonly baseUrl: string
  readonly after?: number | undefined
  readonly heartbeat?: Duration.DurationInput | undefined
  readonly maxDelay?: Duration.DurationInput | undefined
  readonly onLink?: ((link: "open" | "lost") => Effect.Effect<void>) | undefined
}

/** A connection that broke, or was not made. It is tried again after at least so many milliseconds. */
class Lost {
  readonly _tag = "Lost"
  constructor(readonly afterMs: number) {}
}

const Refusal = Schema.Union(
  RunError.NotFound,
  RunError.InvalidCursor,
  RunError.Compacted,
  RunError.Unavailable,
  RunsApi.InternalError,
  RunsApi.Unauthorized,
  RunsApi.Forbidden
)
const Later = Schema.Struct({ retryAfterMs: Schema.Number })

const decodeRefusal = Schema.decodeUnknownOption(Refusal)
const decodeLater = Schema.decodeUnknownOption(Later)
const decodeEnvelopes = Schema.decodeUnknown(Schema.Array(Envelope))

/** What a refusing answer says: something to act on, or nothing but that it did not work this time. */
const refused = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<never, WatchError | Lost> =>
  Effect.flatMap(
    Effect.orElseSucceed(response.json, () => undefined),
    (body) =>
      Option.match(decodeLater(body), {
        onNone: () => Effect.fail(Option.getOrElse(decodeRefusal(body), (): WatchError | Lost => new Lost(0))),
        onSome: ({ retryAfterMs }) => Effect.fail(new Lost(retryAfterMs))
      })
  )

/** The envelopes in pieces of bytes that are cut anywhere. One `decode` a piece. */
const reading = (): ((
  pieces: Chunk.Chunk<Uint8Array>
) => Effect.Effect<Chunk.Chunk<Envelope>, ParseResult.ParseError | Lost>) => {
  let frames: Array<string> = []
  const parser = Sse.makeParser({
    onEvent: ({ data, id }) => {
      // Frames without an id belong to the connection, not to the log.
      if (id !== "") frames.push(data)
    }
  })
  return (pieces) => {
    for (const piece of pieces) parser.push(piece)
    const found = frames
    frames = []
    return Effect.try({ try: () => found.map((data): unknown => JSON.parse(data)), catch: () => new Lost(0) }).pipe(
      Effect.flatMap(decodeEnvelopes),
      Effect.map(Chunk.unsafeFromArray)
    )
  }
}

/**
 * A run's events behind the cursor, then live, until the run has ended. A connection that breaks or falls silent is made
 * again behind the last event that was given, after a time that grows and differs from client to client; no event comes
 * twice and none is left out. It only watches: interrupting it stops nothing but the watching.
 *
 * @example
 * ```ts
 * import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
 * import * as Console from "effect/Console"
 * import * as Effect from "effect/Effect"
 * import * as Stream from "effect/Stream"
 * import { watch } from "runlet/client/effect"
 *
 * const program = watch("run_0193…", { baseUrl: "http://127.0.0.1:4747" }).pipe(
 *   Stream.runForEach(({ event }) => Console.log(event.type)),
 *   Effect.provide(FetchHttpClient.layer)
 * )
 * ```
 *
 * @since 0.1.0
 * @category watching
 */
export const watch = (
  runId: string,
  options: WatchOptions
): Stream.Stream<Envelope, WatchError, HttpClient.HttpClient> =>
  Stream.unwrap(
    Effect.map(HttpClient.HttpClient, (client) => {
      const heartbeat = Duration.decode(options.heartbeat ?? "15 seconds")
      const maxDelayMs = Duration.toMillis(options.maxDelay ?? "15 seconds")
      const patience = Duration.times(heartbeat, 2.5)
      const silence = () => new Lost(0)
      const link = options.onLink ?? (() => Effect.void)
      let cursor = options.after ?? 0
      let failures = 0
      let over = false

      const apply = (envelopes: Chunk.Chunk<Envelope>): Chunk.Chunk<Envelope> => {
        const fresh = Chunk.filter(envelopes, ({ seq }) => seq > cursor)
        for (const { event, seq } of fresh) {
          cursor = seq
          failures = 0
          over = event.type === "finish" || event.type === "cancelled" || event.type === "error"
        }
        return fresh
      }

      const connection: Stream.Stream<Envelope, WatchError | Lost> = Stream.unwrap(
        Effect.gen(function* () {
          const request = HttpClientRequest.get(
            `${options.baseUrl}/runs/${encodeURIComponent(runId)}/events?after=${cursor}`,
            { headers: { accept: "text/event-stream" } }
          )
          const response = yield* Effect.catchAll(client.execute(request), (error) =>
            HttpClientError.isHttpClientError(error) && error._tag === "ResponseError"
              ? refused(error.response)
              : Effect.fail(new Lost(0))
          ).pipe(Effect.timeoutFail({ duration: heartbeat, onTimeout: silence }))
          if (response.status === 204) {
            over = true
            return Stream.empty
          }
          if (response.status !== 200) return yield* refused(response)
          yield* link("open")
          const read = reading()
          return response.stream.pipe(
            Stream.mapError(silence),
            Stream.timeoutFail(silence, patience),
            Stream.mapChunksEffect(read),
            Stream.mapChunks(apply)
          )
        })
      )

      const again = (lost: Lost) =>
        Effect.flatMap(Random.next, (random) =>
          Effect.sleep(lost.afterMs + random * Math.min(maxDelayMs, 1000 * 2 ** failures++))
        )

      const session: Stream.Stream<Envelope, WatchError> = Stream.concat(
        connection,
        // The end of a stream says that the run has ended only if its last event does.
        Stream.suspend(() => (over ? Stream.empty : Stream.fail(new Lost(0))))
      ).pipe(
        Stream.catchTag("Lost", (lost) =>
          over
            ? Stream.empty
            : Stream.unwrap(
                Effect.as(
                  Effect.zipRight(link("lost"), again(lost)),
                  Stream.suspend(() => session)
                )
              )
        )
      )
      return session
    })
  )

/**
 * All calls of the server, with their answers and refusals decoded.
 *
 * @since 0.1.0
 * @category calls
 */
export const calls = (options: { readonly baseUrl: string }) => HttpApiClient.make(RunsApi.RunsApi, options)
