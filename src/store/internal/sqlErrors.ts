/**
 * What a failed statement means for the store.
 *
 * @since 0.1.0
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import * as Metrics from "../../domain/Metrics.js"
import { StoreError } from "../RunStore.js"

/**
 * What the database calls its error: a name of SQLite's, or an SQLSTATE; "" where it does not say.
 *
 * @since 0.1.0
 * @category accessors
 */
export const codeOf = (error: SqlError): string =>
  Predicate.hasProperty(error.cause, "code") && typeof error.cause.code === "string" ? error.cause.code : ""

/**
 * Whether somebody else was in the way, and nothing was done: a lock, a deadlock, a serialization failure.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isBusy = (error: SqlError): boolean => /^(SQLITE_(BUSY|LOCKED)|40001$|40P01$|55P03$)/.test(codeOf(error))

/**
 * Whether the connection, or the server behind it, went away. Another connection may succeed: the server was started
 * again, or another one has taken its place.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isLost = (error: SqlError): boolean => /^(08...|57P0[1-3]|25P03|25006|53300)$/.test(codeOf(error))

// Broken files, broken rules and broken statements fail again however often they are tried. What may not be done may be
// allowed later.
const isCorrupt = (error: SqlError): boolean =>
  /^(SQLITE_(CORRUPT|NOTADB|CONSTRAINT|MISMATCH|SCHEMA|FORMAT|ERROR$)|(22|23|42)...$|XX...$)/.test(codeOf(error)) &&
  codeOf(error) !== "42501"

/**
 * The store's error for a failed statement.
 *
 * @since 0.1.0
 * @category conversions
 */
export const refail =
  (method: string) =>
  (error: SqlError): StoreError =>
    new StoreError({ reason: isCorrupt(error) ? "corrupt" : "unavailable", method, cause: error })

// In all about half a minute.
const schedule = Schedule.exponential("2 millis", 1.5).pipe(
  Schedule.union(Schedule.spaced("25 millis")),
  Schedule.jittered,
  Schedule.upTo("30 seconds")
)

// Who asks is told soon that there is no database; what has to be stored is tried for longer by its writer.
const reconnecting = Schedule.exponential("10 millis", 2).pipe(
  Schedule.union(Schedule.spaced("250 millis")),
  Schedule.jittered,
  Schedule.upTo("2 seconds")
)

/**
 * The clock of the waits for a lock. A lock of the file system is held in real time, whatever clock the program is told;
 * only where all who could hold it live in one simulation may it be theirs.
 *
 * @since 0.1.0
 * @category services
 */
export class LockClock extends Context.Reference<LockClock>()("runlet/store/LockClock", {
  defaultValue: (): Clock.Clock => Clock.make()
}) {}

/**
 * Waits between tries for a lock, while the event loop is free. The waits fail with the error when they are used up.
 *
 * @since 0.1.0
 * @category retrying
 */
export const busyWaits: Effect.Effect<(error: SqlError) => Effect.Effect<void, SqlError>> = Effect.all([
  LockClock,
  Schedule.driver(schedule),
  Schedule.driver(reconnecting)
]).pipe(
  Effect.map(
    ([clock, waits, lost]) =>
      (error) =>
        Effect.zipRight(
          Effect.sync(Metrics.lockAwaited),
          isLost(error) ? lost.next(undefined) : waits.next(undefined)
        ).pipe(
          Effect.withClock(clock),
          Effect.orElseFail(() => error),
          Effect.asVoid
        )
  )
)

/**
 * Whether the same may succeed in a moment.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isPassing = (error: SqlError): boolean => isBusy(error) || isLost(error)

/**
 * Tries again while somebody else holds the database, or it is away for a moment. For statements outside of
 * transactions.
 *
 * @since 0.1.0
 * @category retrying
 */
export const retryBusy = <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.catchIf(effect, isPassing, (first) =>
    Effect.flatMap(busyWaits, (wait) => {
      const again = (error: SqlError): Effect.Effect<A, SqlError, R> =>
        Effect.zipRight(wait(error), Effect.catchIf(effect, isPassing, again))
      return again(first)
    })
  )
