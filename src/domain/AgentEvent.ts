/**
 * The vocabulary of a run: every event that a log can hold, in product words. What a user interface can show is
 * exactly what stands here.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const Count = Schema.NonNegativeInt

/**
 * Tokens spent, counted by the provider, and their price in US dollars when the model's price is known.
 *
 * @since 0.1.0
 * @category models
 */
export const Usage = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  reasoningTokens: Schema.optional(Count),
  cachedInputTokens: Schema.optional(Count),
  totalTokens: Count,
  costUsd: Schema.optional(Schema.Number)
})
/**
 * @since 0.1.0
 * @category models
 */
export type Usage = typeof Usage.Type

/**
 * What a tool may do to the world: nothing, a write that can be previewed, or something else that can not.
 *
 * @since 0.1.0
 * @category models
 */
export const ToolKind = Schema.Literal("readonly", "write", "effectful")
/**
 * @since 0.1.0
 * @category models
 */
export type ToolKind = typeof ToolKind.Type

/**
 * The part of a tool that runs: `execute` (readonly, effectful), `preview` and `commit` (write).
 *
 * @since 0.1.0
 * @category models
 */
export const ToolPhase = Schema.Literal("execute", "preview", "commit")
/**
 * @since 0.1.0
 * @category models
 */
export type ToolPhase = typeof ToolPhase.Type

/**
 * How a call ended. `in_doubt` means that the outcome is unknown.
 *
 * @since 0.1.0
 * @category models
 */
export const ToolResultState = Schema.Literal(
  "done",
  "applied",
  "rejected",
  "interrupted",
  "in_doubt",
  "invalid",
  "expired"
)
/**
 * @since 0.1.0
 * @category models
 */
export type ToolResultState = typeof ToolResultState.Type

/**
 * Where a result came from: the tool itself, an equal call of this run, the cache, a person, or nowhere.
 *
 * @since 0.1.0
 * @category models
 */
export const ToolResultSource = Schema.Literal("executed", "run", "cache", "person", "none")
/**
 * @since 0.1.0
 * @category models
 */
export type ToolResultSource = typeof ToolResultSource.Type

/**
 * Why a person is asked.
 *
 * @since 0.1.0
 * @category models
 */
export const ApprovalReason = Schema.Literal("write", "effectful", "in_doubt")
/**
 * @since 0.1.0
 * @category models
 */
export type ApprovalReason = typeof ApprovalReason.Type

/**
 * What was decided, as recorded. The last three answer an `in_doubt` request.
 *
 * @since 0.1.0
 * @category models
 */
export const DecisionOutcome = Schema.Literal(
  "approved",
  "rejected",
  "edited",
  "expired",
  "retry",
  "applied",
  "abandoned"
)
/**
 * @since 0.1.0
 * @category models
 */
export type DecisionOutcome = typeof DecisionOutcome.Type

/**
 * The recoverable boundaries of a run.
 *
 * @since 0.1.0
 * @category models
 */
export const CheckpointKind = Schema.Literal(
  "run_started",
  "assistant_delta",
  "tool_call_started",
  "tool_call_arguments_completed",
  "tool_call_result_persisted",
  "iteration_completed",
  "run_finished",
  "run_failed"
)
/**
 * @since 0.1.0
 * @category models
 */
export type CheckpointKind = typeof CheckpointKind.Type

/**
 * Why the model stopped its turn.
 *
 * @since 0.1.0
 * @category models
 */
export const ModelFinishReason = Schema.Literal("stop", "length", "tool_calls", "content_filter")
/**
 * @since 0.1.0
 * @category models
 */
export type ModelFinishReason = typeof ModelFinishReason.Type

/**
 * `chat` offers every tool, `plan` offers the read-only ones alone.
 *
 * @since 0.1.0
 * @category models
 */
export const RunMode = Schema.Literal("chat", "plan")
/**
 * @since 0.1.0
 * @category models
 */
export type RunMode = typeof RunMode.Type

const event = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const toolCallId = Schema.String
const toolName = Schema.String

/**
 * Always the first event, `seq` 1.
 *
 * @since 0.1.0
 * @category events
 */
export const RunStart = event("run-start", {
  runId: Schema.String,
  seq: Schema.Literal(1),
  conversationId: Schema.String,
  userMessageId: Schema.String,
  assistantMessageId: Schema.String,
  model: Schema.String,
  mode: RunMode,
  regeneratedFrom: Schema.optional(Schema.String),
  trace: Schema.optional(Schema.String)
})

/**
 * A transition that does not end the run.
 *
 * @since 0.1.0
 * @category events
 */
export const RunStatusChanged = event("run-status", {
  status: Schema.Literal("queued", "running", "streaming", "waiting_approval"),
  reason: Schema.optional(Schema.String)
})

/**
 * A new attempt begins. A reader cuts its draft to these lengths (UTF-16 code units over all deltas in order) and
 * drops these calls.
 *
 * @since 0.1.0
 * @category events
 */
export const RunResumed = event("run-resumed", {
  attempt: Schema.Int,
  reason: Schema.Literal("recovery", "resume"),
  checkpointSeq: Count,
  textLength: Count,
  reasoningLength: Count,
  droppedToolCallIds: Schema.Array(Schema.String),
  trace: Schema.optional(Schema.String)
})

/**
 * Assistant text as it arrives.
 *
 * @since 0.1.0
 * @category events
 */
export const TextDelta = event("text-delta", { id: Schema.String, delta: Schema.String })

/**
 * Thinking as it arrives.
 *
 * @since 0.1.0
 * @category events
 */
export const ReasoningDelta = event("reasoning-delta", { id: Schema.String, delta: Schema.String })

/**
 * The model begins a call.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolCallStart = event("tool-call-start", {
  toolCallId,
  toolName,
  kind: ToolKind,
  title: Schema.optional(Schema.String)
})

/**
 * Argument text as it arrives.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolCallDelta = event("tool-call-delta", { toolCallId, delta: Schema.String })

/**
 * The arguments are complete and valid.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolCallReady = event("tool-call-ready", { toolCallId, toolName, input: Schema.Unknown })

/**
 * The model's output of this iteration is complete.
 *
 * @since 0.1.0
 * @category events
 */
export const ModelEnd = event("model-end", { iteration: Count, finishReason: ModelFinishReason, usage: Usage })

/**
 * A tool is about to run. Stored before it does.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolStart = event("tool-start", { toolCallId, toolName, phase: ToolPhase, idempotencyKey: Schema.String })

/**
 * Progress of a running tool.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolResultDelta = event("tool-result-delta", { toolCallId, delta: Schema.String })

/**
 * A call is settled.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolCallResult = event("tool-call-result", {
  toolCallId,
  toolName,
  ok: Schema.Boolean,
  state: ToolResultState,
  result: Schema.Unknown,
  source: ToolResultSource,
  durationMs: Schema.Number
})

/**
 * A person must decide.
 *
 * @since 0.1.0
 * @category events
 */
export const ApprovalRequest = event("approval-request", {
  approvalId: Schema.String,
  toolCallId,
  toolName,
  reason: ApprovalReason,
  input: Schema.Unknown,
  preview: Schema.Unknown,
  previewHash: Schema.String,
  expiresAt: Schema.Number,
  supersedes: Schema.optional(Schema.String),
  cause: Schema.optional(Schema.Literal("edit", "conflict", "retry"))
})

/**
 * A person decided, or the time to decide ran out. `input` stands exactly with `edited`.
 *
 * @since 0.1.0
 * @category events
 */
export const ApprovalDecision = event("approval-decision", {
  approvalId: Schema.String,
  toolCallId,
  decision: DecisionOutcome,
  by: Schema.String,
  reason: Schema.optional(Schema.String),
  input: Schema.optional(Schema.Unknown)
})

/**
 * A commit reported that its target changed. Nothing was applied and the approval is used up.
 *
 * @since 0.1.0
 * @category events
 */
export const ToolConflict = event("tool-conflict", { toolCallId, message: Schema.optional(Schema.String) })

/**
 * A model call is made again before any of its output was published.
 *
 * @since 0.1.0
 * @category events
 */
export const ModelRetry = event("model-retry", {
  iteration: Count,
  retry: Count,
  delayMs: Schema.Number,
  code: Schema.String
})

/**
 * All calls of the turn are settled.
 *
 * @since 0.1.0
 * @category events
 */
export const IterationEnd = event("iteration-end", { iteration: Count })

/**
 * A recoverable boundary, for readers; recovery does not depend on it.
 *
 * @since 0.1.0
 * @category events
 */
export const CheckpointEvent = event("checkpoint", {
  runId: Schema.String,
  seq: Count,
  checkpointKind: CheckpointKind
})

/**
 * Terminal: the run is completed. `timing` is in milliseconds.
 *
 * @since 0.1.0
 * @category events
 */
export const Finish = event("finish", {
  finishReason: Schema.Literal("stop", "length", "max_iterations", "budget", "content_filter"),
  model: Schema.String,
  usage: Usage,
  timing: Schema.Struct({ queuedMs: Schema.Number, timeToFirstTokenMs: Schema.Number, durationMs: Schema.Number })
})

/**
 * Terminal: the run is cancelled, by its user, by a later run of its conversation, or by a limit.
 *
 * @since 0.1.0
 * @category events
 */
export const Cancelled = event("cancelled", {
  by: Schema.Literal("user", "superseded", "limit"),
  reason: Schema.optional(Schema.String),
  usage: Usage
})

/**
 * Terminal: failed. The message is readable and holds no secret.
 *
 * @since 0.1.0
 * @category events
 */
export const RunError = event("error", {
  code: Schema.String,
  message: Schema.String,
  recoverable: Schema.Boolean,
  usage: Usage
})

/**
 * Every event of a run.
 *
 * @since 0.1.0
 * @category events
 */
export const AgentEvent = Schema.Union(
  TextDelta,
  ReasoningDelta,
  ToolCallDelta,
  ToolResultDelta,
  RunStart,
  RunStatusChanged,
  RunResumed,
  ToolCallStart,
  ToolCallReady,
  ModelEnd,
  ToolStart,
  ToolCallResult,
  ApprovalRequest,
  ApprovalDecision,
  ToolConflict,
  ModelRetry,
  IterationEnd,
  CheckpointEvent,
  Finish,
  Cancelled,
  RunError
)
/**
 * @since 0.1.0
 * @category events
 */
export type AgentEvent = typeof AgentEvent.Type

/**
 * One member of the union, by its type.
 *
 * @since 0.1.0
 * @category events
 */
export type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: Type }>

/**
 * The events that end a leg of a run.
 *
 * @since 0.1.0
 * @category events
 */
export type TerminalEvent = EventOf<"finish" | "cancelled" | "error">

/**
 * Whether an event of this type is a `TerminalEvent`.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTerminal = (type: string): type is TerminalEvent["type"] =>
  type === "finish" || type === "cancelled" || type === "error"

/**
 * The usage of a run that has not called a model yet.
 *
 * @since 0.1.0
 * @category models
 */
export const noUsage: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
