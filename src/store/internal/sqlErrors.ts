/** What a failed statement means for the store. */
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { StoreError } from "../RunStore.js"

const codeOf = (error: SqlError): string =>
  Predicate.hasProperty(error.cause, "code") && typeof error.cause.code === "string" ? error.cause.code : ""

/** Whether somebody else holds the database for the moment. */
export const isBusy = (error: SqlError): boolean => /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))

// Broken files, broken rules and broken statements fail again however often they are tried.
const isCorrupt = (error: SqlError): boolean =>
  /^SQLITE_(CORRUPT|NOTADB|CONSTRAINT|MISMATCH|SCHEMA|FORMAT|ERROR$)/.test(codeOf(error))

/** The store's error for a failed statement. */
export const refail =
  (method: string) =>
  (error: SqlError): StoreError =>
    new StoreError({ reason: isCorrupt(error) ? "corrupt" : "unavailable", method, cause: error })

/** Waits between tries for a lock, in all about half a minute; the event loop is free meanwhile. */
export const busySchedule = Schedule.exponential("2 millis", 1.5).pipe(
  Schedule.union(Schedule.spaced("25 millis")),
  Schedule.jittered,
  Schedule.upTo("30 seconds")
)

/** Tries again while somebody else holds the database. For statements outside of transactions. */
export const retryBusy = <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.retry(effect, { schedule: busySchedule, while: isBusy })
