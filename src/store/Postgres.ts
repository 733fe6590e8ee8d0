/**
 * The store in a PostgreSQL database, which any number of processes on any number of machines may share.
 *
 * @since 0.1.0
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { v7 } from "uuid"
import { ReadClient, WriteClient } from "../tool/SqlClients.js"
import * as PgClient from "./internal/pgClient.js"
import * as PgListener from "./internal/pgListener.js"
import * as SqlClock from "./internal/sqlClock.js"
import { refail, retryBusy } from "./internal/sqlErrors.js"
import * as SqlNotices from "./internal/sqlNotices.js"
import { RunStore, type StoreError } from "./RunStore.js"
import * as SqlStore from "./SqlStore.js"

/**
 * - `url`: `postgres://user:password@host:port/database`
 * - `writers`, `readers`: how many connections may be open for each (default 4 and 4; at least 3 write); one more listens
 * - `pollMs`: how often is looked for what nobody has announced (default 2000 ms)
 * - `leaseTtlMs`: how long the leases of the processes that share the database are (default 10 s). One that stands still in
 *   the middle of a transaction loses what it has locked after half of that, 5 s at most
 * - `clock`: whose time leases and expiries are measured by: the server's (the default), so that machines need not
 *   agree about the time, or the program's, for tests that set it
 *
 * @since 0.1.0
 * @category models
 */
export interface PostgresOptions {
  readonly url: Redacted.Redacted
  readonly writers?: number | undefined
  readonly readers?: number | undefined
  readonly pollMs?: number | undefined
  readonly leaseTtlMs?: number | undefined
  readonly clock?: "server" | "program" | undefined
}

/**
 * Whether a data setting is the address of a PostgreSQL database, and not the name of a file.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isAddress = (data: string): boolean => /^postgres(ql)?:\/\//i.test(data)

/**
 * A data setting as people may read it: of an address the user, the host and the database.
 *
 * @since 0.1.0
 * @category conversions
 */
export const nameOf = (data: string): string => {
  if (!isAddress(data)) return data
  if (!URL.canParse(data)) return "postgres://…"
  const { host, pathname, username } = new URL(data)
  return `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`
}

const faultIn = (error: unknown): PgClient.PgFault | undefined => {
  if (error instanceof PgClient.PgFault) return error
  return Predicate.hasProperty(error, "cause") ? faultIn(error.cause) : undefined
}

/**
 * Why a database can not be used, in a phrase that follows its name, where the error tells.
 *
 * @since 0.1.0
 * @category conversions
 */
export const reasonOf = (error: StoreError | SqlError): string | undefined => {
  const fault = faultIn(error)
  if (fault === undefined) return undefined
  switch (fault.code) {
    case PgClient.pooled:
      return "is behind a pooler that does not keep sessions. Have it keep them (`pool_mode = session`), or go past it"
    case "28P01":
    case "28000":
      return "refuses its user or password"
    case "3D000":
      return "does not exist. Create it with `createdb`"
    case "42501":
      return "may not be changed by its user. Let the user create tables in its schema"
    case "42P07":
      return "has tables of other programs with the same names. Choose another database"
    case "42P01":
      return "holds nothing of Runlet. Start a server on it once, or choose another database"
    default:
      return /^(08|53|57)/.test(fault.code) ? `can not be reached: ${fault.message}` : undefined
  }
}

const defaults = { writers: 4, readers: 4, pollMs: 2000, leaseTtlMs: 10_000 }

/**
 * How long a process may keep others from what it has locked when it stands still (milliseconds): it must be over before
 * its lease is, and before the others, of whose runs it may have locked one, come too late to renew theirs.
 */
const lockMsOf = (leaseTtlMs: number): number => Math.max(500, Math.trunc(leaseTtlMs / 2))

const writersOf = ({ writers = defaults.writers }: PostgresOptions): number => Math.max(3, writers)

const clients = (
  options: PostgresOptions,
  prepare: (context: Context.Context<WriteClient | ReadClient>) => Effect.Effect<void, StoreError | SqlError>
): Effect.Effect<Context.Context<WriteClient | ReadClient>, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const { leaseTtlMs = defaults.leaseTtlMs, readers = defaults.readers, url } = options
    yield* retryBusy(PgClient.expectSessions(url))
    const lockMs = lockMsOf(leaseTtlMs)
    const write = yield* PgClient.make({ url, max: writersOf(options), lockMs })
    const read = yield* PgClient.make({ url, max: readers, lockMs })
    const context = Context.make(WriteClient, write).pipe(Context.add(ReadClient, read))
    yield* prepare(context)
    return context
  }).pipe(
    Effect.withTracerEnabled(false),
    Effect.catchTag("SqlError", (error) => Effect.fail(refail("open")(error)))
  )

const store = (options: PostgresOptions): Layer.Layer<RunStore, StoreError, WriteClient | ReadClient> =>
  Layer.effect(
    RunStore,
    Effect.gen(function* () {
      const [read, write] = [yield* ReadClient, yield* WriteClient]
      const sender = yield* Effect.sync(() => v7())
      // Without a channel nobody can be told or heard.
      const channel = (yield* Effect.mapError(retryBusy(SqlNotices.channel(read)), refail("open"))) ?? "runlet"
      const { changes, others } = PgListener.make({
        url: options.url,
        channel,
        sender,
        pollMs: options.pollMs ?? defaults.pollMs
      })
      return yield* SqlStore.make({
        changes,
        others,
        clock: options.clock === "program" ? SqlClock.program : SqlClock.postgres(read),
        announce: SqlNotices.make(write, { channel, sender, others }),
        writers: writersOf(options)
      })
    })
  )

/**
 * Connects, brings the tables up to date, and provides the store and the two clients that it uses.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: PostgresOptions): Layer.Layer<RunStore | WriteClient | ReadClient, StoreError> =>
  Layer.provideMerge(
    store(options),
    Layer.scopedContext(clients(options, (context) => Effect.provide(SqlStore.migrate, context)))
  )

/**
 * Opens a database as it is, beside whoever serves it: nothing is created or brought up to date. One of another version
 * is refused, an older one as `unavailable`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (options: PostgresOptions): Layer.Layer<RunStore, StoreError> =>
  Layer.provide(
    store(options),
    Layer.scopedContext(
      clients(options, (context) =>
        Effect.zipRight(
          retryBusy(Effect.asVoid(Context.get(context, ReadClient)`SELECT 1`)),
          Effect.provide(SqlStore.expectCurrent, context)
        )
      )
    )
  )
