/**
 * Models of Anthropic behind its Messages interface. Needs `@effect/ai` and `@effect/ai-anthropic`.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as AnthropicClient from "@effect/ai-anthropic/AnthropicClient"
import * as AnthropicLanguageModel from "@effect/ai-anthropic/AnthropicLanguageModel"
import * as HttpBody from "@effect/platform/HttpBody"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { OfferedTool } from "../domain/RunInput.js"
import * as AiModel from "./AiModel.js"
import * as AiPrompt from "./AiPrompt.js"
import * as AnthropicEvents from "./AnthropicEvents.js"
import * as CallText from "./CallText.js"
import type { Model, ModelRequest } from "./Model.js"
import * as OpenAiRequest from "./OpenAiRequest.js"
import * as ProviderHttp from "./ProviderHttp.js"
import * as ProviderOptions from "./ProviderOptions.js"
import * as ProviderTurn from "./ProviderTurn.js"

/** Every request must bound its output; `maxOutputTokens`, or `max_tokens` in `extraBody`, is stronger. */
const maxTokens = 16_000

/** The interface refuses to think less, and wants room for the answer behind it. */
const leastThinking = 1_024

const defaultThinking = { thinking: { type: "enabled", budget_tokens: maxTokens / 2 } }

/** Reasoning counts towards the output: where it could use all of it up it gets half, or is left out. */
const thinkingOf = (body: OpenAiRequest.JsonObject, most: number): OpenAiRequest.JsonObject | undefined => {
  const { thinking } = body
  if (!Predicate.isRecord(thinking) || typeof thinking.budget_tokens !== "number") return body
  if (thinking.budget_tokens < most) return body
  const half = Math.floor(most / 2)
  return half < leastThinking ? undefined : { ...body, thinking: { ...thinking, budget_tokens: half } }
}

/**
 * A model of Anthropic. Its reasoning goes back signed with the turn that it belongs to. `baseUrl` is without
 * `/v1/messages`.
 *
 * Reasoning is asked for with `{ "thinking": { "type": "enabled", "budget_tokens": 8000 } }`; models that decide by
 * themselves how much they think want `{ "thinking": { "type": "adaptive" } }` as `thinkingBody`.
 *
 * Give it `NodeHttpClient.layerUndici`: other clients cut long silences by themselves.
 *
 * @example
 * import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
 * import { Effect, Redacted } from "effect"
 * import * as Anthropic from "runlet/ai/anthropic"
 *
 * const model = Anthropic.make({
 *   model: "claude-sonnet-4-5",
 *   apiKey: Redacted.make("sk-ant-…"),
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
    const name = ProviderOptions.nameOf("anthropic", options)
    const http = ProviderHttp.guarded(yield* HttpClient.HttpClient, options)
    const client = yield* AnthropicClient.make({
      apiKey: options.apiKey,
      // People write it with and without the version.
      apiUrl: options.baseUrl?.replace(/\/+$/, "").replace(/\/v1$/, ""),
      transformClient: ProviderOptions.withHeaders(options)
    }).pipe(Effect.provideService(HttpClient.HttpClient, http))
    const languageModel = yield* AnthropicLanguageModel.make({
      model: options.model,
      config: { max_tokens: maxTokens }
    }).pipe(Effect.provideService(AnthropicClient.AnthropicClient, observed(client)))
    return yield* AiModel.fromLanguageModel({
      name,
      provider: "anthropic",
      model: options.model,
      contextWindow: options.contextWindow,
      price: options.price,
      prepare: (request) => {
        const { extraBody } = options
        const configured = OpenAiRequest.leastLimit(extraBody?.max_tokens, options.maxOutputTokens) ?? maxTokens
        const most = Math.min(configured, request.maxOutputTokens ?? configured)
        const thinking =
          request.enableThinking && isSigned(request, name)
            ? thinkingOf(options.thinkingBody ?? defaultThinking, most)
            : undefined
        return {
          reasoning: thinking !== undefined,
          tools: request.tools.length > 0 ? request.tools : calledTools(request),
          body: { ...thinking, ...extraBody, max_tokens: most }
        }
      }
    }).pipe(Effect.provideService(LanguageModel.LanguageModel, languageModel))
  })

/**
 * Whether every turn since the last question that called tools has its reasoning. The interface refuses reasoning in
 * the middle of a loop that was begun without, as one is that another model began.
 */
const isSigned = ({ messages }: ModelRequest, name: string): boolean =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === "user") + 1)
    .every(
      (message) =>
        message.role !== "assistant" ||
        AiPrompt.sideOf(message.side, name)?.some(
          ({ metadata, type }) => type === "reasoning" && metadata !== undefined
        )
    )

/** The interface refuses a history with calls where no tool is offered. */
const calledTools = ({ messages }: ModelRequest): ReadonlyArray<OfferedTool> => {
  const names = new Set(
    messages.flatMap((message) => (message.role === "tool" ? [CallText.safeName(message.toolName)] : []))
  )
  return [...names].map((name) => ({
    name,
    description: "Not available at the moment.",
    kind: "readonly",
    parameters: { type: "object" }
  }))
}

/** The client with streams that a new kind of event, a bad call or a failure does not take by surprise. */
const observed = (client: AnthropicClient.Service): AnthropicClient.Service => ({
  ...client,
  createMessageStream: ({ params, payload }) =>
    Stream.unwrap(
      Effect.map(ProviderTurn.current, (turn) => {
        const body = OpenAiRequest.stringify({ ...payload, ...turn.body, stream: true })
        const beta = params?.["anthropic-beta"]
        const request = HttpClientRequest.post("/v1/messages", {
          ...(typeof beta === "string" && { headers: { "anthropic-beta": beta } }),
          body: HttpBody.text(body, "application/json")
        })
        const read = AnthropicEvents.make(turn, new Set((payload.tools ?? []).map((tool) => tool.name)))
        return client.streamRequest(request, Schema.Unknown).pipe(
          Stream.takeUntil(AnthropicEvents.isLast),
          Stream.filterMap((event) => decode(read(event)))
        )
      })
    )
})

const decode = Schema.decodeUnknownOption(AnthropicClient.MessageStreamEvent)
