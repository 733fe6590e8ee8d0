/**
 * Starts the replay page of the run that its address names, at the place that the address names, if any.
 *
 * @since 0.1.0
 */
import { effect } from "@preact/signals"
import { render } from "preact"
import { makeApi } from "../../client/Api.js"
import { t } from "../i18n/index.js"
import { Page } from "./Page.js"
import { makeReplay } from "./Replay.js"
import { makeReads } from "./Source.js"

const [, runId] = /^\/runs\/([^/]+)\/replay$/.exec(location.pathname) ?? []
const seq = /^#(\d{1,9})$/.exec(location.hash)?.[1]
const beside = new URLSearchParams(location.search).get("with") ?? undefined

const replay = makeReplay(makeReads(makeApi()), {
  runId: runId === undefined ? undefined : decodeURIComponent(runId),
  seq: seq === undefined ? undefined : Number(seq),
  beside
})

effect(() => {
  const tape = replay.main.value
  const name = tape?.question.value || tape?.name
  document.title = name === undefined ? t("replay.title") : t("replay.titleOf", name)
})

// The address of what is on display, to come back to or to give to somebody.
effect(() => {
  const tape = replay.main.value
  const other = replay.beside.value
  const place = replay.settled.value
  const { end } = replay.recording.value
  if (tape === undefined || tape.file || end.seq === 0 || (place === 0 && seq !== undefined)) return
  const query = other === undefined || other.file ? "" : `?with=${encodeURIComponent(other.name)}`
  const hash = place === 0 || place >= end.seq ? "" : `#${place}`
  const address = `${location.pathname}${query}${hash}`
  if (address !== location.pathname + location.search + location.hash) history.replaceState(undefined, "", address)
})

addEventListener("hashchange", () => {
  const wanted = /^#(\d{1,9})$/.exec(location.hash)?.[1]
  if (wanted !== undefined) replay.dispatch({ type: "to", seq: Number(wanted) })
})

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) replay.revive()
})

const root = document.getElementById("root")
if (root !== null) render(<Page replay={replay} />, root)
