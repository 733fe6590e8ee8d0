import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as Config from "../../src/node/Config.js"
import * as McpTools from "../../src/node/McpTools.js"
import * as Providers from "../../src/node/Providers.js"
import { limits, undici } from "../model/support.js"

// As in a program that has not installed them.
vi.mock("@effect/ai-openai/OpenAiClient", () => {
  throw new Error("Cannot find package '@effect/ai-openai' imported from /srv/secret/place")
})
vi.mock("@effect/ai-anthropic/AnthropicClient", () => {
  throw new Error("Cannot find package '@effect/ai-anthropic' imported from /srv/secret/place")
})

vi.mock("@modelcontextprotocol/sdk/client/index.js", () => {
  throw new Error("Cannot find package '@modelcontextprotocol/sdk' imported from /srv/secret/place")
})

describe("an MCP server of a configuration", () => {
  it.scoped("says what to install when its client is not there", () =>
    Effect.gen(function* () {
      const config = yield* Config.decode({ mcpServers: { files: { command: "x" } } })
      const { message } = yield* Effect.flip(McpTools.make(config, []))
      expect(message).toBe(
        "mcpServers.files: needs packages that are not installed: npm install @modelcontextprotocol/sdk@1.32 zod@4"
      )
    })
  )

  it.scoped("is not looked for when there is none", () =>
    Effect.gen(function* () {
      expect((yield* McpTools.make(yield* Config.decode({}), []))()).toEqual([])
    })
  )
})

describe("a provider of a configuration", () => {
  it.scoped.each(["openai", "anthropic"] as const)("says what to install when it is not there: %s", (provider) =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(Providers.make(provider, "big", { ...limits, model: "x" }))
      expect(message).toContain(`models.big.provider: "${provider}"`)
      expect(message).toContain(`npm install @effect/ai@0.37 @effect/ai-${provider}@0.`)
      expect(message).not.toContain("/srv")
    }).pipe(Effect.provide(undici))
  )

  it.effect("must be at an allowed host, also when it is at its own", () =>
    Effect.gen(function* () {
      const config = (provider: string, allowHosts: ReadonlyArray<string>) =>
        Config.decode({ models: { big: { provider, apiKey: "k" } }, outgoing: { allowHosts } })
      const { message } = yield* Effect.flip(config("anthropic", ["api.openai.com"]))
      expect(message).toBe("models.big.baseUrl: its host is not in outgoing.allowHosts")
      expect((yield* config("openai", ["api.openai.com"])).defaultModel).toBe("big")
    })
  )
})
