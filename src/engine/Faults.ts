/**
 * The store's faults in the log of the server: which run, what failed and how, and nothing of what was stored.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { RunId } from "../domain/Ids.js"
import { StoreError } from "../store/RunStore.js"

/**
 * A word for what lies behind an error: the code of the system or of the database, otherwise the kind of the error.
 * Messages are left out: those of decoders quote what they could not read.
 */
const codeOf = (cause: unknown): string => {
  for (let at: unknown = cause, depth = 0; Predicate.isRecord(at) && depth < 5; at = at.cause, depth++) {
    if (typeof at.code === "string") return at.code
    if (at.cause === undefined || at.cause === at) return typeof at._tag === "string" ? at._tag : String(at.name)
  }
  return "unknown"
}

/**
 * What a line of the log says of a fault.
 *
 * @since 0.1.0
 * @category conversions
 */
export const annotations = (error: StoreError): { readonly [key: string]: string } => ({
  method: error.method,
  reason: error.reason,
  code: codeOf(error.cause)
})

/**
 * Logs a fault, with the run that it concerns where it concerns one. What can not be the id of a run is not repeated.
 *
 * @since 0.1.0
 * @category logging
 */
export const log = (message: string, error: StoreError, runId?: string): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logError(message), { ...annotations(error), ...(isRunId(runId) && { runId }) })

/**
 * Logs why something failed that will be tried again. Of faults that are not the store's the whole cause is told: they
 * are ours.
 *
 * @since 0.1.0
 * @category logging
 */
export const logCause = (message: string, cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  const error = Cause.squash(cause)
  if (Cause.isInterruptedOnly(cause)) return Effect.void
  return error instanceof StoreError
    ? Effect.annotateLogs(Effect.logWarning(message), annotations(error))
    : Effect.logWarning(message, cause)
}

const isRunId = Schema.is(RunId)
