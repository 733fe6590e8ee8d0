/**
 * A recoverable boundary in a log, with the state needed to go on from it, as it is shown to readers. It is put
 * together when it is read; recovery itself folds the log.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { CheckpointKind, RunMode } from "./AgentEvent.js"
import { CurrentDocument } from "./RunInput.js"

/**
 * `compressedMessages` is exactly what was last sent to the model. `resultHash` is the SHA-256 of the canonical JSON of
 * the result.
 *
 * @since 0.1.0
 * @category models
 */
export const AgentResumeState = Schema.Struct({
  compressedMessages: Schema.Array(Schema.Unknown),
  model: Schema.String,
  enableThinking: Schema.Boolean,
  mode: RunMode,
  currentDocument: Schema.optional(Schema.NullOr(CurrentDocument)),
  toolResults: Schema.Array(
    Schema.Struct({
      toolCallId: Schema.String,
      toolName: Schema.String,
      argumentsJson: Schema.String,
      result: Schema.Unknown,
      resultHash: Schema.String,
      completedAt: Schema.Number
    })
  ),
  assistantDraft: Schema.Struct({ text: Schema.String, reasoning: Schema.optional(Schema.String) })
})
/**
 * @since 0.1.0
 * @category models
 */
export type AgentResumeState = typeof AgentResumeState.Type

/**
 * One checkpoint, whole. Lengths are UTF-16 code units, `createdAt` epoch milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export const AgentRunCheckpoint = Schema.Struct({
  runId: Schema.String,
  seq: Schema.Int,
  kind: CheckpointKind,
  conversationId: Schema.String,
  assistantMessageId: Schema.String,
  textLength: Schema.Int,
  reasoningLength: Schema.Int,
  completedToolCallIds: Schema.Array(Schema.String),
  pendingToolCallIds: Schema.Array(Schema.String),
  lastIteration: Schema.Int,
  resumeState: AgentResumeState,
  createdAt: Schema.Number
})
/**
 * @since 0.1.0
 * @category models
 */
export type AgentRunCheckpoint = typeof AgentRunCheckpoint.Type
