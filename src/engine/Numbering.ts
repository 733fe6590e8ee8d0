/**
 * From events to envelopes: joins what can be joined, adds checkpoints at their moments, gives each event its seq and
 * its text, and folds it. Pure.
 *
 * @since 0.1.0
 */
import type { AgentEvent, CheckpointKind } from "../domain/AgentEvent.js"
import { encodeEvent } from "../domain/Envelope.js"
import * as Fold from "../domain/RunState.js"
import type { StoredEvent } from "../store/RunStore.js"

/**
 * Events with their numbers. `deltas` counts the deltas since the last `assistant_delta` checkpoint.
 *
 * @since 0.1.0
 * @category models
 */
export interface Numbered {
  readonly state: Fold.RunState
  readonly events: ReadonlyArray<StoredEvent>
  readonly deltas: number
  /** The turn that an `iteration-end` among the events closed, and the state right behind it. */
  readonly closed?: { readonly turn: Fold.Turn; readonly state: Fold.RunState } | undefined
}

const checkpointAfter = (event: AgentEvent): CheckpointKind | undefined => {
  switch (event.type) {
    case "tool-call-start":
      return "tool_call_started"
    case "tool-call-result":
      return "tool_call_result_persisted"
    case "iteration-end":
      return "iteration_completed"
    default:
      return undefined
  }
}

const joined = (a: AgentEvent, b: AgentEvent): AgentEvent | undefined => {
  switch (a.type) {
    case "text-delta":
    case "reasoning-delta":
      return b.type === a.type && b.id === a.id ? { ...a, delta: a.delta + b.delta } : undefined
    case "tool-call-delta":
    case "tool-result-delta":
      return b.type === a.type && b.toolCallId === a.toolCallId ? { ...a, delta: a.delta + b.delta } : undefined
    default:
      return undefined
  }
}

/** Characters of a joined delta: a viewer takes whole events, and one that reads slowly holds what it took. */
const maxJoined = 16 * 1024

/**
 * Adjacent deltas of one part as one event, up to a size.
 *
 * @since 0.1.0
 * @category joining
 */
export const join = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<AgentEvent> => {
  const out: Array<AgentEvent> = []
  for (let i = 0; i < events.length; i++) {
    const event = events[i]
    if (event === undefined) continue
    if (!("delta" in event)) {
      out.push(event)
      continue
    }
    // Collect the pieces first: adding them up one by one would copy the event for each.
    const pieces = [event.delta]
    let length = event.delta.length
    while (i + 1 < events.length) {
      const next = events[i + 1]
      if (next === undefined || !("delta" in next) || joined(event, next) === undefined) break
      length += next.delta.length
      if (length > maxJoined) break
      pieces.push(next.delta)
      i++
    }
    out.push(pieces.length === 1 ? event : { ...event, delta: pieces.join("") })
  }
  return out
}

/**
 * Numbers the events from `state.seq + 1` on.
 *
 * @since 0.1.0
 * @category numbering
 */
export const number = (
  state: Fold.RunState,
  events: ReadonlyArray<AgentEvent>,
  now: number,
  deltas: number,
  checkpointEvery: number
): Numbered => {
  const out: Array<StoredEvent> = []
  let current = state
  let since = deltas
  let closed: Numbered["closed"]
  const add = (event: AgentEvent): void => {
    const seq = current.seq + 1
    const numbered = event.type === "checkpoint" ? { ...event, seq } : event
    out.push({ seq, type: event.type, json: encodeEvent(numbered), createdAt: now })
    current = Fold.reduce(current, { seq, event: numbered, createdAt: now })
  }
  const checkpoint = (checkpointKind: CheckpointKind): void =>
    add({ type: "checkpoint", runId: state.runId, seq: 0, checkpointKind })
  for (const event of join(events)) {
    const turn = current.open
    add(event)
    if (event.type === "text-delta" || event.type === "reasoning-delta") {
      since++
      if (since >= checkpointEvery) {
        since = 0
        checkpoint("assistant_delta")
      }
      continue
    }
    if (event.type === "model-end" && turn?.calls.some((call) => call.input !== undefined)) {
      checkpoint("tool_call_arguments_completed")
    }
    const kind = checkpointAfter(event)
    if (kind !== undefined && current.status !== "failed") checkpoint(kind)
    if (event.type === "iteration-end" && turn !== undefined) closed = { turn, state: current }
  }
  return { state: current, events: out, deltas: since, closed }
}
