/**
 * Models of OpenAI behind its Responses interface. Needs `@effect/ai` and `@effect/ai-openai`.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as OpenAiClient from "@effect/ai-openai/OpenAiClient"
import * as OpenAiLanguageModel from "@effect/ai-openai/OpenAiLanguageModel"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as AiModel from "./AiModel.js"
import type { Model } from "./Model.js"
import * as OpenAiRequest from "./OpenAiRequest.js"
import * as OpenAiResponsesEvents from "./OpenAiResponsesEvents.js"
import * as ProviderHttp from "./ProviderHttp.js"
import * as ProviderOptions from "./ProviderOptions.js"
import * as ProviderTurn from "./ProviderTurn.js"

/** Less is refused by the interface. */
const leastOutput = 16

/** Models that think say so by their names. The others refuse to be asked for it. */
const thinks = (model: string): boolean => /^(o\d|gpt-[5-9]|codex)/.test(model)

/**
 * A model of OpenAI. Nothing is stored there: its reasoning comes encrypted, and goes back with the turn that it
 * belongs to. `baseUrl` is without `/responses`.
 *
 * Give it `NodeHttpClient.layerUndici`: other clients cut long silences by themselves.
 *
 * @example
 * import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
 * import { Effect, Redacted } from "effect"
 * import * as OpenAiResponses from "runlet/ai/openai"
 *
 * const model = OpenAiResponses.make({
 *   model: "gpt-5",
 *   apiKey: Redacted.make("sk-…"),
 *   firstChunkTimeoutMs: 180_000,
 *   chunkTimeoutMs: 60_000
 * }).pipe(Effect.provide(NodeHttpClient.layerUndici))
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: ProviderOptions.Options
): Effect.Effect<Model, never, HttpClient.HttpClient | Scope.Scope> =>
  Effect.gen(function* () {
    const http = ProviderHttp.guarded(yield* HttpClient.HttpClient, options)
    const client = yield* OpenAiClient.make({
      apiKey: options.apiKey,
      apiUrl: options.baseUrl?.replace(/\/+$/, ""),
      transformClient: ProviderOptions.withHeaders(options)
    }).pipe(Effect.provideService(HttpClient.HttpClient, http))
    const languageModel = yield* OpenAiLanguageModel.make({
      model: options.model,
      // Strict schemas are a subset that tools in general are not in.
      config: { strict: false, store: false }
    }).pipe(Effect.provideService(OpenAiClient.OpenAiClient, observed(client)))
    return yield* AiModel.fromLanguageModel({
      name: ProviderOptions.nameOf("openai", options),
      provider: "openai",
      model: options.model,
      contextWindow: options.contextWindow,
      price: options.price,
      prepare: (request) => {
        const { maxOutputTokens, extraBody } = options
        const most = OpenAiRequest.leastLimit(extraBody?.max_output_tokens, maxOutputTokens, request.maxOutputTokens)
        return {
          body: {
            ...(thinks(options.model) && { include: ["reasoning.encrypted_content"] }),
            ...(request.enableThinking && (options.thinkingBody ?? { reasoning: { summary: "auto" } })),
            ...extraBody,
            ...(most !== undefined && { max_output_tokens: Math.max(leastOutput, most) })
          }
        }
      }
    }).pipe(Effect.provideService(LanguageModel.LanguageModel, languageModel))
  })

/** The client with streams that a new kind of event, a bad call or a failure does not take by surprise. */
const observed = (client: OpenAiClient.Service): OpenAiClient.Service => ({
  ...client,
  createResponseStream: (payload) =>
    Stream.unwrap(
      Effect.map(ProviderTurn.current, (turn) => {
        const body = OpenAiRequest.stringify({ ...payload, ...turn.body, stream: true })
        const request = HttpClientRequest.post("/responses", { body: HttpBody.text(body, "application/json") })
        const names = (payload.tools ?? []).flatMap((tool) => (tool.type === "function" ? [tool.name] : []))
        const read = OpenAiResponsesEvents.make(turn, new Set(names))
        return client.streamRequest(request, Schema.Unknown).pipe(
          Stream.takeUntil(OpenAiResponsesEvents.isLast),
          Stream.filterMap((event) => decode(read(event)))
        )
      })
    )
})

const decode = Schema.decodeUnknownOption(OpenAiClient.ResponseStreamEvent)
