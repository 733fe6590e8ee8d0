/**
 * Laws of limits: what was promised to be bounded is. They look at nothing where no limits were observed.
 *
 * @since 0.1.0
 */
import { forEvents, type Law } from "./Law.js"

/**
 * A run has no more turns than allowed.
 *
 * @since 0.1.0
 * @category laws
 */
export const turnsWithin = forEvents("a run has no more turns than allowed", ({ event }, _, { limits }) =>
  event.type === "model-end" && limits !== undefined && event.iteration > limits.maxIterations
    ? `it is turn ${event.iteration} of ${limits.maxIterations}`
    : undefined
)

/**
 * A run that makes no progress is not recovered for ever.
 *
 * @since 0.1.0
 * @category laws
 */
export const attemptsWithin = forEvents(
  "a run that makes no progress is not recovered for ever",
  ({ after }, _, { limits }) =>
    limits !== undefined && after.stale > limits.maxAttempts
      ? `it is recovered for the ${after.stale}th time, of ${limits.maxAttempts}`
      : undefined
)

/**
 * No more calls of a run are at work than allowed.
 *
 * @since 0.1.0
 * @category laws
 */
export const callsWithin: Law = {
  name: "no more calls of a run are at work than allowed",
  check: ({ ledger, limits }) => {
    // A process that died took what was at work with it.
    const working = new Map<string, number>()
    return ledger.flatMap(({ process, runId, toolCallId, what }) => {
      const place = `${process} ${runId}`
      const count = (working.get(place) ?? 0) + (what === "begin" ? 1 : what === "end" ? -1 : 0)
      working.set(place, count)
      return what === "begin" && limits !== undefined && count > limits.maxToolConcurrency
        ? [`${runId}: ${toolCallId} is number ${count}`]
        : []
    })
  }
}

/**
 * A request for an approval is open for the time that was promised, and no longer.
 *
 * @since 0.1.0
 * @category laws
 */
export const approvalsWithin = forEvents(
  "a request for an approval is open for the time that was promised, and no longer",
  ({ createdAt, event }, _, { limits }) =>
    event.type === "approval-request" && limits !== undefined && event.expiresAt > createdAt + limits.approvalTtlMs
      ? `it is open for ${event.expiresAt - createdAt} ms of ${limits.approvalTtlMs}`
      : undefined
)

/**
 * All of them.
 *
 * @since 0.1.0
 * @category laws
 */
export const all: ReadonlyArray<Law> = [turnsWithin, attemptsWithin, callsWithin, approvalsWithin]
