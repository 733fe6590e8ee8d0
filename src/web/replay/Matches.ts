/**
 * The events that a filter lets through, by their place among them: what a list shows and steps go along.
 *
 * @since 0.1.0
 */
import * as Filter from "./Filter.js"
import * as Recording from "./Recording.js"

/**
 * - `at`: the place in the log of the one at this index
 * - `countUpTo`: how many are at or before this place in the log
 * - `beside`: the nearest one behind, or before, a place
 *
 * @since 0.1.0
 * @category models
 */
export interface Matches {
  readonly size: number
  readonly at: (index: number) => number
  readonly countUpTo: (seq: number) => number
  readonly beside: (seq: number, direction: 1 | -1) => number | undefined
}

const everything = (recording: Recording.Recording): Matches => {
  const { base, end } = recording
  const size = Recording.size(recording)
  return {
    size,
    at: (index) => base.seq + 1 + index,
    countUpTo: (seq) => Math.min(Math.max(0, seq - base.seq), size),
    beside: (seq, direction) => {
      const next = seq + direction
      return next > base.seq && next <= end.seq ? next : undefined
    }
  }
}

/**
 * The events of a recording that a filter lets through. Where that is all of them, nothing is counted.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = (recording: Recording.Recording, filter: Filter.Filter): Matches => {
  if (Filter.isEverything(filter)) return everything(recording)
  const seqs = Filter.matching(recording, filter)
  return {
    size: seqs.length,
    at: (index) => seqs[index] ?? 0,
    countUpTo: (seq) => Filter.countUpTo(seqs, seq),
    beside: (seq, direction) => Filter.beside(seqs, seq, direction)
  }
}
