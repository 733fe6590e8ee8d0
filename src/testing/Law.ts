/**
 * What a law is, and how to write one.
 *
 * ```ts
 * import { Law } from "runlet/testing"
 *
 * export const oneBooking = Law.forEvents("a room is booked once", ({ before, event }) => {
 *   if (event.type !== "tool-start" || event.toolName !== "book_room") return undefined
 *   const booked = before.closed.flatMap((turn) => turn.calls).some((call) => call.name === "book_room")
 *   return booked ? `${event.toolCallId} books again` : undefined
 * })
 * ```
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import type { Observed, ObservedRun } from "./Observed.js"

/**
 * A law. `check` gives every violation that it finds, in words; none means that the law was kept.
 *
 * @since 0.1.0
 * @category models
 */
export interface Law {
  readonly name: string
  readonly check: (observed: Observed) => ReadonlyArray<string>
}

/**
 * One event of a log, with the run as it stood before and behind it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Step {
  readonly event: AgentEvent
  readonly seq: number
  readonly createdAt: number
  readonly before: RunState.RunState
  readonly after: RunState.RunState
}

const known = new WeakMap<ReadonlyArray<Envelope>, ReadonlyArray<RunState.RunState>>()

/**
 * How a run stood behind its first 0, 1, 2 … events; the last one is the fold of the whole log. The same log is folded
 * once, whoever asks.
 *
 * @since 0.1.0
 * @category reading
 */
export const states = (run: Pick<ObservedRun, "runId" | "log">): ReadonlyArray<RunState.RunState> => {
  const folded = known.get(run.log)
  if (folded !== undefined) return folded
  let state = RunState.empty(run.runId)
  const all = [state]
  for (const envelope of run.log) {
    state = RunState.reduce(state, envelope)
    all.push(state)
  }
  known.set(run.log, all)
  return all
}

/**
 * How a run stood behind its first `count` events, or behind all of them if there are fewer.
 *
 * @since 0.1.0
 * @category reading
 */
export const stateAt = (run: Pick<ObservedRun, "runId" | "log">, count: number): RunState.RunState => {
  const all = states(run)
  return all[Math.min(Math.max(0, count), run.log.length)] ?? RunState.empty(run.runId)
}

/**
 * The fold of a whole log.
 *
 * @since 0.1.0
 * @category reading
 */
export const whole = (run: Pick<ObservedRun, "runId" | "log">): RunState.RunState => stateAt(run, run.log.length)

/**
 * A log, event by event.
 *
 * @since 0.1.0
 * @category reading
 */
export const steps = (run: Pick<ObservedRun, "runId" | "log">): ReadonlyArray<Step> =>
  run.log.map(({ createdAt, event, seq }, index) => ({
    event,
    seq,
    createdAt,
    before: stateAt(run, index),
    after: stateAt(run, index + 1)
  }))

/**
 * The run of this id; one without a log if nothing of it was stored.
 *
 * @since 0.1.0
 * @category reading
 */
export const runOf = (observed: Observed, runId: string): ObservedRun =>
  observed.runs.find((run) => run.runId === runId) ?? { runId, conversationId: "", log: [], turns: [] }

/**
 * A law about each run by itself. What `check` says is told with the run's id.
 *
 * @since 0.1.0
 * @category constructors
 */
export const forRuns = (name: string, check: (run: ObservedRun, observed: Observed) => ReadonlyArray<string>): Law => ({
  name,
  check: (observed) => observed.runs.flatMap((run) => check(run, observed).map((text) => `${run.runId}: ${text}`))
})

/**
 * A law about each event by itself: what is wrong with it, if anything. That is told with the run's id and the seq.
 *
 * @since 0.1.0
 * @category constructors
 */
export const forEvents = (
  name: string,
  check: (step: Step, run: ObservedRun, observed: Observed) => string | undefined
): Law =>
  forRuns(name, (run, observed) =>
    steps(run).flatMap((step) => {
      const problem = check(step, run, observed)
      return problem === undefined ? [] : [`${step.event.type} at ${step.seq}: ${problem}`]
    })
  )
