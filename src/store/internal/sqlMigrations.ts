/**
 * The tables of the SQL store, for every dialect, and their history.
 *
 * @since 0.1.0
 */
import * as Migrator from "@effect/sql/Migrator"
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import { ReadClient, WriteClient } from "../../tool/SqlClients.js"
import { StoreError } from "../RunStore.js"
import { refail, retryBusy } from "./sqlErrors.js"
import * as Locks from "./sqlLocks.js"
import * as SqlNotices from "./sqlNotices.js"
import * as SqlTransaction from "./sqlTransaction.js"

// In PostgreSQL an INTEGER has 32 bits, which times and keys pass; flags are INTEGER everywhere.
const number = (sql: SqlClient.SqlClient) =>
  sql.literal(sql.onDialectOrElse({ pg: () => "BIGINT", orElse: () => "INTEGER" }))

// Compared byte by byte, whatever language the database is in. JSON is text too: its own types would change it, and
// refuse some of it.
const words = (sql: SqlClient.SqlClient) =>
  sql.literal(sql.onDialectOrElse({ pg: () => 'TEXT COLLATE "C"', orElse: () => "TEXT" }))

const tables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const big = number(sql)
  const text = words(sql)
  const identity = sql.literal(
    sql.onDialectOrElse({
      pg: () => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
      // Without AUTOINCREMENT the key of a removed run would be given to the next one.
      orElse: () => "INTEGER PRIMARY KEY AUTOINCREMENT"
    })
  )
  const rowid = sql.literal(
    sql.onDialectOrElse({
      pg: () => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
      orElse: () => "INTEGER PRIMARY KEY"
    })
  )

  // Every commit rewrites the rows of its runs; with room on their pages no index has to be touched.
  const roomy = sql.literal(sql.onDialectOrElse({ pg: () => " WITH (fillfactor = 50)", orElse: () => "" }))

  yield* sql`CREATE TABLE conversations (
    conversation_id ${text} PRIMARY KEY,
    user_id ${text} NOT NULL,
    title ${text} NOT NULL,
    created_at ${big} NOT NULL,
    updated_at ${big} NOT NULL
  )`
  yield* sql`CREATE INDEX conversations_user ON conversations (user_id, updated_at, conversation_id)`

  yield* sql`CREATE TABLE runs (
    key ${identity},
    run_id ${text} NOT NULL UNIQUE,
    user_id ${text} NOT NULL,
    conversation_id ${text} NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
    user_message_id ${text} NOT NULL,
    assistant_message_id ${text} NOT NULL,
    model ${text} NOT NULL,
    mode ${text} NOT NULL CHECK (mode IN ('chat', 'plan')),
    status ${text} NOT NULL CHECK (status IN
      ('queued', 'running', 'streaming', 'waiting_approval', 'completed', 'cancelled', 'failed')),
    recoverable INTEGER,
    regenerated_from ${text},
    ord ${big} NOT NULL,
    started ${big} NOT NULL DEFAULT 0,
    epoch ${big} NOT NULL DEFAULT 0,
    owner ${text},
    lease_expires_at ${big},
    last_seq ${big} NOT NULL,
    attempt ${big} NOT NULL DEFAULT 1,
    iteration ${big} NOT NULL DEFAULT 0,
    usage ${text} NOT NULL,
    error ${text},
    next_expiry ${big},
    compacted_seq ${big} NOT NULL DEFAULT 0,
    created_at ${big} NOT NULL,
    updated_at ${big} NOT NULL,
    ended_at ${big}
  )${roomy}`
  yield* sql`CREATE INDEX runs_user ON runs (user_id, key)`
  yield* sql`CREATE INDEX runs_conversation ON runs (conversation_id, ord, key)`
  yield* sql`CREATE INDEX runs_active ON runs (conversation_id, ord, key)
    WHERE status IN ('queued', 'running', 'streaming', 'waiting_approval')`
  yield* sql`CREATE INDEX runs_queued ON runs (status, started, ord, key) WHERE status = 'queued'`
  yield* sql`CREATE INDEX runs_executing ON runs (user_id) WHERE status IN ('running', 'streaming')`
  yield* sql`CREATE INDEX runs_due ON runs (next_expiry) WHERE status = 'waiting_approval'`

  yield* sql`CREATE TABLE inputs (
    run_key ${big} PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    json ${text} NOT NULL,
    prefix ${text} NOT NULL
  )`

  // Rows stay in the order of their arrival, however many runs interleave; only the narrow index is spread.
  yield* sql`CREATE TABLE events (
    id ${rowid},
    run_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    seq ${big} NOT NULL,
    type ${text} NOT NULL,
    json ${text} NOT NULL,
    created_at ${big} NOT NULL,
    UNIQUE (run_key, seq)
  )`
  yield* sql`CREATE INDEX events_checkpoints ON events (run_key, seq) WHERE type = 'checkpoint'`

  yield* sql`CREATE TABLE turns (
    run_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    n ${big} NOT NULL,
    seq ${big} NOT NULL,
    turn ${text} NOT NULL,
    header ${text} NOT NULL,
    PRIMARY KEY (run_key, n)
  )`
  yield* sql`CREATE TABLE sides (
    run_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    iteration ${big} NOT NULL,
    data ${text} NOT NULL,
    PRIMARY KEY (run_key, iteration)
  )`

  // `brought` is the place of a message that a client brought along; the others are named by the rows of runs.
  yield* sql`CREATE TABLE messages (
    message_id ${text} PRIMARY KEY,
    conversation_id ${text} NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
    role ${text} NOT NULL,
    content ${text} NOT NULL,
    brought ${big},
    created_at ${big} NOT NULL
  )`
  yield* sql`CREATE INDEX messages_conversation ON messages (conversation_id, brought)`

  yield* sql`CREATE TABLE idempotency (
    user_id ${text} NOT NULL,
    key ${text} NOT NULL,
    body_hash ${text} NOT NULL,
    run_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    PRIMARY KEY (user_id, key)
  )`
  yield* sql`CREATE INDEX idempotency_run ON idempotency (run_key)`

  yield* sql`CREATE TABLE compactions (
    id ${rowid},
    conversation_id ${text} NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
    upto_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    upto_iteration ${big} NOT NULL,
    summary ${text} NOT NULL,
    made_in_key ${big} NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    made_at ${big} NOT NULL
  )`
  yield* sql`CREATE INDEX compactions_conversation ON compactions (conversation_id, id)`
  yield* sql`CREATE INDEX compactions_upto ON compactions (upto_key)`
  yield* sql`CREATE INDEX compactions_made_in ON compactions (made_in_key)`
})

/** `started` became the number of the claim that began a run, so that users take turns. */
const claims = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE INDEX runs_claims ON runs (started)`
  yield* sql`CREATE INDEX runs_claims_user ON runs (user_id, started)`
})

/** What stands for the part of a log that was removed, and the ways to what retention looks for. */
const retention = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const big = number(sql)
  const text = words(sql)
  yield* sql`CREATE TABLE bases (
    run_key ${big} PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    seq ${big} NOT NULL,
    turns ${big} NOT NULL,
    state ${text} NOT NULL,
    trimmed INTEGER NOT NULL
  )`
  yield* sql`CREATE INDEX bases_untrimmed ON bases (run_key) WHERE trimmed = 0`
  yield* sql`CREATE INDEX runs_ended ON runs (ended_at, key) WHERE ended_at IS NOT NULL`
  yield* sql`CREATE INDEX runs_whole ON runs (ended_at, key) WHERE ended_at IS NOT NULL AND compacted_seq = 0`
})

const migrations: Record<string, Effect.Effect<void, SqlError, SqlClient.SqlClient>> = {
  "0001_tables": tables,
  "0002_claims": claims,
  "0003_retention": retention
}

const table = "runlet_migrations"

/**
 * The schema version that this program makes.
 *
 * @since 0.1.0
 * @category migrations
 */
export const known = Object.keys(migrations).length

const failed = (reason: StoreError["reason"]) => (cause: unknown) =>
  new StoreError({ reason, method: "migrate", cause })

/**
 * Brings the tables up to date, in one transaction, so that processes that start at once do not disturb each other.
 * Refuses a database that a newer version has changed.
 *
 * @since 0.1.0
 * @category migrations
 */
export const migrate: Effect.Effect<void, StoreError, WriteClient> = Effect.gen(function* () {
  const sql = yield* WriteClient
  // A transaction that asks for a table in vain is over, so the migrator has to find it.
  const prepare = sql.onDialectOrElse({
    pg: () =>
      Effect.zipRight(
        Locks.migration(sql),
        sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (
          migration_id INTEGER PRIMARY KEY,
          created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
          name TEXT NOT NULL
        )`
      ).pipe(Effect.zipRight(SqlNotices.prepare(sql))),
    orElse: () => Effect.void
  })
  const steps = Migrator.make({})({ loader: Migrator.fromRecord(migrations), table }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("MigrationError", (error) => Effect.fail(failed("corrupt")(error)))
  )
  const newest = Effect.map(
    sql<{ readonly id: number }>`SELECT MAX(migration_id) AS id FROM ${sql(table)}`,
    (rows) => rows[0]?.id ?? 0
  )
  const found = yield* SqlTransaction.make(sql)(() => Effect.all([prepare, steps]).pipe(Effect.zipRight(newest))).pipe(
    Effect.catchAllDefect((defect) => Effect.fail(failed("corrupt")(defect))),
    Effect.catchTag("SqlError", (error) => Effect.fail(refail("migrate")(error)))
  )
  if (found > known) {
    return yield* failed("newer")(new Error(`The database has schema version ${found}, this program knows ${known}`))
  }
})

/**
 * Fails unless the tables are those that this program makes.
 *
 * @since 0.1.0
 * @category migrations
 */
export const expectCurrent: Effect.Effect<void, StoreError, ReadClient> = Effect.gen(function* () {
  const sql = yield* ReadClient
  const [newest] = yield* Effect.mapError(
    retryBusy(sql<{ readonly id: number | null }>`SELECT MAX(migration_id) AS id FROM ${sql(table)}`),
    refail("open")
  )
  const found = newest?.id ?? 0
  if (found === known) return
  const cause = new Error(`The database has schema version ${found}, this program knows ${known}`)
  return yield* new StoreError({ reason: found > known ? "newer" : "unavailable", method: "open", cause })
})
