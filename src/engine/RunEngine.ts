/**
 * The port to the running system: start, watch, cancel, decide, resume and regenerate runs on behalf of the
 * `CurrentUser`. Runs live in supervised fibers of the engine's layer, detached from whoever started them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { RunMode } from "../domain/AgentEvent.js"
import type { AgentRunCheckpoint } from "../domain/Checkpoint.js"
import type { Envelope } from "../domain/Envelope.js"
import type {
  Compacted,
  Conflict,
  InvalidCursor,
  LimitReached,
  NotFound,
  Unavailable,
  Unprocessable
} from "../domain/RunError.js"
import type { RunLimits, TextMessage } from "../domain/RunInput.js"
import type { RunStatus } from "../domain/RunStatus.js"
import type { Snapshot } from "../domain/Snapshot.js"
import type { Census, ConversationRow, MessageRow, Page, Questions } from "../store/RunStore.js"

/**
 * What a person asks. Either one `message`, or `messages` of which the last is the user's; the others count only when
 * the conversation is new. `limits` may lower the configured ones, never raise them. `thread` is the caller's own name for
 * a conversation, for clients that name theirs: the first run under it makes the conversation that `conversationOf` names.
 *
 * @since 0.1.0
 * @category models
 */
export interface StartRequest {
  readonly message?: string | undefined
  readonly messages?: ReadonlyArray<TextMessage> | undefined
  readonly conversationId?: string | undefined
  readonly thread?: string | undefined
  readonly modelId?: string | undefined
  readonly enableThinking?: boolean | undefined
  readonly mode?: RunMode | undefined
  readonly currentDocument?:
    | { readonly id: string; readonly title?: string | undefined; readonly contentHash?: string | undefined }
    | null
    | undefined
  readonly onBusy?: "enqueue" | "reject" | "interrupt" | undefined
  readonly limits?: Partial<RunLimits> | undefined
  readonly metadata?: unknown
  readonly idempotencyKey?: string | undefined
  readonly trace?: string | undefined
}

/**
 * A run that was accepted. `created` is false when an idempotency key named an earlier one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Accepted {
  readonly runId: string
  readonly conversationId: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly status: RunStatus
  readonly created: boolean
}

/**
 * A person's answer to an approval request. `previewHash`, when given, must be the one that was shown.
 *
 * @since 0.1.0
 * @category models
 */
export interface DecideRequest {
  readonly decision: "approve" | "reject" | "edit" | "retry" | "applied" | "abandon"
  readonly previewHash?: string | undefined
  readonly reason?: string | undefined
  readonly input?: unknown
}

/**
 * What became of a resume request.
 *
 * - `attached`: the run is active, or has ended for good: there is nothing to start, only to read
 * - `resumed`: a new attempt began
 * - `unavailable`: it can not go on; `recoverable` says whether trying again later makes sense, `readable` whether what
 *   lies behind the cursor can still be shown
 *
 * @since 0.1.0
 * @category models
 */
export type Resumed =
  | { readonly _tag: "attached" | "resumed"; readonly run: Accepted }
  | {
      readonly _tag: "unavailable"
      readonly runId: string
      readonly reason: string
      readonly recoverable: boolean
      readonly readable: boolean
    }

/**
 * One stored event: `json` is its envelope, `chars` how many characters the event alone has in it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Frame {
  readonly seq: number
  readonly json: string
  readonly chars: number
  readonly terminal: boolean
}

/**
 * What a look at the log behind a cursor gives: the next frames (never empty), `idle` after `heartbeatMs` without any,
 * or `end`: nothing more will come.
 *
 * @since 0.1.0
 * @category models
 */
export type Pull =
  | { readonly _tag: "frames"; readonly frames: ReadonlyArray<Frame> }
  | { readonly _tag: "idle" }
  | { readonly _tag: "end" }

/**
 * A window on a run's log. It holds nothing but what it is asked with: `pull(cursor)` waits for what lies behind the
 * cursor. A viewer that does not ask costs nothing.
 *
 * `poll(cursor, bell)` is the same for viewers that are driven by callbacks, without waiting and without the store. It
 * answers the frames behind the cursor; or `waiting`, when there are none yet, and then rings `bell` once, when there may
 * be some or at the next pulse of heartbeats (`pulse`); or `undefined`, when only `pull` can tell.
 *
 * @since 0.1.0
 * @category models
 */
export interface View {
  readonly runId: string
  /** The last seq, and whether the run had ended, when the view was opened. */
  readonly lastSeq: number
  readonly ended: boolean
  readonly pull: (after: number) => Effect.Effect<Pull, Unavailable | Compacted>
  readonly poll: (after: number, bell: (pulse: boolean) => void) => ReadonlyArray<Frame> | "waiting" | undefined
}

/**
 * A run as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export type RunSummary = Omit<
  Snapshot,
  | "text"
  | "reasoning"
  | "parts"
  | "toolCalls"
  | "pendingApprovals"
  | "turnOpen"
  | "timing"
  | "finishReason"
  | "cancelled"
>

/**
 * The running system.
 *
 * @since 0.1.0
 * @category services
 */
export class RunEngine extends Context.Tag("runlet/RunEngine")<
  RunEngine,
  {
    /** What a run may ask for, by the names of the configuration; one of them is the default. */
    readonly models: ReadonlyArray<{ readonly modelId: string; readonly isDefault: boolean }>

    /** Accepts a run and returns at once; the run goes on without its caller. */
    readonly start: (
      request: StartRequest
    ) => Effect.Effect<Accepted, NotFound | Conflict | Unprocessable | LimitReached | Unavailable>

    /** The run as a stream of its events. Interrupting the stream cancels the run. */
    readonly stream: (
      request: StartRequest
    ) => Stream.Stream<
      Envelope,
      NotFound | Conflict | Unprocessable | LimitReached | Unavailable | Compacted | InvalidCursor
    >

    /** A view of the log behind `after` (a seq, default 0), then live. Interrupting it only stops viewing. */
    readonly events: (
      runId: string,
      options?: { readonly after?: number | undefined }
    ) => Stream.Stream<Envelope, NotFound | InvalidCursor | Compacted | Unavailable>

    /** The window that `events` looks through, for servers. Fails before anything is sent. */
    readonly view: (
      runId: string,
      after: number
    ) => Effect.Effect<View, NotFound | InvalidCursor | Compacted | Unavailable>

    readonly snapshot: (runId: string) => Effect.Effect<Snapshot, NotFound | Unavailable>

    /** Ends the run as cancelled, unless it has ended; the answer is its final state. */
    readonly cancel: (
      runId: string,
      options?: { readonly reason?: string | undefined }
    ) => Effect.Effect<
      { readonly runId: string; readonly status: RunStatus; readonly lastSeq: number },
      NotFound | Unavailable
    >

    readonly decide: (
      runId: string,
      approvalId: string,
      request: DecideRequest
    ) => Effect.Effect<
      { readonly approvalId: string; readonly decision: string; readonly by: string; readonly seq: number },
      NotFound | Conflict | Unprocessable | Unavailable
    >

    /** A new run for the same user message, which must be the last of its conversation. */
    readonly regenerate: (
      runId: string,
      options?: {
        readonly modelId?: string | undefined
        readonly idempotencyKey?: string | undefined
        readonly trace?: string | undefined
      }
    ) => Effect.Effect<Accepted, NotFound | Conflict | Unprocessable | LimitReached | Unavailable>

    /** Continues a recoverably failed run. The ids are checked when given. */
    readonly resume: (
      runId: string,
      options?: {
        readonly lastAppliedSeq?: number | undefined
        readonly assistantMessageId?: string | undefined
        readonly conversationId?: string | undefined
        readonly trace?: string | undefined
      }
    ) => Effect.Effect<Resumed, NotFound | InvalidCursor | Unavailable>

    readonly list: (query: {
      readonly conversationId?: string | undefined
      readonly status?: RunStatus | undefined
      readonly limit?: number | undefined
      readonly cursor?: string | undefined
    }) => Effect.Effect<Page<RunSummary>, Unavailable>

    readonly checkpoints: (
      runId: string
    ) => Effect.Effect<
      ReadonlyArray<Pick<AgentRunCheckpoint, "runId" | "seq" | "kind" | "createdAt">>,
      NotFound | Unavailable
    >

    readonly checkpoint: (runId: string, seq: number) => Effect.Effect<AgentRunCheckpoint, NotFound | Unavailable>

    /** Removes an ended run and its log. */
    readonly remove: (runId: string) => Effect.Effect<void, NotFound | Conflict | Unavailable>

    readonly conversations: (query: {
      readonly limit?: number | undefined
      readonly cursor?: string | undefined
    }) => Effect.Effect<Page<ConversationRow>, Unavailable>

    /** A conversation and its messages, which are read as far as they are asked for. */
    readonly conversation: (
      conversationId: string
    ) => Effect.Effect<
      { readonly conversation: ConversationRow; readonly messages: Stream.Stream<MessageRow, Unavailable> },
      NotFound | Unavailable
    >

    /** How many questions were asked in a conversation, and the last of them. */
    readonly questions: (conversationId: string) => Effect.Effect<Questions, NotFound | Unavailable>

    readonly renameConversation: (conversationId: string, title: string) => Effect.Effect<void, NotFound | Unavailable>

    readonly removeConversation: (conversationId: string) => Effect.Effect<void, NotFound | Conflict | Unavailable>

    /** What is under way in all processes that share the store; `executing` of it is this one's. */
    readonly census: Effect.Effect<Census & { readonly executing: number }, Unavailable>

    /** Whether new work is accepted and the store answers. */
    readonly ready: Effect.Effect<boolean>

    /** Refuses new work from now on, and stops every run at a boundary, to be recovered by the next start. */
    readonly drain: Effect.Effect<void>
  }
>() {}
