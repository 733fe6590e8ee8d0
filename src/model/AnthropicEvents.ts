/**
 * The events of Anthropic's Messages interface, on their way to a library that gives up at some of them.
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
  const { type } = fields(event)
  return type === "message_stop" || type === "error"
}

const reasonOf = (reason: unknown): ModelFinishReason => {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length"
    case "refusal":
      return "content_filter"
    default:
      return "stop"
  }
}

/**
 * A reader of one turn's events: notes in `turn` how it ended, and gives the event that the library should have,
 * `undefined` for none. `offered` are the names of the tools. A call of another tool, or with arguments that are no
 * JSON object, has no end for the library.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (turn: Turn, offered: ReadonlySet<string>): ((event: unknown) => unknown) => {
  const calls = new Map<unknown, { readonly name: string; args: string }>()
  let input = 0
  let cached: number | undefined
  let written = 0
  let output = 0

  /** Counts stand for the whole turn so far. What was read from and written to the cache is counted apart. */
  const note = (value: unknown): void => {
    const usage = fields(value)
    input = count(usage.input_tokens) ?? input
    cached = count(usage.cache_read_input_tokens) ?? cached
    written = count(usage.cache_creation_input_tokens) ?? written
    output = count(usage.output_tokens) ?? output
  }

  return (event) => {
    const given = fields(event)
    switch (given.type) {
      case "error":
        turn.failure = OpenAiErrors.fromBody(given)
        return undefined
      case "message_start":
        note(fields(given.message).usage)
        return event
      case "message_delta": {
        note(given.usage)
        const reason = fields(given.delta).stop_reason
        if (typeof reason === "string") {
          turn.finish = {
            reason: reasonOf(reason),
            usage: ProviderEvents.usage(input + written + (cached ?? 0), output, cached, undefined)
          }
        }
        return event
      }
      case "content_block_start": {
        const block = fields(given.content_block)
        if (block.type === "tool_use") calls.set(given.index, { name: text(block.name), args: "" })
        return event
      }
      case "content_block_delta": {
        const delta = fields(given.delta)
        const call = calls.get(given.index)
        if (call !== undefined && delta.type === "input_json_delta") call.args += text(delta.partial_json)
        return event
      }
      case "content_block_stop": {
        const call = calls.get(given.index)
        if (call === undefined) return event
        return offered.has(call.name) && ProviderEvents.isReadable(call.args) ? event : undefined
      }
      default:
        return event
    }
  }
}
