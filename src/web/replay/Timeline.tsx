/**
 * The lanes of a run, and the place in it: a slider as wide as the run.
 *
 * @since 0.1.0
 */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { language, t } from "../i18n/index.js"
import { theme } from "../Theme.js"
import { useExtent } from "../ui/Extent.js"
import * as Filter from "./Filter.js"
import * as Format from "./Format.js"
import type { Span } from "./Lanes.js"
import * as Matches from "./Matches.js"
import * as Paint from "./Paint.js"
import * as Recording from "./Recording.js"
import type { Replay } from "./Replay.js"
import * as Scale from "./Scale.js"
import { Sign } from "./Sign.js"

const label = ({ what }: Span): string => {
  switch (what.is) {
    case "status":
      return t(`replay.status.${what.status}`)
    case "attempt":
      return String(what.attempt)
    case "turn":
      return String(what.iteration)
    case "call":
      return ""
    case "approval":
      return t(`replay.decision.${what.decision ?? "none"}`)
    default:
      return ""
  }
}

/** The colours that the style sheet gives, as they are now. */
const paletteOf = (probes: HTMLElement): Paint.Palette => {
  const colours = new Map(
    Paint.tones.map((tone, index) => [tone, getComputedStyle(probes.children[index] ?? probes).color])
  )
  const colour = (tone: (typeof Paint.tones)[number]) => colours.get(tone) ?? "gray"
  return {
    ink: colour("ink"),
    soft: colour("soft"),
    line: colour("line"),
    paper: colour("paper"),
    busy: colour("busy"),
    good: colour("good"),
    bad: colour("bad"),
    warn: colour("warn"),
    text: colour("text"),
    reasoning: colour("reasoning"),
    tool: colour("tool"),
    neutral: colour("neutral")
  }
}

/** Counts the times that the system changed between light and dark. */
const useScheme = () => {
  const changes = useSignal(0)
  useEffect(() => {
    const queries = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((query) => matchMedia(query))
    const change = () => {
      changes.value++
    }
    for (const query of queries) query.addEventListener("change", change)
    return () => {
      for (const query of queries) query.removeEventListener("change", change)
    }
  }, [changes])
  return changes
}

/** A recording to draw, and which part of it. */
interface LanesProps {
  readonly recording: { readonly value: Recording.Recording }
  readonly matches: { readonly value: Matches.Matches }
  readonly filter: { readonly value: Filter.Filter }
  readonly axis: { readonly value: Scale.Axis }
  readonly range: { readonly value: Scale.Range }
  readonly width: { readonly value: number }
}

const Canvas = ({ axis, filter, matches, range, recording, width }: LanesProps) => {
  const canvas = useRef<HTMLCanvasElement>(null)
  const probes = useRef<HTMLDivElement>(null)
  const scheme = useScheme()
  useSignalEffect(() => {
    // Everything that the picture depends on is read here, now; it is drawn once a frame.
    const picture = {
      recording: recording.value,
      matches: matches.value,
      hidden: filter.value.hidden,
      axis: axis.value,
      range: range.value,
      width: width.value,
      look: `${theme.value} ${scheme.value} ${language.value}`
    }
    const frame = requestAnimationFrame(() => {
      const { current } = canvas
      const context = current?.getContext("2d")
      if (!current || !context || !probes.current || picture.width === 0) return
      const lanes = Paint.bands(picture.recording.lanes)
      const last = lanes.at(-1)
      const height = last === undefined ? 0 : last.top + last.height
      const scale = window.devicePixelRatio
      const [wide, tall] = [Math.round(picture.width * scale), Math.round(height * scale)]
      if (current.width !== wide) current.width = wide
      if (current.height !== tall) current.height = tall
      current.style.height = `${height}px`
      context.setTransform(scale, 0, 0, scale, 0, 0)
      const { fontFamily } = getComputedStyle(probes.current)
      Paint.paint(context, {
        ...picture,
        height,
        label,
        palette: paletteOf(probes.current),
        font: `10px ${fontFamily}`
      })
    })
    return () => cancelAnimationFrame(frame)
  })
  return (
    <>
      <div ref={probes} class="probes" aria-hidden="true">
        {Paint.tones.map((tone) => (
          <i key={tone} class={`tone-${tone}`} />
        ))}
      </div>
      <div aria-hidden="true">
        <canvas ref={canvas} />
      </div>
    </>
  )
}

const Ruler = ({ axis, range, width }: Pick<LanesProps, "axis" | "range" | "width">) => {
  const places = Scale.marks(range.value, axis.value, Math.max(2, width.value / 90))
  return (
    <div class="ruler" aria-hidden="true">
      {places.map((unit) => {
        const place = Scale.ratio(range.value, unit)
        // What would be cut off at the end is left out.
        const room = (1 - place) * width.value > 48
        return (
          <span key={unit} style={{ insetInlineStart: `${place * 100}%` }}>
            {room && (axis.value === "seq" ? Format.number(unit) : Format.mark(unit))}
          </span>
        )
      })}
    </div>
  )
}

const Zoom = ({ replay }: { readonly replay: Replay }) => {
  const all = !replay.zoomed.value
  return (
    <div class="corner">
      <Sign name="minus" label={t("replay.zoomOut")} hint="-" disabled={all} onClick={() => replay.zoom(2)} />
      <Sign name="plus" label={t("replay.zoomIn")} hint="+" onClick={() => replay.zoom(0.5)} />
      <Sign name="whole" label={t("replay.zoomAll")} hint="0" disabled={all} onClick={() => replay.zoomAll()} />
    </div>
  )
}

const Labels = ({ replay }: { readonly replay: Replay }) => {
  const { filter, recording } = replay
  const { lanes } = recording.value
  return (
    <div class="lane-labels">
      {Paint.bands(lanes).map(({ height, id, kind, lane }) => {
        const name = Format.lane(lanes.lanes[lane])
        return (
          <button
            key={id}
            type="button"
            class="lane-label"
            style={{ height: `${height}px` }}
            aria-pressed={!filter.value.hidden.has(id)}
            aria-label={t("replay.showLane", name)}
            title={t("replay.showLane", name)}
            onClick={() => {
              filter.value = Filter.toggle(filter.value, id)
            }}
          >
            <i class={`swatch lane-${kind}`} />
            <span>{name}</span>
          </button>
        )
      })}
    </div>
  )
}

/** Where the place is in view, from 0 to 1; while it plays by time, it moves evenly between events. */
const placeOf = ({ axis, clock, player, range, recording }: Replay): number => {
  const { at, playing, seq } = player.value
  const even = playing && axis.value === clock.value
  return Scale.ratio(range.value, even ? at : Scale.unitAt(recording.value, axis.value, seq))
}

const Playhead = ({ replay }: { readonly replay: Replay }) => {
  const place = placeOf(replay)
  return <div class="playhead" hidden={place < 0 || place > 1} style={{ insetInlineStart: `${place * 100}%` }} />
}

/** The part of the run that is in view, when it is not all of it. */
const Overview = ({ replay }: { readonly replay: Replay }) => {
  const { axis, range, recording, zoomed } = replay
  const bar = useRef<HTMLDivElement>(null)
  const all = Scale.whole(recording.value, axis.value)
  const from = Scale.ratio(all, range.value.from)
  const to = Scale.ratio(all, range.value.to)
  const drag = (event: PointerEvent) => {
    if (bar.current === null || event.buttons === 0) return
    bar.current.setPointerCapture(event.pointerId)
    const box = bar.current.getBoundingClientRect()
    const wanted = (event.clientX - box.left) / box.width - (to - from) / 2
    replay.pan((wanted - from) / (to - from))
  }
  return (
    <div ref={bar} class="overview" aria-hidden="true" hidden={!zoomed.value} onPointerDown={drag} onPointerMove={drag}>
      <div style={{ insetInlineStart: `${from * 100}%`, width: `${Math.max(1, (to - from) * 100)}%` }} />
    </div>
  )
}

/** The place on the axis under the pointer. */
const unitAt = (event: MouseEvent, plot: HTMLElement, range: Scale.Range): number => {
  const box = plot.getBoundingClientRect()
  return Scale.unit(range, Math.min(Math.max(0, (event.clientX - box.left) / box.width), 1))
}

/** The browser scrolls by itself, unless it is told before that this one is ours. */
const listenToWheel = (plot: HTMLElement | null, replay: Replay) => {
  const wheel = (event: WheelEvent) => {
    if (plot === null) return
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX
    const range = replay.range.value
    if (event.ctrlKey || event.metaKey) replay.zoom(Math.exp(event.deltaY / 300), unitAt(event, plot, range))
    else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) replay.pan(sideways / 600)
    else return
    event.preventDefault()
  }
  plot?.addEventListener("wheel", wheel, { passive: false })
  return () => plot?.removeEventListener("wheel", wheel)
}

/**
 * The lanes of the run, with a slider over them.
 *
 * @since 0.1.0
 * @category components
 */
export const Timeline = ({ replay }: { readonly replay: Replay }) => {
  const { axis, dispatch, player, range, recording } = replay
  const plot = useRef<HTMLDivElement>(null)
  const width = useExtent(plot, "clientWidth")
  const hovered = useSignal<number | undefined>(undefined)

  const scrub = (event: PointerEvent) => {
    if (plot.current === null) return
    hovered.value = Scale.seqAt(recording.value, axis.value, unitAt(event, plot.current, range.value))
    if ((event.buttons & 1) === 1) dispatch({ type: "to", seq: hovered.value })
  }

  useEffect(() => listenToWheel(plot.current, replay), [replay])

  const hover = hovered.value
  const hoverPlace =
    hover === undefined ? 0 : Scale.ratio(range.value, Scale.unitAt(recording.value, axis.value, hover))

  return (
    <section class="timeline" aria-label={t("replay.timeline")}>
      <div class="lanes">
        <Zoom replay={replay} />
        <Ruler axis={axis} range={range} width={width} />
        <Labels replay={replay} />
        <div
          ref={plot}
          id="plot"
          class="plot"
          role="slider"
          tabIndex={0}
          aria-label={t("replay.timeline")}
          aria-valuemin={Recording.firstSeq(recording.value)}
          aria-valuemax={Math.max(recording.value.end.seq, Recording.firstSeq(recording.value))}
          aria-valuenow={player.value.seq}
          aria-valuetext={Format.place(recording.value, player.value.seq)}
          onPointerDown={(event) => {
            if (event.button !== 0) return
            plot.current?.setPointerCapture(event.pointerId)
            scrub(event)
          }}
          onPointerMove={scrub}
          onPointerLeave={() => {
            hovered.value = undefined
          }}
        >
          <Canvas {...replay} width={width} />
          {hover !== undefined && (
            <div class="hover" aria-hidden="true" style={{ insetInlineStart: `${hoverPlace * 100}%` }}>
              <span data-side={hoverPlace > 0.5 ? "left" : "right"}>
                {Format.number(hover)} · {Format.time(Recording.timeAt(recording.value, hover, "real"))}
              </span>
            </div>
          )}
          <Playhead replay={replay} />
        </div>
      </div>
      <Overview replay={replay} />
    </section>
  )
}

/**
 * The lanes of the run beside, at the moment that is on display.
 *
 * @since 0.1.0
 * @category components
 */
export const BesideTimeline = ({ replay, name }: { readonly replay: Replay; readonly name: string }) => {
  const { axis, beside, besideSeq } = replay
  const plot = useRef<HTMLDivElement>(null)
  const width = useExtent(plot, "clientWidth")
  const recording = useComputed(() => beside.value?.recording.value ?? Recording.empty(""))
  const range = useComputed(() => Scale.whole(recording.value, axis.value))
  const filter = useMemo(() => ({ value: Filter.everything }), [])
  const matches = useComputed(() => Matches.of(recording.value, Filter.everything))
  const { lanes } = recording.value
  const place = Scale.ratio(range.value, Scale.unitAt(recording.value, axis.value, besideSeq.value))
  return (
    <section class="timeline beside" aria-label={name}>
      <div class="lanes">
        <div class="corner" />
        <Ruler axis={axis} range={range} width={width} />
        <div class="lane-labels">
          {Paint.bands(lanes).map(({ height, id, kind, lane }) => (
            <div key={id} class="lane-label" style={{ height: `${height}px` }}>
              <i class={`swatch lane-${kind}`} />
              <span>{Format.lane(lanes.lanes[lane])}</span>
            </div>
          ))}
        </div>
        <div ref={plot} class="plot still">
          <Canvas axis={axis} filter={filter} matches={matches} range={range} recording={recording} width={width} />
          <div class="playhead" style={{ insetInlineStart: `${place * 100}%` }} />
        </div>
      </div>
    </section>
  )
}
