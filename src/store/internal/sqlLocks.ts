/**
 * What keeps processes apart that write to one database at the same time. A database that has one writer needs none of
 * it. Locks end with their transaction; they are taken in the order in which they stand here.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"

/**
 * Whether several processes may write to the database at a time.
 *
 * @since 0.1.0
 * @category locks
 */
export const areNeeded = (sql: SqlClient.SqlClient): boolean =>
  sql.onDialectOrElse({ pg: () => true, orElse: () => false })

/** Locks of the same numbers by other programs only make somebody wait. */
const space = 0x52756e

const lock = (sql: SqlClient.SqlClient, what: number): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(${sql.literal(`${space}, ${what}`)})`),
    orElse: () => Effect.void
  })

const named = (sql: SqlClient.SqlClient, name: string): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`),
    orElse: () => Effect.void
  })

/**
 * Nobody else makes or changes tables.
 *
 * @since 0.1.0
 * @category locks
 */
export const migration = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> => lock(sql, 0)

/**
 * Nobody else uses the key for a request of the user.
 *
 * @since 0.1.0
 * @category locks
 */
export const request = (sql: SqlClient.SqlClient, userId: string, key: string): Effect.Effect<void, SqlError> =>
  named(sql, JSON.stringify([userId, key]))

/**
 * Nobody else adds a run to the conversation, takes one from it, or goes on with its last one.
 *
 * @since 0.1.0
 * @category locks
 */
export const conversation = (sql: SqlClient.SqlClient, id: string): Effect.Effect<void, SqlError> => named(sql, id)

/**
 * The same for the conversations of runs.
 *
 * @since 0.1.0
 * @category locks
 */
export const conversationsOf = (
  sql: SqlClient.SqlClient,
  run: { readonly keys: ReadonlyArray<number> } | { readonly runId: string }
): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () =>
      Effect.asVoid(sql`SELECT pg_advisory_xact_lock(lock) FROM (
        SELECT DISTINCT hashtextextended(conversation_id, 0) AS lock FROM runs
        WHERE ${"runId" in run ? sql`run_id = ${run.runId}` : sql.in("key", run.keys)} ORDER BY lock
      ) AS locks`),
    orElse: () => Effect.void
  })

/**
 * The statement that ends a transaction which lets a run in or begins one: `isTooMuch`, an SQL condition about what is
 * there with the transaction, must not hold while nobody else does the same. Where it does, the transaction has come to
 * nothing because of another one, and is to be begun again.
 *
 * Every process needs this lock for every run. It is taken with the commit and by the database alone, so that a process
 * which is slow to go on, or stands still, never has it. Nobody who has it waits for any other.
 *
 * @since 0.1.0
 * @category locks
 */
export const admission = (isTooMuch: string): string => `DO $$ BEGIN
  PERFORM pg_advisory_xact_lock(${space}, 1);
  IF ${isTooMuch} THEN
    RAISE EXCEPTION 'Others have taken the place' USING ERRCODE = 'serialization_failure';
  END IF;
END $$`
