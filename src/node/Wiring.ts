/**
 * From a configuration to the running stack: its models, its tools, the document workspace, the store and the engine.
 *
 * @since 0.1.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Agent from "../agent/Agent.js"
import { OpenDocuments } from "../agent/Documents.js"
import * as Secrets from "../domain/Secrets.js"
import type { RunEngine } from "../engine/RunEngine.js"
import * as Demo from "../model/Demo.js"
import { withFallback } from "../model/Fallback.js"
import type { Model } from "../model/Model.js"
import * as OpenAiCompatible from "../model/OpenAiCompatible.js"
import * as SqlErrors from "../store/internal/sqlErrors.js"
import * as Postgres from "../store/Postgres.js"
import type { StoreError } from "../store/RunStore.js"
import { Documents } from "../tool/documents/Documents.js"
import * as DocumentTools from "../tool/documents/DocumentTools.js"
import * as PostgresDocuments from "../tool/documents/PostgresDocuments.js"
import * as SqliteDocuments from "../tool/documents/SqliteDocuments.js"
import * as Seed from "../tool/documents/seed/Seed.js"
import * as HttpTool from "../tool/HttpTool.js"
import type { Tool } from "../tool/Tool.js"
import { type Config, ConfigError, hasAuthentication } from "./Config.js"
import type { ModelConfig } from "./ConfigSchema.js"
import * as McpTools from "./McpTools.js"
import * as Outgoing from "./Outgoing.js"
import * as Providers from "./Providers.js"
import * as Runlet from "./Runlet.js"

const model = (
  name: string,
  config: ModelConfig,
  { limits, resume }: Config
): Effect.Effect<Model, ConfigError, HttpClient.HttpClient | Scope.Scope> => {
  const { contextWindow, price } = config
  if (config.provider === "demo") return Effect.succeed({ ...Demo.make(), contextWindow, price })
  const options = {
    model: config.model ?? name,
    apiKey: config.apiKey,
    headers: config.headers,
    extraBody: config.extraBody,
    thinkingBody: config.thinkingBody,
    firstChunkTimeoutMs: limits.firstChunkTimeoutMs,
    chunkTimeoutMs: limits.chunkTimeoutMs,
    maxResponseBytes: limits.maxModelResponseBytes,
    price,
    contextWindow,
    maxOutputTokens: config.maxOutputTokens
  }
  if (config.provider !== "openai-compatible") {
    return Providers.make(config.provider, name, { ...options, baseUrl: config.baseUrl })
  }
  return OpenAiCompatible.make({
    ...options,
    baseUrl: config.baseUrl,
    reasoningInput: config.reasoningInput,
    draft: draftOf(config.draft, resume.policy)
  })
}

type Draft = Extract<ModelConfig, { readonly provider: "openai-compatible" }>["draft"]

/** Who configures `continue-draft` has servers that can; `prefix` is what most of them understand. */
const draftOf = (draft: Draft, policy: Config["resume"]["policy"]) => {
  if (draft === null) return undefined
  return draft ?? (policy === "continue-draft" ? { message: { prefix: true } } : undefined)
}

const models = (
  config: Config
): Effect.Effect<Record<string, Model>, ConfigError, HttpClient.HttpClient | Scope.Scope> =>
  Effect.map(
    Effect.all(
      Object.fromEntries(Object.entries(config.models).map(([name, one]) => [name, model(name, one, config)])),
      { concurrency: 1 }
    ),
    (made) => {
      const chained = (name: string, seen: ReadonlyArray<string>): Model | undefined => {
        const first = made[name]
        const next = config.models[name]?.fallback
        if (first === undefined || next === undefined || seen.includes(next)) return first
        const fallback = chained(next, [...seen, name])
        return fallback === undefined ? first : withFallback(first, fallback)
      }
      return Object.fromEntries(
        Object.keys(made).flatMap((name) => {
          const one = chained(name, [])
          return one === undefined ? [] : [[name, one] as const]
        })
      )
    }
  )

const httpTools = (config: Config): Effect.Effect<ReadonlyArray<Tool>, ConfigError, HttpClient.HttpClient> =>
  Effect.forEach(config.tools, (tool, index) =>
    HttpTool.make(tool, { maxResponseBytes: config.limits.maxToolResultBytes * 4 }).pipe(
      Effect.mapError((error) => new ConfigError({ message: `tools[${index}].parameters: ${error.message}` }))
    )
  )

/** Configured tools stand before the workspace's of the same name. */
const agent = (config: Config): Layer.Layer<Agent.Agent, ConfigError, Documents> =>
  Layer.scoped(
    Agent.Agent,
    Effect.gen(function* () {
      const own = yield* httpTools(config)
      const names = new Set(own.map((tool) => tool.name))
      const documents = config.documents ? yield* DocumentTools.make : []
      const fixed = [...own, ...documents.filter((tool) => !names.has(tool.name))]
      const served = yield* McpTools.make(
        config,
        fixed.map((tool) => tool.name)
      )
      const definition = Agent.make({
        models: yield* models(config),
        defaultModel: config.defaultModel,
        instructions: config.instructions,
        limits: config.limits,
        resume: config.resume
      })
      return {
        ...definition,
        // Servers may have other tools at any time.
        get tools() {
          return [...fixed, ...served()]
        }
      }
    })
  ).pipe(Layer.provide(Outgoing.layer(config.outgoing.allowHosts, config.telemetry.propagateTo)))

const openDocuments: Layer.Layer<never, never, Documents> = Layer.unwrapEffect(
  Effect.map(Documents, (documents) => Layer.succeed(OpenDocuments, { describe: documents.describe }))
)

/**
 * The stack that a configuration describes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (config: Config): Layer.Layer<RunEngine, ConfigError | StoreError> => {
  const store = Runlet.layerStore({ data: config.data, leaseTtlMs: config.resume.leaseTtlMs })
  const limitUsers = hasAuthentication(config)
  const { maxDocumentsPerUser, maxMemoriesPerUser } = config.limits
  const bounds = limitUsers ? { maxDocuments: maxDocumentsPerUser, maxMemories: maxMemoriesPerUser } : undefined
  const documents = Postgres.isAddress(config.data) ? PostgresDocuments : SqliteDocuments
  const workspace = Layer.mapError(documents.layerWith(Seed.documents, bounds), SqlErrors.refail("open"))
  return Runlet.layerEngine({
    policy: Runlet.policyOf(config.resume.policy),
    retention: config.retention,
    limitUsers
  }).pipe(
    Layer.provide(agent(config)),
    Layer.provide(openDocuments),
    Layer.provide(workspace),
    Layer.provide(store),
    Layer.provide(Secrets.layer(config.secrets))
  )
}
