/**
 * What a client shows, and how it changes: a pure machine around the server's own fold. The phase is a function of the
 * run's state and of the connection, so that no order of events can make the two disagree.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import { isEnded } from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import type { RunletError } from "./RunletError.js"

/**
 * - `idle`: no run is on display
 * - `streaming`: a run is under way and its events arrive
 * - `interrupted`: the connection is gone; it comes back by itself, or after signing in
 * - `resuming`: the client is coming back to the run
 * - `waiting-approval`: a person must decide
 * - `completed`, `cancelled`, `failed`: the run has ended. What `canContinue` goes on only when a person wants it to
 *
 * @since 0.1.0
 * @category models
 */
export type Phase =
  | "idle"
  | "streaming"
  | "interrupted"
  | "resuming"
  | "waiting-approval"
  | "completed"
  | "cancelled"
  | "failed"

/**
 * How the client stands with the server: hearing it, cut off, or trying to hear it again.
 *
 * @since 0.1.0
 * @category models
 */
export type Link = "open" | "lost" | "retrying"

/**
 * Where a reader stands: the last event it applied, and which message of which conversation that belongs to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Cursor {
  readonly runId: string
  readonly lastAppliedSeq: number
  readonly conversationId: string
  readonly assistantMessageId: string
}

/**
 * All that a page needs. `run` is the fold of what was applied; `ahead` holds events behind a hole, which the next
 * snapshot closes; `starting` says that a request to begin or continue work is on its way; `error` is why the server
 * does not show the run any more.
 *
 * @since 0.1.0
 * @category models
 */
export interface ClientState {
  readonly phase: Phase
  readonly link: Link
  readonly run?: RunState.RunState | undefined
  readonly cursor?: Cursor | undefined
  readonly queuePosition?: number | undefined
  readonly ahead: ReadonlyArray<Envelope>
  readonly starting: boolean
  readonly canContinue: boolean
  readonly signedOut: boolean
  readonly error?: RunletError | undefined
}

/**
 * What can happen to a client.
 *
 * @since 0.1.0
 * @category models
 */
export type Action =
  | { readonly type: "starting"; readonly starting: boolean }
  | {
      readonly type: "started"
      readonly runId: string
      readonly conversationId: string
      readonly assistantMessageId: string
    }
  | { readonly type: "attached"; readonly runId: string }
  | { readonly type: "left" }
  | { readonly type: "snapshot"; readonly snapshot: Snapshot.Snapshot }
  | { readonly type: "events"; readonly events: ReadonlyArray<Envelope> }
  | { readonly type: "link"; readonly link: Link }
  | { readonly type: "refused"; readonly error: RunletError | undefined }

/**
 * A client that shows nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const initial: ClientState = {
  phase: "idle",
  link: "open",
  ahead: [],
  starting: false,
  canContinue: false,
  signedOut: false
}

const phaseOf = ({ error, link, run, signedOut }: ClientState): Phase => {
  if (!run) return "idle"
  if (error && !signedOut) return "failed"
  const { status } = run
  if (status === "completed" || status === "cancelled" || status === "failed") return status
  if (link === "lost") return "interrupted"
  if (link === "retrying") return "resuming"
  return status === "waiting_approval" ? "waiting-approval" : "streaming"
}

/** What follows from the rest. */
const settle = (state: ClientState): ClientState => {
  const { cursor, error, run } = state
  const signedOut = error?._tag === "Unauthorized"
  const phase = phaseOf({ ...state, signedOut })
  return {
    ...state,
    phase,
    signedOut,
    canContinue: phase === "failed" && !error && run?.recoverable === true,
    queuePosition: run?.status === "queued" ? state.queuePosition : undefined,
    cursor: run && {
      runId: run.runId,
      lastAppliedSeq: run.seq,
      conversationId: run.start?.conversationId ?? cursor?.conversationId ?? "",
      assistantMessageId: run.start?.assistantMessageId ?? cursor?.assistantMessageId ?? ""
    }
  }
}

/** Applies what follows without a hole, each event once, and keeps what lies behind one. */
const take = (state: ClientState, events: ReadonlyArray<Envelope>): ClientState => {
  let run = state.run
  if (!run) return state
  const ahead: Array<Envelope> = []
  for (const envelope of [...state.ahead, ...events].sort((a, b) => a.seq - b.seq)) {
    if (envelope.runId !== run.runId) continue
    if (RunState.follows(run, envelope)) run = RunState.reduce(run, envelope)
    else if (envelope.seq > run.seq) ahead.push(envelope)
  }
  return { ...state, run, ahead }
}

const step = (state: ClientState, action: Action): ClientState => {
  switch (action.type) {
    case "starting":
      return { ...state, starting: action.starting }
    case "started": {
      const { conversationId, assistantMessageId, runId } = action
      return {
        ...initial,
        run: RunState.empty(runId),
        cursor: { runId, lastAppliedSeq: 0, conversationId, assistantMessageId }
      }
    }
    case "attached":
      return { ...initial, link: "retrying", run: RunState.empty(action.runId) }
    case "left":
      return initial
    case "snapshot": {
      const { snapshot } = action
      const { run } = state
      if (run?.runId !== snapshot.runId) return state
      const { queuePosition } = snapshot
      // An older one adds nothing; one of the same age says less than what was folded.
      return snapshot.lastSeq > run.seq
        ? take({ ...state, queuePosition, run: Snapshot.toState(snapshot) }, [])
        : { ...state, queuePosition }
    }
    case "events":
      return take(state, action.events)
    case "link":
      return { ...state, link: action.link }
    case "refused":
      return { ...state, error: action.error }
  }
}

/**
 * The state after an action. Total and pure; the same object when nothing changes.
 *
 * @since 0.1.0
 * @category transitions
 */
export const reduce = (state: ClientState, action: Action): ClientState => {
  const next = step(state, action)
  return next === state ? state : settle(next)
}

/**
 * Whether nothing more is to be expected, unless a person continues the run.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isOver = ({ error, run }: ClientState): boolean => !run || !!error || isEnded(run.status)
