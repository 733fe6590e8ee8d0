/**
 * The client of a PostgreSQL database. The driver's own one gives a connection that no longer answers back to its pool,
 * and cancels by process id what may be somebody else's by then. This one closes every connection that failed in any way
 * but by an answer of the server, and lets whoever is interrupted wait for the answer, which is bounded in time.
 *
 * @since 0.1.0
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import pg from "pg"

/**
 * What went wrong, without anything that the server adds about contents. `code` is the SQLSTATE; `08006` where no answer
 * came.
 *
 * @since 0.1.0
 * @category errors
 */
export class PgFault extends Error {
  override readonly name = "PgFault"
  constructor(
    message: string,
    readonly code: string
  ) {
    super(message)
  }
}

const noAnswer = "08006"

const textOf = (error: Error): string =>
  error.message !== "" ? error.message : "code" in error ? String(error.code) : "No connection"

/**
 * The error of the driver as ours.
 *
 * @since 0.1.0
 * @category errors
 */
export const faultOf = (error: Error): PgFault =>
  error instanceof pg.DatabaseError
    ? new PgFault(error.message, error.code ?? "XX000")
    : new PgFault(textOf(error), noAnswer)

/** How long a server may take to let somebody in, and to answer a statement (milliseconds). */
const patience = { connect: 4_000, query: 10_000 }

// A text can hold every character but NUL, which is written as this one and a digit, as is this one itself.
const mark = "\u0001"
const nul = "\u0000"

/**
 * A text as PostgreSQL can hold it.
 *
 * @since 0.1.0
 * @category text
 */
export const escape = (text: string): string => text.replaceAll(mark, `${mark}1`).replaceAll(nul, `${mark}0`)

/**
 * The text that `escape` was given.
 *
 * @since 0.1.0
 * @category text
 */
export const unescape = (text: string): string =>
  text.includes(mark) ? text.replaceAll(`${mark}0`, nul).replaceAll(`${mark}1`, mark) : text

const oid = { int8: 20, text: 25, varchar: 1043 }

const types: pg.CustomTypesConfig = {
  getTypeParser: (type: number, format?: "text" | "binary") => {
    if (format !== "binary") {
      // Keys, seqs and times are far below 2^53.
      if (type === oid.int8) return Number
      if (type === oid.text || type === oid.varchar) return unescape
    }
    return pg.types.getTypeParser(type, format)
  }
}

/**
 * What every connection is opened with. The server gives up a transaction whose client has fallen silent, so that its
 * locks do not outlive it.
 *
 * @since 0.1.0
 * @category models
 */
export const settings = (url: Redacted.Redacted): pg.ClientConfig => ({
  connectionString: Redacted.value(url),
  connectionTimeoutMillis: patience.connect,
  query_timeout: patience.query,
  statement_timeout: patience.query,
  lock_timeout: patience.query / 2,
  idle_in_transaction_session_timeout: patience.query / 2,
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
  application_name: "runlet",
  types
})

/** A connection that somebody has, and why it can not be used any more. */
interface Held {
  readonly client: pg.PoolClient
  broken: Error | undefined
  readonly onError: (error: Error) => void
}

/** The statements of this program by their texts: a server parses each once in a connection. */
const prepared = new Map<string, string>()
const maxPrepared = 500

const nameOf = (text: string): string | undefined => {
  const known = prepared.get(text)
  if (known !== undefined || prepared.size >= maxPrepared) return known
  const name = `runlet_${prepared.size}`
  prepared.set(text, name)
  return name
}

const fail = (message: string, error: Error) => Effect.fail(new SqlError({ message, cause: faultOf(error) }))

const ask = (
  held: Held,
  query: pg.QueryConfig & { readonly rowMode?: "array" }
): Effect.Effect<pg.QueryResult, SqlError> =>
  Effect.async<pg.QueryResult, SqlError>((resume) => {
    held.client.query(query, (error: Error | null, result: pg.QueryResult) => {
      if (error === null || error === undefined) return resume(Effect.succeed(result))
      if (!(error instanceof pg.DatabaseError)) held.broken ??= error
      resume(fail("Failed to execute statement", error))
    })
  })

const values = (params: ReadonlyArray<unknown>): Array<unknown> =>
  params.map((param) => (typeof param === "string" ? escape(param) : param))

const acquire = (pool: pg.Pool): Effect.Effect<Held, SqlError> =>
  Effect.async<Held, SqlError>((resume) => {
    pool.connect((error, client) => {
      if (client === undefined) return resume(fail("Failed to connect", error ?? new Error("No connection")))
      const held: Held = {
        client,
        broken: undefined,
        onError: (cause) => {
          held.broken ??= cause
        }
      }
      client.on("error", held.onError)
      resume(Effect.succeed(held))
    })
  })

const release = (held: Held): Effect.Effect<void> =>
  Effect.sync(() => {
    held.client.off("error", held.onError)
    held.client.release(held.broken ?? false)
  })

type Use = <A>(use: (held: Held) => Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

const connection = (using: Use): Connection => {
  const run = (query: pg.QueryConfig) => Effect.uninterruptible(using((held) => ask(held, query)))
  const rows = (query: pg.QueryConfig) => Effect.map(run(query), (result) => result.rows)
  const named = (text: string, params: ReadonlyArray<unknown>): pg.QueryConfig => {
    const name = nameOf(text)
    return { ...(name !== undefined && { name }), text, values: values(params) }
  }
  return {
    execute: (text, params, transform) =>
      Effect.map(rows(named(text, params)), (found) => (transform === undefined ? found : transform(found))),
    executeRaw: (text, params) => run({ text, values: values(params) }),
    executeValues: (text, params) => {
      const query = { text, values: values(params), rowMode: "array" as const }
      return rows(query)
    },
    executeUnprepared: (text, params, transform) =>
      Effect.map(rows({ text, values: values(params) }), (found) =>
        transform === undefined ? found : transform(found)
      ),
    // Nobody asks for more than a page.
    executeStream: (text, params, transform) =>
      Stream.fromIterableEffect(
        Effect.map(rows(named(text, params)), (found) => (transform === undefined ? found : transform(found)))
      )
  }
}

/**
 * A pool of up to `max` connections, which lasts as long as the scope. Connections are made when they are needed; none
 * is made here.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly url: Redacted.Redacted
  readonly max: number
}): Effect.Effect<SqlClient.SqlClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const made = new pg.Pool({ ...settings(options.url), max: options.max, idleTimeoutMillis: 30_000 })
        // A connection that was lost while nobody used it is none of anybody's business.
        made.on("error", () => undefined)
        return made
      }),
      (made) => Effect.ignore(Effect.promise(() => made.end()))
    )
    const reserved = Effect.map(Effect.acquireRelease(acquire(pool), release), (held) => connection((use) => use(held)))
    return yield* SqlClient.make({
      acquirer: Effect.succeed(connection((use) => Effect.acquireUseRelease(acquire(pool), use, release))),
      transactionAcquirer: reserved,
      compiler: PgClient.makeCompiler(),
      spanAttributes: [["db.system.name", "postgresql"]]
    })
  }).pipe(Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make))
