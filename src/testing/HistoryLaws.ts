/**
 * Laws of what is sent to the model, and of the text that comes of its answers.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import type { ModelMessage, ModelRequest } from "../model/Model.js"
import * as Json from "../tool/Json.js"
import { forEvents, forRuns, type Law, whole } from "./Law.js"

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/**
 * What a strict provider would refuse in a request.
 *
 * @since 0.1.0
 * @category reading
 */
export const refusals = (request: Pick<ModelRequest, "messages" | "continueDraft">): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const { messages } = request
  let open: Array<string> = []
  const seen = new Set<string>()
  messages.forEach((message, index) => {
    const before: ModelMessage | undefined = messages[index - 1]
    if (message.role === "tool") {
      if (open[0] === message.toolCallId) open = open.slice(1)
      else if (open.includes(message.toolCallId)) open = open.filter((id) => id !== message.toolCallId)
      else problems.push(`message ${index} answers ${message.toolCallId}, which was not called or is answered already`)
      return
    }
    if (open.length > 0) problems.push(`message ${index} comes before ${open.join(" ")} was answered`)
    open = []
    if (message.role === "system") {
      if (index > 0) problems.push(`message ${index} is a system message`)
      return
    }
    if (before?.role === message.role) problems.push(`messages ${index - 1} and ${index} are both ${message.role}'s`)
    if (message.role === "user") {
      if (message.content === "") problems.push(`message ${index} is empty`)
      return
    }
    if (message.content.every((part) => part.type === "reasoning")) problems.push(`message ${index} says nothing`)
    for (const part of message.content) {
      if (part.type !== "tool-call") {
        if (part.text === "") problems.push(`message ${index} has an empty part`)
        continue
      }
      if (seen.has(part.toolCallId)) problems.push(`the id ${part.toolCallId} is used twice`)
      seen.add(part.toolCallId)
      open.push(part.toolCallId)
      if (!isJsonObject(part.argumentsText))
        problems.push(`the arguments of ${part.toolCallId} are ${part.argumentsText}`)
    }
  })
  if (open.length > 0) problems.push(`${open.join(" ")} is never answered`)
  const last = messages.at(-1)?.role
  if (request.continueDraft ? last !== "assistant" : last !== "user" && last !== "tool") {
    problems.push(`the last message is ${String(last)}'s`)
  }
  return problems
}

/**
 * Every history is one that a strict provider accepts.
 *
 * @since 0.1.0
 * @category laws
 */
export const strictHistory: Law = {
  name: "every history is one that a strict provider accepts",
  check: (observed) =>
    observed.requests.flatMap(({ request }) =>
      refusals(request).map((text) => `${request.runId} iteration ${request.iteration}: ${text}`)
    )
}

const draftOf = (request: ModelRequest): string => {
  const last = request.messages.at(-1)
  if (!request.continueDraft || last?.role !== "assistant") return ""
  return last.content.map((part) => (part.type === "text" ? part.text : "")).join("")
}

/** The attempt in which each turn's model-end was written. */
const completedIn = (log: ReadonlyArray<Envelope>): ReadonlyMap<number, number> => {
  const found = new Map<number, number>()
  let attempt = 1
  for (const { event } of log) {
    if (event.type === "run-resumed") attempt = event.attempt
    if (event.type === "model-end") found.set(event.iteration, attempt)
  }
  return found
}

/**
 * A turn's text is what its last request gave out, once.
 *
 * @since 0.1.0
 * @category laws
 */
export const textOnce = forRuns("a turn's text is what its last request gave out, once", (run, observed) => {
  const attempts = completedIn(run.log)
  return RunState.turns(whole(run)).flatMap((turn) => {
    const attempt = attempts.get(turn.n)
    const given = observed.requests.findLast(
      ({ finished, request }) =>
        request.runId === run.runId && request.iteration === turn.n && request.attempt === attempt && finished
    )
    if (turn.ended === undefined) return []
    if (given === undefined) return [`turn ${turn.n} was not given out by any request`]
    const expected = draftOf(given.request) + Json.wellFormed(given.text)
    const text = RunState.turnText(turn)
    return text === expected ? [] : [`turn ${turn.n} says ${JSON.stringify(text)}, not ${JSON.stringify(expected)}`]
  })
})

/**
 * A model call is retried only before any of its output is shown.
 *
 * @since 0.1.0
 * @category laws
 */
export const retriesAreSilent = forEvents(
  "a model call is retried only before any of its output is shown",
  ({ after, event }) =>
    event.type === "model-retry" && after.status !== "running" ? `while ${after.status}` : undefined
)

/**
 * Of a turn that was cut short, nothing behind its first call is kept.
 *
 * @since 0.1.0
 * @category laws
 */
export const keptDraft = forEvents(
  "of a turn that was cut short, nothing behind its first call is kept",
  ({ before, event }) => {
    const turn = before.open
    if (event.type !== "run-resumed" || turn === undefined || turn.ended !== undefined) return undefined
    const end = turn.parts.findIndex((part) => part.type === "tool-call")
    const parts = end === -1 ? turn.parts : turn.parts.slice(0, end)
    const most = turn.text0 + RunState.turnText({ ...turn, parts }).length
    return event.textLength <= most ? undefined : `${event.textLength} of ${most} are kept`
  }
)

/**
 * A turn that called tools is sent back with its provider's own data.
 *
 * @since 0.1.0
 * @category laws
 */
export const sidesReturn: Law = {
  name: "a turn that called tools is sent back with its provider's own data",
  check: (observed) => {
    const given = new Set(observed.requests.flatMap(({ side }) => (side === undefined ? [] : [Json.canonical(side)])))
    if (given.size === 0) return []
    return observed.requests.flatMap(({ request }) =>
      request.messages.flatMap((message, index) =>
        message.role === "assistant" &&
        message.content.some((part) => part.type === "tool-call") &&
        !given.has(Json.canonical(message.side))
          ? [`${request.runId} iteration ${request.iteration}: message ${index} has ${JSON.stringify(message.side)}`]
          : []
      )
    )
  }
}

/**
 * No delta ends inside a character.
 *
 * @since 0.1.0
 * @category laws
 */
export const wholeCharacters = forEvents("no delta ends inside a character", ({ event }) =>
  "delta" in event && Json.wellFormed(event.delta) !== event.delta ? JSON.stringify(event.delta) : undefined
)

/**
 * All of them.
 *
 * @since 0.1.0
 * @category laws
 */
export const all: ReadonlyArray<Law> = [
  strictHistory,
  textOnce,
  retriesAreSilent,
  keptDraft,
  sidesReturn,
  wholeCharacters
]

/**
 * Those that need to see nothing but logs.
 *
 * @since 0.1.0
 * @category laws
 */
export const ofLogs: ReadonlyArray<Law> = [retriesAreSilent, keptDraft, wholeCharacters]
