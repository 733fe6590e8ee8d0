/**
 * Moving all that one database holds to another: a file to a file, to PostgreSQL, or back.
 *
 * @since 0.1.0
 */
import { existsSync, mkdirSync, realpathSync, rmSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Snapshot from "../domain/Snapshot.js"
import * as RunLog from "../engine/RunLog.js"
import * as PgClient from "../store/internal/pgClient.js"
import * as SqlClock from "../store/internal/sqlClock.js"
import { codeOf } from "../store/internal/sqlErrors.js"
import * as SqlTransaction from "../store/internal/sqlTransaction.js"
import * as Postgres from "../store/Postgres.js"
import type { RunStore, StoreError } from "../store/RunStore.js"
import * as SqlCopy from "../store/SqlCopy.js"
import * as Sqlite from "../store/Sqlite.js"
import * as SqlStore from "../store/SqlStore.js"
import * as PostgresDocuments from "../tool/documents/PostgresDocuments.js"
import * as SqliteDocuments from "../tool/documents/SqliteDocuments.js"
import { ReadClient, WriteClient } from "../tool/SqlClients.js"

/**
 * Nothing was moved. `reason`:
 *
 * - `missing`, `foreign`, `older`, `newer`: there is no database at `from`, none of Runlet, or one of another version
 * - `busy`: somebody uses `from`
 * - `same`: both are one database
 * - `full`: there is something in `to` already
 * - `different`: the copy was not what it should be, and was thrown away; `what` names tables and runs
 * - `failed`: what the system said
 *
 * @since 0.1.0
 * @category errors
 */
export class MigrateError extends Schema.TaggedError<MigrateError>()("MigrateError", {
  reason: Schema.Literal("missing", "foreign", "older", "newer", "busy", "same", "full", "different", "failed"),
  what: Schema.optional(Schema.Array(Schema.String)),
  cause: Schema.optional(Schema.Defect)
}) {}

/**
 * What was moved: how many rows of each table, how many runs were compared as folds of their logs, those of them that
 * could not be read before either, and the tables that are not Runlet's own and stayed behind.
 *
 * @since 0.1.0
 * @category models
 */
export interface Moved {
  readonly rows: Readonly<Record<string, number>>
  readonly compared: number
  readonly unreadable: ReadonlyArray<string>
  readonly left: ReadonlyArray<string>
}

/**
 * How far it is: rows copied of a table, or runs compared.
 *
 * @since 0.1.0
 * @category models
 */
export type Progress =
  | ({ readonly type: "copied" } & SqlCopy.Progress)
  | { readonly type: "compared"; readonly done: number; readonly total: number }

const failed = (cause: SqlError | StoreError): MigrateError => {
  const error = cause._tag === "StoreError" ? cause.cause : cause
  const code = error instanceof SqlError ? codeOf(error) : ""
  if (/^(SQLITE_(BUSY|LOCKED)|55P03$)/.test(code)) return new MigrateError({ reason: "busy", cause })
  return new MigrateError({ reason: code === "SQLITE_NOTADB" ? "foreign" : "failed", cause })
}

/** Connections of a move are told from those of servers by their name. */
const ours = "runlet-migrate"

const urlOf = (address: string): Effect.Effect<Redacted.Redacted, MigrateError> =>
  Effect.try({
    try: () => {
      const url = new URL(address)
      url.searchParams.set("application_name", ours)
      return Redacted.make(url.href)
    },
    catch: () => new MigrateError({ reason: "failed", cause: new Error("The address is not well-formed") })
  })

const openSource = (from: string): Effect.Effect<SqlClient.SqlClient, MigrateError, Scope.Scope> => {
  if (Postgres.isAddress(from)) return Effect.flatMap(urlOf(from), (url) => PgClient.make({ url, max: 2 }))
  return existsSync(from)
    ? Effect.mapError(Sqlite.alone(from), failed)
    : Effect.fail(new MigrateError({ reason: "missing" }))
}

/** A file that nobody else has open is ours alone. Of a server's database each server has a connection, and its leases. */
const expectUnused = (sql: SqlClient.SqlClient): Effect.Effect<void, MigrateError | SqlError> =>
  sql.onDialectOrElse({
    pg: () =>
      Effect.gen(function* () {
        const now = yield* SqlClock.postgres(sql).now
        const used = yield* sql`
          SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'runlet'
          UNION ALL
          SELECT 1 FROM runs WHERE status IN ('running', 'streaming') AND lease_expires_at > ${now}`
        if (used.length > 0) return yield* new MigrateError({ reason: "busy" })
      }),
    orElse: () => Effect.void
  })

/** Whoever writes waits, or gives up, until the transaction has ended. It may last as long as there is something to do. */
const lock = (sql: SqlClient.SqlClient, mode: "SHARE" | "EXCLUSIVE"): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () =>
      Effect.gen(function* () {
        yield* sql`SET LOCAL idle_in_transaction_session_timeout = 0`
        yield* sql`SET LOCAL statement_timeout = 0`
        const names = (yield* SqlCopy.present(SqlCopy.plain(sql))).map(({ name }) => `"${name}"`)
        yield* sql.unsafe(`LOCK TABLE ${names.join(", ")} IN ${mode} MODE`)
      }),
    orElse: () => Effect.void
  })

/** A file that was not there goes again when nothing came of it. */
const openTarget = (to: string): Effect.Effect<SqlClient.SqlClient, MigrateError, Scope.Scope> =>
  Effect.gen(function* () {
    if (Postgres.isAddress(to)) {
      const url = yield* urlOf(to)
      return Context.get(yield* Effect.mapError(Layer.build(Postgres.layer({ url })), failed), WriteClient)
    }
    const fresh = !existsSync(to)
    if (fresh) {
      yield* Effect.addFinalizer((exit) =>
        exit._tag === "Success"
          ? Effect.void
          : Effect.sync(() => {
              for (const suffix of ["", "-wal", "-shm"]) rmSync(to + suffix, { force: true })
            })
      )
      yield* Effect.try({
        try: () => mkdirSync(dirname(to), { recursive: true, mode: 0o700 }),
        catch: (cause) => new MigrateError({ reason: "failed", cause })
      })
    }
    const clients = yield* Effect.mapError(Layer.build(Sqlite.layer({ filename: to })), failed)
    return Context.get(clients, WriteClient)
  })

const clientsOf = (sql: SqlClient.SqlClient) => Context.make(WriteClient, sql).pipe(Context.add(ReadClient, sql))

const storeOf = (sql: SqlClient.SqlClient): Effect.Effect<RunStore["Type"]> =>
  Effect.provide(SqlStore.make({ changes: Stream.never }), clientsOf(sql))

const expectKnown = (sql: SqlClient.SqlClient): Effect.Effect<void, MigrateError> =>
  Effect.gen(function* () {
    const tables = yield* Effect.mapError(SqlCopy.present(SqlCopy.plain(sql)), failed)
    if (!tables.some(({ name }) => name === "runs")) return yield* new MigrateError({ reason: "foreign" })
    yield* Effect.mapError(Effect.provide(SqlStore.expectCurrent, clientsOf(sql)), (error) =>
      error.cause === undefined || error.reason === "corrupt"
        ? failed(error)
        : new MigrateError({ reason: error.reason === "newer" ? "newer" : "older", cause: error })
    )
  })

interface Run {
  readonly key: number | string
  readonly runId: string
  readonly compactedSeq: number
}

const runPage = 500

/** Every run of the copy, as its events and as its turns tell it, against the run that it was copied from. */
const compare = (
  from: SqlCopy.Side,
  to: SqlCopy.Side,
  tell: (progress: Progress) => Effect.Effect<void>
): Effect.Effect<Pick<Moved, "compared" | "unreadable"> & { readonly different: ReadonlyArray<string> }, SqlError> =>
  Effect.gen(function* () {
    const [source, target] = [yield* storeOf(from.sql), yield* storeOf(to.sql)]
    const told = (store: RunStore["Type"], run: { readonly key: number; readonly runId: string }) =>
      Effect.map(Effect.either(RunLog.load(store, run)), (state) =>
        Either.isRight(state) ? JSON.stringify(Snapshot.of(state.right)) : undefined
      )
    const [count] = yield* from.within(from.sql<{ readonly n: number | string }>`SELECT COUNT(*) AS n FROM runs`)
    const total = Number(count?.n ?? 0)
    const unreadable: Array<string> = []
    const different: Array<string> = []
    let compared = 0
    let last = 0
    while (true) {
      const runs = yield* from.within(from.sql<Run>`
        SELECT key, run_id AS "runId", compacted_seq AS "compactedSeq" FROM runs
        WHERE key > ${last} ORDER BY key LIMIT ${runPage}`)
      for (const { compactedSeq, key, runId } of runs) {
        const run = { key: Number(key), runId }
        const original = yield* from.within(told(source, run))
        const copied = yield* to.within(told(target, run))
        if (original === undefined) unreadable.push(runId)
        let same = original === copied
        if (same && original !== undefined && compactedSeq === 0) {
          const replayed = yield* to.within(Effect.either(RunLog.replay(target, run)))
          same =
            Either.isRight(replayed) &&
            replayed.right !== undefined &&
            JSON.stringify(Snapshot.of(replayed.right)) === original
        }
        if (!same) different.push(runId)
        compared++
        last = run.key
      }
      if (runs.length > 0) yield* tell({ type: "compared", done: compared, total })
      if (runs.length < runPage) return { compared, unreadable, different }
    }
  })

const sideOf = (
  sql: SqlClient.SqlClient,
  connection: Context.Tag.Service<typeof SqlClient.TransactionConnection>[0]
): SqlCopy.Side => ({
  sql,
  within: Effect.provideService(SqlClient.TransactionConnection, [connection, 0])
})

const few = 10

const move = (
  source: SqlClient.SqlClient,
  target: SqlClient.SqlClient,
  tell: (progress: Progress) => Effect.Effect<void>
): Effect.Effect<Moved, MigrateError | SqlError> =>
  SqlTransaction.make(source)((reading) =>
    SqlTransaction.make(target)((writing) =>
      Effect.gen(function* () {
        const from = sideOf(source, reading)
        const to = sideOf(target, writing)
        yield* from.within(lock(source, "SHARE"))
        yield* to.within(lock(target, "EXCLUSIVE"))
        if (!(yield* SqlCopy.isEmpty(to))) return yield* new MigrateError({ reason: "full" })
        const { different: tables, rows } = yield* SqlCopy.copy(from, to, (progress) =>
          tell({ type: "copied", ...progress })
        )
        const { compared, different: runs, unreadable } = yield* compare(from, to, tell)
        if (tables.length + runs.length > 0) {
          return yield* new MigrateError({ reason: "different", what: [...tables, ...runs.slice(0, few)] })
        }
        return { rows, compared, unreadable, left: yield* SqlCopy.foreign(from) }
      })
    )
  )

const isSame = (from: string, to: string): boolean => {
  if (Postgres.isAddress(from)) return from === to
  try {
    return realpathSync(from) === realpathSync(to)
  } catch {
    return resolve(from) === resolve(to)
  }
}

/**
 * Copies everything from one database into another, empty one, and compares the copy with the original: the rows of all
 * tables, and every run as a fold of its log. It is one transaction: all of it is there afterwards, or nothing. Nobody
 * may use `from` meanwhile, and nothing is changed there.
 *
 * @since 0.1.0
 * @category migrations
 */
export const migrate = (
  from: string,
  to: string,
  tell: (progress: Progress) => Effect.Effect<void> = () => Effect.void
): Effect.Effect<Moved, MigrateError> =>
  Effect.scoped(
    Effect.gen(function* () {
      if (isSame(from, to)) return yield* new MigrateError({ reason: "same" })
      const source = yield* openSource(from)
      yield* expectKnown(source)
      yield* expectUnused(source)
      const target = yield* openTarget(to)
      if (!(yield* SqlCopy.isEmpty(SqlCopy.plain(target)))) return yield* new MigrateError({ reason: "full" })
      if ((yield* SqlCopy.present(SqlCopy.plain(source))).some(({ ofDocuments }) => ofDocuments === true)) {
        const documents = Postgres.isAddress(to) ? PostgresDocuments.layerWith([]) : SqliteDocuments.layerWith([])
        yield* Layer.build(Layer.provide(documents, Layer.succeedContext(clientsOf(target))))
      }
      return yield* move(source, target, tell)
    })
  ).pipe(
    Effect.catchTag("SqlError", (error) => Effect.fail(failed(error))),
    Effect.withTracerEnabled(false)
  )
