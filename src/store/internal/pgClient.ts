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

/** How long a server may take to let somebody in, to answer a statement, and to give a lock (milliseconds). */
const patience = { connect: 4_000, query: 10_000, lock: 5_000 }

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
 * The server gives up a transaction whose client has fallen silent, so that its locks do not outlive it. A pooler in
 * between may refuse such settings when a connection is opened, so they are made behind that.
 */
const bounds = (lockMs: number): string => `SET statement_timeout = ${patience.query}; SET lock_timeout = ${lockMs};
  SET idle_in_transaction_session_timeout = ${lockMs}`

/**
 * What every connection is opened with.
 *
 * @since 0.1.0
 * @category models
 */
export const settings = (url: Redacted.Redacted): pg.ClientConfig => ({
  connectionString: Redacted.value(url),
  connectionTimeoutMillis: patience.connect,
  query_timeout: patience.query,
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
 * is made here. `lockMs`: how long a lock is waited for, and after what silence inside a transaction the server ends it
 * (default and most 5000 ms).
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly url: Redacted.Redacted
  readonly max: number
  readonly lockMs?: number | undefined
}): Effect.Effect<SqlClient.SqlClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const made = new pg.Pool({ ...settings(options.url), max: options.max, idleTimeoutMillis: 30_000 })
        // A connection that was lost while nobody used it is none of anybody's business.
        made.on("error", () => undefined)
        made.on("connect", (client) => {
          // A connection that can not do this can do nothing else either.
          client.query(bounds(Math.min(patience.lock, options.lockMs ?? patience.lock))).catch(() => undefined)
        })
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

/**
 * The code of a fault: the database is behind a pooler that gives a connection to somebody else after each transaction.
 *
 * @since 0.1.0
 * @category errors
 */
export const pooled = "pooled"

/** A connection for some questions, and the number of the server's process that answers each. */
const probe = (url: Redacted.Redacted) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const client = new pg.Client(settings(url))
      client.on("error", () => undefined)
      return client
    }),
    (client) => Effect.ignore(Effect.promise(() => client.end()))
  ).pipe(
    Effect.map((client) => {
      const asked = <A>(answer: () => Promise<A>): Effect.Effect<A, PgFault> =>
        Effect.tryPromise({ try: answer, catch: (error) => faultOf(error instanceof Error ? error : new Error()) })
      const served = asked(async () => {
        const { rows } = await client.query<[number]>({ text: "SELECT pg_backend_pid()", rowMode: "array" })
        return rows[0]?.[0]
      })
      return { client, served, connect: asked(() => client.connect()), begin: asked(() => client.query("BEGIN")) }
    })
  )

/**
 * Fails where sessions are not kept: there nobody would hear what is announced. Whoever is connected to the server itself
 * was told the number of the process that answers. Behind a pooler another connection takes a process for as long as
 * its transaction lasts; it must not be the one that has answered before, nor must that be another one then.
 *
 * @since 0.1.0
 * @category checks
 */
export const expectSessions = (url: Redacted.Redacted): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    const one = yield* probe(url)
    yield* one.connect
    const first = yield* one.served
    if (first === numberOf(one.client)) return
    const other = yield* probe(url)
    yield* other.connect
    yield* other.begin
    const taken = yield* other.served
    if (taken === first || (yield* one.served) !== first) {
      return yield* Effect.fail(new PgFault("Sessions are not kept", pooled))
    }
  }).pipe(
    Effect.scoped,
    Effect.catchAll((cause) => Effect.fail(new SqlError({ message: "Failed to connect", cause })))
  )

const numberOf = (client: pg.Client): unknown => ("processID" in client ? client.processID : undefined)
