/**
 * Connections that run one statement many times. Where a statement costs no way to a database, one for each row is
 * cheaper than one that takes a batch of rows apart.
 *
 * @since 0.1.0
 */
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import type * as Effect from "effect/Effect"

/**
 * Runs a statement that gives no rows once for each list of parameters, in one go, and tells how many rows each time
 * changed.
 *
 * @since 0.1.0
 * @category models
 */
export type Repeat = (
  text: string,
  all: ReadonlyArray<ReadonlyArray<string | number | null>>
) => Effect.Effect<ReadonlyArray<number>, SqlError>

const known = new WeakMap<Connection, Repeat>()

/**
 * Says how a connection repeats a statement.
 *
 * @since 0.1.0
 * @category constructors
 */
export const provide = (connection: Connection, repeat: Repeat): void => {
  known.set(connection, repeat)
}

/**
 * How a connection repeats a statement, if it does.
 *
 * @since 0.1.0
 * @category finding
 */
export const of = (connection: Connection): Repeat | undefined => known.get(connection)
