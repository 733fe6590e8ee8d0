/**
 * How a run ends: what must be settled before its terminal event. The dual of `nextStep`.
 *
 * @since 0.1.0
 */
import type { AgentEvent, EventOf, TerminalEvent } from "../domain/AgentEvent.js"
import type * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"

/** What happened to an effect that was begun is unknown; anything else was merely interrupted. */
const inDoubt = (call: RunState.Call): boolean => {
  if (call.doubt !== undefined) return true
  if (call.open === undefined) return false
  return (
    call.open.phase === "commit" ||
    (call.open.phase === "execute" && (call.kind !== "readonly" || call.approval !== undefined))
  )
}

const closingResult = (call: RunState.Call): EventOf<"tool-call-result"> => ({
  type: "tool-call-result",
  toolCallId: call.id,
  toolName: call.name,
  ok: false,
  state: inDoubt(call) ? "in_doubt" : "interrupted",
  result: null,
  source: "none",
  durationMs: 0
})

/**
 * The events that end a run in this state: a result for each unsettled call, the last checkpoint, the terminal event.
 * The checkpoint's own seq is filled in when it gets one. A run that has failed recoverably has no open calls and has
 * had its checkpoint.
 *
 * @since 0.1.0
 * @category decisions
 */
export const closing = (state: RunState.RunState, terminal: TerminalEvent): ReadonlyArray<AgentEvent> => {
  if (RunStatus.isEnded(state.status)) return [terminal]
  const open = state.open?.calls.filter((call) => call.result === undefined) ?? []
  return [
    ...open.map(closingResult),
    {
      type: "checkpoint",
      runId: state.runId,
      seq: 0,
      checkpointKind: terminal.type === "error" ? "run_failed" : "run_finished"
    },
    terminal
  ]
}

/**
 * The cancellation of a run in this state, or `undefined` when it has ended for good.
 *
 * @since 0.1.0
 * @category decisions
 */
export const cancellation = (
  state: RunState.RunState,
  by: EventOf<"cancelled">["by"],
  reason?: string | undefined
): ReadonlyArray<AgentEvent> | undefined =>
  RunStatus.isFinal(state)
    ? undefined
    : closing(state, {
        type: "cancelled",
        by,
        ...(reason !== undefined && { reason }),
        usage: state.usage
      })
