/**
 * The part of a log that is in view, and where its events are in it: by their number or by their time.
 *
 * @since 0.1.0
 */
import * as Recording from "./Recording.js"

/**
 * What the axis counts: events, or milliseconds by a clock.
 *
 * @since 0.1.0
 * @category models
 */
export type Axis = "seq" | Recording.Clock

/**
 * What is in view, in units of the axis. An event fills the unit that ends at its number; a time is a point.
 *
 * @since 0.1.0
 * @category models
 */
export interface Range {
  readonly from: number
  readonly to: number
}

/**
 * The whole of a recording.
 *
 * @since 0.1.0
 * @category ranges
 */
export const whole = (recording: Recording.Recording, axis: Axis): Range => ({
  from: 0,
  to: Math.max(1, unitAt(recording, axis, recording.end.seq))
})

/**
 * Where on the axis an event is.
 *
 * @since 0.1.0
 * @category places
 */
export const unitAt = (recording: Recording.Recording, axis: Axis, seq: number): number =>
  axis === "seq" ? seq - recording.base.seq : Recording.timeAt(recording, seq, axis)

/** What calculating with ratios may lose. Events and milliseconds are whole. */
const hair = 1e-6

/**
 * The last event at or before a place on the axis; never one that there is not, unless there is none.
 *
 * @since 0.1.0
 * @category places
 */
export const seqAt = (recording: Recording.Recording, axis: Axis, unit: number): number => {
  const seq =
    axis === "seq" ? recording.base.seq + Math.ceil(unit - hair) : Recording.seqAt(recording, unit + hair, axis)
  return Math.min(Math.max(seq, Recording.firstSeq(recording)), recording.end.seq)
}

/**
 * Where a place on the axis is in a range: 0 at its start, 1 at its end.
 *
 * @since 0.1.0
 * @category places
 */
export const ratio = ({ from, to }: Range, unit: number): number => (unit - from) / (to - from)

/**
 * The place on the axis at such a ratio.
 *
 * @since 0.1.0
 * @category places
 */
export const unit = ({ from, to }: Range, at: number): number => from + at * (to - from)

/** Moved, and if need be shortened, so that it lies in the whole. */
const within = (range: Range, all: Range): Range => {
  const width = Math.min(range.to - range.from, all.to - all.from)
  const from = Math.min(Math.max(range.from, all.from), all.to - width)
  return { from, to: from + width }
}

/** The least that can be in view: as many events, or milliseconds. */
const narrowest = 8

/**
 * The range with a factor's part of its width, so that `anchor` stays where it is in it.
 *
 * @since 0.1.0
 * @category ranges
 */
export const zoom = (range: Range, factor: number, anchor: number, all: Range): Range => {
  const width = Math.max((range.to - range.from) * factor, Math.min(narrowest, all.to - all.from))
  const from = anchor - ratio(range, anchor) * width
  return within({ from, to: from + width }, all)
}

/**
 * The range moved by a part of its width.
 *
 * @since 0.1.0
 * @category ranges
 */
export const pan = (range: Range, part: number, all: Range): Range => {
  const by = part * (range.to - range.from)
  return within({ from: range.from + by, to: range.to + by }, all)
}

/**
 * The range, moved no further than it takes to have a place in it.
 *
 * @since 0.1.0
 * @category ranges
 */
export const reveal = (range: Range, at: number, all: Range): Range => {
  if (at >= range.from && at <= range.to) return range
  const width = range.to - range.from
  return within(at < range.from ? { from: at, to: at + width } : { from: at - width, to: at }, all)
}

const steps = [1, 2, 5]
/** From a minute on, time is not counted in tens. */
const longSteps = [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400].map((seconds) => seconds * 1000)

/**
 * Round places on the axis, at most so many of them in the range.
 *
 * @since 0.1.0
 * @category ranges
 */
export const marks = (range: Range, axis: Axis, most: number): ReadonlyArray<number> => {
  const least = (range.to - range.from) / Math.max(1, most)
  const step = stepOver(least, axis)
  const places: Array<number> = []
  for (let at = Math.ceil(range.from / step) * step; at <= range.to; at += step) places.push(at)
  return places
}

const stepOver = (least: number, axis: Axis): number => {
  if (axis !== "seq" && least > 30_000) {
    const days = longSteps.at(-1) ?? 1
    return longSteps.find((step) => step >= least) ?? Math.ceil(least / days) * days
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)))
  return (steps.find((step) => step * power >= least) ?? 10) * power
}
