/**
 * Everything in a configuration that nobody may read in a log, an event or an answer.
 *
 * @since 0.1.0
 */
import * as Redacted from "effect/Redacted"
import * as Values from "../domain/SecretValues.js"
import * as Postgres from "../store/Postgres.js"
import type * as ConfigSchema from "./ConfigSchema.js"

type Path = ReadonlyArray<string | number>

/** Keys whose values are names and words. Whoever takes them from the environment does not hide them. */
const plain = new Set([
  "host",
  "port",
  "data",
  "defaultModel",
  "provider",
  "model",
  "fallback",
  "instructions",
  "name",
  "description",
  "title",
  "kind",
  "user",
  "policy",
  "command",
  "cwd",
  "issuer",
  "audience",
  "userClaim"
])

/**
 * What is secret in a value that came from the environment, by the place where the configuration names it.
 *
 * @since 0.1.0
 * @category values
 */
export const ofReference = (path: Path, value: string): ReadonlyArray<string> => {
  const key = path.at(-1)
  if (typeof key === "string" && (plain.has(key) || /url$/i.test(key))) return []
  return [value, ...Values.ofUrl(value)]
}

const ofHeaders = (headers: { readonly [name: string]: Redacted.Redacted }): ReadonlyArray<string> =>
  Object.entries(headers).flatMap(([name, value]) => Values.ofHeader(name, Redacted.value(value)))

const ofModel = (model: ConfigSchema.ModelConfig): ReadonlyArray<string> => {
  if (model.provider === "demo") return []
  const { apiKey, baseUrl, headers } = model
  return [
    ...(apiKey === undefined ? [] : [Redacted.value(apiKey).trim()]),
    ...(baseUrl === undefined ? [] : Values.ofUrl(baseUrl)),
    ...ofHeaders(headers)
  ]
}

const ofMcpServer = (server: ConfigSchema.McpServerConfig): ReadonlyArray<string> =>
  "url" in server
    ? [...Values.ofUrl(server.url), ...ofHeaders(server.headers)]
    : Object.entries(server.env).flatMap(([name, value]) => Values.ofVariable(name, Redacted.value(value)))

const ofJwt = (jwt: ConfigSchema.JwtConfig | null): ReadonlyArray<string> => {
  if (jwt === null) return []
  return "secret" in jwt ? [Redacted.value(jwt.secret)] : Values.ofUrl(jwt.jwksUrl)
}

// The options of such an address are words.
const ofDatabase = (data: string): ReadonlyArray<string> => {
  if (!Postgres.isAddress(data) || !URL.canParse(data)) return []
  const address = new URL(data)
  const password = address.searchParams.get("password")
  address.search = ""
  return [...Values.ofUrl(address.href), ...(password === null ? [] : [password])]
}

/**
 * What is secret in a configuration by the meaning of its keys.
 *
 * @since 0.1.0
 * @category values
 */
export const ofConfig = (config: typeof ConfigSchema.Config.Type): ReadonlyArray<string> => [
  ...Object.values(config.models).flatMap(ofModel),
  ...config.tools.flatMap(({ headers, statusUrl = "", url }) => [
    ...Values.ofUrl(url),
    ...Values.ofUrl(statusUrl),
    ...ofHeaders(headers)
  ]),
  ...Object.values(config.mcpServers).flatMap(ofMcpServer),
  ...ofDatabase(config.data),
  ...config.auth.tokens.map(({ token }) => Redacted.value(token)),
  ...ofJwt(config.auth.jwt)
]
