/**
 * Any language model of `@effect/ai` as the model of a run.
 *
 * The library is asked for the stream of one turn and for nothing else: tools are offered with their real schemas but
 * checked by the loop, and what the provider wants back for its own turns is kept as their side data.
 *
 * @since 0.1.0
 */
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { noUsage } from "../domain/AgentEvent.js"
import type { OfferedTool } from "../domain/RunInput.js"
import * as AiErrors from "./AiErrors.js"
import * as AiParts from "./AiParts.js"
import * as AiPrompt from "./AiPrompt.js"
import { type Model, ModelError, type ModelFinish, type ModelPart, type ModelRequest, type Price } from "./Model.js"
import * as ModelPrice from "./ModelPrice.js"
import type { JsonObject } from "./OpenAiRequest.js"
import * as ProviderTurn from "./ProviderTurn.js"

/**
 * - `name`: what goes back to the provider with a turn goes only to a model of the same name; give it to the same
 *   model of the same provider, also after a restart
 * - `provider`, `model`: who serves it and what it is called there, for traces; see `Model`. Traces show the name of the
 *   configuration when `model` is absent
 * - `prepare`: what depends on the request: whether the model gets its own reasoning back (it does by default), tools
 *   that it is told of besides those that it may call, and fields of the body, for clients that look at `ProviderTurn`
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly name: string
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly contextWindow?: number | undefined
  readonly price?: Price | undefined
  readonly prepare?: ((request: ModelRequest) => Prepared) | undefined
}

/**
 * What `Options.prepare` says of one request.
 *
 * @since 0.1.0
 * @category models
 */
export interface Prepared {
  readonly reasoning?: boolean | undefined
  readonly tools?: ReadonlyArray<OfferedTool> | undefined
  readonly body?: JsonObject | undefined
}

/**
 * The language model of the context. Interrupting a turn interrupts the provider's stream, which closes its socket.
 *
 * A library gives up a turn in which a tool is called that was not offered. What it had given out by then is kept, and
 * the loop answers the call; only where the call had come whole, in one piece, the turn is tried again.
 *
 * @example
 * import { OpenAiClient, OpenAiLanguageModel } from "@effect/ai-openai"
 * import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
 * import { Effect, Layer } from "effect"
 * import { AiModel } from "runlet/ai"
 *
 * const gpt = OpenAiLanguageModel.layer({ model: "gpt-5" }).pipe(
 *   Layer.provide(OpenAiClient.layer({})),
 *   Layer.provide(NodeHttpClient.layerUndici)
 * )
 *
 * const model = AiModel.fromLanguageModel({ name: "gpt-5" }).pipe(Effect.provide(gpt))
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromLanguageModel = (options: Options): Effect.Effect<Model, never, LanguageModel.LanguageModel> =>
  Effect.map(
    LanguageModel.LanguageModel,
    (languageModel): Model => ({
      stream: (request) => Stream.suspend(() => turnOf(languageModel, options, request)),
      contextWindow: options.contextWindow,
      price: options.price,
      provider: options.provider,
      name: options.model
    })
  )

const turnOf = (
  languageModel: LanguageModel.Service,
  { name, prepare, price }: Options,
  request: ModelRequest
): Stream.Stream<ModelPart, ModelError> => {
  const { body = {}, reasoning = true, tools = request.tools } = prepare?.(request) ?? {}
  const turn = ProviderTurn.make(body)
  const reader = AiParts.make(name, new Set(request.tools.map((tool) => tool.name)))

  const finished = (ended: ModelFinish | ModelError): Stream.Stream<ModelPart, ModelError> =>
    ended instanceof ModelError
      ? Stream.fail(ended)
      : Stream.make({ ...ended, usage: ModelPrice.priced(ended.usage, price) })
  const read = (given: Chunk.Chunk<AiParts.StreamPart>): Effect.Effect<Chunk.Chunk<ModelPart>, ModelError> =>
    Effect.suspend(() => {
      const out: Array<ModelPart> = []
      for (const part of given) {
        const error = reader.read(part, out)
        if (error !== undefined) return Effect.fail(error)
      }
      if (out.length > 0) turn.begun = true
      return Effect.succeed(Chunk.unsafeFromArray(out))
    })
  const end = Stream.suspend(() => finished(turn.failure ?? reader.end(turn.finish)))

  return languageModel
    .streamText({
      prompt: AiPrompt.toPrompt(request, { name, reasoning }),
      toolkit: wire(tools),
      disableToolCallResolution: true
    })
    .pipe(
      Stream.provideService(ProviderTurn.ProviderTurn, turn),
      Stream.mapChunksEffect(read),
      Stream.concat(end),
      Stream.catchAll((error) => {
        if (turn.failure !== undefined) return Stream.fail(turn.failure)
        if (error instanceof ModelError) return Stream.fail(error)
        // A library gives up a whole turn for one call that it can not read. The loop answers such a call.
        if (error._tag === "MalformedOutput" && reader.hasBadCall()) {
          return finished(reader.end(turn.finish ?? { reason: "tool_calls", usage: noUsage }))
        }
        return Stream.fromEffect(
          Effect.flatMap(
            Effect.clockWith((clock) => clock.currentTimeMillis),
            (now) => Effect.fail(AiErrors.toModelError(error, now))
          )
        )
      })
    )
}

const anyObject = Schema.Struct({}, Schema.Record({ key: Schema.String, value: Schema.Unknown }))

/** Tools as the model sees them: their own schemas, which nobody but the loop checks. */
const wire = (tools: ReadonlyArray<OfferedTool>): Toolkit.WithHandler<Record<string, AiTool.Any>> => ({
  tools: Object.fromEntries(
    tools.map((tool) => [
      tool.name,
      AiTool.make(tool.name, { description: tool.description }).setParameters(
        anyObject.annotations({ jsonSchema: schemaOf(tool.parameters) })
      )
    ])
  ),
  handle: () => Effect.dieMessage("The loop runs the tools, not the model's library.")
})

const schemaOf = (parameters: unknown): object =>
  typeof parameters === "object" && parameters !== null && !Array.isArray(parameters)
    ? { type: "object", ...parameters }
    : { type: "object" }
