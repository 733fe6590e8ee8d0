/**
 * Failures of `@effect/ai` providers, in our own words: what they say may hold a key or a whole request.
 *
 * @since 0.1.0
 */
import type * as AiError from "@effect/ai/AiError"
import type { ModelError } from "./Model.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as OpenAiStream from "./OpenAiStream.js"

/**
 * An error of a library as the loop's. `nowMs` is the time, for a `retry-after` that is a date.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toModelError = (error: AiError.AiError, nowMs: number): ModelError => {
  switch (error._tag) {
    case "HttpRequestError":
      return error.reason === "Transport"
        ? OpenAiErrors.connection(error.cause)
        : OpenAiErrors.misconfigured("The model's request could not be made. Check its address and its tools.")
    case "HttpResponseError":
      return error.reason === "StatusCode"
        ? OpenAiErrors.fromStatus(
            error.response.status,
            OpenAiStream.parseJson(error.body ?? ""),
            OpenAiErrors.retryAfterMs(plain(error.response.headers), nowMs)
          )
        : OpenAiErrors.truncated()
    case "MalformedInput":
      return OpenAiErrors.misconfigured("The model's provider can not send this conversation or these tools.")
    case "MalformedOutput":
      return OpenAiErrors.invalidResponse("The model's answer is of a form that its provider does not know.", true)
    case "UnknownError":
      return OpenAiErrors.fromBody(undefined)
  }
}

/**
 * The error that a provider sent as a part of its stream.
 *
 * @since 0.1.0
 * @category conversions
 */
export const ofPart = (error: unknown): ModelError =>
  OpenAiErrors.fromBody(OpenAiErrors.errorOf(error) === undefined ? { error } : error)

/** Headers that a library redacted are of no use here. */
const plain = (headers: { readonly [name: string]: unknown }): { readonly [name: string]: string | undefined } =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), typeof value === "string" ? value : undefined])
  )
