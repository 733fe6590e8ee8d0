/**
 * A log in the order of time, for people: pieces of one text as one step, and everything else event by event. Pure.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as Text from "./Text.js"
import * as Transcript from "./Transcript.js"

/**
 * One step. `from` and `to` are the seqs of its first and last event, `at` is when it began, in milliseconds since the
 * run's first event, `ms` how long its events took; `characters` counts the whole text of which `text` is the beginning.
 *
 * @since 0.1.0
 * @category models
 */
export interface Step {
  readonly from: number
  readonly to: number
  readonly at: number
  readonly ms: number
  readonly type: AgentEvent["type"]
  readonly text: string
  readonly characters?: number | undefined
}

/** Of a long text no more than this is kept. */
const longest = 400

const json = (value: unknown): string => JSON.stringify(value) ?? ""

/** What a person wants to know of an event; other fields are in the file. */
const words = (event: AgentEvent): string => {
  switch (event.type) {
    case "run-start":
      return `${event.model}${event.mode === "plan" ? ", plan mode" : ""}`
    case "run-status":
      return event.reason === undefined ? event.status : `${event.status} (${event.reason})`
    case "run-resumed":
      return `attempt ${event.attempt} (${event.reason}), the text is kept up to ${event.textLength}`
    case "tool-call-start":
      return `${event.toolName} (${event.kind})`
    case "tool-call-ready":
      return `${event.toolName} ${json(event.input)}`
    case "model-end":
      return `iteration ${event.iteration}, ${event.finishReason}, ${Transcript.usage(event.usage)}`
    case "tool-start":
      return `${event.toolName} ${event.phase}`
    case "tool-call-result":
      return `${event.toolName}: ${Transcript.result(event)} ${json(event.result)}`
    case "approval-request":
      return `${event.toolName} (${event.reason}) ${json(event.input)}`
    case "approval-decision":
      return `${event.decision} by ${event.by}${event.reason === undefined ? "" : `: ${event.reason}`}`
    case "tool-conflict":
      return event.message ?? "the target has changed"
    case "model-retry":
      return `retry ${event.retry} after ${event.code}, in ${Text.duration(event.delayMs)}`
    case "iteration-end":
      return `iteration ${event.iteration}`
    case "checkpoint":
      return event.checkpointKind
    case "finish":
      return `${event.finishReason}, ${Transcript.usage(event.usage)}`
    case "cancelled":
      return `by ${event.by}${event.reason === undefined ? "" : `: ${event.reason}`}`
    case "error":
      return `${event.code}: ${event.message}${event.recoverable ? " (it can be resumed)" : ""}`
    case "text-delta":
    case "reasoning-delta":
    case "tool-call-delta":
    case "tool-result-delta":
      return event.delta
  }
}

/** Pieces that belong together have this in common; `undefined` for events that stand alone. */
const part = (event: AgentEvent): string | undefined => {
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta":
      return `${event.type} ${event.id}`
    case "tool-call-delta":
    case "tool-result-delta":
      return `${event.type} ${event.toolCallId}`
    default:
      return undefined
  }
}

/**
 * Takes envelopes in order, and gives the steps that are complete. `end` gives the last one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Steps {
  readonly push: (envelope: Envelope) => ReadonlyArray<Step>
  readonly end: () => ReadonlyArray<Step>
}

/**
 * The steps of a log of which nothing was seen.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (): Steps => {
  let began: number | undefined
  let open: (Step & { readonly part: string }) | undefined
  const end = (): ReadonlyArray<Step> => {
    if (open === undefined) return []
    const { part: _, ...step } = open
    open = undefined
    return [step]
  }
  return {
    end,
    push: ({ createdAt, event, seq }) => {
      began ??= createdAt
      const at = createdAt - began
      const belongs = part(event)
      const text = words(event)
      if (open !== undefined && open.part === belongs) {
        open = {
          ...open,
          to: seq,
          ms: at - open.at,
          text: open.text.length < longest ? (open.text + text).slice(0, longest) : open.text,
          characters: (open.characters ?? 0) + text.length
        }
        return []
      }
      const before = end()
      const step: Step = { from: seq, to: seq, at, ms: 0, type: event.type, text: text.slice(0, longest) }
      if (belongs === undefined) return [...before, step]
      open = { ...step, part: belongs, characters: text.length }
      return before
    }
  }
}

const placeWidth = 13
const typeWidth = 17

/**
 * A step as one line, no wider than so many columns.
 *
 * @since 0.1.0
 * @category formatting
 */
export const line = (step: Step, { columns, style }: Transcript.Manner): string => {
  const { at, characters, from, ms, text, to, type } = step
  const time = `+${(at / 1000).toFixed(3)} s`.padStart(12)
  const place = (from === to ? `#${from}` : `#${from}–${to}`).padEnd(placeWidth)
  const size = characters === undefined ? "" : ` (${characters} characters${ms > 0 ? `, ${Text.duration(ms)}` : ""})`
  const room = columns - 12 - 2 - placeWidth - typeWidth - 2 - size.length
  return `${style.dim(`${time}  ${place}`)}${type.padEnd(typeWidth)}  ${Text.fit(Text.line(text), Math.max(10, room))}${style.dim(size)}`
}
