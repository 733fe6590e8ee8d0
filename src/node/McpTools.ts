/**
 * The tools of Model Context Protocol servers, whose client is loaded when a configuration names one, and not before.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Tool } from "../tool/Tool.js"
import { type Config, ConfigError } from "./Config.js"
import * as Outgoing from "./Outgoing.js"

/**
 * The tools that there are at the moment, of the servers of a configuration. `taken` are names of other tools.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  { mcpServers, outgoing }: Pick<Config, "mcpServers" | "outgoing">,
  taken: ReadonlyArray<string>
): Effect.Effect<() => ReadonlyArray<Tool>, ConfigError, Scope.Scope> => {
  const [first] = Object.keys(mcpServers)
  if (first === undefined) return Effect.succeed(() => [])
  return Effect.tryPromise({
    try: () => import("../tool/mcp/McpServers.js"),
    catch: () =>
      new ConfigError({
        message: `mcpServers.${first}: needs packages that are not installed: npm install @modelcontextprotocol/sdk@1.32 zod@4`
      })
  }).pipe(
    Effect.flatMap((McpServers) =>
      McpServers.make({
        servers: mcpServers,
        taken,
        isAllowed: (url) => Outgoing.isAllowed(outgoing.allowHosts, url)
      })
    ),
    Effect.map(({ tools }) => tools)
  )
}
