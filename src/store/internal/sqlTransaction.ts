/**
 * Transactions of the store's single writer. Unlike the client's own ones they begin as writers, wait for a lock
 * without blocking, report a failed commit as an error, and never leave a transaction open behind.
 *
 * @since 0.1.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { busyWaits, isBusy, isLost } from "./sqlErrors.js"
import * as Locks from "./sqlLocks.js"

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Runs a body in a transaction of its own, one at a time. Statements of the client inside belong to it.
 *
 * Where the connection is lost while it commits, nobody knows whether that happened. `find` is asked then, at the
 * beginning of another transaction, with what the body had made: it answers what is there of it, or nothing when it was
 * not stored, and then the body is run again. The server may still be about to commit, so `find` has to wait for a lock
 * that the body holds. Without a `find` the error is given on.
 *
 * @since 0.1.0
 * @category models
 */
export type Transaction = <A, E>(body: Body<A, E>, find?: Find<NoInfer<A>>) => Effect.Effect<A, E | SqlError>

/**
 * Has a statement sent together with the commit, so that a lock which it takes is held for no way between the program and
 * the database. Where it fails, nothing is committed.
 *
 * @since 0.1.0
 * @category models
 */
export type Closing = (statement: string) => void

/**
 * What is done inside a transaction.
 *
 * @since 0.1.0
 * @category models
 */
export type Body<A, E> = (connection: Connection, closing: Closing) => Effect.Effect<A, E>

/**
 * What is stored of what a body had made; none when nothing is.
 *
 * @since 0.1.0
 * @category models
 */
export type Find<A> = (made: A) => Effect.Effect<Option.Option<A>, SqlError>

/**
 * For a body that may as well be run twice.
 *
 * @since 0.1.0
 * @category finding
 */
export const repeatable = (_made: unknown): Effect.Effect<Option.Option<never>, SqlError> => Effect.succeedNone

/**
 * Asks only about what was written: what a body has merely read is its answer.
 *
 * @since 0.1.0
 * @category finding
 */
export const findWritten =
  <A, B extends A>(
    isWritten: (made: A) => made is B,
    find: (made: B) => Effect.Effect<Option.Option<B>, SqlError>
  ): Find<A> =>
  (made) =>
    isWritten(made) ? find(made) : Effect.succeedSome(made)

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

const isSqlError = (error: unknown): error is SqlError => error instanceof SqlError

/** Nothing of the transaction was committed, and the same may succeed in a moment. */
class Again {
  constructor(readonly error: SqlError) {}
}

const isAgain = (error: unknown): error is Again => error instanceof Again

const again = <A, E>(attempt: Effect.Effect<A, E | SqlError | Again>): Effect.Effect<A, Exclude<E, Again> | SqlError> =>
  Effect.catchIf(attempt, isAgain, (first) =>
    Effect.flatMap(busyWaits, (wait) => {
      const next = ({ error }: Again): Effect.Effect<A, Exclude<E, Again> | SqlError> =>
        Effect.zipRight(wait(error), Effect.catchIf(attempt, isAgain, next))
      return next(first)
    })
  )

const rolledBack = new SqlError({
  message: "The transaction was rolled back",
  cause: new Error("A statement of the transaction had failed")
})

const isRollback = Predicate.struct({ command: (command: unknown) => command === "ROLLBACK" })

/** A server commits nothing, and does not call that an error, when a statement of the transaction has failed. */
const commit = (connection: Connection, closing: string | undefined): Effect.Effect<void, SqlError> =>
  Effect.flatMap(
    connection.executeRaw(closing === undefined ? "COMMIT" : `${closing}; COMMIT`, []),
    // Of several statements there are as many results.
    (result) => (isRollback(Array.isArray(result) ? result.at(-1) : result) ? Effect.fail(rolledBack) : Effect.void)
  )

/**
 * Up to `lanes` transactions of a client at once, during which nobody else may use their connections. Two that change
 * the same rows in different orders stand in each other's way, so whoever changes many rows has one lane.
 *
 * Where several processes may write at a time, a transaction that came to nothing because of another one, or because the
 * connection was lost, is begun again.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (client: SqlClient.SqlClient, lanes = 1): Transaction => {
  const writer = Effect.unsafeMakeSemaphore(lanes)
  const shared = Locks.areNeeded(client)
  const beginText = client.onDialectOrElse({ sqlite: () => "BEGIN IMMEDIATE", orElse: () => "BEGIN" })
  const run = <A, E>(
    body: Body<A, E>,
    restore: Restore,
    committing: (made: A) => void
  ): Effect.Effect<A, E | SqlError, Scope.Scope> =>
    Effect.flatMap(restore(client.reserve), (connection) => {
      let closing: string | undefined
      const inside = Effect.provideService(
        Effect.suspend(() =>
          body(connection, (statement) => {
            closing = statement
          })
        ),
        SqlClient.TransactionConnection,
        [connection, 0]
      )
      return begin(connection, beginText, restore).pipe(
        Effect.zipRight(Effect.exit(restore(inside))),
        Effect.flatMap((exit): Effect.Effect<A, E | SqlError> => {
          if (!Exit.isSuccess(exit)) return Effect.zipRight(rollback(connection), exit)
          committing(exit.value)
          return Effect.as(
            Effect.onError(commit(connection, closing), () => rollback(connection)),
            exit.value
          )
        })
      )
    })
  const once = <A, E>(
    body: Body<A, E>,
    committing: (made: A) => void = () => undefined
  ): Effect.Effect<A, E | SqlError> =>
    writer.withPermits(1)(Effect.scoped(Effect.uninterruptibleMask((restore) => run(body, restore, committing))))
  if (!shared) return (body) => once(body)
  return <A, E>(body: Body<A, E>, find?: Find<NoInfer<A>>) =>
    Effect.suspend(() => {
      /** What was being committed when the connection was lost. */
      let unsure = Option.none<A>()
      const whole: Body<A, E | SqlError> = (connection, closing) =>
        find === undefined || Option.isNone(unsure)
          ? body(connection, closing)
          : Effect.flatMap(
              find(unsure.value),
              Option.match({ onNone: () => body(connection, closing), onSome: Effect.succeed })
            )
      return again(
        Effect.suspend(() => {
          let made = Option.none<A>()
          return Effect.mapError(
            once(whole, (value) => {
              made = Option.some(value)
            }),
            (error) => {
              if (!isSqlError(error)) return error
              if (isBusy(error)) return new Again(error)
              if (!isLost(error) || (Option.isSome(made) && find === undefined)) return error
              if (Option.isSome(made)) unsure = made
              return new Again(error)
            }
          )
        })
      )
    })
}
