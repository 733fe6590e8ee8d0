/**
 * The client of a SQLite file. A statement is prepared once and runs at once: there is nothing in between but the driver,
 * and what it throws is the effect's error.
 *
 * @since 0.1.0
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import type * as Database from "better-sqlite3"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { openDatabase, preparedStatements } from "./sqliteDriver.js"
import * as Repeat from "./sqlRepeat.js"

type Row = Readonly<Record<string, unknown>>

/** Whether integers are given as `bigint` is said by whoever asks. */
const attempt = <A>(message: string, run: (safeIntegers: boolean) => A): Effect.Effect<A, SqlError> =>
  Effect.withFiberRuntime((fiber) => {
    try {
      return Effect.succeed(run(Context.get(fiber.currentContext, SqlClient.SafeIntegers)))
    } catch (cause) {
      return Effect.fail(new SqlError({ cause, message }))
    }
  })

type Prepared<A> = (text: string, safeIntegers: boolean) => Database.Statement<Array<unknown>, A>

/** What prepares a statement, or finds it prepared. The one that was prepared first makes room for another. */
const preparing = <A>(db: Database.Database, raw: boolean): Prepared<A> => {
  const statements = new Map<string, Database.Statement<Array<unknown>, A>>()
  const prepare = (text: string): Database.Statement<Array<unknown>, A> => {
    const statement = db.prepare<Array<unknown>, A>(text)
    if (statement.reader) statement.raw(raw)
    if (statements.size >= preparedStatements) {
      for (const first of statements.keys()) {
        statements.delete(first)
        break
      }
    }
    statements.set(text, statement)
    return statement
  }
  return (text, safeIntegers) => (statements.get(text) ?? prepare(text)).safeIntegers(safeIntegers)
}

const connect = (db: Database.Database): Connection => {
  const ofRows = preparing<Row>(db, false)
  const ofValues = preparing<ReadonlyArray<unknown>>(db, true)
  const all = <A>(prepared: Prepared<A>, text: string, params: ReadonlyArray<unknown>, safeIntegers: boolean) => {
    const statement = prepared(text, safeIntegers)
    if (statement.reader) return statement.all(...params)
    statement.run(...params)
    return []
  }
  const failed = "Failed to execute statement"
  const execute: Connection["execute"] = (text, params, transform) =>
    attempt(failed, (safeIntegers) => {
      const rows = all(ofRows, text, params, safeIntegers)
      return transform === undefined ? rows : transform(rows)
    })
  const connection: Connection = {
    execute,
    executeUnprepared: execute,
    executeRaw: (text, params) =>
      attempt(failed, (safeIntegers) => {
        const statement = ofRows(text, safeIntegers)
        return statement.reader ? statement.all(...params) : statement.run(...params)
      }),
    executeValues: (text, params) => attempt(failed, (safeIntegers) => all(ofValues, text, params, safeIntegers)),
    executeStream: () => Stream.dieMessage("The rows of a SQLite file are not streamed")
  }
  Repeat.provide(connection, (text, lists) =>
    attempt(failed, () => {
      const statement = ofRows(text, false)
      return lists.map((params) => statement.run(...params).changes)
    })
  )
  return connection
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
 * - `disableWAL`: the file's journal is left as it is; otherwise it becomes a write-ahead log
 *
 * @since 0.1.0
 * @category models
 */
export interface SqliteFileOptions {
  readonly filename: string
  readonly readonly?: boolean
  readonly disableWAL?: boolean
}

/**
 * Opens a file, which lasts as long as the scope. Statements outside of a transaction wait for one that is under way.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = ({
  disableWAL = false,
  filename,
  readonly = false
}: SqliteFileOptions): Effect.Effect<SqliteFile, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const db = yield* Effect.acquireRelease(
      attempt("Failed to open the database", () => openDatabase(filename, { readonly })),
      (opened) => Effect.sync(() => opened.close())
    )
    if (!disableWAL) yield* attempt("Failed to open the database", () => db.exec("PRAGMA journal_mode = WAL"))
    const connection = connect(db)
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
