/**
 * By whose clock a store measures leases and expiries: the database's, so that processes whose clocks differ agree, or
 * the program's.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * - `now`: epoch milliseconds
 * - `at`: the moment so many milliseconds from now, as statements name it
 * - `text`: what stands for now in the text of a statement; absent where a number has to be given to it
 *
 * @since 0.1.0
 * @category models
 */
export interface SqlClock {
  readonly now: Effect.Effect<number, SqlError>
  readonly at: (offsetMs: number) => Effect.Effect<Fragment | number>
  readonly text: string | undefined
}

/**
 * The clock of the program.
 *
 * @since 0.1.0
 * @category clocks
 */
export const program: SqlClock = {
  now: Clock.currentTimeMillis,
  at: (offsetMs) => Effect.map(Clock.currentTimeMillis, (now) => now + offsetMs),
  text: undefined
}

const text = "CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)"

/**
 * The clock of a PostgreSQL server.
 *
 * @since 0.1.0
 * @category clocks
 */
export const postgres = (sql: SqlClient.SqlClient): SqlClock => ({
  now: Effect.map(sql<{ readonly now: number | string }>`SELECT ${sql.literal(text)} AS now`, (rows) =>
    Number(rows[0]?.now)
  ),
  at: (offsetMs) => Effect.succeed(sql.literal(`${text} + ${Math.trunc(offsetMs)}`)),
  text
})
