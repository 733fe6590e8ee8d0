/**
 * A run that can be looked at as it stood at any of its events. The log is kept in pieces, each with the state before
 * it, so that any other state is a short fold away; the fold is the server's own. A recording grows with its run.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../../domain/Envelope.js"
import * as RunState from "../../domain/RunState.js"
import * as Lanes from "./Lanes.js"

/**
 * How many events a piece of the log has: the most that must be folded to know a state.
 *
 * @since 0.1.0
 * @category models
 */
export const pieceLength = 256

/**
 * The longest pause that counts as it was when pauses are shortened, in milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export const longestPauseMs = 2000

/**
 * `real`: milliseconds since the first event; `short`: the same with every pause that is longer than `longestPauseMs`
 * counted as that long.
 *
 * @since 0.1.0
 * @category models
 */
export type Clock = "real" | "short"

/**
 * A piece of the log. `times` and `lanes` stand beside the envelopes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Piece {
  readonly before: RunState.RunState
  readonly envelopes: ReadonlyArray<Envelope>
  readonly times: { readonly [_ in Clock]: ReadonlyArray<number> }
  readonly lanes: ReadonlyArray<number>
}

/**
 * A run from `base` on, which is the empty state unless the log before it was removed.
 *
 * @since 0.1.0
 * @category models
 */
export interface Recording {
  readonly base: RunState.RunState
  readonly pieces: ReadonlyArray<Piece>
  /** After the last event. */
  readonly end: RunState.RunState
  readonly lanes: Lanes.Lanes
}

/**
 * A recording without events.
 *
 * @since 0.1.0
 * @category constructors
 */
export const from = (base: RunState.RunState): Recording => ({ base, pieces: [], end: base, lanes: Lanes.none })

/**
 * A recording without events, of a run that is known by name only.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty = (runId: string): Recording => from(RunState.empty(runId))

/**
 * The place of the first event, whether there is one or not.
 *
 * @since 0.1.0
 * @category reading
 */
export const firstSeq = ({ base }: Recording): number => base.seq + 1

/**
 * How many events there are.
 *
 * @since 0.1.0
 * @category reading
 */
export const size = ({ base, end }: Recording): number => end.seq - base.seq

const pieceAt = (recording: Recording, seq: number) =>
  recording.pieces[Math.floor((seq - firstSeq(recording)) / pieceLength)]

const placeIn = (recording: Recording, seq: number) => (seq - firstSeq(recording)) % pieceLength

/**
 * The event at this place.
 *
 * @since 0.1.0
 * @category reading
 */
export const envelopeAt = (recording: Recording, seq: number): Envelope | undefined =>
  pieceAt(recording, seq)?.envelopes[placeIn(recording, seq)]

/**
 * The lane of the event at this place, as an index.
 *
 * @since 0.1.0
 * @category reading
 */
export const laneAt = (recording: Recording, seq: number): number | undefined =>
  pieceAt(recording, seq)?.lanes[placeIn(recording, seq)]

/**
 * When the event at this place happened, by a clock. Before the first it is 0, behind the last the last one's time.
 *
 * @since 0.1.0
 * @category reading
 */
export const timeAt = (recording: Recording, seq: number, clock: Clock): number =>
  seq < firstSeq(recording)
    ? 0
    : (pieceAt(recording, Math.min(seq, recording.end.seq))?.times[clock][
        placeIn(recording, Math.min(seq, recording.end.seq))
      ] ?? 0)

/** The number of leading elements that a condition holds for; it must not hold again behind them. */
const countWhile = (length: number, holds: (index: number) => boolean): number => {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The last event that had happened at a time, by a clock; the place before the first when there is none.
 *
 * @since 0.1.0
 * @category reading
 */
export const seqAt = (recording: Recording, ms: number, clock: Clock): number =>
  recording.base.seq +
  countWhile(size(recording), (index) => timeAt(recording, firstSeq(recording) + index, clock) <= ms)

/**
 * The run as it stood after the event at this place: the fold of all events up to it. Places outside of the log are
 * the nearest ones in it.
 *
 * @since 0.1.0
 * @category reading
 */
export const stateAt = (recording: Recording, seq: number): RunState.RunState => {
  if (seq >= recording.end.seq) return recording.end
  const piece = pieceAt(recording, seq)
  return piece === undefined
    ? recording.base
    : RunState.reduceAll(piece.before, piece.envelopes.slice(0, placeIn(recording, seq) + 1))
}

/**
 * All events in order.
 *
 * @since 0.1.0
 * @category reading
 */
export const envelopes = function* ({ pieces }: Recording): Generator<Envelope> {
  for (const piece of pieces) yield* piece.envelopes
}

interface OpenPiece {
  readonly before: RunState.RunState
  readonly envelopes: Array<Envelope>
  readonly times: { readonly [_ in Clock]: Array<number> }
  readonly lanes: Array<number>
}

const openPiece = (before: RunState.RunState): OpenPiece => ({
  before,
  envelopes: [],
  times: { real: [], short: [] },
  lanes: []
})

const reopened = ({ before, envelopes, lanes, times }: Piece): OpenPiece => ({
  before,
  envelopes: [...envelopes],
  times: { real: [...times.real], short: [...times.short] },
  lanes: [...lanes]
})

/**
 * The recording with further events. Those that it has already are passed over, and nothing is taken behind a hole.
 *
 * @since 0.1.0
 * @category growing
 */
export const append = (recording: Recording, more: Iterable<Envelope>): Recording => {
  const pieces: Array<Piece> = [...recording.pieces]
  const lanes = Lanes.growing(recording.lanes, (seq) => envelopeAt(grown(), seq))
  let end = recording.end
  let real = timeAt(recording, end.seq, "real")
  let short = timeAt(recording, end.seq, "short")
  let began = recording.pieces[0]?.envelopes[0]?.createdAt
  let open: OpenPiece | undefined
  const grown = (): Recording => ({ ...recording, pieces, end })

  for (const envelope of more) {
    if (envelope.seq <= end.seq) continue
    if (envelope.seq !== end.seq + 1) break
    if (open === undefined || open.envelopes.length === pieceLength) {
      const last = pieces.at(-1)
      const fits = open === undefined && last !== undefined && last.envelopes.length < pieceLength
      open = fits ? reopened(last) : openPiece(end)
      if (fits) pieces[pieces.length - 1] = open
      else pieces.push(open)
    }
    began ??= envelope.createdAt
    // The clocks of two processes may differ; time does not go back for that.
    const now = Math.max(real, envelope.createdAt - began)
    short += Math.min(now - real, longestPauseMs)
    real = now
    const before = end
    end = RunState.reduce(before, envelope)
    open.envelopes.push(envelope)
    open.times.real.push(real)
    open.times.short.push(short)
    open.lanes.push(lanes.add(before, envelope, end))
  }
  return end === recording.end ? recording : { ...recording, pieces, end, lanes: lanes.done() }
}
