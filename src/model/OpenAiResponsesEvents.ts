/**
 * The events of OpenAI's Responses interface, on their way to a library that gives up at some of them.
 *
 * @since 0.1.0
 */
import type { ModelFinishReason } from "../domain/AgentEvent.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as ProviderEvents from "./ProviderEvents.js"
import type { Turn } from "./ProviderTurn.js"

const { count, fields, text } = ProviderEvents

/**
 * Whether nothing comes behind this event.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isLast = (event: unknown): boolean => {
  switch (fields(event).type) {
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "error":
      return true
    default:
      return false
  }
}

const reasonOf = (details: unknown): ModelFinishReason => {
  switch (fields(details).reason) {
    case undefined:
      return "stop"
    case "content_filter":
      return "content_filter"
    default:
      return "length"
  }
}

const noteEnd = (turn: Turn, response: ProviderEvents.Fields): void => {
  const usage = fields(response.usage)
  turn.finish = {
    reason: reasonOf(response.incomplete_details),
    usage: ProviderEvents.usage(
      count(usage.input_tokens) ?? 0,
      count(usage.output_tokens) ?? 0,
      count(fields(usage.input_tokens_details).cached_tokens),
      count(fields(usage.output_tokens_details).reasoning_tokens)
    )
  }
}

/**
 * A reader of one turn's events: notes in `turn` how it ended, and gives the event that the library should have,
 * `undefined` for none. `offered` are the names of the tools.
 *
 * - A call of a tool that was not offered, or with arguments that are no JSON object, has no end for the library
 * - A refusal is text
 * - Reasoning that comes as such is its own summary, where there is no other
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (turn: Turn, offered: ReadonlySet<string>): ((event: unknown) => unknown) => {
  const summarised = new Set<string>()
  return (event) => {
    const given = fields(event)
    switch (given.type) {
      case "error":
        turn.failure = OpenAiErrors.fromBody(OpenAiErrors.errorOf(given) === undefined ? { error: given } : given)
        return undefined
      case "response.failed":
        turn.failure = OpenAiErrors.fromBody({ error: fields(given.response).error ?? {} })
        return undefined
      case "response.completed":
      case "response.incomplete":
        noteEnd(turn, fields(given.response))
        return undefined
      case "response.refusal.delta":
        return { ...given, type: "response.output_text.delta", logprobs: [] }
      case "response.reasoning_summary_text.delta":
        summarised.add(text(given.item_id))
        return event
      case "response.reasoning_text.delta":
        return summarised.has(text(given.item_id))
          ? undefined
          : { ...given, type: "response.reasoning_summary_text.delta", summary_index: 0 }
      case "response.output_item.done": {
        const item = fields(given.item)
        if (item.type !== "function_call") return event
        return offered.has(text(item.name)) && ProviderEvents.isReadable(text(item.arguments)) ? event : undefined
      }
      default:
        return event
    }
  }
}
