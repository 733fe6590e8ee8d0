/**
 * The queue of a memory store: which run is taken next, and by whom. Every function that changes something is one
 * transaction.
 *
 * @since 0.1.0
 */
import type { Encoded, EncodedRow } from "../Encoded.js"
import type { Claim } from "../RunStore.js"
import { type Data, isBefore, isExecuting, lastSeqOf, type Run, record } from "./memory.js"

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
 * Takes the first executing runs whose leases are void.
 *
 * @since 0.1.0
 * @category transactions
 */
export const claimAbandoned = (
  data: Data,
  claim: Claim & { readonly limit: number },
  now: number
): ReadonlyArray<EncodedRow> =>
  data
    .filter((row) => isAbandoned(row, claim, now))
    .sort((a, b) => (isBefore(a.row, b.row) ? -1 : 1))
    .slice(0, claim.limit)
    .map((run) => {
      run.row = { ...run.row, epoch: run.row.epoch + 1, owner: claim.owner, leaseExpiresAt: now + claim.ttlMs }
      return run.row
    })

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
