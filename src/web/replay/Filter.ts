/**
 * Which events of a log a reader wants to see: those of some lanes, and those that say something. Text that came in
 * many small pieces is searched as a whole, and found in the pieces that it came in.
 *
 * @since 0.1.0
 */
import * as Recording from "./Recording.js"

/**
 * `hidden` has the ids of lanes; `query` is looked for without regard to case, empty for everything.
 *
 * @since 0.1.0
 * @category models
 */
export interface Filter {
  readonly hidden: ReadonlySet<string>
  readonly query: string
}

/**
 * The filter that lets everything through.
 *
 * @since 0.1.0
 * @category constructors
 */
export const everything: Filter = { hidden: new Set(), query: "" }

/**
 * Whether the filter keeps nothing back.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isEverything = ({ hidden, query }: Filter): boolean => hidden.size === 0 && query.trim() === ""

/**
 * A filter with a lane hidden, or shown if it was.
 *
 * @since 0.1.0
 * @category constructors
 */
export const toggle = (filter: Filter, lane: string): Filter => {
  const hidden = new Set(filter.hidden)
  if (!hidden.delete(lane)) hidden.add(lane)
  return { ...filter, hidden }
}

/** The texts of the events of a piece, made once: a piece never changes. */
const texts = new WeakMap<Recording.Piece, ReadonlyArray<string>>()

/** All that a value says, a line each. The run's own id says nothing in its own log. */
const said = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return String(value)
  let text = ""
  for (const [key, field] of Object.entries(value)) if (key !== "runId") text += `${said(field)}\n`
  return text
}

const textsOf = (piece: Recording.Piece): ReadonlyArray<string> => {
  const known = texts.get(piece)
  if (known !== undefined) return known
  const made = piece.envelopes.map(({ event }) => said(event))
  texts.set(piece, made)
  return made
}

/** The events that parts of the text or reasoning came in, where the whole of the part has what is looked for. */
const inParts = (recording: Recording.Recording, pattern: RegExp): ReadonlySet<number> => {
  const found = new Set<number>()
  for (const { from, to = from, what } of recording.lanes.spans) {
    if (what.is !== "part") continue
    const type = `${what.type}-delta`
    const seqs: Array<number> = []
    const ends: Array<number> = []
    let text = ""
    for (let seq = from; seq <= to; seq++) {
      const event = Recording.envelopeAt(recording, seq)?.event
      if (event?.type !== type || !("delta" in event)) continue
      text += event.delta
      seqs.push(seq)
      ends.push(text.length)
    }
    let index = 0
    for (const match of text.matchAll(pattern)) {
      const end = match.index + match[0].length
      while ((ends[index] ?? end) <= match.index) index++
      for (let at = index; at < seqs.length; at++) {
        found.add(seqs[at] ?? 0)
        if ((ends[at] ?? end) >= end) break
      }
    }
  }
  return found
}

/**
 * The places of the events that the filter lets through, in order.
 *
 * @since 0.1.0
 * @category filtering
 */
export const matching = (recording: Recording.Recording, filter: Filter): ReadonlyArray<number> => {
  const query = filter.query.trim()
  const escaped = query.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
  const parts = query === "" ? undefined : inParts(recording, new RegExp(escaped, "giu"))
  const pattern = new RegExp(escaped, "iu")
  const hidden = recording.lanes.lanes.map(({ id }) => filter.hidden.has(id))
  const seqs: Array<number> = []
  let seq = recording.base.seq
  for (const piece of recording.pieces) {
    const lines = parts === undefined ? undefined : textsOf(piece)
    for (let index = 0; index < piece.envelopes.length; index++) {
      seq++
      if (hidden[piece.lanes[index] ?? 0] === true) continue
      if (lines === undefined || parts?.has(seq) === true || pattern.test(lines[index] ?? "")) seqs.push(seq)
    }
  }
  return seqs
}

/**
 * How many of the places, which are in order, are at or before this one.
 *
 * @since 0.1.0
 * @category filtering
 */
export const countUpTo = (seqs: ReadonlyArray<number>, seq: number): number => {
  let low = 0
  let high = seqs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((seqs[middle] ?? 0) <= seq) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The nearest of the places behind, or before, this one; `undefined` when there is none.
 *
 * @since 0.1.0
 * @category filtering
 */
export const beside = (seqs: ReadonlyArray<number>, seq: number, direction: 1 | -1): number | undefined =>
  direction === 1 ? seqs[countUpTo(seqs, seq)] : seqs[countUpTo(seqs, seq - 1) - 1]
