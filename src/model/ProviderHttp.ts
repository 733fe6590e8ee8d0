/**
 * The HTTP client that a provider's library is given: bounded in time and size, and honest about why something failed.
 *
 * @since 0.1.0
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Metrics from "../domain/Metrics.js"
import type { ModelError } from "./Model.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as ProviderTurn from "./ProviderTurn.js"
import * as Refusal from "./Refusal.js"
import * as Silence from "./Silence.js"

/**
 * - `firstChunkTimeoutMs`: silence until the first piece of output, `chunkTimeoutMs`: silence after it. Whatever the
 *   server sends ends a silence
 * - `maxResponseBytes`: bound of the whole answer; 64 MiB by default
 *
 * @since 0.1.0
 * @category models
 */
export interface Bounds {
  readonly firstChunkTimeoutMs: number
  readonly chunkTimeoutMs: number
  readonly maxResponseBytes?: number | undefined
}

/** The parser of the providers' libraries looks again at the whole piece for every line in it. */
const pieceBytes = 1_024

/**
 * A client that keeps these bounds, follows no redirect, and notes in the turn why a request failed. What the request
 * holds enters no span.
 *
 * @since 0.1.0
 * @category constructors
 */
export const guarded = (client: HttpClient.HttpClient, bounds: Bounds): HttpClient.HttpClient =>
  HttpClient.make((request) =>
    Effect.flatMap(ProviderTurn.current, (turn) => execute(client, bounds, request, turn))
  ).pipe(
    HttpClient.withTracerDisabledWhen(() => true),
    HttpClient.transformResponse(Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }))
  )

const execute = (
  client: HttpClient.HttpClient,
  bounds: Bounds,
  request: HttpClientRequest.HttpClientRequest,
  turn: ProviderTurn.Turn
): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> => {
  const failed = (error: ModelError) => {
    turn.failure = error
    return new HttpClientError.RequestError({ request, reason: "Transport" })
  }
  return Effect.gen(function* () {
    const { firstChunkTimeoutMs } = bounds
    const response = yield* client.execute(request).pipe(
      Effect.mapError((cause) => failed(OpenAiErrors.connection(cause))),
      Silence.within(
        firstChunkTimeoutMs,
        Effect.suspend(() => {
          Metrics.limitReached("firstChunkTimeoutMs")
          return Effect.fail(failed(OpenAiErrors.timedOut(firstChunkTimeoutMs, false)))
        })
      )
    )
    if (response.status === 200) return bounded(response, bounds, turn)
    const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    return yield* failed(yield* Refusal.read(response, now))
  })
}

/** The same answer with a body that ends in time, given out in small pieces. */
const bounded = (
  response: HttpClientResponse.HttpClientResponse,
  { chunkTimeoutMs, firstChunkTimeoutMs, maxResponseBytes = 64 * 1024 * 1024 }: Bounds,
  turn: ProviderTurn.Turn
): HttpClientResponse.HttpClientResponse => {
  const { request } = response
  const failed = (error: ModelError) => {
    turn.failure = error
    // Without its body: a library would try to read on in it.
    const ended = HttpClientResponse.fromWeb(request, new Response(null))
    return new HttpClientError.ResponseError({ request, response: ended, reason: "Decode" })
  }
  let size = 0
  const take = (pieces: Chunk.Chunk<Uint8Array>) => {
    for (const piece of pieces) size += piece.length
    if (size <= maxResponseBytes) return Effect.succeed(Chunk.flatMap(pieces, small))
    Metrics.limitReached("maxModelResponseBytes")
    return Effect.fail(Option.some(failed(OpenAiErrors.tooLong(maxResponseBytes))))
  }
  const stream = Stream.fromPull(
    Effect.map(Stream.toPull(response.stream), (pull) =>
      Effect.suspend(() => {
        const { begun } = turn
        const limitMs = begun ? chunkTimeoutMs : firstChunkTimeoutMs
        return Effect.mapError(
          pull,
          Option.map(() => failed(OpenAiErrors.truncated()))
        ).pipe(
          Silence.within(
            limitMs,
            Effect.suspend(() => {
              Metrics.limitReached(begun ? "chunkTimeoutMs" : "firstChunkTimeoutMs")
              return Effect.fail(Option.some(failed(OpenAiErrors.timedOut(limitMs, begun))))
            })
          ),
          Effect.flatMap(take)
        )
      })
    )
  )
  return Object.create(response, { stream: { value: stream } })
}

const small = (piece: Uint8Array): Chunk.Chunk<Uint8Array> =>
  piece.length <= pieceBytes
    ? Chunk.of(piece)
    : Chunk.unsafeFromArray(
        Array.from({ length: Math.ceil(piece.length / pieceBytes) }, (_, i) =>
          piece.subarray(i * pieceBytes, (i + 1) * pieceBytes)
        )
      )
