/**
 * The public states of a run and which may follow which. Pure, and free of runtime imports, so that browsers can
 * load it.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "./AgentEvent.js"

/**
 * - `queued`: accepted, not started
 * - `running`: an attempt owns the run and no model output is arriving
 * - `streaming`: model output is arriving
 * - `waiting_approval`: nothing executes; a person must decide
 * - `completed`, `cancelled`, `failed`: ended; a failure may be recoverable
 *
 * @since 0.1.0
 * @category models
 */
export type RunStatus = "queued" | "running" | "streaming" | "waiting_approval" | "completed" | "cancelled" | "failed"

/**
 * Every status, in the order of a run's life.
 *
 * @since 0.1.0
 * @category models
 */
export const all: ReadonlyArray<RunStatus> = [
  "queued",
  "running",
  "streaming",
  "waiting_approval",
  "completed",
  "cancelled",
  "failed"
]

/** What a run can be in: a status, and for a failure whether it may be resumed; `undefined` before `run-start`. */
interface Standing {
  readonly status: RunStatus
  readonly recoverable?: boolean | undefined
}

const working = (status: RunStatus): boolean => status === "running" || status === "streaming"

/**
 * Whether the run has ended for deletion, retention and the queue of its conversation. A recoverable failure counts
 * as ended, although a resume may continue it.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isEnded = (status: RunStatus): boolean =>
  status === "completed" || status === "cancelled" || status === "failed"

/**
 * Whether no event may ever follow.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isFinal = (run: Standing): boolean =>
  run.status === "completed" || run.status === "cancelled" || (run.status === "failed" && run.recoverable !== true)

/**
 * Whether a process is, or should be, executing the run.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isExecuting = (status: RunStatus): boolean => working(status)

/**
 * The status that an event leads to from a standing, the standing itself for events that do not move it, or
 * `undefined` when the event may not follow. This is the whole transition table, as a total function.
 *
 * @since 0.1.0
 * @category transitions
 */
export const next = (from: Standing | undefined, event: AgentEvent): Standing | undefined => {
  if (from === undefined) return event.type === "run-start" ? { status: "queued" } : undefined
  if (isFinal(from)) return undefined
  if (from.status === "failed") {
    switch (event.type) {
      case "run-resumed":
        return { status: "running" }
      case "cancelled":
        return event.by === "limit" ? undefined : { status: "cancelled" }
      default:
        return undefined
    }
  }
  switch (event.type) {
    case "run-start":
      return undefined
    case "run-status":
      return mayBecome(from.status, event.status) ? { status: event.status } : undefined
    case "run-resumed":
      return working(from.status) ? { status: "running" } : undefined
    case "finish":
      return working(from.status) ? { status: "completed" } : undefined
    case "cancelled":
      return { status: "cancelled" }
    case "error":
      return { status: "failed", recoverable: event.recoverable }
    case "approval-decision":
    case "checkpoint":
    case "tool-call-result":
      // A person may decide, and a closing transaction may settle calls, in every state that is not final.
      return from
    default:
      return working(from.status) ? from : undefined
  }
}

const mayBecome = (from: RunStatus, to: RunStatus): boolean => {
  switch (to) {
    case "queued":
      return from === "queued" || from === "waiting_approval"
    case "running":
      return from === "queued" || from === "streaming"
    case "streaming":
      return from === "running"
    case "waiting_approval":
      return from === "running"
    default:
      return false
  }
}
