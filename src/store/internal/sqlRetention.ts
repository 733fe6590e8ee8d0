/**
 * What retention does to the tables, in transactions of bounded size.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Status from "../../domain/RunStatus.js"
import type { Encoded, EncodedBase } from "../Encoded.js"
import type { DeleteOutcome, ExpireOutcome } from "../RunStore.js"
import * as Locks from "./sqlLocks.js"
import type { Announce } from "./sqlNotices.js"
import { type RawRun, runColumns, toRun } from "./sqlRows.js"
import { findWritten, type Transaction } from "./sqlTransaction.js"

/** So many events go in one transaction when a user deletes something: some milliseconds of work. */
const eventsAtOnce = 500

/** A run without events costs as much. */
const runCosts = 10

/** Unused pages that are kept, so that what comes finds room: so many, and this part of the file. */
const spare = { pages: 256, part: 0.1 }

/**
 * Makes the store's removing operations from its transactions. `read` sees what is committed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  sql: SqlClient.SqlClient,
  read: SqlClient.SqlClient,
  transaction: Transaction,
  announce: Announce
) => {
  const columns = sql.literal(runColumns)

  const removeRow = ({ assistantMessageId, conversationId, key, ord, userMessageId }: ReturnType<typeof toRun>) =>
    Effect.gen(function* () {
      // A summary that may tell of the removed run goes with it.
      yield* sql`DELETE FROM compactions WHERE conversation_id = ${conversationId}
        AND upto_key IN (SELECT key FROM runs WHERE conversation_id = ${conversationId} AND ord >= ${ord})`
      yield* sql`DELETE FROM runs WHERE key = ${key}`
      yield* announce({ keys: [key], work: false, left: false })
      yield* sql`DELETE FROM messages WHERE message_id IN (${assistantMessageId}, ${userMessageId})
        AND NOT EXISTS (SELECT 1 FROM runs
          WHERE conversation_id = ${conversationId} AND user_message_id = messages.message_id)`
    })

  /** The events of a run up to a seq, the first ones first; answers how many there were. */
  const removeEvents = (key: number, upTo: number, limit: number) =>
    Effect.map(
      sql`DELETE FROM events WHERE id IN (
        SELECT id FROM events WHERE run_key = ${key} AND seq <= ${upTo} ORDER BY seq LIMIT ${limit}) RETURNING seq`,
      (rows) => rows.length
    )

  /** Removes up to `limit` events of a run, and the run when it had fewer; answers how many it had. */
  const removeSome = (run: ReturnType<typeof toRun>, limit: number) =>
    Effect.gen(function* () {
      const count = yield* removeEvents(run.key, run.lastSeq, limit)
      if (count < limit) yield* removeRow(run)
      else {
        yield* sql`UPDATE runs SET compacted_seq =
          COALESCE((SELECT MIN(seq) - 1 FROM events WHERE run_key = ${run.key}), last_seq) WHERE key = ${run.key}`
      }
      return count
    })

  const remove = (runId: string, userId: string): Effect.Effect<DeleteOutcome, SqlError> =>
    inSteps(
      transaction(
        (): Effect.Effect<Step, SqlError> =>
          Effect.gen(function* () {
            yield* Locks.conversationsOf(sql, { runId })
            const [found] = yield* sql<RawRun>`
              SELECT ${columns} FROM runs WHERE run_id = ${runId} AND user_id = ${userId}`
            if (found === undefined) return "unknown"
            const run = toRun(found)
            if (!Status.isEnded(run.status)) return "active"
            return (yield* removeSome(run, eventsAtOnce)) < eventsAtOnce ? "deleted" : "more"
          }),
        findWritten(isDeleted, (deleted) =>
          Effect.zipRight(
            Locks.conversationsOf(sql, { runId }),
            Effect.map(sql`SELECT 1 FROM runs WHERE run_id = ${runId} FOR UPDATE`, (rows) =>
              rows.length === 0 ? Option.some(deleted) : Option.none()
            )
          )
        )
      )
    )

  /** The last runs first, so that what is left at any time is the beginning of a conversation. */
  const removeConversation = (conversationId: string, userId: string): Effect.Effect<DeleteOutcome, SqlError> =>
    inSteps(
      transaction(
        (): Effect.Effect<Step, SqlError> =>
          Effect.gen(function* () {
            yield* Locks.conversation(sql, conversationId)
            const [found] = yield* sql<{ readonly active: number }>`
              SELECT CASE WHEN EXISTS (
                SELECT 1 FROM runs WHERE conversation_id = conversations.conversation_id
                  AND status IN ('queued', 'running', 'streaming', 'waiting_approval')
              ) THEN 1 ELSE 0 END AS active
              FROM conversations WHERE conversation_id = ${conversationId} AND user_id = ${userId}`
            if (found === undefined) return "unknown"
            if (found.active === 1) return "active"
            for (let left = eventsAtOnce; left > 0; ) {
              const [last] = yield* sql<RawRun>`SELECT ${columns} FROM runs
                WHERE conversation_id = ${conversationId} ORDER BY ord DESC, key DESC LIMIT 1`
              if (last === undefined) {
                yield* sql`DELETE FROM conversations WHERE conversation_id = ${conversationId}`
                return "deleted"
              }
              left -= runCosts + (yield* removeSome(toRun(last), left))
            }
            return "more"
          }),
        findWritten(isDeleted, (deleted) =>
          Effect.zipRight(
            Locks.conversation(sql, conversationId),
            Effect.map(sql`SELECT 1 FROM conversations WHERE conversation_id = ${conversationId}`, (rows) =>
              rows.length === 0 ? Option.some(deleted) : Option.none()
            )
          )
        )
      )
    )

  const outlived = ({ behind, endedBefore, limit, what }: Parameters<Encoded["outlived"]>[0]) =>
    Effect.map(
      read<RawRun>`SELECT ${read.literal(runColumns)} FROM runs WHERE ${read.and([
        read`ended_at <= ${endedBefore}`,
        ...(what === "log" ? [read`compacted_seq = 0`] : []),
        ...(behind === undefined ? [] : [read`(ended_at, key) > (${behind.endedAt}, ${behind.key})`])
      ])} ORDER BY ended_at, key LIMIT ${limit}`,
      (rows) => rows.map(toRun)
    )

  const compact = (
    key: number,
    lastSeq: number,
    { seq, state, turns }: EncodedBase
  ): Effect.Effect<boolean, SqlError> =>
    transaction(
      () =>
        Effect.gen(function* () {
          const moved = yield* sql`UPDATE runs SET compacted_seq = ${seq}
          WHERE key = ${key} AND last_seq = ${lastSeq} AND last_seq >= ${seq} AND compacted_seq < ${seq}
            AND ended_at IS NOT NULL RETURNING key`
          if (moved.length === 0) return false
          yield* sql`INSERT INTO bases ${sql.insert({ run_key: key, seq, turns, state, trimmed: 0 })}
          ON CONFLICT (run_key) DO UPDATE SET
            seq = excluded.seq, turns = excluded.turns, state = excluded.state, trimmed = 0`
          return true
        }),
      // What stands at the seq already was put there by this, or comes to the same.
      findWritten(isTrue, (done) =>
        Effect.map(
          sql<{ readonly seq: number }>`SELECT compacted_seq AS seq FROM runs WHERE key = ${key} FOR UPDATE`,
          ([row]) => (row?.seq === seq ? Option.some(done) : Option.none())
        )
      )
    )

  const untrimmed = read<{ readonly key: number | string; readonly seq: number }>`
    SELECT run_key AS key, seq FROM bases WHERE trimmed = 0 ORDER BY run_key LIMIT 1`

  const trim = (limit: number): Effect.Effect<boolean, SqlError> =>
    Effect.flatMap(untrimmed, ([found]) =>
      found === undefined
        ? Effect.succeed(false)
        : transaction(() =>
            Effect.gen(function* () {
              const key = Number(found.key)
              if ((yield* removeEvents(key, found.seq, limit)) < limit) {
                yield* sql`UPDATE bases SET trimmed = 1 WHERE run_key = ${key} AND seq = ${found.seq}`
              }
              return true
            })
          )
    )

  const expire = (key: number, endedBefore: number, limit: number): Effect.Effect<ExpireOutcome, SqlError> =>
    transaction(() =>
      Effect.gen(function* () {
        yield* Locks.conversationsOf(sql, { keys: [key] })
        const [found] = yield* sql<RawRun>`SELECT ${columns} FROM runs WHERE key = ${key}`
        if (found === undefined) return "removed"
        const run = toRun(found)
        if (run.endedAt === undefined || run.endedAt > endedBefore) return "kept"
        const { conversationId } = run
        const active = yield* sql`SELECT 1 FROM runs WHERE conversation_id = ${conversationId}
          AND status IN ('queued', 'running', 'streaming', 'waiting_approval') LIMIT 1`
        if (active.length > 0) return "kept"
        if ((yield* removeSome(run, limit)) === limit) return "more"
        yield* sql`DELETE FROM conversations WHERE conversation_id = ${conversationId}
          AND NOT EXISTS (SELECT 1 FROM runs WHERE conversation_id = ${conversationId})`
        return "removed"
      })
    )

  const pages = read<{ readonly all: number; readonly free: number; readonly size: number; readonly mode: number }>`
    SELECT page_count AS "all", freelist_count AS free, page_size AS size, auto_vacuum AS mode
    FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size(), pragma_auto_vacuum()`

  /** A statement of SQLite's gives back one page when it is run to its first result, which is all that a driver does. */
  const reclaim = (bytes: number): Effect.Effect<number, SqlError> =>
    Effect.flatMap(pages, ([found]) => {
      if (found === undefined || found.mode !== 2) return Effect.succeed(0)
      const wanted = Math.floor(bytes / found.size)
      const count = Math.min(wanted, Math.floor(found.free - spare.pages - found.all * spare.part))
      if (count <= 0) return Effect.succeed(0)
      return Effect.as(
        transaction((connection) => Effect.repeatN(connection.executeRaw("PRAGMA incremental_vacuum", []), count - 1)),
        count * found.size
      )
    })

  return {
    remove,
    removeConversation,
    outlived,
    compact,
    trim,
    expire,
    reclaim: sql.onDialectOrElse({ sqlite: () => reclaim, orElse: () => () => Effect.succeed(0) })
  }
}

const isTrue = (done: boolean): done is true => done

type Step = DeleteOutcome | "more"

const isDeleted = (outcome: Step): outcome is "deleted" => outcome === "deleted"

/** Steps that leave others their turn, until one says how it ended. What is gone by then was there at the first. */
const inSteps = (step: Effect.Effect<Step, SqlError>): Effect.Effect<DeleteOutcome, SqlError> => {
  const next: Effect.Effect<DeleteOutcome, SqlError> = Effect.flatMap(Effect.zipRight(Effect.sleep(0), step), (said) =>
    said === "more" ? next : Effect.succeed(said === "unknown" ? "deleted" : said)
  )
  return Effect.flatMap(step, (said) => (said === "more" ? next : Effect.succeed(said)))
}
