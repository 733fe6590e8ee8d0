/**
 * How a process takes runs: the next one of the queue, and those that others have left behind.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Order from "effect/Order"
import type { Encoded, EncodedRow } from "../Encoded.js"
import type { SqlClock } from "./sqlClock.js"
import { retryBusy } from "./sqlErrors.js"
import * as Locks from "./sqlLocks.js"
import type { Announce } from "./sqlNotices.js"
import { executing as executed, firstRun, type RawRun, runColumns, toRun } from "./sqlRows.js"
import { type Closing, findWritten, type Transaction } from "./sqlTransaction.js"

/** How long the others have for taking a run. */
const courtesy = "50 millis"

type Queued = Parameters<Encoded["claimQueued"]>[0]
type Abandoned = Parameters<Encoded["claimAbandoned"]>[0]

const isTaken = (run: EncodedRow | undefined): run is EncodedRow => run !== undefined
const areTaken = (runs: ReadonlyArray<EncodedRow>): runs is Arr.NonEmptyReadonlyArray<EncodedRow> => runs.length > 0

const inOrder = Order.mapInput(
  Order.tuple(Order.number, Order.number),
  ({ key, ord }: EncodedRow) => [ord, key] as const
)
const toRuns = (rows: ReadonlyArray<RawRun>): ReadonlyArray<EncodedRow> => Arr.sort(rows.map(toRun), inOrder)

/** The condition that more runs are executed than may be, with this one. */
const isTooMuch = (key: number, { maxConcurrent, maxPerUser }: Queued): string => {
  const own = `${executed} AND user_id = (SELECT me.user_id FROM runs AS me WHERE me.key = ${key})`
  return `(${executed}) > ${maxConcurrent}${maxPerUser === null ? "" : ` OR (${own}) > ${maxPerUser}`}`
}

/**
 * Makes the store's claims from transactions of `write`; `read` sees what is committed. `others`: how many other
 * processes take runs from the same queue.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  write: SqlClient.SqlClient,
  read: SqlClient.SqlClient,
  transaction: Transaction,
  clock: SqlClock,
  { announce, others }: { readonly announce: Announce; readonly others: Effect.Effect<number> }
) => {
  const columns = write.literal(runColumns)
  const shared = Locks.areNeeded(write)
  const skipLocked = write.literal(shared ? "FOR UPDATE SKIP LOCKED" : "")
  const skipQueued = write.literal(shared ? "FOR UPDATE OF q SKIP LOCKED" : "")

  // Asking first, outside of a transaction, keeps an idle process from taking the lock again and again.
  const ifAny = <A>(
    question: Effect.Effect<ReadonlyArray<unknown>, SqlError>,
    action: Effect.Effect<A, SqlError>,
    nothing: A
  ): Effect.Effect<A, SqlError> =>
    Effect.flatMap(retryBusy(question), (rows) => (rows.length === 0 ? Effect.succeed(nothing) : action))

  /**
   * Which of the runs are held as they were claimed. A claim is named by the epoch that it gave to the run. Whoever still
   * writes it holds the row, so the rows are asked for by nothing that the claim may be about to change.
   */
  const held = (owner: string, runs: Arr.NonEmptyReadonlyArray<EncodedRow>) => {
    const epochs = new Map(runs.map(({ epoch, key }) => [key, epoch]))
    const keys = write.in("key", [...epochs.keys()])
    return Effect.map(write<RawRun>`SELECT ${columns} FROM runs WHERE ${keys} ORDER BY key FOR UPDATE`, (rows) =>
      toRuns(rows).filter((run) => run.owner === owner && run.epoch === epochs.get(run.key))
    )
  }

  const executing = write.literal(executed)

  /** Whether an owner has no more than its share of what is executed by so many. */
  const hasRoom = (owner: string, among: number) =>
    among === 1
      ? write.literal("")
      : write`AND (${executing} AND owner = ${owner}) * ${write.literal(String(among))} <= (${executing})`

  const next = ({ maxConcurrent, maxPerUser, owner, ttlMs }: Queued, among: number) =>
    Effect.flatMap(
      Effect.all([clock.at(0), clock.at(ttlMs)]),
      ([now, then]) => write<RawRun>`
        UPDATE runs SET status = 'running', started = 1 + (SELECT MAX(started) FROM runs), epoch = epoch + 1, last_seq = last_seq + 1,
          owner = ${owner}, lease_expires_at = ${then}, updated_at = ${now}
        WHERE key = (
          SELECT q.key FROM runs AS q LEFT JOIN (
            SELECT user_id, COUNT(*) AS n FROM runs WHERE status IN ('running', 'streaming') GROUP BY user_id
          ) AS busy ON busy.user_id = q.user_id
          WHERE q.status = 'queued'
            AND (${executing}) < ${maxConcurrent} ${hasRoom(owner, among)}
            AND COALESCE(busy.n, 0) < ${maxPerUser ?? Number.MAX_SAFE_INTEGER}
            AND NOT EXISTS (
              SELECT 1 FROM runs AS o WHERE o.conversation_id = q.conversation_id AND o.key <> q.key
                AND o.status IN ('queued', 'running', 'streaming', 'waiting_approval')
                AND (o.status <> 'queued' OR o.ord < q.ord OR (o.ord = q.ord AND o.key < q.key))
            )
          ORDER BY CASE WHEN q.started > 0 THEN 0 ELSE 1 END, COALESCE(busy.n, 0),
            (SELECT MAX(mine.started) FROM runs AS mine WHERE mine.user_id = q.user_id), q.ord, q.key LIMIT 1
          ${skipQueued}
        ) RETURNING ${columns}`
    )

  const take = (claim: Queued, among: number) =>
    transaction(
      (_: Connection, closing: Closing) =>
        Effect.gen(function* () {
          const run = firstRun(yield* next(claim, among))
          if (run === undefined) return undefined
          const { json, type } = claim.started
          const createdAt = run.updatedAt
          const event = { run_key: run.key, seq: run.lastSeq, type, json, created_at: createdAt }
          yield* write`INSERT INTO events ${write.insert(event)}`
          const told = { key: run.key, after: run.lastSeq - 1, events: [{ type, json, createdAt }] }
          yield* announce({ appended: [told], work: false, left: false })
          // Others may have begun meanwhile as many as may be executed.
          if (shared) closing(Locks.admission(isTooMuch(run.key, claim)))
          return run
        }),
      findWritten(isTaken, (run) => Effect.map(held(claim.owner, [run]), Arr.head))
    )

  /** Who has more than its share lets the others go first. */
  const shareOf = (claim: Queued) =>
    Effect.flatMap(others, (count) =>
      count === 0
        ? take(claim, 1)
        : Effect.flatMap(take(claim, count + 1), (run) =>
            run !== undefined ? Effect.succeed(run) : Effect.zipRight(Effect.sleep(courtesy), take(claim, 1))
          )
    )

  const isAbandoned = (now: Fragment | number, dead: ReadonlyArray<string>) =>
    read`status IN ('running', 'streaming')
      AND (owner IS NULL OR lease_expires_at IS NULL OR lease_expires_at <= ${now} OR ${read.in("owner", dead)})`

  return {
    queued: (claim: Queued): Effect.Effect<EncodedRow | undefined, SqlError> =>
      ifAny(read`SELECT 1 FROM runs WHERE status = 'queued' LIMIT 1`, shareOf(claim), undefined),

    abandoned: ({ dead = [], limit, owner, ttlMs }: Abandoned): Effect.Effect<ReadonlyArray<EncodedRow>, SqlError> =>
      Effect.flatMap(Effect.all([clock.at(0), clock.at(ttlMs)]), ([now, then]) =>
        ifAny(
          read`SELECT 1 FROM runs WHERE ${isAbandoned(now, dead)} LIMIT 1`,
          Effect.flatMap(others, (count) =>
            transaction(
              () =>
                // What is named apart is looked for once; inside of the condition it may be looked for again, behind a limit
                // that then counts nothing.
                Effect.map(
                  write<RawRun>`
                    WITH behind AS (
                      SELECT key FROM runs WHERE ${isAbandoned(now, dead)} ORDER BY ord, key
                      LIMIT ${Math.ceil(limit / (1 + count))} ${skipLocked}
                    )
                    UPDATE runs SET epoch = epoch + 1, owner = ${owner}, lease_expires_at = ${then}
                    WHERE key IN (SELECT key FROM behind) RETURNING ${columns}`,
                  toRuns
                ),
              findWritten(areTaken, (runs) => Effect.map(held(owner, runs), Option.liftPredicate(areTaken)))
            )
          ),
          []
        )
      )
  }
}
