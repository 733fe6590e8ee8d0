/**
 * What keeps processes apart that write to one database at the same time. A database that has one writer needs none of
 * it. Locks end with their transaction; they are taken in the order in which they stand here.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"

/** Locks of the same numbers by other programs only make somebody wait. */
const space = 0x52756e

const lock = (sql: SqlClient.SqlClient, what: number): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(${sql.literal(`${space}, ${what}`)})`),
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
 * Nobody else adds a run to the conversation, takes one from it, or goes on with its last one.
 *
 * @since 0.1.0
 * @category locks
 */
export const conversation = (sql: SqlClient.SqlClient, id: string): Effect.Effect<void, SqlError> =>
  sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(hashtextextended(${id}, 0))`),
    orElse: () => Effect.void
  })

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
 * Nobody else lets runs in or begins them, so that what is counted stays as it is.
 *
 * @since 0.1.0
 * @category locks
 */
export const admission = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> => lock(sql, 1)
