/**
 * The one fold. The state of a run is `events.reduce(reduce, empty(runId))`: what its log shows (see `RunView`), and beside
 * it what only the engine must know to go on. The engine, the snapshot, resume, the client, the page and the tests use
 * no other. Pure, and free of runtime imports, so that browsers can load it.
 *
 * @since 0.1.0
 */
import type { AgentEvent, TerminalEvent } from "./AgentEvent.js"
import type { Envelope } from "./Envelope.js"
import * as Status from "./RunStatus.js"
import * as RunView from "./RunView.js"
import * as Snapshot from "./Snapshot.js"

export type { Approval, Part, Said, Started } from "./RunView.js"
export { addUsage, countable, follows, pendingApprovals, text, turns, turnText } from "./RunView.js"

/**
 * One tool call of a turn.
 *
 * - `doubt`: an open start that a person was asked about; `conflict`: the commit reported that its target changed
 * - `starts`: how often its present key was started; `asked`: approvals requested so far
 *
 * @since 0.1.0
 * @category models
 */
export interface Call extends RunView.Call {
  readonly starts: number
  readonly asked: number
  readonly doubt?: RunView.Started | undefined
  readonly conflict?: boolean | undefined
  readonly settledAt?: number | undefined
}

/**
 * One model turn and the calls it asked for. `text0` and `reasoning0` are the lengths of the draft where it began,
 * `seq0` the seq of the event before its first.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn extends RunView.Turn {
  readonly text0: number
  readonly reasoning0: number
  readonly seq0: number
  readonly calls: ReadonlyArray<Call>
}

/**
 * What a log says.
 *
 * - `stale`: recoveries since the last `model-end` or `tool-call-result`
 * - `resumedSeq`: where the present attempt began; `dropped`: ids of calls that earlier attempts left behind
 * - `trace`: the W3C `traceparent` of the present attempt, if it is recorded
 * - `activeMs`: time spent running before `activeSince`; waiting for a person or in the queue does not count
 *
 * @since 0.1.0
 * @category models
 */
export interface RunState extends RunView.RunView {
  readonly end?: TerminalEvent | undefined
  readonly trace?: string | undefined
  readonly stale: number
  readonly resumedSeq: number
  readonly dropped: ReadonlyArray<string>
  readonly textLength: number
  readonly reasoningLength: number
  readonly startedAt?: number | undefined
  readonly firstTokenAt?: number | undefined
  readonly activeMs: number
  readonly activeSince?: number | undefined
  readonly open?: Turn | undefined
  readonly closed: ReadonlyArray<Turn>
}

/** What the engine knows of the run as a whole. */
type Facts = Omit<RunState, Exclude<keyof RunView.RunView, "end">>

/**
 * The state before the first event.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty = (runId: string): RunState => ({
  ...RunView.empty(runId),
  stale: 0,
  resumedSeq: 0,
  dropped: [],
  textLength: 0,
  reasoningLength: 0,
  activeMs: 0,
  end: undefined,
  open: undefined,
  closed: []
})

/**
 * The state that a snapshot shows. What is not in a snapshot (doubts, clocks, places) is unknown in it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofSnapshot = (snapshot: Snapshot.Snapshot): RunState => {
  const view = Snapshot.toView(snapshot)
  let text0 = 0
  let reasoning0 = 0
  const known = (turn: RunView.Turn): Turn => {
    const calls = turn.calls.map((call) => ({ ...call, starts: 0, asked: 0 }))
    const begun = { ...turn, text0, reasoning0, seq0: 0, calls }
    text0 += RunView.turnText(turn).length
    reasoning0 += RunView.turnText(turn, "reasoning").length
    return begun
  }
  const closed = view.closed.map(known)
  return {
    ...empty(snapshot.runId),
    ...view,
    textLength: snapshot.text.length,
    reasoningLength: snapshot.reasoning.length,
    end: Snapshot.endOf(snapshot),
    open: view.open && known(view.open),
    closed
  }
}

/**
 * Folds one envelope in. Envelopes at or below `state.seq` are ignored, so a reader may see an event twice; a hole is
 * the caller's business, see `follows`.
 *
 * @since 0.1.0
 * @category folding
 */
export const reduce = (state: RunState, envelope: Pick<Envelope, "seq" | "event" | "createdAt">): RunState => {
  const { createdAt: at, event, seq } = envelope
  if (seq <= state.seq) return state
  if (event.type === "text-delta" || event.type === "reasoning-delta") {
    const continued = goesOn(state, event, seq, at)
    if (continued !== undefined) return continued
  }
  // A copy of the state, seen by nobody else yet: it is written to rather than copied once more for every event.
  const view = RunView.reduce(state, envelope)
  return Object.assign(view, factsAfter(state, event, seq, at), {
    open: view.open && turnAfter(state, view.open, event, seq, at),
    closed: event.type === "iteration-end" ? RunView.turns(state) : state.closed
  })
}

/** An object with all of its fields, so that none is forgotten. */
type Whole<A> = { readonly [K in keyof Required<A>]: A[K] }

/**
 * The state behind a delta of the part that was written last, which is nearly every event of a log. Field by field: to
 * spread an object costs some ten times as much.
 */
const goesOn = (
  state: RunState,
  { delta, id, type }: Extract<AgentEvent, { readonly type: "text-delta" | "reasoning-delta" }>,
  seq: number,
  at: number
): RunState | undefined => {
  const { open } = state
  const last = open?.parts.at(-1)
  if (open === undefined || last === undefined || last.type === "tool-call") return undefined
  const isText = type === "text-delta"
  if (last.id !== id || (last.type === "text") !== isText) return undefined
  const parts = open.parts.slice()
  const part: Whole<typeof last> = {
    type: last.type,
    id,
    text: last.text + delta,
    startedAt: last.startedAt,
    endedAt: at
  }
  parts[parts.length - 1] = part
  const turn: Whole<Turn> = {
    n: open.n,
    parts,
    calls: open.calls,
    ended: open.ended,
    text0: open.text0,
    reasoning0: open.reasoning0,
    seq0: open.seq0
  }
  const next: Whole<RunState> = {
    runId: state.runId,
    seq,
    status: state.status,
    attempt: state.attempt,
    usage: state.usage,
    createdAt: state.createdAt,
    updatedAt: at,
    iteration: open.n,
    closed: state.closed,
    stale: state.stale,
    resumedSeq: state.resumedSeq,
    dropped: state.dropped,
    textLength: isText ? state.textLength + delta.length : state.textLength,
    reasoningLength: isText ? state.reasoningLength : state.reasoningLength + delta.length,
    activeMs: state.activeMs,
    end: state.end,
    open: turn,
    recoverable: state.recoverable,
    start: state.start,
    activeSince: state.activeSince,
    firstTokenAt: state.firstTokenAt ?? at,
    startedAt: state.startedAt,
    trace: state.trace
  }
  return next
}

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

/** A copy that is still being written, seen by nobody else. */
type Draft<A> = { -readonly [K in keyof A]: A[K] }

const factsAfter = (state: RunState, event: AgentEvent, seq: number, at: number): Facts => {
  const { activeMs, activeSince, dropped, end, firstTokenAt, reasoningLength } = state
  const { resumedSeq, stale, startedAt, textLength, trace } = state
  const next: Draft<Facts> = {
    activeMs,
    activeSince,
    dropped,
    end,
    firstTokenAt,
    reasoningLength,
    resumedSeq,
    stale,
    startedAt,
    textLength,
    trace
  }
  const status = Status.after(event)
  if (status !== undefined) {
    const executing = Status.isExecuting(status)
    if (activeSince !== undefined) {
      // The time between the last sign of life and a resume was not spent running.
      const until = event.type === "run-resumed" ? state.updatedAt : at
      next.activeMs += Math.max(0, until - activeSince)
    }
    next.activeSince = executing ? at : undefined
    if (executing) next.startedAt ??= at
  }
  switch (event.type) {
    case "run-start":
      next.trace = event.trace
      break
    case "run-resumed":
      next.end = undefined
      next.trace = event.trace
      next.stale = event.reason === "recovery" ? stale + 1 : 0
      next.resumedSeq = seq
      next.dropped = [...dropped, ...event.droppedToolCallIds]
      next.textLength = event.textLength
      next.reasoningLength = event.reasoningLength
      break
    case "text-delta":
      next.firstTokenAt ??= at
      next.textLength += event.delta.length
      break
    case "reasoning-delta":
      next.firstTokenAt ??= at
      next.reasoningLength += event.delta.length
      break
    case "tool-call-start":
      next.firstTokenAt ??= at
      break
    case "model-end":
    case "tool-call-result":
      next.stale = 0
      break
    case "finish":
    case "cancelled":
    case "error":
      next.end = event
  }
  return next
}

const turnAfter = (state: RunState, shown: RunView.Turn, event: AgentEvent, seq: number, at: number): Turn => {
  const { open } = state
  if (shown === open) return open
  const before = open ?? { text0: state.textLength, reasoning0: state.reasoningLength, seq0: seq - 1, calls: [] }
  const { reasoning0, seq0, text0 } = before
  const calls =
    shown.calls === before.calls
      ? before.calls
      : shown.calls.map((call, index) => callAfter(before.calls, index, call, event, at))
  return { ...shown, text0, reasoning0, seq0, calls }
}

const callAfter = (
  known: ReadonlyArray<Call>,
  index: number,
  shown: RunView.Call,
  event: AgentEvent,
  at: number
): Call => {
  const inPlace = known[index]
  // Only where calls were dropped is one in another place than before.
  const before = inPlace?.id === shown.id ? inPlace : known.find(({ id }) => id === shown.id)
  if (shown === before) return before
  const { asked = 0, conflict, doubt, settledAt, starts = 0 }: Partial<Call> = before ?? {}
  const call: Draft<Call> = { ...shown, asked, conflict, doubt, settledAt, starts }
  switch (event.type) {
    case "tool-start":
      call.starts = before?.open?.key === event.idempotencyKey ? starts + 1 : 1
      break
    case "tool-call-result":
      call.doubt = undefined
      call.conflict = undefined
      call.settledAt = at
      break
    case "approval-request": {
      const inDoubt = event.reason === "in_doubt"
      call.doubt = inDoubt ? (before?.open ?? doubt) : undefined
      call.conflict = inDoubt ? conflict : undefined
      call.starts = 0
      call.asked++
      break
    }
    case "tool-conflict":
      // A conflict reported to a key that was started before proves nothing: it may be its own effect.
      if (starts > 1) call.doubt ??= before?.open
      call.conflict = true
  }
  return call
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
  for (const turn of RunView.turns(state).toReversed()) {
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
