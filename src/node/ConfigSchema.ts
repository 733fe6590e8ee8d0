/**
 * What a configuration file may say, with every default. Unknown keys are errors: a limit that is misspelt must not
 * be a limit that is off.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Limits, ResumeOptions } from "../domain/Limits.js"
import { isTemplate } from "../domain/TraceLink.js"
import { HttpToolConfig } from "../tool/HttpTool.js"

const filled = Schema.String.pipe(Schema.minLength(1, { message: () => "must not be empty" }))
const secret = Schema.Redacted(filled)
const url = Schema.String.pipe(
  Schema.filter((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    message: () => "must be an http or https address"
  })
)
const traceUrl = Schema.String.pipe(
  Schema.filter(isTemplate, { message: () => "must be an http or https address with {traceId} in it" })
)
const milliseconds = Schema.Int.pipe(Schema.positive())
const headers = Schema.optionalWith(Schema.Record({ key: filled, value: secret }), { default: () => ({}) })

const fields = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const Price = Schema.Struct({
  input: Schema.NonNegative,
  output: Schema.NonNegative,
  cachedInput: Schema.optional(Schema.NonNegative)
})

const common = {
  /** The name that the provider knows the model by; the key in `models` when absent. */
  model: Schema.optional(filled),
  contextWindow: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** What one turn may put out at most, in tokens. */
  maxOutputTokens: Schema.optional(Schema.Int.pipe(Schema.positive())),
  price: Schema.optional(Price),
  /** Another key of `models`, tried when this one fails before any output. */
  fallback: Schema.optional(filled)
}

/**
 * One model, by provider. Prices are US dollars per million tokens.
 *
 * @since 0.1.0
 * @category models
 */
export const ModelConfig = Schema.Union(
  Schema.Struct({ provider: Schema.Literal("demo"), ...common }),
  Schema.Struct({
    provider: Schema.Literal("openai-compatible"),
    baseUrl: url,
    apiKey: Schema.optional(secret),
    headers,
    /** Fields for every request, and for those that ask for reasoning. */
    extraBody: Schema.optional(fields),
    thinkingBody: Schema.optional(fields),
    /** Which of its own reasoning the server wants back. */
    reasoningInput: Schema.optional(Schema.Literal("never", "tool-loop", "tool-calls", "always")),
    /**
     * How the server is told to go on writing an unfinished answer, as fields of its message and of the body; `null`
     * where it can not. Matters for the resume policy `continue-draft`.
     */
    draft: Schema.optional(
      Schema.NullOr(Schema.Struct({ message: Schema.optional(fields), body: Schema.optional(fields) }))
    ),
    ...common
  }),
  Schema.Struct({
    provider: Schema.Literal("openai", "anthropic"),
    baseUrl: Schema.optional(url),
    apiKey: secret,
    headers,
    extraBody: Schema.optional(fields),
    thinkingBody: Schema.optional(fields),
    ...common
  })
)
/**
 * @since 0.1.0
 * @category models
 */
export type ModelConfig = typeof ModelConfig.Type

/**
 * A tool that is called over HTTP. `headers` go along with every call of it.
 *
 * @since 0.1.0
 * @category models
 */
export const ToolConfig = Schema.Struct({ ...Struct.omit(HttpToolConfig.fields, "headers"), headers })
/**
 * @since 0.1.0
 * @category models
 */
export type ToolConfig = typeof ToolConfig.Type

/**
 * A server of the Model Context Protocol: a program to start, or an address.
 *
 * @since 0.1.0
 * @category models
 */
export const McpServerConfig = Schema.Union(
  Schema.Struct({
    command: filled,
    args: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
    env: Schema.optionalWith(Schema.Record({ key: filled, value: secret }), { default: () => ({}) }),
    cwd: Schema.optional(filled)
  }),
  Schema.Struct({ url, headers })
)
/**
 * @since 0.1.0
 * @category models
 */
export type McpServerConfig = typeof McpServerConfig.Type

const claims = {
  issuer: Schema.optional(filled),
  audience: Schema.optional(filled),
  userClaim: Schema.optionalWith(filled, { default: () => "sub" })
}

/**
 * Who signs the JSON Web Tokens that are accepted: whoever has a secret (HS256), or the keys at an address.
 *
 * @since 0.1.0
 * @category models
 */
export const JwtConfig = Schema.Union(
  Schema.Struct({
    /** RFC 7518 wants a key as long as the hash. */
    secret: Schema.Redacted(
      Schema.String.pipe(Schema.minLength(32, { message: () => "must have 32 characters or more" }))
    ),
    ...claims
  }),
  Schema.Struct({ jwksUrl: url, ...claims })
)
/**
 * @since 0.1.0
 * @category models
 */
export type JwtConfig = typeof JwtConfig.Type

const AuthConfig = Schema.Struct({
  tokens: Schema.optionalWith(Schema.Array(Schema.Struct({ token: secret, user: filled })), { default: () => [] }),
  jwt: Schema.optionalWith(Schema.NullOr(JwtConfig), { default: () => null })
})

/**
 * A whole configuration. Without `defaultModel` it is `demo`, if there is one, or the first.
 *
 * @since 0.1.0
 * @category models
 */
export const Config = Schema.Struct({
  host: Schema.optionalWith(filled, { default: () => "127.0.0.1" }),
  port: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 65_535)), { default: () => 4747 }),
  data: Schema.optionalWith(filled, { default: () => "./.runlet/runlet.db" }),
  models: Schema.optionalWith(Schema.Record({ key: filled, value: ModelConfig }), {
    default: () => ({ demo: { provider: "demo" as const } })
  }),
  defaultModel: Schema.optional(filled),
  instructions: Schema.optionalWith(Schema.String, { default: () => "" }),
  tools: Schema.optionalWith(Schema.Array(ToolConfig), { default: () => [] }),
  /** Whether the workspace of documents and memories is offered to models. */
  documents: Schema.optionalWith(Schema.Boolean, { default: () => true }),
  auth: Schema.optionalWith(AuthConfig, { default: () => ({ tokens: [], jwt: null }) }),
  limits: Schema.optionalWith(Limits, { default: () => Schema.decodeSync(Limits)({}) }),
  resume: Schema.optionalWith(ResumeOptions, { default: () => Schema.decodeSync(ResumeOptions)({}) }),
  mcpServers: Schema.optionalWith(Schema.Record({ key: filled, value: McpServerConfig }), { default: () => ({}) }),
  outgoing: Schema.optionalWith(
    Schema.Struct({
      /** Hosts that tools and models may be called at; `null` allows all that the configuration names. */
      allowHosts: Schema.optionalWith(Schema.NullOr(Schema.Array(filled)), { default: () => null })
    }),
    { default: () => ({ allowHosts: null }) }
  ),
  telemetry: Schema.optionalWith(
    Schema.Struct({
      /** Where a person looks at traces, with `{traceId}` in it. */
      traceUrl: Schema.optionalWith(Schema.NullOr(traceUrl), { default: () => null }),
      /** Hosts of models and tools that are told in which trace they are called. */
      propagateTo: Schema.optionalWith(Schema.Array(filled), { default: () => [] })
    }),
    { default: () => ({ traceUrl: null, propagateTo: [] }) }
  ),
  retention: Schema.optionalWith(
    Schema.Struct({
      eventsMs: Schema.optionalWith(milliseconds, { default: () => 86_400_000 }),
      runsMs: Schema.optionalWith(milliseconds, { default: () => 2_592_000_000 })
    }),
    { default: () => ({ eventsMs: 86_400_000, runsMs: 2_592_000_000 }) }
  )
})
