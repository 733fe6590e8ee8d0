/**
 * A run as a person reads it while it happens: pure, event by event. Every text of others is inert.
 *
 * @since 0.1.0
 */
import type { AgentEvent, EventOf, TerminalEvent, Usage } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import * as Approval from "./Approval.js"
import * as Text from "./Text.js"

type Block = "nothing" | "text" | "reasoning" | "notes" | "progress"

/**
 * The run so far, what was written last, and whether the next character begins a line.
 *
 * @since 0.1.0
 * @category models
 */
export interface Transcript {
  readonly run: RunState.RunState
  readonly block: Block
  readonly atStart: boolean
}

/**
 * How it is written: `columns` bounds the lines that sum something up.
 *
 * @since 0.1.0
 * @category models
 */
export interface Manner {
  readonly style: Text.Style
  readonly columns: number
}

/**
 * The transcript of a run of which nothing is known, or of one that was shown up to this state.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (run: RunState.RunState): Transcript => ({ run, block: "nothing", atStart: true })

/**
 * What a run used, in words.
 *
 * @since 0.1.0
 * @category formatting
 */
export const usage = ({ costUsd, totalTokens }: Usage): string =>
  `${totalTokens} tokens${costUsd === undefined ? "" : `, $${costUsd.toFixed(4)}`}`

const outcomes: Readonly<Record<EventOf<"tool-call-result">["state"], string>> = {
  done: "done",
  applied: "applied",
  rejected: "rejected",
  interrupted: "interrupted",
  in_doubt: "its outcome is unknown",
  invalid: "no valid call",
  expired: "the time to decide ran out"
}

const stops: Readonly<Record<EventOf<"finish">["finishReason"], string | undefined>> = {
  stop: undefined,
  length: "the model's limit of length was reached",
  max_iterations: "the limit of iterations was reached",
  budget: "the budget is spent",
  content_filter: "the provider's filter cut the answer"
}

const cancels: Readonly<Record<EventOf<"cancelled">["by"], string>> = {
  user: "stopped",
  superseded: "stopped: the conversation went on with another run",
  limit: "stopped: the time limit was reached"
}

/**
 * How a run ended, in a line.
 *
 * @since 0.1.0
 * @category formatting
 */
export const ending = (event: TerminalEvent, { bad, dim, notice }: Text.Style): string => {
  switch (event.type) {
    case "finish": {
      const why = stops[event.finishReason]
      const facts = `${usage(event.usage)}, ${Text.duration(event.timing.durationMs)}`
      return why === undefined ? dim(facts) : `${notice(`Ended early: ${why}`)} ${dim(`(${facts})`)}`
    }
    case "cancelled": {
      const reason = event.reason === undefined ? "" : `: ${Text.line(event.reason)}`
      return notice(`${cancels[event.by]}${reason}`)
    }
    case "error":
      return bad(`failed: ${Text.line(event.message)}${event.recoverable ? " (it can be resumed)" : ""}`)
  }
}

/**
 * A tool call's result in words.
 *
 * @since 0.1.0
 * @category formatting
 */
export const result = (event: Pick<EventOf<"tool-call-result">, "state" | "ok" | "durationMs" | "result">): string => {
  const { durationMs, ok, state } = event
  const failed = state === "done" && !ok
  const said = failed ? `failed: ${Text.line(Text.show(event.result))}` : outcomes[state]
  return durationMs > 0 ? `${said} (${Text.duration(durationMs)})` : said
}

const notesOf = (event: AgentEvent, before: RunState.RunState, { columns, style }: Manner): ReadonlyArray<string> => {
  switch (event.type) {
    case "run-status":
      return event.status === "queued" && event.reason === undefined ? [style.dim("(waiting for its turn)")] : []
    case "run-resumed": {
      const gone = before.textLength - event.textLength
      const what = gone > 0 ? `the last ${gone} characters above are void, the answer goes on before them` : "goes on"
      return [style.notice(`(attempt ${event.attempt}: ${what})`)]
    }
    case "tool-call-start": {
      const { title, toolName } = event
      return [style.bold(`→ ${Text.line(title === undefined ? toolName : `${title} (${toolName})`)}`)]
    }
    case "tool-call-ready":
      return [style.dim(Text.fit(`  ${Text.line(JSON.stringify(event.input) ?? "")}`, columns))]
    case "tool-call-result": {
      const text = Text.fit(`  ${Text.line(event.toolName)}: ${result(event)}`, columns)
      return [event.ok ? style.dim(text) : style.bad(text)]
    }
    case "approval-request":
      return Approval.lines(event, style)
    case "approval-decision": {
      const reason = event.reason === undefined ? "" : `: ${Text.line(event.reason)}`
      return [style.dim(`  ${event.decision} by ${Text.line(event.by)}${reason}`)]
    }
    case "tool-conflict":
      return [style.notice(`  The target has changed meanwhile, nothing was applied`)]
    case "model-retry":
      return [
        style.notice(`(the model did not answer, ${Text.line(event.code)}: again in ${Text.duration(event.delayMs)})`)
      ]
    case "finish":
    case "cancelled":
    case "error":
      return [ending(event, style)]
    default:
      return []
  }
}

const isProse = (block: Block): boolean => block === "text" || block === "reasoning"

/** Blocks stand apart: prose by an empty line, everything else by the end of the line. */
const separator = ({ atStart, block }: Transcript, next: Block): string => {
  if (block === "nothing" || block === next) return ""
  return (atStart ? "" : "\n") + (isProse(block) || isProse(next) ? "\n" : "")
}

const append = (transcript: Transcript, block: Block, text: string, shown: string): readonly [Transcript, string] =>
  text === ""
    ? [transcript, ""]
    : [{ ...transcript, block, atStart: text.endsWith("\n") }, separator(transcript, block) + shown]

/**
 * The transcript behind one more event, and what it adds to what is written already. An event that was seen before adds
 * nothing.
 *
 * @since 0.1.0
 * @category writing
 */
export const step = (transcript: Transcript, envelope: Envelope, manner: Manner): readonly [Transcript, string] => {
  if (envelope.seq <= transcript.run.seq) return [transcript, ""]
  const { event } = envelope
  const next = { ...transcript, run: RunState.reduce(transcript.run, envelope) }
  switch (event.type) {
    case "text-delta": {
      const text = Text.inert(event.delta)
      return append(next, "text", text, text)
    }
    case "reasoning-delta": {
      const text = Text.inert(event.delta)
      return append(next, "reasoning", text, manner.style.dim(text))
    }
    case "tool-result-delta": {
      const text = Text.inert(event.delta)
      return append(next, "progress", text, manner.style.dim(text))
    }
    default: {
      const notes = notesOf(event, transcript.run, manner)
      const text = notes.map((line) => `${line}\n`).join("")
      return append(next, "notes", text, text)
    }
  }
}

/**
 * A line that is no event, among what was written.
 *
 * @since 0.1.0
 * @category writing
 */
export const remark = (transcript: Transcript, line: string): readonly [Transcript, string] =>
  append(transcript, "notes", `${line}\n`, `${line}\n`)

/**
 * What ends the line that was written last, if it is not ended.
 *
 * @since 0.1.0
 * @category writing
 */
export const close = ({ atStart }: Transcript): string => (atStart ? "" : "\n")
