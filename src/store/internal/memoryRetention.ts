/**
 * What goes out of a memory store: what a user removes, and what retention compacts and removes. Every function that
 * changes something is one transaction.
 *
 * @since 0.1.0
 */
import type { EncodedBase, EncodedRow } from "../Encoded.js"
import type { DeleteOutcome, ExpireOutcome, OutlivedQuery } from "../RunStore.js"
import { type Data, isActive, type Run } from "./memory.js"

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
