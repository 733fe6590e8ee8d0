/**
 * What a run was asked: stored once beside its log, never changed.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { ToolKind } from "./AgentEvent.js"

/**
 * The bounds of one run, taken from the configuration and the request when it was created.
 * `maxTokens` and `maxCostUsd` are budgets over the whole run, `null` for none.
 *
 * @since 0.1.0
 * @category models
 */
export const RunLimits = Schema.Struct({
  maxIterations: Schema.Int.pipe(Schema.positive()),
  maxTokens: Schema.NullOr(Schema.Int.pipe(Schema.positive())),
  maxCostUsd: Schema.NullOr(Schema.Number.pipe(Schema.positive())),
  runTimeoutMs: Schema.Int.pipe(Schema.positive())
})
/**
 * @since 0.1.0
 * @category models
 */
export type RunLimits = typeof RunLimits.Type

/**
 * The document that the user has open: a summary, never its text.
 *
 * @since 0.1.0
 * @category models
 */
export const CurrentDocument = Schema.Struct({
  id: Schema.String,
  title: Schema.optional(Schema.String),
  contentHash: Schema.optional(Schema.String)
})
/**
 * @since 0.1.0
 * @category models
 */
export type CurrentDocument = typeof CurrentDocument.Type

/**
 * A message that a client brought along, as plain text.
 *
 * @since 0.1.0
 * @category models
 */
export const TextMessage = Schema.Struct({
  role: Schema.Literal("user", "assistant"),
  content: Schema.String
})
/**
 * @since 0.1.0
 * @category models
 */
export type TextMessage = typeof TextMessage.Type

/**
 * A tool as it was offered to the model. `kind` is the one shown when a call begins; a tool whose kind depends on its
 * input decides again when the input is complete.
 *
 * @since 0.1.0
 * @category models
 */
export const OfferedTool = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  kind: ToolKind,
  parameters: Schema.Unknown
})
/**
 * @since 0.1.0
 * @category models
 */
export type OfferedTool = typeof OfferedTool.Type

/**
 * The input record. The conversation before this run is `prefix.messages` (what the client brought along when the
 * conversation began) followed by the runs named in `prefix.runs`, whose logs hold the rest.
 *
 * @since 0.1.0
 * @category models
 */
export const RunInput = Schema.Struct({
  userMessage: Schema.String,
  prefix: Schema.Struct({
    messages: Schema.Array(TextMessage),
    runs: Schema.Array(Schema.String)
  }),
  instructions: Schema.String,
  tools: Schema.Array(OfferedTool),
  limits: RunLimits,
  enableThinking: Schema.Boolean,
  currentDocument: Schema.NullOr(CurrentDocument),
  metadata: Schema.optional(Schema.Unknown)
})
/**
 * @since 0.1.0
 * @category models
 */
export type RunInput = typeof RunInput.Type
