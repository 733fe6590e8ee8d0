/**
 * Events and numbers as words, in the language of the page.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../../domain/AgentEvent.js"
import type * as RunState from "../../domain/RunState.js"
import { language, t } from "../i18n/index.js"
import { number } from "../ui/Format.js"
import type { Lane } from "./Lanes.js"
import * as Recording from "./Recording.js"
import type { Tone } from "./Tone.js"

export { number }

/**
 * A time since some start: seconds, from a minute on minutes, from an hour on hours.
 *
 * @since 0.1.0
 * @category numbers
 */
export const time = (ms: number): string => {
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0")
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`
  return `${Math.floor(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`
}

/**
 * The time for a mark on an axis: without digits that all marks have alike.
 *
 * @since 0.1.0
 * @category numbers
 */
export const mark = (ms: number): string => {
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(3))} s`
  return time(ms).replace(/\.0$/, "")
}

/**
 * A moment, to the millisecond.
 *
 * @since 0.1.0
 * @category numbers
 */
export const moment = (ms: number): string =>
  new Date(ms).toLocaleString(language.value, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    hourCycle: "h23",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3
  })

/**
 * The name of a lane; a tool's is its own.
 *
 * @since 0.1.0
 * @category words
 */
export const lane = (lane: Lane | undefined): string => {
  if (lane === undefined) return ""
  return lane.kind === "tool" ? (lane.name ?? "") : t(`replay.lane.${lane.kind}`)
}

/**
 * What kind of event it is.
 *
 * @since 0.1.0
 * @category words
 */
export const eventName = (event: AgentEvent): string => t(`replay.event.${event.type}`)

const tokens = (count: number): string => t("facts.tokens", number(count), count)

/** One line of a text, short enough to be looked over. */
const line = (text: string): string => text.slice(0, 160).replace(/\n/g, "⏎").replace(/\s/g, " ")

const json = (value: unknown): string => line(typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/**
 * What an event says, in a line.
 *
 * @since 0.1.0
 * @category words
 */
export const summary = (event: AgentEvent): string => {
  switch (event.type) {
    case "run-start":
      return event.model
    case "run-status":
      return t(`replay.status.${event.status}`)
    case "run-resumed":
      return t("replay.attempt", event.attempt)
    case "text-delta":
    case "reasoning-delta":
    case "tool-call-delta":
    case "tool-result-delta":
      return line(event.delta)
    case "tool-call-start":
      return event.toolName
    case "tool-call-ready":
      return `${event.toolName} ${json(event.input)}`
    case "model-end":
      return tokens(event.usage.totalTokens)
    case "tool-start":
      return `${event.toolName} · ${t(`replay.phase.${event.phase}`)}`
    case "tool-call-result":
      return `${event.toolName} · ${resultState(event)}`
    case "approval-request":
      return event.toolName
    case "approval-decision":
      return t(`replay.decision.${event.decision}`)
    case "tool-conflict":
      return line(event.message ?? "")
    case "model-retry":
      return `${event.code} · ${time(event.delayMs)}`
    case "iteration-end":
      return t("replay.turn", event.iteration)
    case "checkpoint":
      return t(`replay.checkpoint.${event.checkpointKind}`)
    case "finish":
      return tokens(event.usage.totalTokens)
    case "cancelled":
      return event.reason ?? t(`replay.answer.cancelled.${event.by}`)
    case "error":
      return line(event.message)
  }
}

/**
 * A place in a log, and what happened there.
 *
 * @since 0.1.0
 * @category words
 */
export const place = (recording: Recording.Recording, seq: number): string => {
  const event = Recording.envelopeAt(recording, seq)?.event
  if (event === undefined) return t("replay.nothing")
  const at = time(Recording.timeAt(recording, seq, "real"))
  const what = `${eventName(event)} ${summary(event)}`
  return t("replay.valueText", number(seq), number(recording.end.seq), what, at)
}

const resultState = ({ ok, state }: { readonly ok: boolean; readonly state: keyof typeof resultStates }): string =>
  state === "done" && !ok ? t("replay.call.failed") : t(resultStates[state])

const resultStates = {
  done: "replay.call.done",
  applied: "replay.call.applied",
  rejected: "replay.call.rejected",
  interrupted: "replay.call.interrupted",
  in_doubt: "replay.call.in_doubt",
  invalid: "replay.call.invalid",
  expired: "replay.call.expired"
} as const

/**
 * Where a call stands, in a word and a tone.
 *
 * @since 0.1.0
 * @category words
 */
export const callState = (call: RunState.Call): { readonly text: string; readonly tone: Tone } => {
  const { approval, result } = call
  if (result !== undefined) {
    const tone = result.ok ? "good" : result.state === "rejected" || result.state === "expired" ? "soft" : "bad"
    return { text: resultState(result), tone: result.state === "in_doubt" ? "warn" : tone }
  }
  if (approval !== undefined && approval.decision === undefined) return { text: t("replay.call.waiting"), tone: "warn" }
  if (call.open !== undefined) return { text: t("replay.call.running"), tone: "busy" }
  return { text: t(call.input === undefined ? "replay.call.streaming" : "replay.call.ready"), tone: "soft" }
}
