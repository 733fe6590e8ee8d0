/**
 * The bodies that cross the wire: what requests may say and what answers hold. Safe for browsers.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as Event from "../domain/AgentEvent.js"
import { RunLimits, TextMessage } from "../domain/RunInput.js"
import * as Status from "../domain/RunStatus.js"
import type * as Snap from "../domain/Snapshot.js"

/**
 * The states of a run as they stand in answers.
 *
 * @since 0.1.0
 * @category models
 */
export const RunStatus: Schema.Schema<Status.RunStatus> = Schema.Literal(...Status.all).annotations({
  identifier: "RunStatus"
})

const Decision = Schema.Struct(Struct.omit(Event.ApprovalDecision.fields, "type", "approvalId", "toolCallId"))
const PendingApproval = Schema.Struct(Struct.omit(Event.ApprovalRequest.fields, "type")).annotations({
  identifier: "PendingApproval"
})

const ToolCall = Schema.Struct({
  toolCallId: Schema.String,
  toolName: Schema.String,
  title: Schema.optional(Schema.String),
  kind: Event.ToolKind,
  iteration: Schema.Int,
  state: Schema.Literal("streaming", "ready", "running", "waiting", ...Event.ToolResultState.literals),
  argumentsText: Schema.optional(Schema.String),
  input: Schema.optional(Schema.Unknown),
  proposedInput: Schema.optional(Schema.Unknown),
  phase: Schema.optional(Event.ToolPhase),
  progress: Schema.optional(Schema.String),
  approval: Schema.optional(Schema.Struct({ ...PendingApproval.fields, decision: Schema.optional(Decision) })),
  result: Schema.optional(Schema.Unknown),
  ok: Schema.optional(Schema.Boolean),
  source: Schema.optional(Event.ToolResultSource),
  durationMs: Schema.optional(Schema.Number)
}).annotations({ identifier: "ToolCall" })

const Part = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("text", "reasoning"),
    id: Schema.String,
    iteration: Schema.Int,
    text: Schema.String,
    startedAt: Schema.Number,
    endedAt: Schema.Number
  }),
  Schema.Struct({ type: Schema.Literal("tool-call"), toolCallId: Schema.String })
).annotations({ identifier: "Part" })

const summaryFields = {
  runId: Schema.String,
  conversationId: Schema.String,
  userMessageId: Schema.String,
  assistantMessageId: Schema.String,
  status: RunStatus,
  recoverable: Schema.optional(Schema.Boolean),
  error: Schema.optional(Schema.Struct({ code: Schema.String, message: Schema.String })),
  finishReason: Schema.optional(Event.Finish.fields.finishReason),
  cancelled: Schema.optional(Schema.Struct({ by: Event.Cancelled.fields.by, reason: Schema.optional(Schema.String) })),
  model: Schema.String,
  mode: Event.RunMode,
  attempt: Schema.Int,
  iteration: Schema.Int,
  lastSeq: Schema.Int,
  usage: Event.Usage,
  timing: Schema.optional(Event.Finish.fields.timing),
  queuePosition: Schema.optional(Schema.Int),
  regeneratedFrom: Schema.optional(Schema.String),
  createdAt: Schema.Number,
  updatedAt: Schema.Number,
  expiresAt: Schema.optional(Schema.Number)
}

/**
 * A run in a list: its snapshot without what it said.
 *
 * @since 0.1.0
 * @category models
 */
export const RunSummary = Schema.Struct(summaryFields).annotations({ identifier: "RunSummary" })

/**
 * A run as a page shows it.
 *
 * @since 0.1.0
 * @category models
 */
export const Snapshot: Schema.Schema<Snap.Snapshot> = Schema.Struct({
  ...summaryFields,
  turnOpen: Schema.Boolean,
  text: Schema.String,
  reasoning: Schema.String,
  parts: Schema.Array(Part),
  toolCalls: Schema.Array(ToolCall),
  pendingApprovals: Schema.Array(PendingApproval)
}).annotations({ identifier: "Snapshot" })

const Filled = Schema.String.pipe(Schema.minLength(1, { message: () => "must not be empty" }))

/**
 * Names the run to go on with and where its reader stands. Nothing else in such a request counts.
 *
 * @since 0.1.0
 * @category models
 */
export const ResumeBody = Schema.Struct({
  runId: Filled,
  lastAppliedSeq: Schema.optional(Schema.NullOr(Schema.Int)),
  assistantMessageId: Schema.optional(Schema.String),
  conversationId: Schema.optional(Schema.String)
})

const id = Schema.String.pipe(Schema.maxLength(256))

const startFields = {
  message: Schema.optional(Filled),
  messages: Schema.optional(Schema.NonEmptyArray(TextMessage)),
  conversationId: Schema.optional(id),
  modelId: Schema.optional(id),
  enableThinking: Schema.optional(Schema.Boolean),
  mode: Schema.optional(Event.RunMode),
  currentDocument: Schema.optional(
    Schema.NullOr(
      Schema.Struct({
        id,
        title: Schema.optional(Schema.String.pipe(Schema.maxLength(1000))),
        contentHash: Schema.optional(id)
      })
    )
  ),
  background: Schema.optional(Schema.Boolean),
  onBusy: Schema.optional(Schema.Literal("enqueue", "reject", "interrupt")),
  // A limit that is misspelt must not be a limit that is off.
  limits: Schema.optional(
    Schema.partialWith(RunLimits, { exact: true }).annotations({ parseOptions: { onExcessProperty: "error" } })
  ),
  metadata: Schema.optional(Schema.Unknown)
}

/**
 * The body that starts a run: `message`, or `messages` of which the last is the user's. Unknown fields are ignored.
 *
 * @since 0.1.0
 * @category models
 */
export const StartBody = Schema.Struct(startFields).annotations({ identifier: "StartBody" })

/**
 * The body that goes on with one.
 *
 * @since 0.1.0
 * @category models
 */
export const ContinueBody = Schema.Struct({
  resume: ResumeBody,
  background: Schema.optional(Schema.Boolean)
}).annotations({ identifier: "ContinueBody" })

/**
 * The body of `POST /chat`: a new message, or a run to go on with.
 *
 * @since 0.1.0
 * @category models
 */
export const ChatBody = Schema.Union(ContinueBody, StartBody)

const reason = Schema.String.pipe(Schema.maxLength(1000))

/**
 * The body of a cancel: why, if there is something to say.
 *
 * @since 0.1.0
 * @category models
 */
export const CancelBody = Schema.Struct({ reason: Schema.optional(reason) })

/**
 * The body of a decision. `input` belongs to `edit`, and is the whole of the new arguments.
 *
 * @since 0.1.0
 * @category models
 */
export const DecideBody = Schema.Struct({
  decision: Schema.Literal("approve", "reject", "edit", "retry", "applied", "abandon"),
  previewHash: Schema.optional(id),
  reason: Schema.optional(reason),
  input: Schema.optional(Schema.Unknown)
}).annotations({ identifier: "DecideBody" })

/**
 * The body of a regeneration: another model, if wanted.
 *
 * @since 0.1.0
 * @category models
 */
export const RegenerateBody = Schema.Struct({
  modelId: Schema.optional(id),
  background: Schema.optional(Schema.Boolean)
})

/**
 * The body of a resume; the run is named by the path.
 *
 * @since 0.1.0
 * @category models
 */
export const ResumeRunBody = Schema.Struct({
  ...Struct.omit(ResumeBody.fields, "runId"),
  background: Schema.optional(Schema.Boolean)
})

/**
 * The body of a renaming: the new title.
 *
 * @since 0.1.0
 * @category models
 */
export const RenameBody = Schema.Struct({ title: Filled.pipe(Schema.maxLength(200)) })

/**
 * The body of a sign-in: a token.
 *
 * @since 0.1.0
 * @category models
 */
export const SessionBody = Schema.Struct({ token: Filled })

/**
 * A run that works without a viewer.
 *
 * @since 0.1.0
 * @category models
 */
export const Accepted = Schema.Struct({
  runId: Schema.String,
  conversationId: Schema.String,
  assistantMessageId: Schema.String,
  status: RunStatus
}).annotations({ identifier: "Accepted" })

/**
 * A model that a run may ask for as `modelId`. Without one, a run takes the default.
 *
 * @since 0.1.0
 * @category models
 */
export const ModelItem = Schema.Struct({ modelId: Schema.String, isDefault: Schema.Boolean }).annotations({
  identifier: "Model"
})

/**
 * The state that the run ended in, and its last seq.
 *
 * @since 0.1.0
 * @category models
 */
export const CancelResult = Schema.Struct({ runId: Schema.String, status: RunStatus, lastSeq: Schema.Int })

/**
 * The decision that stands, and where in the log it is.
 *
 * @since 0.1.0
 * @category models
 */
export const DecideResult = Schema.Struct({
  approvalId: Schema.String,
  decision: Schema.String,
  by: Schema.String,
  seq: Schema.Int
})

/**
 * A checkpoint as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export const CheckpointItem = Schema.Struct({
  runId: Schema.String,
  seq: Schema.Int,
  kind: Event.CheckpointKind,
  createdAt: Schema.Number
})

/**
 * A conversation as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export const ConversationItem = Schema.Struct({
  conversationId: Schema.String,
  title: Schema.String,
  createdAt: Schema.Number,
  updatedAt: Schema.Number,
  lastRunId: Schema.optional(Schema.String),
  lastStatus: Schema.optional(RunStatus)
}).annotations({ identifier: "Conversation" })

/**
 * A message of a conversation. The state is that of the run that wrote it.
 *
 * @since 0.1.0
 * @category models
 */
export const MessageItem = Schema.Struct({
  messageId: Schema.String,
  role: Schema.Literal("user", "assistant"),
  content: Schema.String,
  runId: Schema.optional(Schema.String),
  status: Schema.optional(RunStatus),
  createdAt: Schema.Number
}).annotations({ identifier: "Message" })

/**
 * A page of a list, newest first. `nextCursor` is absent on the last one.
 *
 * @since 0.1.0
 * @category models
 */
export const page = <A, I>(item: Schema.Schema<A, I>) =>
  Schema.Struct({ items: Schema.Array(item), nextCursor: Schema.optional(Schema.String) })
