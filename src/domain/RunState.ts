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

const apply = (state: RunState, event: AgentEvent, seq: number, at: number): RunState => {
  const standing = Status.next(state.seq === 0 ? undefined : state, event)
  const moved = standing === undefined || standing === state ? undefined : standing
  const base: RunState = {
    ...state,
    seq,
    updatedAt: at,
    ...(moved && { status: moved.status, recoverable: moved.recoverable })
  }
  const clocked = moved === undefined ? base : clock(state, base, at)
  switch (event.type) {
    case "run-start":
      return { ...clocked, start: event, createdAt: at }
    case "run-status":
    case "model-retry":
    case "checkpoint":
      return clocked
    case "run-resumed": {
      // The time between the last sign of life and now was not spent running.
      const spent = state.activeSince === undefined ? 0 : Math.max(0, state.updatedAt - state.activeSince)
      return resumed({ ...clocked, activeSince: at, activeMs: state.activeMs + spent }, event)
    }
    case "text-delta":
      return {
        ...withOpen(clocked, (turn) => appendText(turn, "text", event, at)),
        textLength: state.textLength + event.delta.length,
        firstTokenAt: state.firstTokenAt ?? at
      }
    case "reasoning-delta":
      return {
        ...withOpen(clocked, (turn) => appendText(turn, "reasoning", event, at)),
        reasoningLength: state.reasoningLength + event.delta.length,
        firstTokenAt: state.firstTokenAt ?? at
      }
    case "tool-call-start":
      return { ...withOpen(clocked, (turn) => startCall(turn, event)), firstTokenAt: state.firstTokenAt ?? at }
    case "tool-call-delta":
      return withCall(clocked, event.toolCallId, (call) => ({ ...call, args: call.args + event.delta }))
    case "tool-call-ready":
      return withCall(clocked, event.toolCallId, (call) => ({
        ...call,
        proposed: { value: event.input },
        input: { value: event.input }
      }))
    case "model-end":
      return {
        ...withOpen(clocked, (turn) => ({ ...turn, ended: { finishReason: event.finishReason, usage: event.usage } })),
        usage: addUsage(state.usage, event.usage),
        stale: 0
      }
    case "tool-start":
      return withCall(clocked, event.toolCallId, (call) => started(call, event))
    case "tool-result-delta":
      return withCall(clocked, event.toolCallId, (call) => ({ ...call, progress: call.progress + event.delta }))
    case "tool-call-result":
      return {
        ...withCall(clocked, event.toolCallId, (call) => ({
          ...call,
          open: undefined,
          doubt: undefined,
          conflict: undefined,
          result: event,
          settledAt: at
        })),
        stale: 0
      }
    case "approval-request":
      return withCall(clocked, event.toolCallId, (call) => ({
        ...call,
        open: undefined,
        starts: 0,
        asked: call.asked + 1,
        doubt: event.reason === "in_doubt" ? (call.open ?? call.doubt) : undefined,
        conflict: event.reason === "in_doubt" ? call.conflict : undefined,
        approval: { request: event }
      }))
    case "approval-decision":
      return withCall(clocked, event.toolCallId, (call) =>
        call.approval?.request.approvalId !== event.approvalId
          ? call
          : {
              ...call,
              approval: { ...call.approval, decision: event },
              ...(event.decision === "edited" && { input: { value: event.input }, edited: true })
            }
      )
    case "tool-conflict":
      return withCall(clocked, event.toolCallId, (call) => ({
        ...call,
        // A conflict reported to a key that was started before proves nothing: it may be its own effect.
        doubt: call.starts > 1 || call.doubt !== undefined ? (call.doubt ?? call.open) : undefined,
        open: undefined,
        conflict: true
      }))
    case "iteration-end": {
      const { open, ...rest } = clocked
      return open === undefined ? clocked : { ...rest, closed: [...state.closed, open] }
    }
    case "finish":
    case "cancelled":
    case "error":
      return { ...clocked, end: event }
  }
}

const clock = (before: RunState, after: RunState, at: number): RunState => {
  const was = before.activeSince
  const active = Status.isExecuting(after.status)
  if (was === undefined) return active ? { ...after, activeSince: at, startedAt: before.startedAt ?? at } : after
  return active ? after : { ...after, activeSince: undefined, activeMs: before.activeMs + Math.max(0, at - was) }
}

const openTurn = (state: RunState): Turn => {
  if (state.open !== undefined) return state.open
  return {
    n: state.iteration + 1,
    text0: state.textLength,
    reasoning0: state.reasoningLength,
    seq0: state.seq - 1,
    parts: [],
    calls: []
  }
}

const withOpen = (state: RunState, f: (turn: Turn) => Turn): RunState => {
  const turn = f(openTurn(state))
  return { ...state, iteration: turn.n, open: turn }
}

const withCall = (state: RunState, id: string, f: (call: Call) => Call): RunState => {
  if (state.open === undefined) return state
  const index = state.open.calls.findIndex((call) => call.id === id)
  const call = state.open.calls[index]
  if (call === undefined) return state
  return { ...state, open: { ...state.open, calls: state.open.calls.with(index, f(call)) } }
}

// Two parts may interleave; lengths count deltas in order, so an interleaved continuation is a piece of its own.
const appendText = (
  turn: Turn,
  type: "text" | "reasoning",
  event: { readonly id: string; readonly delta: string },
  at: number
): Turn => {
  const last = turn.parts.at(-1)
  return last !== undefined && last.type === type && last.id === event.id
    ? { ...turn, parts: turn.parts.with(-1, { ...last, text: last.text + event.delta, endedAt: at }) }
    : { ...turn, parts: [...turn.parts, { type, id: event.id, text: event.delta, startedAt: at, endedAt: at }] }
}

const startCall = (turn: Turn, event: EventOf<"tool-call-start">): Turn => ({
  ...turn,
  parts: [...turn.parts, { type: "tool-call", toolCallId: event.toolCallId }],
  calls: [
    ...turn.calls,
    {
      id: event.toolCallId,
      name: event.toolName,
      kind: event.kind,
      title: event.title,
      args: "",
      starts: 0,
      asked: 0,
      progress: ""
    }
  ]
})

const started = (call: Call, event: EventOf<"tool-start">): Call => ({
  ...call,
  progress: "",
  phase: event.phase,
  open: { phase: event.phase, key: event.idempotencyKey },
  starts: call.open?.key === event.idempotencyKey ? call.starts + 1 : 1
})

const resumed = (state: RunState, event: EventOf<"run-resumed">): RunState => {
  const rest: RunState = {
    ...state,
    end: undefined,
    attempt: event.attempt,
    stale: event.reason === "recovery" ? state.stale + 1 : 0,
    resumedSeq: state.seq,
    dropped: event.droppedToolCallIds.length === 0 ? state.dropped : [...state.dropped, ...event.droppedToolCallIds],
    textLength: event.textLength,
    reasoningLength: event.reasoningLength
  }
  if (state.open === undefined) return rest
  const dropped = new Set(event.droppedToolCallIds)
  const kept = truncate(state.open, event.textLength, event.reasoningLength)
  const parts = kept.filter((part) => part.type !== "tool-call" || !dropped.has(part.toolCallId))
  const calls = state.open.calls.filter((call) => !dropped.has(call.id))
  if (parts.length === 0 && calls.length === 0 && state.open.ended === undefined) {
    return { ...rest, open: undefined, iteration: state.open.n - 1 }
  }
  return { ...rest, open: { ...state.open, parts, calls } }
}

const truncate = (turn: Turn, textLength: number, reasoningLength: number): ReadonlyArray<Part> => {
  let text = textLength - turn.text0
  let reasoning = reasoningLength - turn.reasoning0
  const kept: Array<Part> = []
  for (const part of turn.parts) {
    if (part.type === "tool-call") {
      kept.push(part)
      continue
    }
    const left = part.type === "text" ? text : reasoning
    if (left <= 0) continue
    const piece = part.text.length <= left ? part : { ...part, text: part.text.slice(0, left) }
    if (part.type === "text") text -= piece.text.length
    else reasoning -= piece.text.length
    kept.push(piece)
  }
  return kept
}

/**
 * The sum of two usages; an optional count stays out when neither has it.
 *
 * @since 0.1.0
 * @category usage
 */
export const addUsage = (a: Usage, b: Usage): Usage => {
  const sum = (x: number | undefined, y: number | undefined) =>
    x === undefined && y === undefined ? undefined : (x ?? 0) + (y ?? 0)
  const reasoningTokens = sum(a.reasoningTokens, b.reasoningTokens)
  const cachedInputTokens = sum(a.cachedInputTokens, b.cachedInputTokens)
  const costUsd = sum(a.costUsd, b.costUsd)
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
    totalTokens: a.totalTokens + b.totalTokens,
    ...(costUsd !== undefined && { costUsd })
  }
}

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
export const turnText = (turn: Turn, type: "text" | "reasoning" = "text"): string => {
  let text = ""
  for (const part of turn.parts) if (part.type === type) text += part.text
  return text
}

/**
 * The assistant text, or the reasoning, of the whole run.
 *
 * @since 0.1.0
 * @category reading
 */
export const text = (state: RunState, type: "text" | "reasoning" = "text"): string => {
  let all = ""
  for (const turn of turns(state)) all += turnText(turn, type)
  return all
}

/**
 * Requests that a person has not answered yet.
 *
 * @since 0.1.0
 * @category reading
 */
export const pendingApprovals = (state: RunState): ReadonlyArray<EventOf<"approval-request">> => {
  if (Status.isFinal(state) || state.open === undefined) return []
  const pending: Array<EventOf<"approval-request">> = []
  for (const call of state.open.calls) {
    if (call.result === undefined && call.approval !== undefined && call.approval.decision === undefined) {
      pending.push(call.approval.request)
    }
  }
  return pending
}

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
