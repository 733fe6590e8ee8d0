/**
 * Draws the lanes. What it costs depends on how wide they are and how many events are in view, never on how long one
 * looks: moving in the log draws nothing here.
 *
 * @since 0.1.0
 */
import type { LaneKind, Lanes, Span } from "./Lanes.js"
import { arranged } from "./Lanes.js"
import type { Matches } from "./Matches.js"
import * as Recording from "./Recording.js"
import * as Scale from "./Scale.js"
import * as Tone from "./Tone.js"

/**
 * Where a lane is drawn, in pixels from the top.
 *
 * @since 0.1.0
 * @category models
 */
export interface Band {
  readonly lane: number
  readonly id: string
  readonly kind: LaneKind
  readonly top: number
  readonly height: number
}

const rowHeight = 14
const gap = 10

/**
 * The lanes one below the other.
 *
 * @since 0.1.0
 * @category layout
 */
export const bands = (lanes: Lanes): ReadonlyArray<Band> => {
  const all: Array<Band> = []
  let top = 0
  for (const index of arranged(lanes)) {
    const lane = lanes.lanes[index]
    if (lane === undefined) continue
    // Beyond some rows they lie over one another rather than push everything else away.
    const height = Math.min(lane.rows, 6) * rowHeight + gap
    all.push({ lane: index, id: lane.id, kind: lane.kind, top, height })
    top += height
  }
  return all
}

/**
 * Names of the colours.
 *
 * @since 0.1.0
 * @category models
 */
export const tones = [
  "ink",
  "soft",
  "line",
  "paper",
  "busy",
  "good",
  "bad",
  "warn",
  "text",
  "reasoning",
  "tool",
  "neutral"
] as const

/**
 * A colour for each name, as the canvas takes it.
 *
 * @since 0.1.0
 * @category models
 */
export type Palette = { readonly [_ in (typeof tones)[number]]: string }

/**
 * What is drawn and how large. `label` gives a span's words.
 *
 * @since 0.1.0
 * @category models
 */
export interface Picture {
  readonly recording: Recording.Recording
  readonly matches: Matches
  readonly hidden: ReadonlySet<string>
  readonly axis: Scale.Axis
  readonly range: Scale.Range
  readonly width: number
  readonly height: number
  readonly palette: Palette
  readonly font: string
  readonly label: (span: Span) => string
}

const laneTone: { readonly [_ in LaneKind]: keyof Palette } = {
  run: "busy",
  attempts: "neutral",
  turns: "neutral",
  reasoning: "reasoning",
  text: "text",
  tool: "tool",
  approvals: "warn",
  checkpoints: "soft"
}

const spanTone = ({ what }: Span): keyof Palette => {
  switch (what.is) {
    case "status":
      return Tone.ofStatus(what.status)
    case "attempt":
      return what.attempt > 1 ? "warn" : "neutral"
    case "turn":
      return "neutral"
    case "part":
      return what.type
    case "call":
    case "phase":
      return what.is === "call" && what.result?.ok === false ? "bad" : "tool"
    case "approval":
      if (what.decision === undefined || what.decision === "edited") return "warn"
      return what.decision === "approved" || what.decision === "applied" ? "good" : "soft"
  }
}

/** How strongly a span is filled: what is a frame for something else is faint. */
const strength = ({ what }: Span): number => {
  switch (what.is) {
    case "status":
      return what.status === "streaming" ? 0.55 : what.status === "queued" ? 0.25 : 0.35
    case "phase":
      return 0.9
    case "call":
      return what.result?.ok === false ? 0.45 : 0.28
    case "attempt":
    case "turn":
      return 0.2
    case "part":
      return what.dropped === true ? 0.12 : 0.22
    case "approval":
      return 0.45
  }
}

const isDropped = ({ what }: Span): boolean => "dropped" in what && what.dropped === true

/** Whether the event that ends a span is the first of the next one, and not its own last. */
const isFollowed = (recording: Recording.Recording, { to, what }: Span): boolean =>
  what.is === "status" ||
  (what.is === "attempt" && Recording.envelopeAt(recording, to ?? 0)?.event.type === "run-resumed")

/** The pixels of a span, at least one wide so that nothing is lost. */
const extent = ({ axis, range, recording, width }: Picture, span: Span): readonly [left: number, right: number] => {
  const left = (unit: number) => Scale.ratio(range, unit) * width
  const from = Scale.unitAt(recording, axis, axis === "seq" ? span.from - 1 : span.from)
  if (axis === "seq" && span.to !== undefined && span.to > span.from && isFollowed(recording, span)) {
    return [left(from), left(Scale.unitAt(recording, axis, span.to - 1))]
  }
  const to = Scale.unitAt(recording, axis, span.to ?? recording.end.seq)
  return [left(from), Math.max(left(from) + 1.5, left(to))]
}

const paintSpans = (context: CanvasRenderingContext2D, picture: Picture, places: ReadonlyArray<Band | undefined>) => {
  const { label, palette, recording, width } = picture
  context.font = picture.font
  context.textBaseline = "middle"
  for (const span of recording.lanes.spans) {
    const band = places[span.lane]
    if (band === undefined || picture.hidden.has(band.id)) continue
    const [left, right] = extent(picture, span)
    if (right < 0 || left > width) continue
    const inset = span.what.is === "phase" ? 3 : 0
    const row = Math.min(span.row, 5)
    const top = band.top + gap / 2 + row * rowHeight + inset
    const tall = rowHeight - 1 - 2 * inset
    const from = Math.max(left, -8)
    const to = Math.min(right, width + 8)
    const tone = palette[spanTone(span)]
    context.globalAlpha = strength(span)
    context.fillStyle = tone
    context.beginPath()
    context.roundRect(from, top, to - from, tall, Math.min(3, (to - from) / 2))
    context.fill()
    if (isDropped(span)) {
      context.globalAlpha = 0.8
      context.fillStyle = palette.bad
      context.fillRect(from, top + tall / 2 - 0.5, to - from, 1)
    }
    if (span.what.is === "part" || span.what.is === "phase") continue
    const text = label(span)
    const start = Math.max(from, 0) + 5
    const room = Math.min(to, width) - start - 4
    if (room < 24 || text === "" || context.measureText(text).width > room) continue
    context.globalAlpha = 1
    context.fillStyle = palette.ink
    context.fillText(text, start, top + tall / 2 + 0.5)
  }
  context.globalAlpha = 1
}

/** How many of the events that are in view fall into each pixel of each lane. */
const count = (picture: Picture): ReadonlyArray<Uint16Array> => {
  const { axis, matches, range, recording, width } = picture
  const columns = recording.lanes.lanes.map(() => new Uint16Array(Math.ceil(width) + 1))
  const first = Scale.seqAt(recording, axis, range.from)
  const last = Scale.seqAt(recording, axis, range.to)
  const until = matches.countUpTo(last)
  for (let index = matches.countUpTo(first - 1); index < until; index++) {
    const seq = matches.at(index)
    const unit = Scale.unitAt(recording, axis, seq) - (axis === "seq" ? 0.5 : 0)
    const x = Math.floor(Scale.ratio(range, unit) * width)
    const column = columns[Recording.laneAt(recording, seq) ?? 0]
    if (column !== undefined && x >= 0 && x < column.length) column[x] = Math.min((column[x] ?? 0) + 1, 0xffff)
  }
  return columns
}

const paintEvents = (context: CanvasRenderingContext2D, picture: Picture, places: ReadonlyArray<Band | undefined>) => {
  const { palette, width } = picture
  for (const [lane, column] of count(picture).entries()) {
    const band = places[lane]
    if (band === undefined || picture.hidden.has(band.id)) continue
    const middle = band.top + band.height / 2
    context.fillStyle = palette[laneTone[band.kind]]
    const dense = band.kind === "checkpoints" && column.reduce((sum, here) => sum + Math.sign(here), 0) > width / 14
    let free = 0
    for (let x = 0; x < width; x++) {
      const here = column[x] ?? 0
      if (here === 0) continue
      switch (band.kind) {
        case "text":
        case "reasoning":
          context.globalAlpha = Math.min(1, 0.35 + Math.log2(1 + here) / 8)
          context.fillRect(x, band.top + gap / 2, 1, rowHeight - 1)
          break
        case "tool":
          context.globalAlpha = 0.7
          context.fillRect(x, band.top + band.height - gap / 2 - 2, 1, 2)
          break
        case "checkpoints": {
          context.globalAlpha = 1
          if (dense) {
            context.fillRect(x, middle - 3, 1, 6)
            break
          }
          const size = x >= free ? 4 : 1.5
          if (x >= free) free = x + 9
          context.beginPath()
          context.moveTo(x + 0.5, middle - size)
          context.lineTo(x + 0.5 + size, middle)
          context.lineTo(x + 0.5, middle + size)
          context.lineTo(x + 0.5 - size, middle)
          context.fill()
          break
        }
        default:
          context.globalAlpha = 0.9
          context.fillRect(x, band.top + gap / 2, 1.5, rowHeight - 1)
      }
    }
  }
  context.globalAlpha = 1
}

/**
 * Draws everything anew, in pixels of the page.
 *
 * @since 0.1.0
 * @category drawing
 */
export const paint = (context: CanvasRenderingContext2D, picture: Picture): void => {
  const { height, palette, recording, width } = picture
  context.clearRect(0, 0, width, height)
  if (Recording.size(recording) === 0) return
  const all = bands(recording.lanes)
  const places: Array<Band | undefined> = []
  context.fillStyle = palette.line
  for (const band of all) {
    places[band.lane] = band
    context.globalAlpha = 0.7
    context.fillRect(0, band.top + band.height - 0.5, width, 0.5)
  }
  context.globalAlpha = 1
  paintSpans(context, picture, places)
  paintEvents(context, picture, places)
}
