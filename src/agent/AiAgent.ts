/**
 * The agent of a program that has a language model of `@effect/ai` as a layer already.
 *
 * @since 0.1.0
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AiModel from "../model/AiModel.js"
import * as Agent from "./Agent.js"

/**
 * An agent whose one model is the language model of the context, under the id `name`. The rest is as in `Agent.layer`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: AiModel.Options & Omit<Parameters<typeof Agent.make>[0], "models" | "defaultModel">
): Layer.Layer<Agent.Agent, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Agent.Agent,
    Effect.map(AiModel.fromLanguageModel(options), (model) =>
      Agent.make({ ...options, models: { [options.name]: model } })
    )
  )
