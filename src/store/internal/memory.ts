/**
 * The contents of a memory store and the rules of its changes: plain and synchronous. Every function that changes
 * something is one transaction.
 *
 * @since 0.1.0
 */
import * as Status from "../../domain/RunStatus.js"
import type {
  BroughtMessage,
  Encoded,
  EncodedAppend,
  EncodedBase,
  EncodedCreate,
  EncodedCreateOutcome,
  EncodedRow,
  EncodedSide,
  EncodedTurn
} from "../Encoded.js"
import type {
  AppendOutcome,
  Census,
  Claim,
  Compaction,
  ConversationRow,
  DeleteOutcome,
  ExpireOutcome,
  MessageRow,
  OutlivedQuery,
  StoredEvent
} from "../RunStore.js"

interface Run {
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

interface Conversation {
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

const isActive = (row: EncodedRow): boolean => !Status.isEnded(row.status)

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

const lastSeqOf = (run: Run): number => run.removed + run.events.length

const record = (run: Run, events: ReadonlyArray<Omit<StoredEvent, "seq">>): void => {
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
  const { maxStored, userId } = run
  if (maxStored !== undefined && data.filter((row) => row.userId === userId).length >= maxStored) {
    return { _tag: "StoreFull" }
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

/** The number of the claim that took a run of this user last. */
const lastTurn = (data: Data, userId: string): number =>
  Math.max(...data.filter((row) => row.userId === userId).map((run) => run.started))

/**
 * Takes the next queued run that may start.
 *
 * @since 0.1.0
 * @category transactions
 */
export const claimQueued = (
  data: Data,
  claim: Parameters<Encoded["claimQueued"]>[0],
  now: number
): EncodedRow | undefined => {
  const busy = new Map<string, number>()
  const turns = new Map<string, number>()
  const occupied = new Set<string>()
  const heads = new Map<string, Run>()
  let executing = 0
  for (const run of data.runs.values()) {
    const { conversationId, status, userId } = run.row
    turns.set(userId, Math.max(turns.get(userId) ?? 0, run.started))
    if (isExecuting(run.row)) {
      executing += 1
      busy.set(userId, (busy.get(userId) ?? 0) + 1)
    }
    if (isExecuting(run.row) || status === "waiting_approval") occupied.add(conversationId)
    const head = heads.get(conversationId)
    if (status === "queued" && (head === undefined || isBefore(run.row, head.row))) heads.set(conversationId, run)
  }
  if (executing >= claim.maxConcurrent) return undefined
  const candidates = Array.from(heads.values())
    .filter(({ row }) => !occupied.has(row.conversationId))
    .map((run) => ({ run, busy: busy.get(run.row.userId) ?? 0, turn: turns.get(run.row.userId) ?? 0 }))
    .filter((one) => claim.maxPerUser === null || one.busy < claim.maxPerUser)
    .sort(
      (a, b) =>
        Number(b.run.started > 0) - Number(a.run.started > 0) ||
        a.busy - b.busy ||
        a.turn - b.turn ||
        a.run.row.ord - b.run.row.ord ||
        a.run.row.key - b.run.row.key
    )
  const run = candidates[0]?.run
  if (run === undefined) return undefined
  record(run, [{ ...claim.started, createdAt: now }])
  run.started = 1 + Math.max(...Array.from(data.runs.values(), (other) => other.started))
  run.row = {
    ...run.row,
    status: "running",
    epoch: run.row.epoch + 1,
    owner: claim.owner,
    leaseExpiresAt: now + claim.ttlMs,
    lastSeq: lastSeqOf(run),
    updatedAt: now
  }
  return run.row
}

const isAbandoned = (row: EncodedRow, claim: Claim, now: number): boolean =>
  isExecuting(row) &&
  (row.owner === undefined ||
    row.leaseExpiresAt === undefined ||
    row.leaseExpiresAt <= now ||
    (claim.dead?.includes(row.owner) ?? false))

/**
 * Takes an executing run whose lease is void.
 *
 * @since 0.1.0
 * @category transactions
 */
export const claimAbandoned = (data: Data, claim: Claim, now: number): EncodedRow | undefined => {
  const run = data.filter((row) => isAbandoned(row, claim, now)).sort((a, b) => (isBefore(a.row, b.row) ? -1 : 1))[0]
  if (run === undefined) return undefined
  run.row = { ...run.row, epoch: run.row.epoch + 1, owner: claim.owner, leaseExpiresAt: now + claim.ttlMs }
  return run.row
}

const dropRun = (data: Data, { row }: Run): void => {
  data.runs.delete(row.key)
  data.messages.delete(row.assistantMessageId)
  if (data.filter((other) => other.userMessageId === row.userMessageId).length === 0) {
    data.messages.delete(row.userMessageId)
  }
  for (const [key, used] of data.idempotency) if (used.key === row.key) data.idempotency.delete(key)
}

/** With the summaries that may tell of it. */
const removeRun = (data: Data, run: Run): void => {
  const compactions = data.conversations.get(run.row.conversationId)?.compactions ?? []
  const told = new Set(
    data
      .filter((row) => row.conversationId === run.row.conversationId && row.ord >= run.row.ord)
      .map(({ row }) => row.runId)
  )
  const kept = compactions.filter((one) => !told.has(one.uptoRunId) && one.madeIn !== run.row.runId)
  compactions.splice(0, compactions.length, ...kept)
  dropRun(data, run)
}

/**
 * Removes an ended run of a user.
 *
 * @since 0.1.0
 * @category transactions
 */
export const remove = (data: Data, runId: string, userId: string): DeleteOutcome => {
  const run = data.userRun(runId, userId)
  if (run === undefined) return "unknown"
  if (isActive(run.row)) return "active"
  removeRun(data, run)
  return "deleted"
}

/** By when they ended, and by key. */
const isBehind = (
  a: { readonly endedAt: number; readonly key: number },
  b: { readonly endedAt: number; readonly key: number }
): boolean => a.endedAt > b.endedAt || (a.endedAt === b.endedAt && a.key > b.key)

/**
 * A page of the runs that retention has something to do for.
 *
 * @since 0.1.0
 * @category reading
 */
export const outlived = (data: Data, { behind, endedBefore, limit, what }: OutlivedQuery): ReadonlyArray<EncodedRow> =>
  Array.from(data.runs.values())
    .flatMap(({ row }) => (row.endedAt === undefined ? [] : [{ row, endedAt: row.endedAt, key: row.key }]))
    .filter((one) => one.endedAt <= endedBefore && (what === "run" || one.row.compactedSeq === 0))
    .filter((one) => behind === undefined || isBehind(one, behind))
    .sort((a, b) => (isBehind(a, b) ? 1 : -1))
    .slice(0, limit)
    .map(({ row }) => row)

/**
 * Puts a state in the place of the events up to its seq.
 *
 * @since 0.1.0
 * @category transactions
 */
export const compact = (data: Data, key: number, lastSeq: number, base: EncodedBase): boolean => {
  const run = data.runs.get(key)
  if (run === undefined || run.row.endedAt === undefined) return false
  if (run.row.lastSeq !== lastSeq || base.seq > lastSeq || base.seq <= run.row.compactedSeq) return false
  run.base = base
  run.row = { ...run.row, compactedSeq: base.seq }
  run.events.splice(0, base.seq - run.removed)
  run.removed = base.seq
  return true
}

/**
 * Removes a run for its age.
 *
 * @since 0.1.0
 * @category transactions
 */
export const expire = (data: Data, key: number, endedBefore: number): ExpireOutcome => {
  const run = data.runs.get(key)
  const { conversationId, endedAt } = run?.row ?? {}
  if (run === undefined) return "removed"
  if (endedAt === undefined || endedAt > endedBefore) return "kept"
  if (data.filter((row) => row.conversationId === conversationId && isActive(row)).length > 0) return "kept"
  removeRun(data, run)
  if (data.filter((row) => row.conversationId === run.row.conversationId).length === 0) {
    data.conversations.delete(run.row.conversationId)
  }
  return "removed"
}

/**
 * Removes a conversation of a user with all its runs, which must have ended.
 *
 * @since 0.1.0
 * @category transactions
 */
export const removeConversation = (data: Data, conversationId: string, userId: string): DeleteOutcome => {
  if (data.userConversation(conversationId, userId) === undefined) return "unknown"
  const runs = data.filter((row) => row.conversationId === conversationId)
  if (runs.some(({ row }) => isActive(row))) return "active"
  for (const run of runs) dropRun(data, run)
  data.conversations.delete(conversationId)
  return "deleted"
}

/**
 * A conversation as lists show it.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversationRow = (data: Data, conversation: Conversation): ConversationRow => {
  const last = data.exchanges(conversation.conversationId).at(-1)?.row
  const { conversationId, createdAt, title, updatedAt } = conversation
  return { conversationId, title, createdAt, updatedAt, lastRunId: last?.runId, lastStatus: last?.status }
}

/**
 * The messages of a conversation, of the newest versions.
 *
 * @since 0.1.0
 * @category reading
 */
export const messagesOf = (
  data: Data,
  { brought, conversationId, createdAt }: Conversation
): ReadonlyArray<MessageRow> => [
  ...brought.map((message) => ({ ...message, runId: undefined, status: undefined, createdAt })),
  ...data.exchanges(conversationId).flatMap(({ row }): ReadonlyArray<MessageRow> => {
    const question = data.messages.get(row.userMessageId)
    const answer = data.messages.get(row.assistantMessageId)
    return [
      {
        messageId: row.userMessageId,
        role: "user",
        content: question?.content ?? "",
        runId: row.runId,
        status: undefined,
        createdAt: question?.createdAt ?? row.createdAt
      },
      {
        messageId: row.assistantMessageId,
        role: "assistant",
        content: isActive(row) ? "" : (answer?.content ?? ""),
        runId: row.runId,
        status: row.status,
        createdAt: row.createdAt
      }
    ]
  })
]

const isBeforeCursor = (
  row: { readonly updatedAt: number; readonly conversationId: string },
  before: { readonly updatedAt: number; readonly conversationId: string }
): boolean =>
  row.updatedAt < before.updatedAt || (row.updatedAt === before.updatedAt && row.conversationId < before.conversationId)

/**
 * A page of a user's conversations, newest first.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversations = (
  data: Data,
  query: Parameters<Encoded["conversations"]>[0]
): ReadonlyArray<ConversationRow> =>
  Array.from(data.conversations.values())
    .filter((row) => row.userId === query.userId)
    .filter((row) => query.before === undefined || isBeforeCursor(row, query.before))
    .sort((a, b) => (isBeforeCursor(b, a) ? -1 : 1))
    .slice(0, query.limit)
    .map((conversation) => conversationRow(data, conversation))

/**
 * How many runs are taken before a queued one if no others come.
 *
 * @since 0.1.0
 * @category reading
 */
export const queuePosition = (data: Data, key: number): number | undefined => {
  const run = data.runs.get(key)
  if (run?.row.status !== "queued") return undefined
  const { userId } = run.row
  const queued = data.filter((row) => row.status === "queued")
  const alike = queued.filter((other) => other.started > 0 === run.started > 0)
  const turn = alike.filter(({ row }) => row.userId === userId && isBefore(row, run.row)).length
  const first = (user: string) => Math.min(...alike.filter(({ row }) => row.userId === user).map(({ row }) => row.ord))
  const others = new Set(alike.map(({ row }) => row.userId).filter((user) => user !== userId))
  const turns = Array.from(others, (user) => {
    const earlier = lastTurn(data, user) - lastTurn(data, userId) || first(user) - first(userId)
    return Math.min(alike.filter(({ row }) => row.userId === user).length, earlier < 0 ? turn + 1 : turn)
  })
  const back = run.started > 0 ? 0 : queued.filter((other) => other.started > 0).length
  return turn + back + turns.reduce((sum, n) => sum + n, 0)
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
