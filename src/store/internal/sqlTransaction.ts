/**
 * Transactions of the store's single writer. Unlike the client's own ones they begin as writers, wait for a lock
 * without blocking, report a failed commit as an error, and never leave a transaction open behind.
 *
 * @since 0.1.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { busyWaits, isBusy } from "./sqlErrors.js"

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Runs a body in a transaction of its own, one at a time. Statements of the client inside belong to it.
 *
 * @since 0.1.0
 * @category models
 */
export type Transaction = <A, E>(
  body: (connection: Connection) => Effect.Effect<A, E>
) => Effect.Effect<A, E | SqlError>

const rollback = (connection: Connection): Effect.Effect<void> => Effect.ignore(connection.executeRaw("ROLLBACK", []))

// The statement itself can not be interrupted, so a transaction is never begun without somebody to end it.
const begin = (connection: Connection, text: string, restore: Restore): Effect.Effect<void, SqlError> => {
  const once = Effect.asVoid(connection.executeRaw(text, []))
  return Effect.catchAll(once, (first) => {
    // Somebody may have left a transaction open on this connection.
    if (!isBusy(first)) return Effect.zipRight(rollback(connection), once)
    return Effect.flatMap(busyWaits, (wait) => {
      const again = (error: SqlError): Effect.Effect<void, SqlError> =>
        Effect.zipRight(restore(wait(error)), Effect.catchIf(once, isBusy, again))
      return again(first)
    })
  })
}

/**
 * The transactions of a client, which nobody else may use meanwhile.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (client: SqlClient.SqlClient): Transaction => {
  const writer = Effect.unsafeMakeSemaphore(1)
  const beginText = client.onDialectOrElse({ sqlite: () => "BEGIN IMMEDIATE", orElse: () => "BEGIN" })
  const run = <A, E>(
    body: (connection: Connection) => Effect.Effect<A, E>,
    restore: Restore
  ): Effect.Effect<A, E | SqlError, Scope.Scope> =>
    Effect.flatMap(restore(client.reserve), (connection) => {
      const inside = Effect.provideService(
        Effect.suspend(() => body(connection)),
        SqlClient.TransactionConnection,
        [connection, 0]
      )
      return begin(connection, beginText, restore).pipe(
        Effect.zipRight(Effect.exit(restore(inside))),
        Effect.flatMap(
          (exit): Effect.Effect<A, E | SqlError> =>
            Exit.isSuccess(exit)
              ? Effect.as(
                  Effect.onError(connection.executeRaw("COMMIT", []), () => rollback(connection)),
                  exit.value
                )
              : Effect.zipRight(rollback(connection), exit)
        )
      )
    })
  return (body) => writer.withPermits(1)(Effect.scoped(Effect.uninterruptibleMask((restore) => run(body, restore))))
}
