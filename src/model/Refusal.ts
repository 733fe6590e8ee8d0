/**
 * The error in an answer that is no stream.
 *
 * @since 0.1.0
 */
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelError } from "./Model.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as OpenAiStream from "./OpenAiStream.js"

/** How long and how far the body of a refusal is read for a well-known word, in milliseconds and characters. */
const refusalMs = 2_000
const refusalChars = 65_536

/**
 * Why a server refused a request. `nowMs` is the time, for a `retry-after` that is a date.
 *
 * @since 0.1.0
 * @category accessors
 */
export const read = (response: HttpClientResponse.HttpClientResponse, nowMs: number): Effect.Effect<ModelError> => {
  const isJson = response.headers["content-type"]?.includes("json") === true
  const text = response.stream.pipe(
    Stream.decodeText(),
    Stream.runFoldWhile(
      "",
      (all) => all.length < refusalChars,
      (all, piece) => all + piece
    ),
    Effect.timeout(refusalMs),
    Effect.orElseSucceed(() => "")
  )
  return Effect.map(isJson ? text : Effect.succeed(""), (body) =>
    OpenAiErrors.fromStatus(
      response.status,
      OpenAiStream.parseJson(body),
      OpenAiErrors.retryAfterMs(response.headers, nowMs)
    )
  )
}
