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

const codeOf = (error: SqlError): string =>
  Predicate.hasProperty(error.cause, "code") && typeof error.cause.code === "string" ? error.cause.code : ""

/**
 * Whether somebody else holds the database for the moment.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isBusy = (error: SqlError): boolean => /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))

// Broken files, broken rules and broken statements fail again however often they are tried.
const isCorrupt = (error: SqlError): boolean =>
  /^SQLITE_(CORRUPT|NOTADB|CONSTRAINT|MISMATCH|SCHEMA|FORMAT|ERROR$)/.test(codeOf(error))

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
export const busyWaits: Effect.Effect<(error: SqlError) => Effect.Effect<void, SqlError>> = Effect.zipWith(
  LockClock,
  Schedule.driver(schedule),
  (clock, waits) => (error) =>
    Effect.zipRight(Effect.sync(Metrics.lockAwaited), waits.next(error)).pipe(
      Effect.withClock(clock),
      Effect.orElseFail(() => error),
      Effect.asVoid
    )
)

/**
 * Tries again while somebody else holds the database. For statements outside of transactions.
 *
 * @since 0.1.0
 * @category retrying
 */
export const retryBusy = <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.catchIf(effect, isBusy, (first) =>
    Effect.flatMap(busyWaits, (wait) => {
      const again = (error: SqlError): Effect.Effect<A, SqlError, R> =>
        Effect.zipRight(wait(error), Effect.catchIf(effect, isBusy, again))
      return again(first)
    })
  )
