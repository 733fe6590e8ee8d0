/**
 * The client of a SQLite file. The driver's own one keeps the statements that it prepared for ten minutes, and keeps a
 * failure to prepare one just as long: a lock or a fault that is over would be reported again and again. It also throws
 * where it should fail. This one does neither.
 *
 * @since 0.1.0
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const isUnprepared = (error: SqlError): boolean => error.message.startsWith("Failed to prepare")

const thrown =
  (message: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.catchAllDefect(effect, (cause) => Effect.fail(new SqlError({ cause, message })))

/** A statement that could not be prepared goes by another text the next time, so that it is looked at anew. */
const lookingAnew = (connection: Connection): Connection => {
  const failures = new Map<string, number>()
  const prepared = <A>(text: string, run: (text: string) => Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    Effect.suspend(() => {
      const failed = failures.get(text)
      return Effect.tapError(run(failed === undefined ? text : `${text} -- ${failed}`), (error) =>
        Effect.sync(() => {
          if (isUnprepared(error)) failures.set(text, (failed ?? 0) + 1)
        })
      )
    })
  return {
    ...connection,
    execute: (text, params, transform) => prepared(text, (other) => connection.execute(other, params, transform)),
    executeRaw: (text, params) => prepared(text, (other) => connection.executeRaw(other, params)),
    executeValues: (text, params) => prepared(text, (other) => connection.executeValues(other, params)),
    executeUnprepared: (text, params, transform) =>
      thrown("Failed to execute statement")(Effect.suspend(() => connection.executeUnprepared(text, params, transform)))
  }
}

/**
 * The client of a SQLite file. `dataVersion` is another number whenever another connection has committed: SQLite's
 * `PRAGMA data_version`, asked for without a turn in the queue, a span or a transaction.
 *
 * @since 0.1.0
 * @category models
 */
export interface SqliteFile extends SqlClient.SqlClient {
  readonly dataVersion: Effect.Effect<number, SqlError>
}

/**
 * Opens a file, which lasts as long as the scope. Statements outside of a transaction wait for one that is under way.
 * With `disableWAL` the file is taken as it is.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Pick<SqliteClient.SqliteClientConfig, "disableWAL" | "filename" | "readonly">
): Effect.Effect<SqliteFile, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const driver = yield* thrown("Failed to open the database")(SqliteClient.make(options))
    // It has one connection, which is there for as long as the client is.
    const connection = lookingAnew(yield* Effect.scoped(driver.reserve))
    const one = yield* Effect.makeSemaphore(1)
    const client = yield* SqlClient.make({
      acquirer: one.withPermits(1)(Effect.succeed(connection)),
      transactionAcquirer: Effect.uninterruptibleMask((restore) =>
        restore(one.take(1)).pipe(Effect.zipRight(Effect.addFinalizer(() => one.release(1))), Effect.as(connection))
      ),
      compiler: Statement.makeCompilerSqlite(),
      spanAttributes: [["db.system.name", "sqlite"]]
    })
    const dataVersion = Effect.map(connection.executeValues("PRAGMA data_version", []), ([row]) => Number(row?.[0]))
    return Object.assign(client, { dataVersion })
  }).pipe(Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make))
