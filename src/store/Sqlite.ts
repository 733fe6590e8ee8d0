/**
 * The store in one SQLite file. Several processes of one host may open the same file.
 *
 * @since 0.1.0
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ReadClient, WriteClient } from "../tool/SqlClients.js"
import { refail, retryBusy } from "./internal/sqlErrors.js"
import * as SqliteClient from "./internal/sqliteClient.js"
import { type Change, RunStore, type StoreError } from "./RunStore.js"
import * as SqlStore from "./SqlStore.js"

/**
 * - `filename`: the database file; its directory must exist
 * - `synchronous`: `full` (the default) survives a loss of power, `normal` may lose the last moments then; both
 *   survive the end of the process at any point
 * - `pollMs`: how often another process's commits are looked for (default 40 ms). One look costs tens of
 *   microseconds, and some hundred where the process does nothing else
 *
 * @since 0.1.0
 * @category models
 */
export interface SqliteOptions {
  readonly filename: string
  readonly synchronous?: "full" | "normal" | undefined
  readonly pollMs?: number | undefined
}

// The driver waits for a lock on the event loop, so it may wait only this long (milliseconds); the rest of the
// waiting is done between tries.
const busyTimeout = 5

const defaultPollMs = 40

const open = (
  options: Parameters<typeof SqliteClient.make>[0]
): Effect.Effect<SqliteClient.SqliteFile, SqlError, Scope.Scope> =>
  SqliteClient.make(options).pipe(
    Effect.tap((sql) => sql.unsafe(`PRAGMA busy_timeout = ${busyTimeout}`)),
    retryBusy
  )

/** A database of so many pages (4 MB) is rewritten within a moment. */
const rewritable = 1000

/**
 * Only a database that was made for it can give space back a little at a time. A new one is made so, and a small one is
 * made over; for a large one that is left to `runlet doctor`.
 */
const reclaimable = (sql: SqlClient): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const [found] = yield* sql<{ readonly mode: number; readonly pages: number }>`
      SELECT auto_vacuum AS mode, page_count AS pages FROM pragma_auto_vacuum(), pragma_page_count()`
    if (found === undefined || found.mode === 2 || found.pages > rewritable) return
    yield* sql.unsafe("PRAGMA auto_vacuum = INCREMENTAL")
    yield* sql.unsafe("VACUUM")
  })

interface Clients {
  readonly write: SqliteClient.SqliteFile
  readonly read: SqliteClient.SqliteFile
}

const clients = ({ filename, synchronous = "full" }: SqliteOptions): Effect.Effect<Clients, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const write = yield* open({ filename })
    yield* retryBusy(write.unsafe(`PRAGMA synchronous = ${synchronous}`))
    yield* retryBusy(write.unsafe("PRAGMA foreign_keys = ON"))
    yield* retryBusy(write.unsafe("PRAGMA journal_size_limit = 67108864"))
    // A page that every commit changes is written back once for many of them, and is not read anew for each.
    yield* retryBusy(write.unsafe("PRAGMA wal_autocheckpoint = 4000"))
    yield* retryBusy(write.unsafe("PRAGMA cache_size = -8000"))
    // A statement of many rows keeps the pages as they were until it is done: that is not worth a file each time.
    yield* retryBusy(write.unsafe("PRAGMA temp_store = MEMORY"))
    yield* Effect.provideService(SqlStore.migrate, WriteClient, write)
    yield* retryBusy(reclaimable(write))
    // Changes nothing, and fails where nothing may be changed: that is better known now than when a run is to be stored.
    yield* retryBusy(write.unsafe("DELETE FROM runs WHERE key IS NULL"))
    const read = yield* open({ filename, readonly: true })
    return { write, read }
  }).pipe(
    Effect.withTracerEnabled(false),
    Effect.catchTag("SqlError", (error) => Effect.fail(refail("open")(error)))
  )

/** Looks are many and changes are few: only a change goes through the stream. */
const changes = (file: SqliteClient.SqliteFile, pollMs: number): Stream.Stream<Change> => {
  // Not knowing counts as another version, so nothing is missed.
  const version = Effect.orElseSucceed(file.dataVersion, () => -1)
  return Stream.unwrap(
    Effect.map(version, (first) => {
      let known = first
      const look = Effect.zipRight(Effect.sleep(pollMs), version)
      const change: Effect.Effect<void> = Effect.flatMap(look, (found) => {
        if (found === known) return change
        known = found
        return Effect.void
      })
      return Stream.repeatEffect(Effect.as(change, { work: true, left: false }))
    })
  )
}

/** The store over these clients, beside them. The own commits of the connection that writes are no news. */
const store =
  ({ pollMs = defaultPollMs }: SqliteOptions) =>
  ({ read, write }: Clients) => {
    const context = Context.make(WriteClient, write).pipe(Context.add(ReadClient, read))
    return SqlStore.make({ changes: changes(write, pollMs) }).pipe(
      Effect.map((made) => Context.add(context, RunStore, made)),
      Effect.provide(context)
    )
  }

/**
 * Opens the file, creating it if it is not there, brings its tables up to date, and provides the store and the two
 * clients that it uses. Build it once in a process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: SqliteOptions): Layer.Layer<RunStore | WriteClient | ReadClient, StoreError> =>
  Layer.scopedContext(Effect.flatMap(clients(options), store(options)))

const existing = ({
  filename,
  readonly,
  synchronous = "full"
}: ExistingOptions): Effect.Effect<Clients, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const read = yield* open({ filename, readonly: true })
    yield* Effect.provideService(SqlStore.expectCurrent, ReadClient, read)
    const write = readonly ? read : yield* open({ filename })
    if (!readonly) {
      yield* retryBusy(write.unsafe(`PRAGMA synchronous = ${synchronous}`))
      yield* retryBusy(write.unsafe("PRAGMA foreign_keys = ON"))
    }
    return { write, read }
  }).pipe(
    Effect.withTracerEnabled(false),
    Effect.catchTag("SqlError", (error) => Effect.fail(refail("open")(error)))
  )

/**
 * - `readonly`: whatever would write fails as unavailable
 *
 * @since 0.1.0
 * @category models
 */
export interface ExistingOptions extends SqliteOptions {
  readonly readonly: boolean
}

/**
 * Opens a file as it is, beside whoever serves it: nothing is created or brought up to date. A file of another version
 * is refused, an older one as `unavailable`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (options: ExistingOptions): Layer.Layer<RunStore, StoreError> =>
  Layer.scopedContext(Effect.flatMap(existing(options), store(options)))

/**
 * Opens a file that nobody else has open, for as long as the scope lasts: whoever comes meanwhile is refused. Fails with
 * `SQLITE_BUSY` as its code when somebody has it open.
 *
 * @since 0.1.0
 * @category constructors
 */
export const alone = (filename: string): Effect.Effect<SqlClient, SqlError, Scope.Scope> =>
  SqliteClient.make({ filename, disableWAL: true }).pipe(
    Effect.tap((sql) => sql.unsafe(`PRAGMA busy_timeout = ${busyTimeout}`)),
    Effect.tap((sql) => sql.unsafe("PRAGMA locking_mode = EXCLUSIVE")),
    // A lock is taken with the first look, and kept.
    Effect.tap((sql) => sql`SELECT COUNT(*) FROM sqlite_master`),
    Effect.withTracerEnabled(false)
  )
