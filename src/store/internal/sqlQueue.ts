/**
 * The order in which queued runs are taken, looked at from one of them.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"

/**
 * How many runs are taken before this one if no others come; absent when it is not queued. Before it are those that are
 * back from an approval, unless it is one of them, the earlier ones of its user, and of every other user as many as that
 * user has turns before its own.
 *
 * @since 0.1.0
 * @category reading
 */
export const position = (sql: SqlClient.SqlClient, key: number): Effect.Effect<number | undefined, SqlError> =>
  Effect.map(
    sql<{ readonly ahead: number | string }>`
      WITH me AS MATERIALIZED (
        SELECT key, user_id, ord, CASE WHEN started > 0 THEN 1 ELSE 0 END AS back FROM runs
        WHERE key = ${key} AND status = 'queued'
      ), users AS MATERIALIZED (
        SELECT runs.user_id, me.back, COUNT(*) AS n, MIN(runs.ord) AS first,
          SUM(CASE WHEN runs.ord < me.ord OR (runs.ord = me.ord AND runs.key < me.key) THEN 1 ELSE 0 END) AS earlier
        FROM me, runs WHERE runs.status = 'queued' AND (runs.started > 0) = (me.back = 1) GROUP BY runs.user_id, me.back
      ), served AS MATERIALIZED (
        SELECT users.*, (SELECT MAX(started) FROM runs WHERE runs.user_id = users.user_id) AS last FROM users
      ), mine AS (
        SELECT served.* FROM served, me WHERE served.user_id = me.user_id
      ), turns AS (
        SELECT served.n, mine.earlier + CASE
          WHEN served.last < mine.last OR (served.last = mine.last AND served.first < mine.first) THEN 1 ELSE 0 END AS most
        FROM served, mine WHERE served.user_id <> mine.user_id
      )
      SELECT earlier + (SELECT COUNT(*) FROM runs WHERE status = 'queued' AND started > 0 AND mine.back = 0)
        + (SELECT COALESCE(SUM(CASE WHEN n < most THEN n ELSE most END), 0) FROM turns) AS ahead FROM mine`,
    (rows) => (rows[0] === undefined ? undefined : Number(rows[0].ahead))
  )
