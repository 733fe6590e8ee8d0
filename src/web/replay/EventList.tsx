/**
 * The events one below the other. Of a long log only the rows in view exist.
 *
 * @since 0.1.0
 */
import { useSignal, useSignalEffect } from "@preact/signals"
import { useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { useExtent } from "../ui/Extent.js"
import * as Format from "./Format.js"
import * as Recording from "./Recording.js"
import type { Replay } from "./Replay.js"

const rowHeight = 28
/** Rows beyond what is in view, so that scrolling finds them there. */
const spare = 8

const Row = ({ index, replay, seq }: { readonly index: number; readonly replay: Replay; readonly seq: number }) => {
  const { matches, recording, shown } = replay
  const envelope = Recording.envelopeAt(recording.value, seq)
  const lane = recording.value.lanes.lanes[Recording.laneAt(recording.value, seq) ?? -1]
  if (envelope === undefined) return null
  return (
    <div
      id={`event-${seq}`}
      class="event"
      role="option"
      tabIndex={-1}
      aria-selected={seq === shown.value}
      aria-setsize={matches.value.size}
      aria-posinset={index + 1}
      data-seq={seq}
      style={{ top: `${index * rowHeight}px` }}
    >
      <span class="seq">{seq}</span>
      <span class="at">{Format.time(Recording.timeAt(recording.value, seq, "real"))}</span>
      <i class={`swatch lane-${lane?.kind ?? "run"}`} />
      <span class="what">{Format.eventName(envelope.event)}</span>
      <span class="says" dir="auto">
        {Format.summary(envelope.event)}
      </span>
    </div>
  )
}

const Search = ({ replay }: { readonly replay: Replay }) => {
  const { filter, matches } = replay
  return (
    <div class="search">
      <input
        id="search"
        type="search"
        aria-label={t("replay.search")}
        placeholder={t("replay.search")}
        aria-keyshortcuts="/"
        value={filter.value.query}
        onInput={({ currentTarget }) => {
          filter.value = { ...filter.value, query: currentTarget.value }
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") replay.step(event.shiftKey ? -1 : 1)
          if (event.key !== "Escape") return
          filter.value = { ...filter.value, query: "" }
          event.currentTarget.blur()
        }}
      />
      {filter.value.query.trim() !== "" && (
        <span class="soft" role="status">
          {t("replay.found", Format.number(matches.value.size))}
        </span>
      )}
    </div>
  )
}

/**
 * The list. What is on display is selected and in view; a click on another one goes there.
 *
 * @since 0.1.0
 * @category components
 */
export const EventList = ({ replay }: { readonly replay: Replay }) => {
  const { matches, shown } = replay
  const list = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useExtent(list, "clientHeight")

  useSignalEffect(() => {
    const place = matches.value.countUpTo(shown.value) - 1
    const { current } = list
    if (current === null || height.value === 0) return
    const [from, to] = [place * rowHeight, (place + 1) * rowHeight]
    if (from >= current.scrollTop && to <= current.scrollTop + height.value) return
    current.scrollTop = from - height.value / 2
  })

  const first = Math.max(0, Math.floor(top.value / rowHeight) - spare)
  const last = Math.min(matches.value.size, Math.ceil((top.value + height.value) / rowHeight) + spare)
  const rows = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index)
  const here = matches.value.countUpTo(shown.value) - 1
  return (
    <div class="log">
      <Search replay={replay} />
      <div
        ref={list}
        id="events"
        class="events"
        role="listbox"
        tabIndex={0}
        aria-label={t("replay.events")}
        aria-activedescendant={here >= first && here < last ? `event-${matches.value.at(here)}` : undefined}
        onClick={({ target }) => {
          const row = target instanceof Element ? target.closest("[data-seq]") : null
          if (row instanceof HTMLElement) replay.dispatch({ type: "to", seq: Number(row.dataset.seq) })
        }}
        onKeyDown={(event) => {
          if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return
          event.preventDefault()
          replay.step(event.key === "ArrowDown" ? 1 : -1)
        }}
        onScroll={({ currentTarget }) => {
          top.value = currentTarget.scrollTop
        }}
      >
        <div class="all" role="presentation" style={{ height: `${matches.value.size * rowHeight}px` }}>
          {rows.map((index) => {
            const seq = matches.value.at(index)
            return <Row key={seq} index={index} replay={replay} seq={seq} />
          })}
        </div>
        {matches.value.size === 0 && <p class="soft empty">{t("replay.events.none")}</p>}
      </div>
    </div>
  )
}
