/**
 * Models whose provider's package is loaded when a configuration names it, and not before.
 *
 * @since 0.1.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Model } from "../model/Model.js"
import type { Options } from "../model/ProviderOptions.js"
import { ConfigError } from "./Config.js"

interface Provider {
  readonly make: (options: Options) => Effect.Effect<Model, never, HttpClient.HttpClient | Scope.Scope>
}

const providers = {
  openai: { load: () => import("../model/OpenAiResponses.js"), install: "@effect/ai@0.37 @effect/ai-openai@0.41" },
  anthropic: { load: () => import("../model/Anthropic.js"), install: "@effect/ai@0.37 @effect/ai-anthropic@0.27" }
} as const satisfies Record<string, { readonly load: () => Promise<Provider>; readonly install: string }>

/**
 * A model of this provider. `name` is its key in the configuration, for messages.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  provider: keyof typeof providers,
  name: string,
  options: Options
): Effect.Effect<Model, ConfigError, HttpClient.HttpClient | Scope.Scope> => {
  const { install, load } = providers[provider]
  return Effect.tryPromise({
    try: (): Promise<Provider> => load(),
    catch: () =>
      new ConfigError({
        message: `models.${name}.provider: "${provider}" needs packages that are not installed: npm install ${install}`
      })
  }).pipe(Effect.flatMap((loaded) => loaded.make(options)))
}
