/**
 * What the cases of the store's contract are made of.
 *
 * @since 0.1.0
 */
import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type AgentEvent, noUsage } from "../../domain/AgentEvent.js"
import * as Envelope from "../../domain/Envelope.js"
import * as Ids from "../../domain/Ids.js"
import type { RunInput } from "../../domain/RunInput.js"
import {
  type Append,
  type AppendOutcome,
  type ConversationRow,
  type CreateOutcome,
  type CreateRun,
  type MessageRow,
  type RunRow,
  RunStore,
  type StoredEvent,
  type StoreError
} from "../../store/RunStore.js"

/**
 * The store does not keep the rule of a case; `cause` is the assertion that did not hold.
 *
 * @since 0.1.0
 * @category errors
 */
export class RuleBroken extends Schema.TaggedError<RuleBroken>()("RuleBroken", {
  message: Schema.String,
  cause: Schema.Defect
}) {}

/**
 * A case: its store must be empty, and nobody else may use it meanwhile.
 *
 * @since 0.1.0
 * @category cases
 */
export interface StoreCase {
  readonly name: string
  readonly run: Effect.Effect<void, RuleBroken | StoreError, RunStore>
}

/**
 * A case from a generator. What an assertion throws becomes its failure.
 *
 * @since 0.1.0
 * @category cases
 */
export const define = (name: string, body: Effect.Effect<void, StoreError, RunStore>): StoreCase => ({
  name,
  run: Effect.catchAllDefect(body, (cause) =>
    Effect.fail(new RuleBroken({ message: cause instanceof Error ? cause.message : String(cause), cause }))
  )
})

export { assert }

/**
 * An event as it is stored.
 *
 * @since 0.1.0
 * @category events
 */
export const encoded = (event: AgentEvent, createdAt: number): Omit<StoredEvent, "seq"> => ({
  type: event.type,
  json: Envelope.encodeEvent(event),
  createdAt
})

/**
 * One delta of text.
 *
 * @since 0.1.0
 * @category events
 */
export const text = (delta: string, createdAt = 1): Omit<StoredEvent, "seq"> =>
  encoded({ type: "text-delta", id: "t", delta }, createdAt)

/**
 * So many deltas of text: 0, 1, 2 …
 *
 * @since 0.1.0
 * @category events
 */
export const texts = (count: number, createdAt = 1): ReadonlyArray<Omit<StoredEvent, "seq">> =>
  Array.from({ length: count }, (_, index) => text(String(index), createdAt))

const ids = Effect.provide(Ids.IdGenerator, Ids.layer)

/**
 * A run id of its own.
 *
 * @since 0.1.0
 * @category ids
 */
export const newRunId = Effect.flatMap(ids, (_) => _.run)

/**
 * A message id of its own.
 *
 * @since 0.1.0
 * @category ids
 */
export const newMessageId = Effect.flatMap(ids, (_) => _.message)

/**
 * A conversation id of its own.
 *
 * @since 0.1.0
 * @category ids
 */
export const newConversationId = Effect.flatMap(ids, (_) => _.conversation)

/**
 * The input of a run that asks this.
 *
 * @since 0.1.0
 * @category runs
 */
export const inputOf = (userMessage: string): RunInput => ({
  userMessage,
  prefix: { messages: [], runs: [] },
  instructions: "Be brief.",
  tools: [{ name: "lookup", description: "Looks a word up", kind: "readonly", parameters: { type: "object" } }],
  limits: { maxIterations: 8, maxTokens: null, maxCostUsd: null, runTimeoutMs: 900_000 },
  enableThinking: false,
  currentDocument: null
})

/**
 * What a case says about a new run; the rest is made up. A conversation that is named must exist.
 *
 * @since 0.1.0
 * @category runs
 */
export interface NewRun extends Partial<Omit<CreateRun, "input" | "events">> {
  readonly message?: string
}

/**
 * The request for a new run.
 *
 * @since 0.1.0
 * @category runs
 */
export const request = ({ message = "hello", ...options }: NewRun = {}): Effect.Effect<CreateRun> =>
  Effect.gen(function* () {
    const runId = options.runId ?? (yield* newRunId)
    const conversationId = options.conversationId ?? (yield* newConversationId)
    const userMessageId = options.userMessageId ?? (yield* newMessageId)
    const assistantMessageId = options.assistantMessageId ?? (yield* newMessageId)
    const start: AgentEvent = {
      type: "run-start",
      runId,
      seq: 1,
      conversationId,
      userMessageId,
      assistantMessageId,
      model: "demo",
      mode: "chat"
    }
    return {
      userId: "alice",
      existing: options.conversationId !== undefined,
      title: "A title",
      model: "demo",
      mode: "chat",
      brought: [],
      rejectIfBusy: false,
      maxQueued: 1000,
      maxConcurrent: 0,
      placeForEach: false,
      ...options,
      runId,
      conversationId,
      userMessageId,
      assistantMessageId,
      input: inputOf(message),
      events: [encoded(start, 1), encoded({ type: "run-status", status: "queued" }, 1)]
    }
  })

/**
 * Tries to create a run.
 *
 * @since 0.1.0
 * @category runs
 */
export const tryCreate = (options?: NewRun): Effect.Effect<CreateOutcome, StoreError, RunStore> =>
  Effect.flatMap(RunStore, (store) => Effect.flatMap(request(options), store.create))

/**
 * Creates a run that must be accepted.
 *
 * @since 0.1.0
 * @category runs
 */
export const create = (options?: NewRun): Effect.Effect<RunRow, StoreError, RunStore> =>
  Effect.map(tryCreate(options), (outcome) => {
    if (outcome._tag !== "Created") assert.fail(`The run was not created: ${outcome._tag}`)
    return outcome.row
  })

/**
 * The event that a claim appends.
 *
 * @since 0.1.0
 * @category events
 */
export const started = {
  type: "run-status" as const,
  json: Envelope.encodeEvent({ type: "run-status", status: "running" })
}

/**
 * Who claims, when a case does not say otherwise.
 *
 * @since 0.1.0
 * @category claims
 */
export interface Claiming {
  readonly owner?: string
  readonly ttlMs?: number
  readonly maxConcurrent?: number
  readonly maxPerUser?: number | null
}

/**
 * Claims the next queued run, if there is one.
 *
 * @since 0.1.0
 * @category claims
 */
export const tryClaim = (options: Claiming = {}): Effect.Effect<Option.Option<RunRow>, StoreError, RunStore> =>
  Effect.flatMap(RunStore, (store) =>
    store.claimQueued({ owner: "p1", ttlMs: 60_000, maxConcurrent: 100, maxPerUser: null, started, ...options })
  )

/**
 * Claims the next queued run, which must be there.
 *
 * @since 0.1.0
 * @category claims
 */
export const claim = (options?: Claiming): Effect.Effect<RunRow, StoreError, RunStore> =>
  Effect.map(tryClaim(options), (row) => Option.getOrElse(row, () => assert.fail("No queued run could be claimed")))

/**
 * Creates a run and claims it; nothing else may be queued.
 *
 * @since 0.1.0
 * @category claims
 */
export const begin = (options?: NewRun, claiming?: Claiming): Effect.Effect<RunRow, StoreError, RunStore> =>
  Effect.zipRight(create(options), claim(claiming))

/**
 * Appends to one run.
 *
 * @since 0.1.0
 * @category appends
 */
export const append = (one: Append): Effect.Effect<AppendOutcome, StoreError, RunStore> =>
  Effect.flatMap(RunStore, (store) =>
    Effect.map(store.append([one]), (outcomes) => outcomes[0] ?? assert.fail("The append has no outcome"))
  )

/**
 * A user's conversation with all its messages, read in the smallest pages.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversationOf = (
  conversationId: string,
  userId = "alice"
): Effect.Effect<
  Option.Option<{ readonly conversation: ConversationRow; readonly messages: ReadonlyArray<MessageRow> }>,
  StoreError,
  RunStore
> =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const query = { conversationId, userId, limit: 1 }
    const messages: Array<MessageRow> = []
    let page = yield* store.conversation(query)
    const first = page
    while (Option.isSome(page)) {
      messages.push(...page.value.messages)
      const { next } = page.value
      if (next === undefined) break
      page = yield* store.conversation({ ...query, after: next })
    }
    return Option.map(first, ({ conversation }) => ({ conversation, messages }))
  })

/**
 * The row of a run, as it stands now.
 *
 * @since 0.1.0
 * @category reading
 */
export const rowOf = (key: number): Effect.Effect<RunRow, StoreError, RunStore> =>
  Effect.flatMap(RunStore, (store) =>
    Effect.map(store.row(key), (row) => Option.getOrElse(row, () => assert.fail("The run is not there")))
  )

/**
 * The seqs of a run's log.
 *
 * @since 0.1.0
 * @category reading
 */
export const seqsOf = (key: number): Effect.Effect<ReadonlyArray<number>, StoreError, RunStore> =>
  Effect.flatMap(RunStore, (store) =>
    Effect.map(store.events({ key, after: 0, limit: 10_000 }), (events) => events.map(({ seq }) => seq))
  )

/**
 * The numbers 1 … n, as the seqs of a log are.
 *
 * @since 0.1.0
 * @category reading
 */
export const upTo = (n: number): ReadonlyArray<number> => Array.from({ length: n }, (_, index) => index + 1)

/**
 * How a run ends.
 *
 * @since 0.1.0
 * @category appends
 */
export const ending = {
  completed: (assistantText = "done"): Pick<Append, "events" | "set"> => ({
    events: [
      encoded(
        {
          type: "finish",
          finishReason: "stop",
          model: "demo",
          usage: noUsage,
          timing: { queuedMs: 0, timeToFirstTokenMs: 0, durationMs: 0 }
        },
        2
      )
    ],
    set: { status: "completed", assistantText }
  }),
  cancelled: (): Pick<Append, "events" | "set"> => ({
    events: [encoded({ type: "cancelled", by: "user", usage: noUsage }, 2)],
    set: { status: "cancelled", assistantText: "" }
  }),
  failed: (recoverable: boolean): Pick<Append, "events" | "set"> => ({
    events: [encoded({ type: "error", code: "broken", message: "It broke.", recoverable, usage: noUsage }, 2)],
    set: {
      status: "failed",
      recoverable,
      error: { code: "broken", message: "It broke." },
      assistantText: "half"
    }
  })
}

/**
 * Ends a run, which must be allowed.
 *
 * @since 0.1.0
 * @category appends
 */
export const end = (
  row: RunRow,
  how: Pick<Append, "events" | "set"> = ending.completed()
): Effect.Effect<void, StoreError, RunStore> =>
  Effect.map(append({ key: row.key, ...how }), (outcome) => assert.equal(outcome._tag, "Appended"))

/**
 * Waits for a person.
 *
 * @since 0.1.0
 * @category appends
 */
export const park = (
  row: RunRow,
  nextExpiry: number | null = null
): Effect.Effect<AppendOutcome, StoreError, RunStore> =>
  append({
    key: row.key,
    epoch: row.epoch,
    events: [encoded({ type: "run-status", status: "waiting_approval" }, 2)],
    set: { status: "waiting_approval", lease: null, nextExpiry }
  })

/**
 * Back into the queue after a decision.
 *
 * @since 0.1.0
 * @category appends
 */
export const requeue = (row: RunRow): Effect.Effect<AppendOutcome, StoreError, RunStore> =>
  append({
    key: row.key,
    events: [encoded({ type: "run-status", status: "queued", reason: "approval" }, 3)],
    set: { status: "queued", nextExpiry: null }
  })

/**
 * The ids of runs.
 *
 * @since 0.1.0
 * @category reading
 */
export const idsOf = (rows: Iterable<{ readonly runId: string }>): ReadonlyArray<string> =>
  Array.from(rows, ({ runId }) => runId)
