/**
 * The contents of a memory store, and how runs come into it and grow: plain and synchronous. Every function that changes
 * something is one transaction.
 *
 * @since 0.1.0
 */
import * as Status from "../../domain/RunStatus.js"
import type {
  BroughtMessage,
  EncodedAppend,
  EncodedBase,
  EncodedCreate,
  EncodedCreateOutcome,
  EncodedRow,
  EncodedSide,
  EncodedTurn
} from "../Encoded.js"
import type { AppendOutcome, Census, Compaction, StoredEvent } from "../RunStore.js"

/**
 * A run with all that belongs to it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Run {
  row: EncodedRow
  /** The number of the claim that began it; 0 before. */
  started: number
  readonly input: string
  readonly prefix: ReadonlyArray<string>
  /** The log behind the seq `removed`. */
  readonly events: Array<StoredEvent>
  removed: number
  base: EncodedBase | undefined
  readonly turns: Map<number, EncodedTurn>
  readonly sides: Map<number, EncodedSide>
}

/**
 * A conversation without its runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Conversation {
  readonly conversationId: string
  readonly userId: string
  title: string
  readonly createdAt: number
  updatedAt: number
  readonly brought: ReadonlyArray<BroughtMessage>
  readonly compactions: Array<Compaction>
}

/**
 * Everything that a memory store holds.
 *
 * @since 0.1.0
 * @category models
 */
export class Data {
  private keys = 0
  readonly runs = new Map<number, Run>()
  readonly conversations = new Map<string, Conversation>()
  readonly messages = new Map<string, { readonly content: string; readonly createdAt: number }>()
  readonly idempotency = new Map<string, { readonly bodyHash: string; readonly key: number }>()

  nextKey(): number {
    this.keys += 1
    return this.keys
  }

  filter(predicate: (row: EncodedRow) => boolean): Array<Run> {
    return Array.from(this.runs.values()).filter((run) => predicate(run.row))
  }

  /** The newest version of each exchange, in order. */
  exchanges(conversationId: string, before = Number.POSITIVE_INFINITY): Array<Run> {
    const newest = new Map<number, Run>()
    for (const run of this.filter((row) => row.conversationId === conversationId && row.ord < before)) {
      newest.set(run.row.ord, run)
    }
    return Array.from(newest.values()).sort((a, b) => a.row.ord - b.row.ord)
  }

  userRun(runId: string, userId: string): Run | undefined {
    return this.filter((row) => row.runId === runId && row.userId === userId)[0]
  }

  userConversation(conversationId: string, userId: string): Conversation | undefined {
    const conversation = this.conversations.get(conversationId)
    return conversation?.userId === userId ? conversation : undefined
  }
}

const fenced: AppendOutcome = { _tag: "Fenced" }

/**
 * Whether a run has not ended.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isActive = (row: EncodedRow): boolean => !Status.isEnded(row.status)

/**
 * Whether a process owns the run, by its state.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isExecuting = (row: EncodedRow): boolean => Status.isExecuting(row.status)

/**
 * Whether a run stands before another one in the queue.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isBefore = (a: Pick<EncodedRow, "key" | "ord">, b: Pick<EncodedRow, "key" | "ord">): boolean =>
  a.ord < b.ord || (a.ord === b.ord && a.key < b.key)

const isLatest = (data: Data, row: EncodedRow): boolean =>
  data.filter(
    (other) =>
      other.conversationId === row.conversationId && other.key !== row.key && (isBefore(row, other) || isActive(other))
  ).length === 0

/**
 * Why an append may not be done; `undefined` when it may.
 *
 * @since 0.1.0
 * @category transactions
 */
export const refuse = (data: Data, append: EncodedAppend): AppendOutcome | undefined => {
  const row = data.runs.get(append.key)?.row
  if (row === undefined || Status.isFinal(row)) return fenced
  if (row.status === "failed" && append.raiseEpoch !== true) return fenced
  if (append.epoch !== undefined && append.epoch !== row.epoch) return fenced
  const moved =
    (append.expectedSeq !== undefined && append.expectedSeq !== row.lastSeq) ||
    (append.onlyIfLatest === true && !isLatest(data, row))
  return moved ? { _tag: "Moved", lastSeq: row.lastSeq } : undefined
}

/**
 * The seq of the last event of a log.
 *
 * @since 0.1.0
 * @category reading
 */
export const lastSeqOf = (run: Run): number => run.removed + run.events.length

/**
 * Adds events to a log; the row is for the caller to change.
 *
 * @since 0.1.0
 * @category transactions
 */
export const record = (run: Run, events: ReadonlyArray<Omit<StoredEvent, "seq">>): void => {
  for (const event of events) run.events.push({ ...event, seq: lastSeqOf(run) + 1 })
}

const unchanged = { usage: undefined, error: undefined }

const leaseOf = (row: EncodedRow, append: EncodedAppend, now: number): Pick<EncodedRow, "owner" | "leaseExpiresAt"> => {
  const { lease, status } = append.set ?? { ...unchanged, status: row.status }
  if (!Status.isExecuting(status) || lease === null) return { owner: undefined, leaseExpiresAt: undefined }
  if (lease !== undefined) return { owner: lease.owner, leaseExpiresAt: now + lease.ttlMs }
  return append.raiseEpoch === true ? { owner: undefined, leaseExpiresAt: undefined } : row
}

/**
 * Appends, when nothing forbids it.
 *
 * @since 0.1.0
 * @category transactions
 */
export const change = (data: Data, append: EncodedAppend, now: number): AppendOutcome => {
  const run = data.runs.get(append.key)
  if (run === undefined) return fenced
  const { row } = run
  const set = append.set ?? { ...unchanged, status: row.status }
  const at = append.events.at(-1)?.createdAt ?? now
  const ended = Status.isEnded(set.status)
  const { leaseExpiresAt, owner } = leaseOf(row, append, now)
  record(run, append.events)
  run.row = {
    ...row,
    status: set.status,
    recoverable: set.status === "failed" ? (set.recoverable ?? row.recoverable) : undefined,
    attempt: set.attempt ?? row.attempt,
    iteration: set.iteration ?? row.iteration,
    usage: set.usage ?? row.usage,
    error: set.error === undefined ? row.error : (set.error ?? undefined),
    nextExpiry: set.nextExpiry === undefined ? row.nextExpiry : (set.nextExpiry ?? undefined),
    owner,
    leaseExpiresAt,
    epoch: row.epoch + (append.raiseEpoch === true ? 1 : 0),
    lastSeq: lastSeqOf(run),
    updatedAt: at,
    endedAt: ended ? at : undefined
  }
  if (append.turn !== undefined) run.turns.set(append.turn.n, append.turn)
  for (const side of append.sides) run.sides.set(side.iteration, side)
  if (set.assistantText !== undefined) {
    data.messages.set(row.assistantMessageId, { content: set.assistantText, createdAt: row.createdAt })
  }
  const conversation = data.conversations.get(row.conversationId)
  if (ended && conversation !== undefined) conversation.updatedAt = at
  return { _tag: "Appended", lastSeq: run.row.lastSeq, epoch: run.row.epoch }
}

const isFull = (data: Data, { maxConcurrent, maxQueued, placeForEach, userId }: EncodedCreate): boolean => {
  const queued = data.filter((row) => row.status === "queued")
  const free = Math.max(0, maxConcurrent - data.filter(isExecuting).length)
  const hasPlace = placeForEach && maxQueued > 0 && queued.every(({ row }) => row.userId !== userId)
  return queued.length >= maxQueued + free && !hasPlace
}

/**
 * Creates a run after all checks.
 *
 * @since 0.1.0
 * @category transactions
 */
export const create = (data: Data, run: EncodedCreate, now: number): EncodedCreateOutcome => {
  const idempotencyKey = run.idempotency && JSON.stringify([run.userId, run.idempotency.key])
  const used = idempotencyKey === undefined ? undefined : data.idempotency.get(idempotencyKey)
  const earlier = used && data.runs.get(used.key)
  if (used !== undefined && earlier !== undefined) {
    return used.bodyHash === run.idempotency?.bodyHash ? { _tag: "Duplicate", row: earlier.row } : { _tag: "KeyReused" }
  }
  if (run.onlyRepeated === true) return { _tag: "New" }
  const existing = data.conversations.get(run.conversationId)
  if (existing === undefined ? run.existing : existing.userId !== run.userId) return { _tag: "Unknown" }
  const runs = data.filter((row) => row.conversationId === run.conversationId)
  const regenerated = run.regeneratedFrom && runs.find(({ row }) => row.key === run.regeneratedFrom?.key)?.row
  if (run.regeneratedFrom !== undefined && regenerated === undefined) return { _tag: "Unknown" }
  if (regenerated !== undefined && runs.some(({ row }) => row.ord > regenerated.ord)) return { _tag: "Superseded" }
  const busy = run.rejectIfBusy ? runs.find(({ row }) => isActive(row)) : undefined
  if (busy !== undefined) return { _tag: "Busy", runId: busy.row.runId }
  const { maxConversations, maxInConversation, maxStored, userId } = run
  if (maxInConversation !== undefined && runs.length >= maxInConversation) return { _tag: "ConversationFull" }
  if (maxStored !== undefined && data.filter((row) => row.userId === userId).length >= maxStored) {
    return { _tag: "StoreFull" }
  }
  const conversations = Array.from(data.conversations.values()).filter((one) => one.userId === userId)
  if (existing === undefined && maxConversations !== undefined && conversations.length >= maxConversations) {
    return { _tag: "ConversationsFull" }
  }
  if (isFull(data, run)) return { _tag: "QueueFull" }

  const key = data.nextKey()
  const ord = regenerated?.ord ?? key
  const createdAt = run.events[0]?.createdAt ?? now
  const updatedAt = run.events.at(-1)?.createdAt ?? now
  if (existing === undefined) {
    const { brought, conversationId, title, userId } = run
    data.conversations.set(conversationId, {
      conversationId,
      userId,
      title,
      createdAt,
      updatedAt,
      brought,
      compactions: []
    })
  } else {
    existing.updatedAt = updatedAt
  }
  if (!data.messages.has(run.userMessageId)) {
    data.messages.set(run.userMessageId, { content: run.userMessage, createdAt })
  }
  const created: Run = {
    row: {
      key,
      runId: run.runId,
      userId: run.userId,
      conversationId: run.conversationId,
      userMessageId: run.userMessageId,
      assistantMessageId: run.assistantMessageId,
      model: run.model,
      mode: run.mode,
      status: "queued",
      recoverable: undefined,
      regeneratedFrom: run.regeneratedFrom?.runId,
      ord,
      epoch: 0,
      owner: undefined,
      leaseExpiresAt: undefined,
      lastSeq: run.events.length,
      attempt: 1,
      iteration: 0,
      usage: '{"inputTokens":0,"outputTokens":0,"totalTokens":0}',
      error: undefined,
      nextExpiry: undefined,
      compactedSeq: 0,
      createdAt,
      updatedAt,
      endedAt: undefined
    },
    started: 0,
    input: run.input,
    prefix: data.exchanges(run.conversationId, ord).map((earlierRun) => earlierRun.row.runId),
    events: [],
    removed: 0,
    base: undefined,
    turns: new Map(),
    sides: new Map()
  }
  record(created, run.events)
  data.runs.set(key, created)
  if (idempotencyKey !== undefined && run.idempotency !== undefined) {
    data.idempotency.set(idempotencyKey, { bodyHash: run.idempotency.bodyHash, key })
  }
  return { _tag: "Created", row: created.row }
}

/**
 * What is left of a log behind a seq.
 *
 * @since 0.1.0
 * @category reading
 */
export const eventsOf = (data: Data, key: number, after: number, limit: number): ReadonlyArray<StoredEvent> => {
  const run = data.runs.get(key)
  const from = Math.max(0, after - (run?.removed ?? 0))
  return run?.events.slice(from, from + limit) ?? []
}

/**
 * How many runs are in each state that is not an end.
 *
 * @since 0.1.0
 * @category reading
 */
export const census = (data: Data): Census => {
  const count = (status: Status.RunStatus): number => data.filter((row) => row.status === status).length
  return {
    queued: count("queued"),
    running: count("running"),
    streaming: count("streaming"),
    waiting_approval: count("waiting_approval")
  }
}
