/**
 * What an agent is: instructions, models and tools, as plain values, and the bounds of its runs.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Limits from "../domain/Limits.js"
import type { Model } from "../model/Model.js"
import type { Tool } from "../tool/Tool.js"

/**
 * - `models`: by the id that clients send as `modelId`
 * - `tools`: with distinct names. Looked at again for every run, so that a getter may tell of other ones as time goes by
 *
 * @since 0.1.0
 * @category models
 */
export interface AgentDefinition {
  readonly instructions: string
  readonly models: ReadonlyMap<string, Model>
  readonly defaultModel: string
  readonly tools: ReadonlyArray<Tool>
  readonly limits: Limits.Limits
  readonly resume: Limits.ResumeOptions
}

/**
 * The agent that an engine runs.
 *
 * @since 0.1.0
 * @category services
 */
export class Agent extends Context.Tag("runlet/Agent")<Agent, AgentDefinition>() {}

/**
 * An agent from its parts. What is left out: no instructions, no tools, the default bounds, the first model.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly models: Readonly<Record<string, Model>>
  readonly defaultModel?: string | undefined
  readonly instructions?: string | undefined
  readonly tools?: ReadonlyArray<Tool> | undefined
  readonly limits?: Partial<Limits.Limits> | undefined
  readonly resume?: Partial<Limits.ResumeOptions> | undefined
}): AgentDefinition => {
  const models = new Map(Object.entries(options.models))
  return {
    instructions: options.instructions ?? "",
    models,
    defaultModel: options.defaultModel ?? models.keys().next().value ?? "",
    tools: options.tools ?? [],
    limits: { ...Limits.defaults, ...options.limits },
    resume: { ...Limits.resumeDefaults, ...options.resume }
  }
}

/**
 * The agent made by `make`, as the one that the engine runs.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Parameters<typeof make>[0]): Layer.Layer<Agent> => Layer.succeed(Agent, make(options))
