/**
 * What a log shows to a reader, as a fold of its events: the part of a run's state that a snapshot holds as well, and all
 * that a client needs. The state of the engine is this one with more facts beside it. Pure, and free of runtime imports,
 * so that browsers can load it.
 *
 * @since 0.1.0
 */
import type { AgentEvent, EventOf, ModelFinishReason, ToolKind, ToolPhase, Usage } from "./AgentEvent.js"
import type { Envelope } from "./Envelope.js"
import * as Status from "./RunStatus.js"

/**
 * What an event says, kept in a state: the event, or whatever else says the same in the same fields.
 *
 * @since 0.1.0
 * @category models
 */
export type Said<Type extends AgentEvent["type"], Implied extends string = "type"> = Omit<EventOf<Type>, Implied> & {
  readonly [Key in Implied]?: unknown
}

/**
 * How an attempt ended.
 *
 * @since 0.1.0
 * @category models
 */
export type Ending =
  | Said<"finish", "type" | "model" | "usage">
  | Said<"cancelled", "type" | "usage">
  | Said<"error", "type" | "recoverable" | "usage">

/**
 * The request for a decision and, once it is known, the decision.
 *
 * @since 0.1.0
 * @category models
 */
export interface Approval {
  readonly request: Said<"approval-request">
  readonly decision?: Said<"approval-decision", "type" | "approvalId" | "toolCallId"> | undefined
}

/**
 * A started part of a tool whose outcome is not in the log.
 *
 * @since 0.1.0
 * @category models
 */
export interface Started {
  readonly phase: ToolPhase
  readonly key: string
}

/**
 * One tool call of a turn.
 *
 * - `proposed`: the arguments as the model gave them; `input`: the ones in force, which a person may have changed
 *   (`edited`)
 * - `open`: started, no outcome known
 *
 * @since 0.1.0
 * @category models
 */
export interface Call {
  readonly id: string
  readonly name: string
  readonly kind: ToolKind
  readonly title?: string | undefined
  readonly args: string
  readonly proposed?: { readonly value: unknown } | undefined
  readonly input?: { readonly value: unknown } | undefined
  readonly edited?: boolean | undefined
  readonly open?: Started | undefined
  readonly phase?: ToolPhase | undefined
  readonly progress: string
  readonly approval?: Approval | undefined
  readonly result?: Said<"tool-call-result"> | undefined
}

/**
 * A piece of a turn in the order in which it arrived. `startedAt` and `endedAt` are the times of the first and the last
 * delta of it that is known.
 *
 * @since 0.1.0
 * @category models
 */
export type Part =
  | {
      readonly type: "text" | "reasoning"
      readonly id: string
      readonly text: string
      readonly startedAt: number
      readonly endedAt: number
    }
  | { readonly type: "tool-call"; readonly toolCallId: string }

/**
 * One model turn and the calls it asked for.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  readonly n: number
  readonly parts: ReadonlyArray<Part>
  readonly calls: ReadonlyArray<Call>
  readonly ended?: { readonly finishReason: ModelFinishReason; readonly usage: Usage } | undefined
}

/**
 * What a log shows. `open` is the only turn that events change; `closed` ones are frozen.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunView {
  readonly runId: string
  readonly seq: number
  readonly start?: Said<"run-start", "type" | "seq"> | undefined
  readonly status: Status.RunStatus
  readonly recoverable?: boolean | undefined
  readonly end?: Ending | undefined
  readonly attempt: number
  readonly usage: Usage
  readonly createdAt: number
  readonly updatedAt: number
  readonly iteration: number
  readonly open?: Turn | undefined
  readonly closed: ReadonlyArray<Turn>
}

/**
 * The view before the first event.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty = (runId: string): RunView => ({
  runId,
  seq: 0,
  status: "queued",
  attempt: 1,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  createdAt: 0,
  updatedAt: 0,
  iteration: 0,
  closed: []
})

/**
 * Folds one envelope in. Envelopes at or below `state.seq` are ignored, so a reader may see an event twice; a hole is
 * the caller's business, see `follows`.
 *
 * @since 0.1.0
 * @category folding
 */
export const reduce = (
  state: RunView,
  { createdAt: at, event, seq }: Pick<Envelope, "seq" | "event" | "createdAt">
): RunView => {
  if (seq <= state.seq) return state
  const next: Draft<RunView> = { ...state, seq, updatedAt: at }
  const status = Status.after(event)
  if (status) {
    next.status = status
    next.recoverable = event.type === "error" ? event.recoverable : undefined
  }
  switch (event.type) {
    case "run-start":
      next.start = event
      next.createdAt = at
      break
    case "run-resumed":
      resume(next, event)
      break
    case "text-delta":
    case "reasoning-delta":
      write(next, event.type === "text-delta" ? "text" : "reasoning", event, at)
      break
    case "tool-call-start": {
      const turn = openTurn(next)
      turn.parts = [...turn.parts, { type: "tool-call", toolCallId: event.toolCallId }]
      turn.calls = [...turn.calls, emptyCall(event)]
      break
    }
    case "model-end":
      openTurn(next).ended = { finishReason: event.finishReason, usage: event.usage }
      next.usage = addUsage(state.usage, event.usage)
      break
    case "iteration-end":
      next.closed = turns(state)
      next.open = undefined
      break
    case "finish":
    case "cancelled":
    case "error":
      next.end = event
      break
    default:
      if ("toolCallId" in event && state.open) {
        const calls = state.open.calls.map((call) => (call.id === event.toolCallId ? callAfter(call, event) : call))
        next.open = { ...state.open, calls }
      }
  }
  return next
}

/**
 * Whether the envelope is the next one, without a hole.
 *
 * @since 0.1.0
 * @category folding
 */
export const follows = (state: RunView, envelope: Envelope): boolean => envelope.seq === state.seq + 1

/** A copy that is still being written, seen by nobody else. */
type Draft<A> = { -readonly [K in keyof A]: A[K] }

/** The open turn, to be written to. Output opens one; the first token of a run is told by its time. */
const openTurn = (state: Draft<RunView>): Draft<Turn> => {
  const turn: Draft<Turn> = {
    ...(state.open ?? {
      n: state.iteration + 1,
      parts: [],
      calls: []
    })
  }
  state.open = turn
  state.iteration = turn.n
  return turn
}

// Two parts may interleave; lengths count deltas in order, so an interleaved continuation is a piece of its own.
const write = (
  state: Draft<RunView>,
  type: "text" | "reasoning",
  { delta, id }: { readonly id: string; readonly delta: string },
  at: number
): void => {
  const turn = openTurn(state)
  const last = turn.parts.at(-1)
  turn.parts =
    last?.type === type && last.id === id
      ? turn.parts.with(-1, { ...last, text: last.text + delta, endedAt: at })
      : [...turn.parts, { type, id, text: delta, startedAt: at, endedAt: at }]
}

/**
 * A call of which no more than its beginning is known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const emptyCall = ({
  kind,
  title,
  toolCallId,
  toolName
}: Pick<EventOf<"tool-call-start">, "toolCallId" | "toolName" | "kind" | "title">): Call => ({
  id: toolCallId,
  name: toolName,
  kind,
  title,
  args: "",
  progress: ""
})

type CallEvent = Exclude<Extract<AgentEvent, { readonly toolCallId: string }>, EventOf<"tool-call-start">>

const callAfter = (call: Call, event: CallEvent): Call => {
  const next: Draft<Call> = { ...call }
  switch (event.type) {
    case "tool-call-delta":
      next.args += event.delta
      break
    case "tool-call-ready":
      next.proposed = { value: event.input }
      next.input = next.proposed
      break
    case "tool-start":
      next.open = { phase: event.phase, key: event.idempotencyKey }
      next.phase = event.phase
      next.progress = ""
      break
    case "tool-result-delta":
      next.progress += event.delta
      break
    case "tool-call-result":
      next.open = undefined
      next.result = event
      break
    case "approval-request":
      next.open = undefined
      next.approval = { request: event }
      break
    case "approval-decision":
      if (call.approval?.request.approvalId !== event.approvalId) return call
      next.approval = { ...call.approval, decision: event }
      if (event.decision === "edited") {
        next.input = { value: event.input }
        next.edited = true
      }
      break
    case "tool-conflict":
      next.open = undefined
  }
  return next
}

const resume = (state: Draft<RunView>, event: EventOf<"run-resumed">): void => {
  state.end = undefined
  state.attempt = event.attempt
  const isKept = (toolCallId: string) => !event.droppedToolCallIds.includes(toolCallId)
  const left = { text: event.textLength, reasoning: event.reasoningLength }
  const cut = (turn: Turn): Turn => ({
    ...turn,
    parts: turn.parts.flatMap((part): ReadonlyArray<Part> => {
      if (part.type === "tool-call") return isKept(part.toolCallId) ? [part] : []
      const text = part.text.slice(0, left[part.type])
      left[part.type] -= text.length
      return text ? [{ ...part, text }] : []
    }),
    calls: turn.calls.filter(({ id }) => isKept(id))
  })
  // The lengths are those of the whole draft: the closed turns take what is theirs, the open one keeps what is left.
  const open = turns(state).map(cut).at(-1)
  if (!state.open) return
  state.open = open?.parts.length || open?.ended ? open : undefined
  if (!state.open) state.iteration--
}

/** The largest count of one turn: so many that it must be a mistake, so few that no run's sum is beyond what is exact. */
const most = 1e11

/**
 * The usage of a turn as a log can hold it, whatever a provider has counted: what is no number or negative counts as
 * nothing, and more than 10^11 as that.
 *
 * @since 0.1.0
 * @category usage
 */
export const countable = (usage: Usage): Usage => {
  const out: Draft<Usage> = { ...usage }
  for (const key of Object.keys(usage) as ReadonlyArray<keyof Usage>) {
    const value = usage[key]
    if (value === undefined) continue
    const bounded = value > 0 ? Math.min(value, most) : 0
    out[key] = key === "costUsd" ? bounded : Math.floor(bounded)
  }
  return out
}

/**
 * The sum of two usages; an optional count stays out when neither has it.
 *
 * @since 0.1.0
 * @category usage
 */
export const addUsage = (a: Usage, b: Usage): Usage => {
  const sum: Draft<Usage> = { ...a }
  for (const key of Object.keys(b) as ReadonlyArray<keyof Usage>) {
    if (b[key] !== undefined) sum[key] = (sum[key] ?? 0) + b[key]
  }
  return sum
}

/**
 * All turns in order, the open one last.
 *
 * @since 0.1.0
 * @category reading
 */
export const turns = <T extends Turn>(state: {
  readonly open?: T | undefined
  readonly closed: ReadonlyArray<T>
}): ReadonlyArray<T> => (state.open === undefined ? state.closed : [...state.closed, state.open])

/**
 * The text, or the reasoning, of a turn.
 *
 * @since 0.1.0
 * @category reading
 */
export const turnText = (turn: Turn, type: "text" | "reasoning" = "text"): string =>
  turn.parts.map((part) => (part.type === type ? part.text : "")).join("")

/**
 * The assistant text, or the reasoning, of the whole run.
 *
 * @since 0.1.0
 * @category reading
 */
export const text = (state: RunView, type?: "text" | "reasoning"): string =>
  turns(state)
    .map((turn) => turnText(turn, type))
    .join("")

/**
 * Requests that a person has not answered yet.
 *
 * @since 0.1.0
 * @category reading
 */
export const pendingApprovals = (state: RunView): ReadonlyArray<Said<"approval-request">> =>
  Status.isFinal(state) || state.open === undefined
    ? []
    : state.open.calls.flatMap(({ approval, result }) =>
        result === undefined && approval !== undefined && approval.decision === undefined ? [approval.request] : []
      )
