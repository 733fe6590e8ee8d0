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

/**
 * Whether the run has ended for deletion, retention and the queue of its conversation. A recoverable failure counts
 * as ended, although a resume may continue it.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isEnded = (status: RunStatus): status is "completed" | "cancelled" | "failed" =>
  status === "completed" || status === "cancelled" || status === "failed"

/**
 * Whether no event may ever follow.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isFinal = (run: Standing): boolean => isEnded(run.status) && run.recoverable !== true

/**
 * Whether a process is, or should be, executing the run.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isExecuting = (status: RunStatus): boolean => status === "running" || status === "streaming"

const leadsTo: { readonly [Type in AgentEvent["type"]]?: RunStatus } = {
  "run-start": "queued",
  "run-resumed": "running",
  finish: "completed",
  cancelled: "cancelled",
  error: "failed"
}

/**
 * The status that an event leads to, wherever it may follow; `undefined` for events that do not move a run.
 *
 * @since 0.1.0
 * @category transitions
 */
export const after = (event: AgentEvent): RunStatus | undefined =>
  event.type === "run-status" ? event.status : leadsTo[event.type]

/**
 * The standing that an event leads to from another one, the same one for events that do not move it, or `undefined`
 * when the event may not follow. This is the whole transition table, as a total function.
 *
 * @since 0.1.0
 * @category transitions
 */
export const next = (from: Standing | undefined, event: AgentEvent): Standing | undefined => {
  if (!mayFollow(from, event)) return undefined
  const status = after(event)
  if (status === undefined) return from
  return event.type === "error" ? { status, recoverable: event.recoverable } : { status }
}

const mayFollow = (from: Standing | undefined, event: AgentEvent): boolean => {
  if (from === undefined || event.type === "run-start") return from === undefined && event.type === "run-start"
  if (isFinal(from)) return false
  if (from.status === "failed") {
    return event.type === "run-resumed" || (event.type === "cancelled" && event.by !== "limit")
  }
  switch (event.type) {
    case "run-status":
      return mayBecome[event.status].includes(from.status)
    case "cancelled":
    case "error":
    // A person may decide, and a closing transaction may settle calls, in every state that is not final.
    case "approval-decision":
    case "checkpoint":
    case "tool-call-result":
      return true
    default:
      return isExecuting(from.status)
  }
}

/** From which statuses a `run-status` event may lead to one. */
const mayBecome: { readonly [To in RunStatus]: ReadonlyArray<RunStatus> } = {
  queued: ["queued", "waiting_approval"],
  running: ["queued", "streaming"],
  streaming: ["running"],
  waiting_approval: ["running"],
  completed: [],
  cancelled: [],
  failed: []
}
