/**
 * A log laid out in lanes: what went on beside what, and from which event to which. A lane for the run's states, its
 * attempts and turns, the model's thinking and text, each tool, what people were asked, and the checkpoints.
 *
 * @since 0.1.0
 */
import type { AgentEvent, DecisionOutcome, EventOf, ToolPhase } from "../../domain/AgentEvent.js"
import type { Envelope } from "../../domain/Envelope.js"
import type { RunState } from "../../domain/RunState.js"
import * as Status from "../../domain/RunStatus.js"

/**
 * What a lane shows.
 *
 * @since 0.1.0
 * @category models
 */
export type LaneKind = "run" | "attempts" | "turns" | "reasoning" | "text" | "tool" | "approvals" | "checkpoints"

/**
 * `name` is the tool's; `rows` how many of its spans lie over one another.
 *
 * @since 0.1.0
 * @category models
 */
export interface Lane {
  readonly id: string
  readonly kind: LaneKind
  readonly name?: string | undefined
  readonly rows: number
}

/**
 * What a span stands for. `dropped`: a later attempt left it behind. `offset` is where in the whole text, or reasoning,
 * a part begins.
 *
 * @since 0.1.0
 * @category models
 */
export type What =
  | { readonly is: "status"; readonly status: Status.RunStatus }
  | { readonly is: "attempt"; readonly attempt: number; readonly reason?: "recovery" | "resume" | undefined }
  | { readonly is: "turn"; readonly iteration: number; readonly dropped?: boolean | undefined }
  | {
      readonly is: "part"
      readonly type: "text" | "reasoning"
      readonly id: string
      readonly offset: number
      readonly dropped?: boolean | undefined
    }
  | {
      readonly is: "call"
      readonly toolCallId: string
      readonly name: string
      readonly result?: EventOf<"tool-call-result"> | undefined
      readonly dropped?: boolean | undefined
    }
  | { readonly is: "phase"; readonly toolCallId: string; readonly phase: ToolPhase }
  | {
      readonly is: "approval"
      readonly approvalId: string
      readonly toolCallId: string
      readonly decision?: DecisionOutcome | undefined
    }

/**
 * Something that goes on from one event to another, both places included; without an end it still does.
 *
 * @since 0.1.0
 * @category models
 */
export interface Span {
  readonly lane: number
  readonly row: number
  readonly from: number
  readonly to?: number | undefined
  readonly what: What
}

/**
 * The layout of a log. `open` has the spans that later events may change, by their names.
 *
 * @since 0.1.0
 * @category models
 */
export interface Lanes {
  readonly lanes: ReadonlyArray<Lane>
  readonly spans: ReadonlyArray<Span>
  readonly open: ReadonlyMap<string, number>
}

/**
 * The layout of nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const none: Lanes = { lanes: [], spans: [], open: new Map() }

const order: ReadonlyArray<LaneKind> = [
  "run",
  "attempts",
  "turns",
  "reasoning",
  "text",
  "tool",
  "approvals",
  "checkpoints"
]

/**
 * The indices of the lanes from top to bottom: tools in the order of their first use, everything else always alike.
 *
 * @since 0.1.0
 * @category reading
 */
export const arranged = ({ lanes }: Lanes): ReadonlyArray<number> =>
  lanes.map((_, index) => index).sort((a, b) => rank(lanes[a]) - rank(lanes[b]) || a - b)

const rank = (lane: Lane | undefined) => (lane === undefined ? -1 : order.indexOf(lane.kind))

/** The kind of lane that an event belongs to, and the tool's name where it is a tool's. */
const placeOf = (event: AgentEvent, state: RunState): { readonly kind: LaneKind; readonly name?: string } => {
  switch (event.type) {
    case "run-start":
    case "run-status":
    case "finish":
    case "cancelled":
    case "error":
      return { kind: "run" }
    case "run-resumed":
      return { kind: "attempts" }
    case "model-end":
    case "model-retry":
    case "iteration-end":
      return { kind: "turns" }
    case "reasoning-delta":
      return { kind: "reasoning" }
    case "text-delta":
      return { kind: "text" }
    case "approval-request":
    case "approval-decision":
      return { kind: "approvals" }
    case "checkpoint":
      return { kind: "checkpoints" }
    case "tool-call-start":
    case "tool-call-ready":
    case "tool-start":
    case "tool-call-result":
      return { kind: "tool", name: event.toolName }
    case "tool-call-delta":
    case "tool-result-delta":
    case "tool-conflict": {
      const call = state.open?.calls.find(({ id }) => id === event.toolCallId)
      return call === undefined ? { kind: "run" } : { kind: "tool", name: call.name }
    }
  }
}

/**
 * A layout that takes events one by one. `add` gives the lane of the event; the states are those before and after it.
 *
 * @since 0.1.0
 * @category growing
 */
export interface Growing {
  readonly add: (before: RunState, envelope: Envelope, after: RunState) => number
  readonly done: () => Lanes
}

/**
 * Goes on with a layout. `look` gives earlier events of the same log.
 *
 * @since 0.1.0
 * @category growing
 */
export const growing = (layout: Lanes, look: (seq: number) => Envelope | undefined): Growing => {
  const lanes = [...layout.lanes]
  const spans = [...layout.spans]
  const open = new Map(layout.open)
  const indices = new Map(lanes.map(({ id }, index) => [id, index]))

  const laneOf = (kind: LaneKind, name?: string): number => {
    const id = name === undefined ? kind : `${kind} ${name}`
    const known = indices.get(id)
    if (known !== undefined) return known
    indices.set(id, lanes.length)
    return lanes.push({ id, kind, name, rows: 1 }) - 1
  }

  const openSpan = (key: string): Span | undefined => {
    const index = open.get(key)
    return index === undefined ? undefined : spans[index]
  }

  /** The first row in which nothing else goes on. */
  const freeRow = (lane: number, is: What["is"]): number => {
    const taken = new Set<number>()
    for (const index of open.values()) {
      const span = spans[index]
      if (span?.lane === lane && span.what.is === is) taken.add(span.row)
    }
    let row = 0
    while (taken.has(row)) row++
    const present = lanes[lane]
    if (present !== undefined && present.rows <= row) lanes[lane] = { ...present, rows: row + 1 }
    return row
  }

  const begin = (key: string, span: Span) => {
    open.set(key, spans.push(span) - 1)
  }

  /** Changes a span that goes on, and closes it when it is told where. */
  const update = (key: string, change: { readonly to?: number; readonly what?: What }, keep = false) => {
    const index = open.get(key)
    const span = index === undefined ? undefined : spans[index]
    if (index === undefined || span === undefined) return
    spans[index] = { ...span, ...change }
    if (!keep) open.delete(key)
  }

  const part = (seq: number, before: RunState, event: EventOf<"text-delta" | "reasoning-delta">) => {
    const type = event.type === "text-delta" ? "text" : "reasoning"
    const last = openSpan(type)
    if (last?.what.is === "part" && last.what.id === event.id) return update(type, { to: seq }, true)
    const offset = type === "text" ? before.textLength : before.reasoningLength
    begin(type, { lane: laneOf(type), row: 0, from: seq, to: seq, what: { is: "part", type, id: event.id, offset } })
  }

  /** Marks what was written behind the part of a draft that a new attempt keeps. */
  const cut = (type: "text" | "reasoning", kept: number) => {
    open.delete(type)
    for (let index = spans.length - 1; index >= 0; index--) {
      const span = spans[index]
      if (span?.what.is !== "part" || span.what.type !== type || span.what.dropped === true) continue
      const dropped: What = { ...span.what, dropped: true }
      if (span.what.offset >= kept) {
        spans[index] = { ...span, what: dropped }
        continue
      }
      let length = span.what.offset
      for (let seq = span.from; seq <= (span.to ?? span.from); seq++) {
        const event = look(seq)?.event
        if (event?.type !== "text-delta" && event?.type !== "reasoning-delta") continue
        if (event.type !== `${type}-delta`) continue
        if (length >= kept) {
          spans[index] = { ...span, to: seq - 1 }
          spans.push({ ...span, from: seq, what: { ...dropped, offset: length } })
          return
        }
        length += event.delta.length
      }
      return
    }
  }

  /** Marks a call that a new attempt does not know of, whether it had ended or not. */
  const leave = (seq: number, toolCallId: string) => {
    const index = spans.findLastIndex(({ what }) => what.is === "call" && what.toolCallId === toolCallId)
    const span = spans[index]
    if (span?.what.is !== "call") return
    spans[index] = { ...span, to: span.to ?? seq, what: { ...span.what, dropped: true } }
    open.delete(`call ${toolCallId}`)
  }

  const resumed = (seq: number, event: EventOf<"run-resumed">) => {
    cut("text", event.textLength)
    cut("reasoning", event.reasoningLength)
    for (const key of [...open.keys()]) if (key.startsWith("phase ")) update(key, { to: seq })
    for (const toolCallId of event.droppedToolCallIds) leave(seq, toolCallId)
    update("attempt", { to: seq })
    begin("attempt", {
      lane: laneOf("attempts"),
      row: 0,
      from: seq,
      what: { is: "attempt", attempt: event.attempt, reason: event.reason }
    })
  }

  const standing = (seq: number, before: RunState, after: RunState) => {
    if (before.seq > 0 && before.status === after.status) return
    update("status", { to: seq })
    begin("status", { lane: laneOf("run"), row: 0, from: seq, what: { is: "status", status: after.status } })
    if (Status.isFinal(after)) update("status", { to: seq })
  }

  const turn = (seq: number, before: RunState, after: RunState) => {
    // A failure ends what is shown of a turn; a resume goes on with it.
    if (
      after.open !== undefined &&
      (before.open === undefined || (before.end !== undefined && after.end === undefined))
    ) {
      const what: What = { is: "turn", iteration: after.open.n }
      begin("turn", { lane: laneOf("turns"), row: 0, from: seq, what })
    }
    if (before.open === undefined || after.open !== undefined) return
    const span = openSpan("turn")
    // A turn that is gone and not closed was left behind.
    const dropped = after.closed.length === before.closed.length
    if (span?.what.is === "turn") update("turn", { to: seq, ...(dropped && { what: { ...span.what, dropped } }) })
  }

  const callOf = (seq: number, event: AgentEvent) => {
    switch (event.type) {
      case "tool-call-start": {
        const lane = laneOf("tool", event.toolName)
        const what: What = { is: "call", toolCallId: event.toolCallId, name: event.toolName }
        return begin(`call ${event.toolCallId}`, { lane, row: freeRow(lane, "call"), from: seq, what })
      }
      case "tool-start": {
        const key = `phase ${event.toolCallId}`
        update(key, { to: seq })
        const { lane, row } = openSpan(`call ${event.toolCallId}`) ?? { lane: laneOf("tool", event.toolName), row: 0 }
        const what: What = { is: "phase", toolCallId: event.toolCallId, phase: event.phase }
        return begin(key, { lane, row, from: seq, what })
      }
      case "tool-conflict":
        return update(`phase ${event.toolCallId}`, { to: seq })
      case "tool-call-result": {
        update(`phase ${event.toolCallId}`, { to: seq })
        const span = openSpan(`call ${event.toolCallId}`)
        if (span?.what.is !== "call") return
        return update(`call ${event.toolCallId}`, { to: seq, what: { ...span.what, result: event } })
      }
      case "approval-request": {
        update(`phase ${event.toolCallId}`, { to: seq })
        if (event.supersedes !== undefined) update(`approval ${event.supersedes}`, { to: seq })
        const lane = laneOf("approvals")
        const what: What = { is: "approval", approvalId: event.approvalId, toolCallId: event.toolCallId }
        return begin(`approval ${event.approvalId}`, { lane, row: freeRow(lane, "approval"), from: seq, what })
      }
      case "approval-decision": {
        const span = openSpan(`approval ${event.approvalId}`)
        if (span?.what.is !== "approval") return
        return update(`approval ${event.approvalId}`, { to: seq, what: { ...span.what, decision: event.decision } })
      }
    }
  }

  const ended = (seq: number) => {
    for (const key of [...open.keys()]) {
      if (key !== "status" && key !== "text" && key !== "reasoning") update(key, { to: seq })
    }
  }

  return {
    add: (before, { event, seq }, after) => {
      const { kind, name } = placeOf(event, after)
      const lane = laneOf(kind, name)
      standing(seq, before, after)
      turn(seq, before, after)
      if (event.type === "text-delta" || event.type === "reasoning-delta") part(seq, before, event)
      else if (event.type === "run-resumed") resumed(seq, event)
      else callOf(seq, event)
      if (event.type === "run-start") {
        begin("attempt", { lane: laneOf("attempts"), row: 0, from: seq, what: { is: "attempt", attempt: 1 } })
      }
      if (event.type === "finish" || event.type === "cancelled" || event.type === "error") ended(seq)
      return lane
    },
    done: () => ({ lanes, spans, open })
  }
}
