/**
 * How a run comes to be: one transaction that checks everything and then writes everything.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { EncodedCreate, EncodedCreateOutcome } from "../Encoded.js"
import type { SqlClock } from "./sqlClock.js"
import * as SqlEvents from "./sqlEvents.js"
import * as Locks from "./sqlLocks.js"
import type { Announce } from "./sqlNotices.js"
import * as Room from "./sqlRoom.js"
import { type RawRun, runColumns, toRun } from "./sqlRows.js"
import { type Closing, type Find, findWritten, type Transaction } from "./sqlTransaction.js"

interface Place {
  readonly existing: boolean
  /** The place of the run that a regeneration replaces. */
  readonly ord: number | undefined
}

/**
 * Makes the store's `create` from its transactions.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (sql: SqlClient.SqlClient, transaction: Transaction, clock: SqlClock, announce: Announce) => {
  const columns = sql.literal(runColumns)
  const insertEvents = SqlEvents.make(sql)
  const shared = Locks.areNeeded(sql)

  const used = ({ idempotency, userId }: EncodedCreate) =>
    idempotency === undefined
      ? Effect.succeed(undefined)
      : Effect.gen(function* () {
          const [found] = yield* sql<{ readonly bodyHash: string; readonly key: number }>`
            SELECT body_hash AS "bodyHash", run_key AS key FROM idempotency
            WHERE user_id = ${userId} AND key = ${idempotency.key}`
          if (found === undefined) return undefined
          if (found.bodyHash !== idempotency.bodyHash) return { _tag: "KeyReused" } as const
          const [row] = yield* sql<RawRun>`SELECT ${columns} FROM runs WHERE key = ${found.key}`
          return row && ({ _tag: "Duplicate", row: toRun(row) } as const)
        })

  const room = Room.make(sql)

  const alone = ({ conversationId, idempotency, userId }: EncodedCreate) =>
    Effect.zipRight(
      idempotency === undefined ? Effect.void : Locks.request(sql, userId, idempotency.key),
      Locks.conversation(sql, conversationId)
    )

  const checked = (run: EncodedCreate): Effect.Effect<EncodedCreateOutcome | Place, SqlError> =>
    Effect.gen(function* () {
      yield* alone(run)
      const duplicate = yield* used(run)
      if (duplicate !== undefined) return duplicate
      if (run.onlyRepeated === true) return { _tag: "New" }
      const { conversationId, regeneratedFrom, userId } = run
      const [conversation] = yield* sql<{ readonly userId: string }>`
        SELECT user_id AS "userId" FROM conversations WHERE conversation_id = ${conversationId}`
      if (conversation === undefined ? run.existing : conversation.userId !== userId) return { _tag: "Unknown" }
      let ord: number | undefined
      if (regeneratedFrom !== undefined) {
        const [old] = yield* sql<{ readonly ord: number | string; readonly later: number }>`
          SELECT ord, CASE WHEN EXISTS (
            SELECT 1 FROM runs AS later WHERE later.conversation_id = runs.conversation_id AND later.ord > runs.ord
          ) THEN 1 ELSE 0 END AS later
          FROM runs WHERE key = ${regeneratedFrom.key} AND conversation_id = ${conversationId}`
        if (old === undefined) return { _tag: "Unknown" }
        if (old.later === 1) return { _tag: "Superseded" }
        ord = Number(old.ord)
      }
      if (run.rejectIfBusy) {
        const [busy] = yield* sql<{ readonly runId: string }>`
          SELECT run_id AS "runId" FROM runs WHERE conversation_id = ${conversationId}
            AND status IN ('queued', 'running', 'streaming', 'waiting_approval') ORDER BY ord, key LIMIT 1`
        if (busy !== undefined) return { _tag: "Busy", runId: busy.runId }
      }
      // A refusal is cheap, so it comes before anything is written.
      const full = yield* room.full(run, conversation === undefined)
      return full ?? { existing: conversation !== undefined, ord }
    })

  const begun = (run: EncodedCreate, createdAt: number, updatedAt: number) =>
    Effect.gen(function* () {
      const { brought, conversationId, title, userId } = run
      yield* sql`INSERT INTO conversations ${sql.insert({
        conversation_id: conversationId,
        user_id: userId,
        title,
        created_at: createdAt,
        updated_at: updatedAt
      })}`
      for (const [index, { content, messageId, role }] of brought.entries()) {
        yield* sql`INSERT INTO messages ${sql.insert({
          message_id: messageId,
          conversation_id: conversationId,
          role,
          content,
          brought: index,
          created_at: createdAt
        })}`
      }
    })

  // The newest version of each exchange that stands before this one.
  const prefix = (conversationId: string, ord: number) =>
    sql<{ readonly runId: string }>`
      SELECT run_id AS "runId" FROM runs WHERE conversation_id = ${conversationId} AND ord < ${ord}
        AND NOT EXISTS (
          SELECT 1 FROM runs AS newer
          WHERE newer.conversation_id = runs.conversation_id AND newer.ord = runs.ord AND newer.key > runs.key
        ) ORDER BY ord`

  const written = (run: EncodedCreate, place: Place) =>
    Effect.gen(function* () {
      const createdAt = run.events[0]?.createdAt ?? (yield* clock.now)
      const updatedAt = run.events.at(-1)?.createdAt ?? createdAt
      const { conversationId, idempotency, userId } = run
      if (place.existing) {
        yield* sql`UPDATE conversations SET updated_at = ${updatedAt} WHERE conversation_id = ${conversationId}`
      } else {
        yield* begun(run, createdAt, updatedAt)
      }
      const [inserted] = yield* sql<{ readonly key: number | string }>`INSERT INTO runs ${sql.insert({
        run_id: run.runId,
        user_id: userId,
        conversation_id: conversationId,
        user_message_id: run.userMessageId,
        assistant_message_id: run.assistantMessageId,
        model: run.model,
        mode: run.mode,
        status: "queued",
        regenerated_from: run.regeneratedFrom?.runId ?? null,
        ord: place.ord ?? 0,
        last_seq: run.events.length,
        usage: '{"inputTokens":0,"outputTokens":0,"totalTokens":0}',
        created_at: createdAt,
        updated_at: updatedAt
      })} RETURNING key`
      const key = Number(inserted?.key)
      const ord = place.ord ?? key
      const [row] = yield* sql<RawRun>`UPDATE runs SET ord = ${ord} WHERE key = ${key} RETURNING ${columns}`
      const earlier = place.existing ? yield* prefix(conversationId, ord) : []
      yield* sql`INSERT INTO inputs ${sql.insert({
        run_key: key,
        json: run.input,
        prefix: JSON.stringify(earlier.map(({ runId }) => runId))
      })}`
      yield* sql`INSERT INTO messages ${sql.insert([
        message(run.userMessageId, conversationId, "user", run.userMessage, createdAt),
        message(run.assistantMessageId, conversationId, "assistant", "", createdAt)
      ])} ON CONFLICT (message_id) DO NOTHING`
      if (idempotency !== undefined) {
        yield* sql`INSERT INTO idempotency ${sql.insert({
          user_id: userId,
          key: idempotency.key,
          body_hash: idempotency.bodyHash,
          run_key: key
        })}`
      }
      return { key, row }
    })

  const made = (
    connection: Connection,
    closing: Closing,
    run: EncodedCreate
  ): Effect.Effect<EncodedCreateOutcome, SqlError> =>
    Effect.gen(function* () {
      const place = yield* checked(run)
      if ("_tag" in place) return place
      const { key, row } = yield* written(run, place)
      yield* insertEvents(connection, [{ key, after: 0, events: run.events }])
      yield* announce({ keys: [key], work: true, left: false })
      // Others may have filled meanwhile what there was room in.
      if (shared) closing(Locks.admission(room.isTooMuch(run, !place.existing, key)))
      return row === undefined
        ? yield* Effect.dieMessage("A run that was inserted is not there")
        : ({ _tag: "Created", row: toRun(row) } as const)
    })

  /** The run under its id, which nobody gives to another. It may have begun meanwhile. */
  const stored = (run: EncodedCreate): Find<EncodedCreateOutcome> =>
    findWritten(isCreated, () =>
      Effect.zipRight(
        alone(run),
        Effect.map(sql<RawRun>`SELECT ${columns} FROM runs WHERE run_id = ${run.runId}`, ([row]) =>
          row === undefined ? Option.none() : Option.some({ _tag: "Created" as const, row: toRun(row) })
        )
      )
    )

  return (run: EncodedCreate): Effect.Effect<EncodedCreateOutcome, SqlError> =>
    transaction((connection, closing) => made(connection, closing, run), stored(run))
}

type Created = Extract<EncodedCreateOutcome, { readonly _tag: "Created" | "Duplicate" }>

const isCreated = (outcome: EncodedCreateOutcome): outcome is Created => outcome._tag === "Created"

const message = (id: string, conversationId: string, role: string, content: string, createdAt: number) => ({
  message_id: id,
  conversation_id: conversationId,
  role,
  content,
  created_at: createdAt
})
