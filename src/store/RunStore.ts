/**
 * The port to durable storage. Everything that a run is, is here: its row, its log, its turns. Several processes may
 * share one store; all rules that keep them apart (fencing, compare-and-set, one run of a conversation at a time) are
 * kept by single transactions of the store.
 *
 * A run is named by its public id from outside and by its `key`, a small integer, inside. A key is only ever learned
 * through a call that checked the owner, or by claiming the run.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { AgentEvent, RunMode, Usage } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import type { RunInput, TextMessage } from "../domain/RunInput.js"
import type { RunState, Turn } from "../domain/RunState.js"
import type { RunStatus } from "../domain/RunStatus.js"
import type { ToolConflict } from "../tool/Tool.js"

/**
 * The store did not do what was asked. `unavailable` may pass by itself (locked, full, connection lost), `corrupt`
 * will not. `newer`: it can not be opened, because a newer version of this program has changed it.
 *
 * @since 0.1.0
 * @category errors
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  reason: Schema.Literal("unavailable", "corrupt", "newer"),
  method: Schema.String,
  cause: Schema.Defect
}) {}

/**
 * The row of a run: what must be known without its log. Times are epoch milliseconds of the store's clock.
 *
 * - `ord`: the place in the queue; a regeneration takes the place of the run it replaces
 * - `epoch`: raised whenever somebody takes the run; an append that carries an older one is refused
 * - `owner`, `leaseExpiresAt`: the process that executes it
 * - `nextExpiry`: when the earliest pending approval runs out
 * - `compactedSeq`: events up to here were removed
 *
 * @since 0.1.0
 * @category models
 */
export interface RunRow {
  readonly key: number
  readonly runId: string
  readonly userId: string
  readonly conversationId: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly model: string
  readonly mode: RunMode
  readonly status: RunStatus
  readonly recoverable: boolean | undefined
  readonly regeneratedFrom: string | undefined
  readonly ord: number
  readonly epoch: number
  readonly owner: string | undefined
  readonly leaseExpiresAt: number | undefined
  readonly lastSeq: number
  readonly attempt: number
  readonly iteration: number
  readonly usage: Usage
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly nextExpiry: number | undefined
  readonly compactedSeq: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt: number | undefined
}

/**
 * An event as stored: `json` is its encoded text, ready to be spliced into an envelope.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredEvent {
  readonly seq: number
  readonly type: AgentEvent["type"]
  readonly json: string
  readonly createdAt: number
}

/**
 * A closed turn, kept whole, and the rest of the state as it stood at its `iteration-end` (`seq`), so that a state is
 * the last turn's header, the turns, and the events behind `seq`.
 *
 * @since 0.1.0
 * @category models
 */
export interface TurnRow {
  readonly n: number
  readonly seq: number
  readonly turn: Turn
  readonly header: Omit<RunState, "closed" | "open">
}

/**
 * The state of a run as it stood at `seq`, without its closed turns, of which there were `turns`. Together with them it
 * is what the events up to `seq` come to, and can stand for them.
 *
 * @since 0.1.0
 * @category models
 */
export interface BaseRow {
  readonly seq: number
  readonly turns: number
  readonly state: Omit<RunState, "closed">
}

/**
 * A provider's own data of a turn. Never part of an event.
 *
 * @since 0.1.0
 * @category models
 */
export interface SideRecord {
  readonly iteration: number
  readonly data: unknown
}

/**
 * What an append changes in the run's row. Absent fields stay. `lease: null` gives the run up; `lease` with an owner
 * takes or renews it for `ttlMs` from the store's now.
 *
 * @since 0.1.0
 * @category models
 */
export interface RowChange {
  readonly status: RunStatus
  readonly recoverable?: boolean | undefined
  readonly attempt?: number | undefined
  readonly iteration?: number | undefined
  readonly usage?: Usage | undefined
  readonly error?: { readonly code: string; readonly message: string } | null | undefined
  readonly nextExpiry?: number | null | undefined
  readonly lease?: { readonly owner: string; readonly ttlMs: number } | null | undefined
  /** The assistant's text so far, for the conversation; given with terminal events. */
  readonly assistantText?: string | undefined
}

/**
 * Events to add to one run, and the conditions under which they may be added. They get the seqs behind the run's last.
 *
 * - `epoch`: refused as `Fenced` unless it is the run's; absent: the append needs no ownership
 * - `expectedSeq`: refused as `Moved` unless the run's last seq is this one
 * - `raiseEpoch`: the append takes the run away from its owner
 * - `onlyIfLatest`: refused as `Moved` when the conversation has a run of a later place, or another active run
 * - `set`: absent, the events say nothing that the row shows: it and its lease stay as they are. By far the most frequent
 *   append, and a much cheaper one
 * - `within`: run in the same transaction; when it fails nothing is stored and the outcome is `Rejected`
 *
 * A run that has ended for good is refused as `Fenced`, whatever the append says.
 *
 * @since 0.1.0
 * @category models
 */
export interface Append {
  readonly key: number
  readonly epoch?: number | undefined
  readonly expectedSeq?: number | undefined
  readonly raiseEpoch?: boolean | undefined
  readonly onlyIfLatest?: boolean | undefined
  readonly events: ReadonlyArray<Omit<StoredEvent, "seq">>
  readonly set?: RowChange | undefined
  readonly turn?: TurnRow | undefined
  readonly sides?: ReadonlyArray<SideRecord> | undefined
  readonly within?: Effect.Effect<void, ToolConflict> | undefined
}

/**
 * - `Appended`: stored; the last event has `lastSeq`, the run has `epoch` now
 * - `Fenced`: somebody else owns the run, or it has ended
 * - `Moved`: the run is not in the state that the append was decided from; it stands at `lastSeq`
 * - `Rejected`: `within` failed
 *
 * @since 0.1.0
 * @category models
 */
export type AppendOutcome =
  | { readonly _tag: "Appended"; readonly lastSeq: number; readonly epoch: number }
  | { readonly _tag: "Fenced" }
  | { readonly _tag: "Moved"; readonly lastSeq: number }
  | { readonly _tag: "Rejected"; readonly conflict: ToolConflict }

/**
 * A new run. `events` begin with `run-start`. `prefix.runs` of the input is filled in by the store: the newest version
 * of each earlier exchange of the conversation. Messages that a client brings along (`brought`) are used only when the
 * conversation is new.
 *
 * @since 0.1.0
 * @category models
 */
export interface CreateRun {
  readonly runId: string
  readonly userId: string
  readonly conversationId: string
  /** Whether the conversation must exist already, and be the user's. */
  readonly existing: boolean
  readonly title: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly model: string
  readonly mode: RunMode
  readonly regeneratedFrom?: { readonly key: number; readonly runId: string; readonly ord: number } | undefined
  readonly brought: ReadonlyArray<TextMessage>
  readonly input: RunInput
  readonly events: ReadonlyArray<Omit<StoredEvent, "seq">>
  readonly idempotency?: { readonly key: string; readonly bodyHash: string } | undefined
  readonly rejectIfBusy: boolean
  /** Only a repeated request may be answered: nothing new can be made of it. */
  readonly onlyRepeated?: boolean | undefined
  /** How many runs may wait that can not begin at once, when `maxConcurrent` may execute. */
  readonly maxQueued: number
  readonly maxConcurrent: number
  /** Whether a user of whom nothing waits has a place in a full queue. */
  readonly placeForEach: boolean
  /** How many runs of this user may be stored, whatever their state; absent: any number. */
  readonly maxStored?: number | undefined
  /** How many conversations this user may have, with runs or without; absent: any number. */
  readonly maxConversations?: number | undefined
  /** How many runs of its conversation may be stored; absent: any number. */
  readonly maxInConversation?: number | undefined
}

/**
 * - `Duplicate`: the idempotency key was used for the same body: that run
 * - `KeyReused`: it was used for another body
 * - `Busy`: the conversation has an active run and `rejectIfBusy` was set
 * - `New`: it was not used, and `onlyRepeated` was set
 * - `QueueFull`: `maxQueued` runs are waiting
 * - `StoreFull`: `maxStored` runs of the user are stored
 * - `ConversationsFull`: it would begin a conversation, and the user has `maxConversations`
 * - `ConversationFull`: `maxInConversation` runs of the conversation are stored
 * - `Unknown`: no such conversation of this user
 * - `Superseded`: a regeneration of a run whose conversation has gone on
 *
 * @since 0.1.0
 * @category models
 */
export type CreateOutcome =
  | { readonly _tag: "Created" | "Duplicate"; readonly row: RunRow }
  | { readonly _tag: "KeyReused" | "New" | "QueueFull" | "StoreFull" | "ConversationsFull" | "ConversationFull" }
  | { readonly _tag: "Unknown" | "Superseded" }
  | { readonly _tag: "Busy"; readonly runId: string }

/**
 * A process that wants to execute runs, for `ttlMs` from the store's now. `dead` names owners that are known to be
 * gone, whose leases are void at once.
 *
 * @since 0.1.0
 * @category models
 */
export interface Claim {
  readonly owner: string
  readonly ttlMs: number
  readonly dead?: ReadonlyArray<string> | undefined
}

/**
 * Which of a user's runs to list, newest first. `cursor` is the `nextCursor` of the page before.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunQuery {
  readonly userId: string
  readonly conversationId?: string | undefined
  readonly status?: RunStatus | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/**
 * A page of a list. `nextCursor` is opaque and absent on the last page.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor?: string | undefined
}

/**
 * A conversation as lists show it. Times are epoch milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface ConversationRow {
  readonly conversationId: string
  readonly title: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly lastRunId: string | undefined
  readonly lastStatus: RunStatus | undefined
}

/**
 * A message of a conversation: of the newest version where an answer was regenerated. The content of an answer that
 * is still being written is empty here.
 *
 * @since 0.1.0
 * @category models
 */
export interface MessageRow {
  readonly messageId: string
  readonly role: "user" | "assistant"
  readonly content: string
  readonly runId: string | undefined
  readonly status: RunStatus | undefined
  readonly createdAt: number
}

/**
 * Where a page of messages ended: behind a message that was brought along, by its index, or behind an exchange, by the
 * place (`ord`) of its run.
 *
 * @since 0.1.0
 * @category models
 */
export interface MessagePlace {
  readonly part: "brought" | "runs"
  readonly at: number
}

/**
 * A page of a conversation's messages, from its beginning or behind `after`. It ends after `limit` brought messages or
 * exchanges of a question and its answer, and earlier, but not before the first, where they have more than about a
 * million bytes.
 *
 * @since 0.1.0
 * @category models
 */
export interface ConversationQuery {
  readonly conversationId: string
  readonly userId: string
  readonly limit: number
  readonly after?: MessagePlace | undefined
}

/**
 * A conversation and a page of its messages. `next` is where the page ended, and absent when it is empty.
 *
 * @since 0.1.0
 * @category models
 */
export interface ConversationPage {
  readonly conversation: ConversationRow
  readonly messages: ReadonlyArray<MessageRow>
  readonly next?: MessagePlace | undefined
}

/**
 * How many questions a user has asked in a conversation, and the text of the last one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Questions {
  readonly count: number
  readonly last: string | undefined
}

/**
 * What is said of a deletion: done, there was nothing of that name, or a run of it has not ended.
 *
 * @since 0.1.0
 * @category models
 */
export type DeleteOutcome = "deleted" | "unknown" | "active"

/**
 * Ended runs that were kept long enough, the one that ended first at the beginning: those whose log is whole still, or
 * all. `behind` is the last one of the page before.
 *
 * @since 0.1.0
 * @category models
 */
export interface OutlivedQuery {
  readonly what: "log" | "run"
  readonly endedBefore: number
  readonly limit: number
  readonly behind?: { readonly endedAt: number; readonly key: number } | undefined
}

/**
 * What became of a run that was to be removed for its age: it is gone, or a part of its log is and the rest is still to
 * do; or it stays, because it has not ended that long ago, or its conversation has a run that has not ended.
 *
 * @since 0.1.0
 * @category models
 */
export type ExpireOutcome = "removed" | "more" | "kept"

/**
 * A summary that stands in prompts for everything up to a turn (inclusive) of a run of the conversation. `madeIn` and
 * `madeAt` (a seq) say in which run, and when, it was made: earlier checkpoints do not use it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Compaction {
  readonly conversationId: string
  readonly uptoRunId: string
  readonly uptoIteration: number
  readonly summary: string
  readonly madeIn: string
  readonly madeAt: number
}

/**
 * How many runs are in each state that is not an end, and how many bytes are stored, if the store can tell: `bytes` in
 * all, of which `freeBytes` are kept for what comes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Census {
  readonly queued: number
  readonly running: number
  readonly streaming: number
  readonly waiting_approval: number
  readonly bytes?: number | undefined
  readonly freeBytes?: number | undefined
}

/**
 * An event as another process tells it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToldEvent extends Omit<StoredEvent, "type"> {
  readonly type: string
}

/**
 * What another process has added to a run: `count` events from the seq `first` on. They are stored, and are decoded when
 * they are asked for.
 *
 * @since 0.1.0
 * @category models
 */
export interface Appended {
  readonly key: number
  readonly first: number
  readonly count: number
  readonly events: () => ReadonlyArray<ToldEvent>
}

/**
 * What another process may have changed.
 *
 * - `keys`: the runs whose logs may have changed in a way that is not told; absent: any
 * - `appended`: what was added to runs, in the order of the commits; a run may be in `keys` as well
 * - `lost`: what was told since the last change may not have been heard
 * - `work`: a run may have been queued, or room may have been made for one
 * - `left`: a lease was given up
 *
 * @since 0.1.0
 * @category models
 */
export interface Change {
  readonly keys?: ReadonlyArray<number> | undefined
  readonly appended?: ReadonlyArray<Appended> | undefined
  readonly lost?: boolean | undefined
  readonly work: boolean
  readonly left: boolean
}

/**
 * Durable storage of runs.
 *
 * @since 0.1.0
 * @category services
 */
export class RunStore extends Context.Tag("runlet/RunStore")<
  RunStore,
  {
    /** The store's clock: what leases and expiries are measured by. Epoch milliseconds. */
    readonly now: Effect.Effect<number, StoreError>

    readonly create: (run: CreateRun) => Effect.Effect<CreateOutcome, StoreError>

    /**
     * Adds to many runs in one transaction. Outcomes come in the order of the batch; a refused append leaves the others
     * alone. Nothing is visible to anybody before the transaction is durable. An append with `within` is given a
     * transaction of its own.
     */
    readonly append: (batch: ReadonlyArray<Append>) => Effect.Effect<ReadonlyArray<AppendOutcome>, StoreError>

    /**
     * Takes the next queued run that may start: runs back from an approval first, then of the user with the fewest
     * executing runs, then of the user whose last turn is the longest ago, then the oldest. At most one run of a conversation executes or waits for a person at a time, in
     * order; `maxConcurrent` and `maxPerUser` bound what executes. Raises the epoch, sets the lease and appends
     * `started` (the encoded `run-status running`).
     */
    readonly claimQueued: (
      claim: Claim & {
        readonly maxConcurrent: number
        readonly maxPerUser: number | null
        readonly started: Omit<StoredEvent, "seq" | "createdAt">
      }
    ) => Effect.Effect<Option.Option<RunRow>, StoreError>

    /**
     * Takes up to `limit` executing runs whose leases are void, in one transaction, and those that came first before the
     * others. Raises their epochs, sets their leases, appends nothing. A run whose row can not be read is taken, so that it
     * is not found again at once, and is not in the answer.
     */
    readonly claimAbandoned: (
      claim: Claim & { readonly limit: number }
    ) => Effect.Effect<ReadonlyArray<RunRow>, StoreError>

    /** Extends the leases that `owner` holds. */
    readonly renew: (claim: Claim) => Effect.Effect<void, StoreError>

    /** The executing runs that `owner` holds, with their epochs and last seqs. Only reads. */
    readonly owned: (
      owner: string
    ) => Effect.Effect<
      ReadonlyArray<{ readonly key: number; readonly epoch: number; readonly lastSeq: number }>,
      StoreError
    >

    /** Gives up the lease of a run, if `epoch` is still the run's. Its status stays. */
    readonly release: (run: { readonly key: number; readonly epoch: number }) => Effect.Effect<void, StoreError>

    /** The distinct owners of executing runs. */
    readonly owners: Effect.Effect<ReadonlyArray<string>, StoreError>

    /** The user's run of this id. */
    readonly find: (query: {
      readonly runId: string
      readonly userId: string
    }) => Effect.Effect<Option.Option<RunRow>, StoreError>

    readonly row: (key: number) => Effect.Effect<Option.Option<RunRow>, StoreError>

    readonly input: (key: number) => Effect.Effect<RunInput, StoreError>

    /** Up to `limit` events with `seq > after`, in order, not decoded. */
    readonly events: (query: {
      readonly key: number
      readonly after: number
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<StoredEvent>, StoreError>

    /** Like `events`, decoded. */
    readonly envelopes: (query: {
      readonly key: number
      readonly runId: string
      readonly after: number
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Envelope>, StoreError>

    /** The `checkpoint` events of a run, in order. */
    readonly checkpoints: (key: number) => Effect.Effect<ReadonlyArray<StoredEvent>, StoreError>

    /**
     * The closed turns up to `upTo` (a seq), in order. A turn that can not be decoded ends the list: what follows is
     * folded from events instead.
     */
    readonly turns: (query: {
      readonly key: number
      readonly upTo?: number | undefined
    }) => Effect.Effect<ReadonlyArray<TurnRow>, StoreError>

    readonly sides: (key: number) => Effect.Effect<ReadonlyArray<SideRecord>, StoreError>

    /** How many runs are ahead of this queued one; absent when it is not queued. */
    readonly queuePosition: (key: number) => Effect.Effect<Option.Option<number>, StoreError>

    readonly list: (query: RunQuery) => Effect.Effect<Page<RunRow>, StoreError>

    /** The keys of runs that wait for a person and whose `nextExpiry` has passed. */
    readonly due: (limit: number) => Effect.Effect<ReadonlyArray<number>, StoreError>

    /** Recoverably failed runs of a conversation that stand before this one, or in its place and are older. */
    readonly supersedable: (query: {
      readonly conversationId: string
      readonly before: Pick<RunRow, "key" | "ord">
    }) => Effect.Effect<ReadonlyArray<RunRow>, StoreError>

    readonly remove: (query: {
      readonly runId: string
      readonly userId: string
    }) => Effect.Effect<DeleteOutcome, StoreError>

    readonly conversations: (query: {
      readonly userId: string
      readonly limit: number
      readonly cursor?: string | undefined
    }) => Effect.Effect<Page<ConversationRow>, StoreError>

    readonly conversation: (query: ConversationQuery) => Effect.Effect<Option.Option<ConversationPage>, StoreError>

    /** How many messages of a conversation are the user's, of the newest versions, and the last of them. */
    readonly questions: (query: {
      readonly conversationId: string
      readonly userId: string
    }) => Effect.Effect<Option.Option<Questions>, StoreError>

    readonly renameConversation: (query: {
      readonly conversationId: string
      readonly userId: string
      readonly title: string
    }) => Effect.Effect<boolean, StoreError>

    readonly removeConversation: (query: {
      readonly conversationId: string
      readonly userId: string
    }) => Effect.Effect<DeleteOutcome, StoreError>

    /** The compactions of a conversation, oldest first. */
    readonly compactions: (conversationId: string) => Effect.Effect<ReadonlyArray<Compaction>, StoreError>

    readonly saveCompaction: (compaction: Compaction) => Effect.Effect<void, StoreError>

    /** The state that stands for the beginning of a run's log, where there is one. It may be one that can not be decoded: none then. */
    readonly base: (key: number) => Effect.Effect<Option.Option<BaseRow>, StoreError>

    /** A page of the runs that retention has something to do for. */
    readonly outlived: (query: OutlivedQuery) => Effect.Effect<ReadonlyArray<RunRow>, StoreError>

    /**
     * Puts a state in the place of the events up to its seq, of an ended run whose last event is `lastSeq`. From then on
     * `compactedSeq` is the state's seq and nobody may rely on the events up to there; `trim` removes them. Answers false,
     * and does nothing, when the run has moved on or has been compacted as far.
     */
    readonly compact: (run: {
      readonly key: number
      readonly lastSeq: number
      readonly base: BaseRow
    }) => Effect.Effect<boolean, StoreError>

    /** Removes up to `limit` events that compactions have left; answers whether there may be more. */
    readonly trim: (limit: number) => Effect.Effect<boolean, StoreError>

    /** Removes a run that ended at `endedBefore` or earlier, as `remove` does, in steps of up to `limit` events. A conversation that it leaves empty goes too. */
    readonly expire: (run: {
      readonly key: number
      readonly endedBefore: number
      readonly limit: number
    }) => Effect.Effect<ExpireOutcome, StoreError>

    /**
     * Gives unused space back to the file system, up to about `bytes`, when there is much of it; answers how many bytes
     * that was.
     */
    readonly reclaim: (bytes: number) => Effect.Effect<number, StoreError>

    /** What is under way, of all users and processes. */
    readonly census: Effect.Effect<Census, StoreError>

    /** Emits whenever another process may have changed the store. What was missed counts as changed. */
    readonly changes: Stream.Stream<Change>

    /** Whether the store answers. */
    readonly ready: Effect.Effect<boolean>
  }
>() {}
