/**
 * What models behind a provider's own interface have in common.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import type { Price } from "./Model.js"
import type { JsonObject } from "./OpenAiRequest.js"
import type { Bounds } from "./ProviderHttp.js"

/**
 * - `model`: the name that the provider knows it by
 * - `baseUrl`: the provider's own when absent
 * - `headers`: sent as they are, and stronger than ours
 * - `maxOutputTokens`: what a turn may put out at most; what the request or `extraBody` says counts as well, if it is less
 * - `extraBody`: fields for every request, stronger than ours; `thinkingBody`: fields for those that ask for
 *   reasoning, instead of ours
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Bounds {
  readonly model: string
  readonly baseUrl?: string | undefined
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  readonly extraBody?: JsonObject | undefined
  readonly thinkingBody?: JsonObject | undefined
  readonly price?: Price | undefined
  readonly contextWindow?: number | undefined
  readonly maxOutputTokens?: number | undefined
}

/**
 * Adds the headers of the options to every request.
 *
 * @since 0.1.0
 * @category conversions
 */
export const withHeaders =
  ({ headers = {} }: Pick<Options, "headers">) =>
  (client: HttpClient.HttpClient): HttpClient.HttpClient =>
    HttpClient.mapRequest(
      client,
      HttpClientRequest.setHeaders({
        "user-agent": "runlet",
        ...Record.map(headers, (value) => (typeof value === "string" ? value : Redacted.value(value)))
      })
    )

/**
 * The name under which a model's side data is kept: another model, or the same one elsewhere, may not know it.
 *
 * @since 0.1.0
 * @category accessors
 */
export const nameOf = (provider: string, { baseUrl, model }: Options): string =>
  baseUrl === undefined
    ? `${provider} ${model}`
    : `${provider} ${model} at ${URL.canParse(baseUrl) ? new URL(baseUrl).host : ""}`
