/**
 * The store in an SQL database, for every dialect. All that writes goes through the write client in transactions of
 * one writer; all that reads goes through the read client and sees what is committed.
 *
 * @since 0.1.0
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import { ReadClient, WriteClient } from "../tool/SqlClients.js"
import {
  type Encoded,
  type EncodedBase,
  type EncodedInput,
  type EncodedSide,
  type EncodedTurn,
  makeEncoded
} from "./Encoded.js"
import * as SqlAppend from "./internal/sqlAppend.js"
import * as SqlClaims from "./internal/sqlClaims.js"
import * as SqlClock from "./internal/sqlClock.js"
import * as SqlConversations from "./internal/sqlConversations.js"
import * as SqlCreate from "./internal/sqlCreate.js"
import * as SqlErrors from "./internal/sqlErrors.js"
import { retryBusy } from "./internal/sqlErrors.js"
import * as Locks from "./internal/sqlLocks.js"
import * as SqlMigrations from "./internal/sqlMigrations.js"
import { type Announce, silent } from "./internal/sqlNotices.js"
import * as SqlQueue from "./internal/sqlQueue.js"
import * as SqlRetention from "./internal/sqlRetention.js"
import {
  firstRun,
  type RawConversation,
  type RawEvent,
  type RawRun,
  runColumns,
  toConversation,
  toEvent,
  toRun
} from "./internal/sqlRows.js"
import * as SqlTransaction from "./internal/sqlTransaction.js"
import { repeatable } from "./internal/sqlTransaction.js"
import { type Census, type Change, type Compaction, RunStore, type StoreError } from "./RunStore.js"

const quiet = Effect.withTracerEnabled(false)

/**
 * - `changes`: tells of other processes' commits
 * - `clock`: whose time leases and expiries are measured by (default: the program's)
 * - `announce`: how other processes are told of a commit (default: they find out)
 * - `writers`: how many connections the write client has (default 1)
 * - `others`: how many other processes take runs from the same queue (default: none are known)
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly changes: Stream.Stream<Change>
  readonly clock?: SqlClock.SqlClock | undefined
  readonly announce?: Announce | undefined
  readonly writers?: number | undefined
  readonly others?: Effect.Effect<number> | undefined
}

const makeDriver = Effect.fnUntraced(function* ({
  announce = silent,
  changes,
  clock = SqlClock.program,
  others = Effect.succeed(0),
  writers = 1
}: Options) {
  const write = (yield* WriteClient).withoutTransforms()
  const sql = (yield* ReadClient).withoutTransforms()
  // What changes the rows of many runs at once is done by one; a database of one writer has no other.
  const transaction = SqlTransaction.make(write)
  // However many requests come in, what they have begun is taken up.
  const claiming = writers === 1 ? transaction : SqlTransaction.make(write)
  const beside = writers === 1 ? transaction : SqlTransaction.make(write, Math.max(1, writers - 2))
  const append = SqlAppend.make(write, transaction, clock, announce)
  const create = SqlCreate.make(write, beside, clock, announce)
  const claims = SqlClaims.make(write, sql, claiming, clock, { announce, others })
  const retention = SqlRetention.make(write, sql, beside, announce)
  const conversations = SqlConversations.make(sql)
  const columns = sql.literal(runColumns)

  const written =
    (method: string) =>
    <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, StoreError> =>
      Effect.mapError(quiet(effect), SqlErrors.refail(method))
  const reading =
    (method: string) =>
    <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, StoreError> =>
      Effect.mapError(quiet(retryBusy(effect)), SqlErrors.refail(method))

  const first = <A>(rows: ReadonlyArray<A>): A | undefined => rows[0]

  const saveCompaction = ({
    conversationId,
    madeAt,
    madeIn,
    summary,
    uptoIteration,
    uptoRunId
  }: Compaction): Effect.Effect<void, SqlError> =>
    beside(
      () =>
        Effect.zipRight(
          Locks.conversation(write, conversationId),
          Effect.asVoid(write`
            INSERT INTO compactions (conversation_id, upto_key, upto_iteration, summary, made_in_key, made_at)
            SELECT upto.conversation_id, upto.key, CAST(${uptoIteration} AS INTEGER), ${summary}, maker.key,
              CAST(${madeAt} AS INTEGER)
            FROM runs AS upto JOIN runs AS maker ON maker.conversation_id = upto.conversation_id
            WHERE upto.conversation_id = ${conversationId} AND upto.run_id = ${uptoRunId}
              AND maker.run_id = ${madeIn}`)
        ),
      () =>
        Effect.zipRight(
          Locks.conversation(write, conversationId),
          Effect.map(
            write`SELECT 1 FROM compactions
              JOIN runs AS upto ON upto.key = upto_key JOIN runs AS maker ON maker.key = made_in_key
              WHERE compactions.conversation_id = ${conversationId} AND upto.run_id = ${uptoRunId}
                AND upto_iteration = ${uptoIteration} AND summary = ${summary}
                AND maker.run_id = ${madeIn} AND made_at = ${madeAt}`,
            (rows) => (rows.length > 0 ? Option.some(undefined) : Option.none())
          )
        )
    )

  const size: Effect.Effect<Pick<Census, "bytes" | "freeBytes">, SqlError> = sql.onDialectOrElse({
    pg: () =>
      Effect.map(
        sql<{ readonly bytes: number | string }>`SELECT pg_database_size(current_database()) AS bytes`,
        (rows) => (rows[0] === undefined ? {} : { bytes: Number(rows[0].bytes) })
      ),
    sqlite: () =>
      Effect.map(
        sql<{ readonly bytes: number; readonly freeBytes: number }>`
          SELECT page_count * page_size AS bytes, freelist_count * page_size AS "freeBytes"
          FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`,
        (rows) => rows[0] ?? {}
      ),
    orElse: () => Effect.succeed({})
  })

  const driver: Encoded = {
    now: reading("now")(clock.now),
    create: (run) => written("create")(create(run)),
    append: (batch) => Effect.mapError(append(batch), SqlErrors.refail("append")),
    claimQueued: (claim) => written("claimQueued")(claims.queued(claim)),
    claimAbandoned: (claim) => written("claimAbandoned")(claims.abandoned(claim)),
    renew: ({ owner, ttlMs }) =>
      written("renew")(
        Effect.flatMap(clock.at(ttlMs), (then) =>
          Effect.asVoid(
            transaction(
              () => write`UPDATE runs SET lease_expires_at = ${then}
                WHERE owner = ${owner} AND status IN ('running', 'streaming')`,
              repeatable
            )
          )
        )
      ),
    owned: (owner) =>
      reading("owned")(
        Effect.map(
          sql<{ readonly key: number | string; readonly epoch: number; readonly lastSeq: number }>`
            SELECT key, epoch, last_seq AS "lastSeq" FROM runs
            WHERE owner = ${owner} AND status IN ('running', 'streaming')`,
          (rows) => rows.map((row) => ({ ...row, key: Number(row.key) }))
        )
      ),
    release: ({ epoch, key }) =>
      written("release")(
        Effect.asVoid(
          transaction(
            () =>
              Effect.zipRight(
                write`UPDATE runs SET owner = NULL, lease_expires_at = NULL WHERE key = ${key} AND epoch = ${epoch}`,
                announce({ keys: [], work: false, left: true })
              ),
            repeatable
          )
        )
      ),
    owners: reading("owners")(
      Effect.map(
        sql<{ readonly owner: string }>`
          SELECT DISTINCT owner FROM runs WHERE status IN ('running', 'streaming') AND owner IS NOT NULL`,
        (rows) => rows.map(({ owner }) => owner)
      )
    ),
    find: ({ runId, userId }) =>
      reading("find")(
        Effect.map(sql<RawRun>`SELECT ${columns} FROM runs WHERE run_id = ${runId} AND user_id = ${userId}`, firstRun)
      ),
    row: (key) => reading("row")(Effect.map(sql<RawRun>`SELECT ${columns} FROM runs WHERE key = ${key}`, firstRun)),
    input: (key) =>
      reading("input")(
        Effect.gen(function* () {
          const [found] = yield* sql<{
            readonly json: string
            readonly prefix: string
            readonly conversationId: string
          }>`
            SELECT json, prefix, conversation_id AS "conversationId"
            FROM inputs JOIN runs ON runs.key = inputs.run_key WHERE run_key = ${key}`
          if (found === undefined) return undefined
          const messages = yield* conversations.brought(found.conversationId)
          const input: EncodedInput = {
            json: found.json,
            runs: found.prefix,
            brought: messages.map(({ content, role }) => ({ role, content }))
          }
          return input
        })
      ),
    events: ({ after, key, limit }) =>
      reading("events")(
        Effect.map(
          sql<RawEvent>`SELECT seq, type, json, created_at AS "createdAt" FROM events
            WHERE run_key = ${key} AND seq > ${after} ORDER BY seq LIMIT ${limit}`,
          (rows) => rows.map(toEvent)
        )
      ),
    checkpoints: (key) =>
      reading("checkpoints")(
        Effect.map(
          sql<RawEvent>`SELECT seq, type, json, created_at AS "createdAt" FROM events
            WHERE run_key = ${key} AND type = 'checkpoint' ORDER BY seq`,
          (rows) => rows.map(toEvent)
        )
      ),
    turns: ({ key, upTo = Number.MAX_SAFE_INTEGER }) =>
      reading("turns")(
        sql<EncodedTurn>`SELECT n, seq, turn, header FROM turns WHERE run_key = ${key} AND seq <= ${upTo} ORDER BY n`
      ),
    sides: (key) =>
      reading("sides")(sql<EncodedSide>`SELECT iteration, data FROM sides WHERE run_key = ${key} ORDER BY iteration`),
    queuePosition: (key) => reading("queuePosition")(SqlQueue.position(sql, key)),
    list: ({ before = Number.MAX_SAFE_INTEGER, conversationId, limit, status, userId }) =>
      reading("list")(
        Effect.map(
          sql<RawRun>`SELECT ${columns} FROM runs WHERE ${sql.and([
            sql`user_id = ${userId}`,
            sql`key < ${before}`,
            ...(conversationId === undefined ? [] : [sql`conversation_id = ${conversationId}`]),
            ...(status === undefined ? [] : [sql`status = ${status}`])
          ])} ORDER BY key DESC LIMIT ${limit}`,
          (rows) => rows.map(toRun)
        )
      ),
    due: (limit) =>
      reading("due")(
        Effect.flatMap(clock.at(0), (now) =>
          Effect.map(
            sql<{ readonly key: number | string }>`SELECT key FROM runs
              WHERE status = 'waiting_approval' AND next_expiry <= ${now} ORDER BY next_expiry LIMIT ${limit}`,
            (rows) => rows.map(({ key }) => Number(key))
          )
        )
      ),
    supersedable: ({ before, conversationId }) =>
      reading("supersedable")(
        Effect.map(
          sql<RawRun>`SELECT ${columns} FROM runs
            WHERE conversation_id = ${conversationId} AND ord <= ${before.ord}
              AND (ord < ${before.ord} OR key < ${before.key}) AND status = 'failed' AND recoverable = 1
            ORDER BY ord, key`,
          (rows) => rows.map(toRun)
        )
      ),
    remove: ({ runId, userId }) => written("remove")(retention.remove(runId, userId)),
    base: (key) =>
      reading("base")(
        Effect.map(sql<EncodedBase>`SELECT seq, turns, state FROM bases WHERE run_key = ${key}`, (rows) => rows[0])
      ),
    outlived: (query) => reading("outlived")(retention.outlived(query)),
    compact: ({ base, key, lastSeq }) => written("compact")(retention.compact(key, lastSeq, base)),
    trim: (limit) => written("trim")(retention.trim(limit)),
    expire: ({ endedBefore, key, limit }) => written("expire")(retention.expire(key, endedBefore, limit)),
    reclaim: (bytes) => written("reclaim")(retention.reclaim(bytes)),
    conversations: ({ before, limit, userId }) =>
      reading("conversations")(
        Effect.map(
          sql<RawConversation>`SELECT ${sql.literal(SqlConversations.columns)} FROM ${sql.literal(SqlConversations.tables)}
            WHERE ${sql.and([
              sql`conversations.user_id = ${userId}`,
              ...(before === undefined
                ? []
                : [
                    sql`(conversations.updated_at, conversations.conversation_id)
                      < (${before.updatedAt}, ${before.conversationId})`
                  ])
            ])}
            ORDER BY conversations.updated_at DESC, conversations.conversation_id DESC LIMIT ${limit}`,
          (rows) => rows.map(toConversation)
        )
      ),
    conversation: (query) => reading("conversation")(conversations.page(query)),
    questions: ({ conversationId, userId }) => reading("questions")(conversations.questions(conversationId, userId)),
    renameConversation: ({ conversationId, title, userId }) =>
      written("renameConversation")(
        Effect.map(
          beside(
            () => write`UPDATE conversations SET title = ${title}
              WHERE conversation_id = ${conversationId} AND user_id = ${userId} RETURNING conversation_id`,
            repeatable
          ),
          (rows) => first(rows) !== undefined
        )
      ),
    removeConversation: ({ conversationId, userId }) =>
      written("removeConversation")(retention.removeConversation(conversationId, userId)),
    compactions: (conversationId) =>
      reading("compactions")(
        sql<Compaction>`SELECT compactions.conversation_id AS "conversationId", upto.run_id AS "uptoRunId",
            upto_iteration AS "uptoIteration", summary, maker.run_id AS "madeIn", made_at AS "madeAt"
          FROM compactions
          JOIN runs AS upto ON upto.key = upto_key JOIN runs AS maker ON maker.key = made_in_key
          WHERE compactions.conversation_id = ${conversationId} ORDER BY compactions.id`
      ),
    saveCompaction: (compaction) => written("saveCompaction")(saveCompaction(compaction)),
    census: reading("census")(
      Effect.gen(function* () {
        const counts = yield* sql<{ readonly status: keyof Census; readonly n: number | string }>`
          SELECT status, COUNT(*) AS n FROM runs
          WHERE status IN ('queued', 'running', 'streaming', 'waiting_approval') GROUP BY status`
        const of = (status: keyof Census) => Number(counts.find((one) => one.status === status)?.n ?? 0)
        const census: Census = {
          queued: of("queued"),
          running: of("running"),
          streaming: of("streaming"),
          waiting_approval: of("waiting_approval"),
          ...(yield* size)
        }
        return census
      })
    ),
    changes,
    ready: Effect.isSuccess(quiet(sql`SELECT 1 FROM runs LIMIT 1`))
  }
  return driver
})

/**
 * Brings the tables up to date. Fails for a database that is broken or that a newer version has changed.
 *
 * @since 0.1.0
 * @category migrations
 */
export const migrate: Effect.Effect<void, StoreError, WriteClient> = SqlMigrations.migrate

/**
 * Fails unless the tables are up to date already.
 *
 * @since 0.1.0
 * @category migrations
 */
export const expectCurrent: Effect.Effect<void, StoreError, ReadClient> = SqlMigrations.expectCurrent

/**
 * The store over two clients whose database is migrated.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<RunStore["Type"], never, WriteClient | ReadClient> =>
  Effect.map(makeDriver(options), makeEncoded)

/**
 * The store over two clients whose database is migrated.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<RunStore, never, WriteClient | ReadClient> =>
  Layer.effect(RunStore, make(options))
