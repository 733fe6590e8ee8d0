/**
 * What was seen of a system while it ran: the material that laws are checked on. All of it is plain data.
 *
 * @since 0.1.0
 */
import type { ToolKind, ToolPhase } from "../domain/AgentEvent.js"
import type { AgentRunCheckpoint } from "../domain/Checkpoint.js"
import type { Envelope } from "../domain/Envelope.js"
import type { RunStatus } from "../domain/RunStatus.js"
import type { Snapshot } from "../domain/Snapshot.js"
import type { ModelRequest } from "../model/Model.js"
import type { TurnRow } from "../store/RunStore.js"

/**
 * A run as the store holds it in the end. `storedAt`: when it came into the store, by the world's clock, where that is
 * known; what its first event says is when somebody began to write it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedRun {
  readonly runId: string
  readonly conversationId: string
  readonly storedAt?: number | undefined
  readonly log: ReadonlyArray<Envelope>
  readonly turns: ReadonlyArray<TurnRow>
}

/**
 * A snapshot that somebody was given, and how much of the log was stored at that moment.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedSnapshot {
  readonly runId: string
  readonly stored: number
  readonly snapshot: Snapshot
}

/**
 * A checkpoint that somebody was shown.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedCheckpoint {
  readonly runId: string
  readonly checkpoint: AgentRunCheckpoint
}

/**
 * One frame as a client received it. `stored`: how much of the log was stored at that moment.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedFrame {
  readonly envelope: Envelope
  readonly stored: number
}

/**
 * One connection of a client: the cursor it came with and what it got. `ended`: the server closed it, for good.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedSession {
  readonly after: number
  readonly frames: ReadonlyArray<ObservedFrame>
  readonly ended: boolean
}

/**
 * A client and all its connections to one run.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedClient {
  readonly runId: string
  readonly sessions: ReadonlyArray<ObservedSession>
}

/**
 * Something a tool did. `begin`: its handler was called; `effect`: the world was changed; `end`: the handler is done, or
 * was interrupted; `probe`: it was asked for a key. `seq` is how much of the run's log was stored at that moment, `held` whether the process held the run's lease.
 *
 * @since 0.1.0
 * @category models
 */
export interface LedgerEntry {
  readonly what: "begin" | "effect" | "end" | "probe"
  readonly at: number
  readonly process: string
  readonly runId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly kind: ToolKind
  readonly keyed: boolean
  readonly unattended: boolean
  readonly phase: ToolPhase
  readonly key: string
  readonly input: unknown
  readonly seq: number
  readonly held: boolean
}

/**
 * A request to the model, and what it had given out when it ended or was cut off: its text, and with its end the
 * provider's own data.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedRequest {
  readonly request: ModelRequest
  readonly text: string
  readonly finished: boolean
  readonly side?: unknown
}

/**
 * A command to an engine and its answer: the value, the name of the refusal, or nothing when the process died first.
 * `mistaken`: it must not be obeyed. `key`: the caller's idempotency key, and `body` what was asked under it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedCommand {
  readonly at: number
  readonly process: string
  readonly name: string
  readonly runId: string | undefined
  readonly approvalId?: string | undefined
  readonly mistaken?: boolean | undefined
  readonly key?: string | undefined
  readonly body?: string | undefined
  readonly answer:
    | { readonly _tag: "Ok"; readonly value: unknown }
    | { readonly _tag: "Refused"; readonly error: string; readonly message: string }
    | { readonly _tag: "Lost" }
}

/**
 * A run as it stood at a moment. `asked`: how many requests wait for a person.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunAtMoment {
  readonly runId: string
  readonly status: RunStatus
  readonly recoverable: boolean
  readonly seq: number
  readonly attempt: number
  readonly asked: number
}

/**
 * How everything stood when somebody waited for a while. `processes`: which of them were running. `runs`: those that
 * somebody knows of, in the order of their acceptance, as they are stored.
 *
 * @since 0.1.0
 * @category models
 */
export interface Moment {
  readonly at: number
  readonly processes: ReadonlyArray<boolean>
  readonly runs: ReadonlyArray<RunAtMoment>
}

/**
 * The limits that were in force, as far as laws know them.
 *
 * @since 0.1.0
 * @category models
 */
export interface ObservedLimits {
  readonly maxIterations: number
  readonly maxToolConcurrency: number
  readonly maxAttempts: number
  readonly approvalTtlMs: number
}

/**
 * Everything. `runs` are in the order of their creation; `secrets` were given to the system and must not come out of it;
 * `active` is, from time to time, how many runs of a conversation were executing or waiting for a person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Observed {
  readonly runs: ReadonlyArray<ObservedRun>
  readonly snapshots: ReadonlyArray<ObservedSnapshot>
  readonly checkpoints: ReadonlyArray<ObservedCheckpoint>
  readonly clients: ReadonlyArray<ObservedClient>
  readonly ledger: ReadonlyArray<LedgerEntry>
  readonly requests: ReadonlyArray<ObservedRequest>
  readonly commands: ReadonlyArray<ObservedCommand>
  readonly active: ReadonlyArray<{ readonly at: number; readonly conversationId: string; readonly runs: number }>
  readonly moments: ReadonlyArray<Moment>
  readonly secrets: ReadonlyArray<string>
  readonly limits?: ObservedLimits | undefined
}

/**
 * Nothing: where an observation of one's own begins.
 *
 * @since 0.1.0
 * @category constructors
 */
export const nothing: Observed = {
  runs: [],
  snapshots: [],
  checkpoints: [],
  clients: [],
  ledger: [],
  requests: [],
  commands: [],
  active: [],
  moments: [],
  secrets: []
}
