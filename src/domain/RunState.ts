/**
 * The one fold. The state of a run is `events.reduce(reduce, empty(runId))`; the engine, the snapshot, resume, the
 * client, the page and the tests use this function and no other. Pure, and free of runtime imports, so that browsers
 * can load it.
 *
 * @since 0.1.0
 */
import type { AgentEvent, EventOf, ModelFinishReason, TerminalEvent, ToolKind, ToolPhase, Usage } from "./AgentEvent.js"
import type { Envelope } from "./Envelope.js"
import * as Status from "./RunStatus.js"

/**
 * The request for a decision and, once it is known, the decision.
 *
 * @since 0.1.0
 * @category models
 */
export interface Approval {
  readonly request: EventOf<"approval-request">
  readonly decision?: EventOf<"approval-decision"> | undefined
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
 * - `open`: started, no outcome known; `doubt`: an open start that a person was asked about; `conflict`: the commit
 *   reported that its target changed
 * - `starts`: how often its present key was started; `asked`: approvals requested so far
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
  readonly starts: number
  readonly asked: number
  readonly progress: string
  readonly approval?: Approval | undefined
  readonly doubt?: Started | undefined
  readonly conflict?: boolean | undefined
  readonly result?: EventOf<"tool-call-result"> | undefined
  readonly settledAt?: number | undefined
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
 * One model turn and the calls it asked for. `text0` and `reasoning0` are the lengths of the draft where it began,
 * `seq0` the seq of the event before its first.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  readonly n: number
  readonly text0: number
  readonly reasoning0: number
  readonly seq0: number
  readonly parts: ReadonlyArray<Part>
  readonly calls: ReadonlyArray<Call>
  readonly ended?: { readonly finishReason: ModelFinishReason; readonly usage: Usage } | undefined
}

/**
 * What a log says. `open` is the only turn that events change; `closed` ones are frozen.
 *
 * - `stale`: recoveries since the last `model-end` or `tool-call-result`
 * - `resumedSeq`: where the present attempt began; `dropped`: ids of calls that earlier attempts left behind
 * - `trace`: the W3C `traceparent` of the present attempt, if it is recorded
 * - `activeMs`: time spent running before `activeSince`; waiting for a person or in the queue does not count
 *
 * @since 0.1.0
 * @category models
 */
export interface RunState {
  readonly runId: string
  readonly seq: number
  readonly start?: EventOf<"run-start"> | undefined
  readonly status: Status.RunStatus
  readonly recoverable?: boolean | undefined
  readonly end?: TerminalEvent | undefined
  readonly attempt: number
  readonly trace?: string | undefined
  readonly stale: number
  readonly resumedSeq: number
  readonly dropped: ReadonlyArray<string>
  readonly textLength: number
  readonly reasoningLength: number
  readonly usage: Usage
  readonly createdAt: number
  readonly updatedAt: number
  readonly startedAt?: number | undefined
  readonly firstTokenAt?: number | undefined
  readonly activeMs: number
  readonly activeSince?: number | undefined
  readonly iteration: number
  readonly open?: Turn | undefined
  readonly closed: ReadonlyArray<Turn>
}

/**
 * The state before the first event.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty = (runId: string): RunState => ({
  runId,
  seq: 0,
  status: "queued",
  attempt: 1,
  stale: 0,
  resumedSeq: 0,
  dropped: [],
  textLength: 0,
  reasoningLength: 0,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  createdAt: 0,
  updatedAt: 0,
  activeMs: 0,
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
export const reduce = (state: RunState, envelope: Pick<Envelope, "seq" | "event" | "createdAt">): RunState =>
  envelope.seq <= state.seq ? state : apply(state, envelope.event, envelope.seq, envelope.createdAt)

/**
 * Folds many envelopes in.
 *
 * @since 0.1.0
 * @category folding
 */
export const reduceAll = (state: RunState, envelopes: Iterable<Envelope>): RunState => {
  let current = state
  for (const envelope of envelopes) current = reduce(current, envelope)
  return current
}

/**
 * Whether the envelope is the next one, without a hole.
 *
 * @since 0.1.0
 * @category folding
 */
export const follows = (state: RunState, envelope: Envelope): boolean => envelope.seq === state.seq + 1

/** A copy that is still being written, seen by nobody else. */
type Draft<A> = { -readonly [K in keyof A]: A[K] }

const apply = (state: RunState, event: AgentEvent, seq: number, at: number): RunState => {
  const next: Draft<RunState> = { ...state, seq, updatedAt: at }
  const status = Status.after(event)
  if (status !== undefined) {
    const executing = Status.isExecuting(status)
    if (state.activeSince !== undefined) {
      // The time between the last sign of life and a resume was not spent running.
      const until = event.type === "run-resumed" ? state.updatedAt : at
      next.activeMs += Math.max(0, until - state.activeSince)
    }
    next.status = status
    next.recoverable = event.type === "error" ? event.recoverable : undefined
    next.activeSince = executing ? at : undefined
    if (executing) next.startedAt ??= at
  }
  switch (event.type) {
    case "run-start":
      next.start = event
      next.trace = event.trace
      next.createdAt = at
      break
    case "run-resumed":
      resume(next, event)
      break
    case "text-delta":
      write(next, "text", event, at)
      next.textLength += event.delta.length
      break
    case "reasoning-delta":
      write(next, "reasoning", event, at)
      next.reasoningLength += event.delta.length
      break
    case "tool-call-start": {
      const turn = openTurn(next, at)
      turn.parts = [...turn.parts, { type: "tool-call", toolCallId: event.toolCallId }]
      turn.calls = [...turn.calls, emptyCall(event)]
      break
    }
    case "model-end":
      openTurn(next).ended = { finishReason: event.finishReason, usage: event.usage }
      next.usage = addUsage(state.usage, event.usage)
      next.stale = 0
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
    case "tool-call-result":
      next.stale = 0
      changeCall(next, event, at)
      break
    default:
      if ("toolCallId" in event) changeCall(next, event, at)
  }
  return next
}

/** The open turn, to be written to. Output opens one; the first token of a run is told by its time. */
const openTurn = (state: Draft<RunState>, tokenAt?: number): Draft<Turn> => {
  const turn: Draft<Turn> = {
    ...(state.open ?? {
      n: state.iteration + 1,
      text0: state.textLength,
      reasoning0: state.reasoningLength,
      seq0: state.seq - 1,
      parts: [],
      calls: []
    })
  }
  state.open = turn
  state.iteration = turn.n
  state.firstTokenAt ??= tokenAt
  return turn
}

// Two parts may interleave; lengths count deltas in order, so an interleaved continuation is a piece of its own.
const write = (
  state: Draft<RunState>,
  type: "text" | "reasoning",
  { delta, id }: { readonly id: string; readonly delta: string },
  at: number
): void => {
  const turn = openTurn(state, at)
  const last = turn.parts.at(-1)
  turn.parts =
    last !== undefined && last.type === type && last.id === id
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
  starts: 0,
  asked: 0,
  progress: ""
})

type CallEvent = Exclude<Extract<AgentEvent, { readonly toolCallId: string }>, EventOf<"tool-call-start">>

const changeCall = (state: Draft<RunState>, event: CallEvent, at: number): void => {
  const { open } = state
  const index = open?.calls.findIndex(({ id }) => id === event.toolCallId) ?? -1
  const before = open?.calls[index]
  if (open === undefined || before === undefined) return
  const call: Draft<Call> = { ...before }
  state.open = { ...open, calls: open.calls.with(index, call) }
  switch (event.type) {
    case "tool-call-delta":
      call.args += event.delta
      break
    case "tool-call-ready":
      call.proposed = { value: event.input }
      call.input = call.proposed
      break
    case "tool-start":
      call.starts = call.open?.key === event.idempotencyKey ? call.starts + 1 : 1
      call.open = { phase: event.phase, key: event.idempotencyKey }
      call.phase = event.phase
      call.progress = ""
      break
    case "tool-result-delta":
      call.progress += event.delta
      break
    case "tool-call-result":
      call.open = undefined
      call.doubt = undefined
      call.conflict = undefined
      call.result = event
      call.settledAt = at
      break
    case "approval-request": {
      const inDoubt = event.reason === "in_doubt"
      call.doubt = inDoubt ? (call.open ?? call.doubt) : undefined
      call.conflict = inDoubt ? call.conflict : undefined
      call.open = undefined
      call.starts = 0
      call.asked++
      call.approval = { request: event }
      break
    }
    case "approval-decision":
      if (call.approval?.request.approvalId !== event.approvalId) return
      call.approval = { ...call.approval, decision: event }
      if (event.decision !== "edited") return
      call.input = { value: event.input }
      call.edited = true
      break
    case "tool-conflict":
      // A conflict reported to a key that was started before proves nothing: it may be its own effect.
      if (call.starts > 1) call.doubt ??= call.open
      call.open = undefined
      call.conflict = true
  }
}

const resume = (state: Draft<RunState>, event: EventOf<"run-resumed">): void => {
  const { droppedToolCallIds, reasoningLength, textLength } = event
  const { open } = state
  state.end = undefined
  state.attempt = event.attempt
  state.trace = event.trace
  state.stale = event.reason === "recovery" ? state.stale + 1 : 0
  state.resumedSeq = state.seq
  state.dropped = [...state.dropped, ...droppedToolCallIds]
  state.textLength = textLength
  state.reasoningLength = reasoningLength
  if (open === undefined) return
  const isKept = (toolCallId: string) => !droppedToolCallIds.includes(toolCallId)
  const left = { text: textLength - open.text0, reasoning: reasoningLength - open.reasoning0 }
  const parts = open.parts.flatMap((part): ReadonlyArray<Part> => {
    if (part.type === "tool-call") return isKept(part.toolCallId) ? [part] : []
    const text = part.text.slice(0, Math.max(0, left[part.type]))
    left[part.type] -= text.length
    return text === "" ? [] : [{ ...part, text }]
  })
  const calls = open.calls.filter(({ id }) => isKept(id))
  const isEmpty = parts.length + calls.length === 0 && open.ended === undefined
  state.open = isEmpty ? undefined : { ...open, parts, calls }
  if (isEmpty) state.iteration--
}

/**
 * The sum of two usages; an optional count stays out when neither has it.
 *
 * @since 0.1.0
 * @category usage
 */
export const addUsage = (a: Usage, b: Usage): Usage => {
  const sum: Draft<Usage> = { ...a }
  for (const key of usageKeys) if (b[key] !== undefined) sum[key] = (sum[key] ?? 0) + b[key]
  return sum
}

const usageKeys = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "reasoningTokens",
  "cachedInputTokens",
  "costUsd"
] as const satisfies ReadonlyArray<keyof Usage>

/**
 * All turns in order, the open one last.
 *
 * @since 0.1.0
 * @category reading
 */
export const turns = (state: RunState): ReadonlyArray<Turn> =>
  state.open === undefined ? state.closed : [...state.closed, state.open]

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
export const text = (state: RunState, type?: "text" | "reasoning"): string =>
  turns(state)
    .map((turn) => turnText(turn, type))
    .join("")

/**
 * Requests that a person has not answered yet.
 *
 * @since 0.1.0
 * @category reading
 */
export const pendingApprovals = (state: RunState): ReadonlyArray<EventOf<"approval-request">> =>
  Status.isFinal(state) || state.open === undefined
    ? []
    : state.open.calls.flatMap(({ approval, result }) =>
        result === undefined && approval !== undefined && approval.decision === undefined ? [approval.request] : []
      )

/**
 * The call with this id, and its turn.
 *
 * @since 0.1.0
 * @category reading
 */
export const findCall = (
  state: RunState,
  toolCallId: string
): { readonly turn: Turn; readonly call: Call } | undefined => {
  for (const turn of turns(state).toReversed()) {
    const call = turn.calls.find((_) => _.id === toolCallId)
    if (call !== undefined) return { turn, call }
  }
  return undefined
}

/**
 * Milliseconds that the run has been executing at the time `now`; waiting and queueing do not count.
 *
 * @since 0.1.0
 * @category reading
 */
export const activeMsAt = (state: RunState, now: number): number =>
  state.activeMs + (state.activeSince === undefined ? 0 : Math.max(0, now - state.activeSince))
