/**
 * What a client shows, and how it changes: pure transitions around the server's own fold. The phase is a function of the
 * run's state and of the connection, so that no order of events can make the two disagree.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import { isEnded } from "../domain/RunStatus.js"
import * as RunView from "../domain/RunView.js"
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
export type Link = "open" | "interrupted" | "resuming"

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
  readonly run?: RunView.RunView | undefined
  readonly cursor?: Cursor | undefined
  readonly queuePosition?: number | undefined
  readonly ahead: ReadonlyArray<Envelope>
  readonly starting: boolean
  readonly canContinue: boolean
  readonly signedOut: boolean
  readonly error?: RunletError | undefined
}

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

const phaseOf = ({ status }: RunView.RunView, link: Link): Phase => {
  if (isEnded(status)) return status
  if (link !== "open") return link
  return status === "waiting_approval" ? "waiting-approval" : "streaming"
}

/** The state with what follows from the rest. */
const settle = (state: ClientState): ClientState => {
  const { cursor, error, link, queuePosition, run } = state
  if (!run) return state
  const { recoverable, runId, seq, start, status } = run
  const signedOut = error?._tag === "Unauthorized"
  const phase = error && !signedOut ? "failed" : phaseOf(run, link)
  const { assistantMessageId = "", conversationId = "" }: Partial<Cursor> = start ?? cursor ?? {}
  return {
    ...state,
    phase,
    signedOut,
    canContinue: !error && recoverable === true,
    queuePosition: status === "queued" ? queuePosition : undefined,
    cursor: { runId, lastAppliedSeq: seq, conversationId, assistantMessageId }
  }
}

/**
 * A client that has begun to show a run, of which it knows nothing else than what it is told here.
 *
 * @since 0.1.0
 * @category transitions
 */
export const enter = (runId: string, known?: Partial<ClientState>): ClientState =>
  settle({ ...initial, ...known, run: RunView.empty(runId) })

/**
 * What may change beside the run.
 *
 * @since 0.1.0
 * @category models
 */
export type Changes = Partial<Pick<ClientState, "link" | "starting" | "error">>

/**
 * What is not the run's has changed.
 *
 * @since 0.1.0
 * @category transitions
 */
export const change = (state: ClientState, changes: Changes): ClientState => settle({ ...state, ...changes })

/**
 * Applies what follows without a hole, each event once, and keeps what lies behind one. What is of another run, or comes
 * when none is shown, is left out.
 *
 * @since 0.1.0
 * @category transitions
 */
export const hear = (state: ClientState, events: ReadonlyArray<Envelope>): ClientState => {
  let { run } = state
  if (!run) return state
  const ahead: Array<Envelope> = []
  for (const envelope of [...state.ahead, ...events].sort((a, b) => a.seq - b.seq)) {
    if (envelope.runId !== run.runId) continue
    if (RunView.follows(run, envelope)) run = RunView.reduce(run, envelope)
    else if (envelope.seq > run.seq) ahead.push(envelope)
  }
  return settle({ ...state, run, ahead })
}

/**
 * Shows a snapshot of the run on display. An older one adds nothing; one of the same age says less than what was folded.
 *
 * @since 0.1.0
 * @category transitions
 */
export const show = (state: ClientState, snapshot: Snapshot.Snapshot): ClientState => {
  const { lastSeq, queuePosition, runId } = snapshot
  const { run } = state
  return run?.runId === runId
    ? hear({ ...state, queuePosition, run: lastSeq > run.seq ? Snapshot.toView(snapshot) : run }, [])
    : state
}

/**
 * Whether nothing more is to be expected, unless a person continues the run.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isOver = ({ error, run }: ClientState): boolean => !run || !!error || isEnded(run.status)
