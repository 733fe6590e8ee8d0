/**
 * The body of a streaming chat completion, from what the loop asks of a model. Pure.
 *
 * @since 0.1.0
 */
import type { OfferedTool } from "../domain/RunInput.js"
import * as CallText from "./CallText.js"
import type { ModelMessage, ModelRequest } from "./Model.js"

/**
 * A JSON object.
 *
 * @since 0.1.0
 * @category models
 */
export type JsonObject = { readonly [key: string]: unknown }

/**
 * How a server likes its requests. Nothing that is not in every implementation of the format is sent unless it is
 * asked for here.
 *
 * - `model`: the name sent to the server
 * - `maxOutputTokens`: what a turn may put out at most. The least of it, of what the request allows and of what
 *   `extraBody` says is sent, as `max_tokens` or, where `extraBody` has that, as `max_completion_tokens`
 * - `includeUsage`: asks for a usage chunk; `true` by default
 * - `extraBody`: fields for every request
 * - `thinkingBody`: fields for requests that ask for reasoning, such as `{ reasoning_effort: "high" }`; `plainBody`:
 *   fields for the others
 * - `reasoningInput`: which of its own reasoning the server wants back as `reasoning_content`: none (`never`, the
 *   default), that of the turns since the last user message (`tool-loop`), that of every turn with calls
 *   (`tool-calls`), or all of it (`always`)
 * - `draft`: how the server is told to go on writing the last assistant message, as fields of that message (such as
 *   `{ prefix: true }`) and of the body (such as `{ continue_final_message: true, add_generation_prompt: false }`)
 *
 * @since 0.1.0
 * @category models
 */
export interface RequestOptions {
  readonly model: string
  readonly maxOutputTokens?: number | undefined
  readonly includeUsage?: boolean | undefined
  readonly extraBody?: JsonObject | undefined
  readonly thinkingBody?: JsonObject | undefined
  readonly plainBody?: JsonObject | undefined
  readonly reasoningInput?: "never" | "tool-loop" | "tool-calls" | "always" | undefined
  readonly draft?: { readonly message?: JsonObject | undefined; readonly body?: JsonObject | undefined } | undefined
}

/**
 * What `ModelFinish.side` holds for turns of this provider when `reasoningInput` asks for it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Side {
  readonly reasoning_content: string
}

/**
 * The request body. The text of every call is a JSON object, whatever the history holds, and names of tools fit the
 * alphabet that servers accept, so that one bad turn can not make all later requests invalid.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toRequestBody = (request: ModelRequest, options: RequestOptions): JsonObject => {
  const { messages } = request
  const lastUser = messages.findLastIndex((message) => message.role === "user")
  const draft = request.continueDraft ? messages.length - 1 : -1
  const configured: JsonObject = {
    ...options.extraBody,
    ...(request.enableThinking ? options.thinkingBody : options.plainBody),
    ...(draft >= 0 && options.draft?.body)
  }
  const name = "max_completion_tokens" in configured ? "max_completion_tokens" : "max_tokens"
  const most = leastLimit(configured[name], options.maxOutputTokens, request.maxOutputTokens)
  return {
    ...configured,
    ...(most !== undefined && { [name]: most }),
    model: options.model,
    messages: messages.flatMap((message, i): Array<JsonObject> => {
      const encoded = encodeMessage(message, wantsReasoning(message, i > lastUser, options))
      if (encoded === undefined) return []
      return [i === draft && message.role === "assistant" ? { ...encoded, ...options.draft?.message } : encoded]
    }),
    ...(request.tools.length > 0 && { tools: request.tools.map(encodeTool) }),
    stream: true,
    ...(options.includeUsage !== false && { stream_options: { include_usage: true } })
  }
}

/**
 * The least of some limits; those that are absent, or no numbers, do not count.
 *
 * @since 0.1.0
 * @category limits
 */
export const leastLimit = (...limits: ReadonlyArray<unknown>): number | undefined => {
  const numbers = limits.filter((limit) => typeof limit === "number")
  return numbers.length === 0 ? undefined : Math.min(...numbers)
}

/**
 * The text of a body. Halves of surrogate pairs, which JSON can write and many servers can not read, become U+FFFD.
 *
 * @since 0.1.0
 * @category conversions
 */
export const stringify = (body: JsonObject): string => {
  const text = JSON.stringify(body)
  // Well-formed JSON.stringify escapes exactly the lone halves; a backslash of the text itself is doubled.
  return text.includes("\\ud") ? text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, replaceHalf) : text
}

const replaceHalf = (escape: string): string => (escape === "\\\\" ? escape : "\ufffd")

const wantsReasoning = (message: ModelMessage, inLoop: boolean, options: RequestOptions): boolean => {
  if (message.role !== "assistant") return false
  switch (options.reasoningInput) {
    case "always":
      return true
    case "tool-calls":
      return message.content.some((part) => part.type === "tool-call")
    case "tool-loop":
      return inLoop
    default:
      return false
  }
}

const encodeMessage = (message: ModelMessage, withReasoning: boolean): JsonObject | undefined => {
  switch (message.role) {
    case "system":
    case "user":
      return { role: message.role, content: message.content }
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: encodeResult(message.result, message.isError) }
    case "assistant": {
      let text = ""
      let reasoning = ""
      const calls: Array<JsonObject> = []
      for (const part of message.content) {
        switch (part.type) {
          case "text":
            text += part.text
            break
          case "reasoning":
            reasoning += part.text
            break
          case "tool-call":
            calls.push({
              id: part.toolCallId,
              type: "function",
              function: {
                name: CallText.safeName(part.toolName),
                arguments: CallText.objectOf(part.argumentsText) === undefined ? "{}" : part.argumentsText
              }
            })
        }
      }
      // A turn that said nothing is nothing to a server; many refuse an empty assistant message.
      if (text === "" && calls.length === 0) return undefined
      const sent = sideReasoning(message.side) ?? reasoning
      return {
        role: "assistant",
        content: text === "" ? null : text,
        ...(withReasoning && sent !== "" && { reasoning_content: sent }),
        ...(calls.length > 0 && { tool_calls: calls })
      }
    }
  }
}

const sideReasoning = (side: unknown): string | undefined =>
  typeof side === "object" &&
  side !== null &&
  "reasoning_content" in side &&
  typeof side.reasoning_content === "string" &&
  side.reasoning_content !== ""
    ? side.reasoning_content
    : undefined

const encodeTool = (tool: OfferedTool): JsonObject => ({
  type: "function",
  function: { name: tool.name, description: tool.description, parameters: tool.parameters }
})

const encodeResult = (result: unknown, isError: boolean): string => {
  if (!isError) return typeof result === "string" ? result : (JSON.stringify(result) ?? "null")
  return JSON.stringify(CallText.errorResult(result))
}
