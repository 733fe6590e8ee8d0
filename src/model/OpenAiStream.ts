/**
 * A model's turn from the bytes of a streaming chat completion. Not an Effect: it runs for every piece of every
 * stream, and gives the same parts however the bytes are cut.
 *
 * @since 0.1.0
 */
import type { ModelFinishReason, Usage } from "../domain/AgentEvent.js"
import { noUsage } from "../domain/AgentEvent.js"
import type { ModelError, ModelPart, Price } from "./Model.js"
import * as ModelPrice from "./ModelPrice.js"
import * as OpenAiCalls from "./OpenAiCalls.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as SseDecoder from "./SseDecoder.js"

/**
 * How far the turn is.
 *
 * - `waiting`: no output yet; `streaming`: some
 * - `finishing`: the model has said why it stops; usage and the end marker may follow
 * - `done`: the end marker came
 * - `failed`: see `failure`
 *
 * @since 0.1.0
 * @category models
 */
export type Phase = "waiting" | "streaming" | "finishing" | "done" | "failed"

/**
 * - `push`: takes bytes and adds parts to `out`, never empty ones; nothing more is taken once it is done or failed
 * - `end`: the bytes are over, or nobody waits for more. Adds the `finish` part, or tells why there can be none
 *
 * @since 0.1.0
 * @category models
 */
export interface TurnDecoder {
  readonly push: (bytes: Uint8Array, out: Array<ModelPart>) => void
  readonly end: (out: Array<ModelPart>) => ModelError | undefined
  readonly phase: () => Phase
}

/**
 * - `price`: makes `usage.costUsd`
 * - `keepReasoning`: the reasoning goes into `finish.side`
 * - `maxFrame`: characters of one frame
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly price?: Price | undefined
  readonly keepReasoning: boolean
  readonly maxFrame: number
}): TurnDecoder => {
  const calls = OpenAiCalls.make()
  let parts: Array<ModelPart> = []
  let phase: Phase = "waiting"
  let failure: ModelError | undefined
  let framed = false
  let finishReason: string | undefined
  let usage: Usage | undefined
  let reasoning = ""
  let open: "text" | "reasoning" | undefined
  let opened = 0

  const fail = (error: ModelError): void => {
    phase = "failed"
    failure = error
  }

  const delta = (type: "text" | "reasoning", text: string): void => {
    if (open !== type) {
      open = type
      opened++
    }
    parts.push({ type: `${type}-delta`, id: `${type}-${opened}`, delta: text })
  }

  const onChunk = (chunk: object): void => {
    if ("usage" in chunk) usage = readUsage(chunk.usage, options.price) ?? usage
    const choice = firstChoice(chunk)
    if (choice === undefined) return
    if (choice.usage !== undefined) usage = readUsage(choice.usage, options.price) ?? usage
    const message = choice.delta
    if (typeof message === "object" && message !== null) onDelta(message)
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") finishReason = choice.finish_reason
  }

  const onDelta = (message: Delta): void => {
    const thought = nonEmpty(message.reasoning_content) ?? nonEmpty(message.reasoning)
    if (thought !== undefined) {
      if (options.keepReasoning) reasoning += thought
      delta("reasoning", thought)
    }
    const text = nonEmpty(message.content) ?? nonEmpty(message.refusal)
    if (text !== undefined) delta("text", text)
    if (message.tool_calls !== undefined) {
      const before = calls.count()
      calls.push(message.tool_calls, parts)
      if (calls.count() > before) open = undefined
    }
  }

  const onFrame = (frame: SseDecoder.Frame): void => {
    if (phase === "done" || phase === "failed") return
    const data = frame.data.trim()
    if (data === "[DONE]") {
      framed = true
      phase = "done"
      return
    }
    if (frame.event === "error") {
      fail(OpenAiErrors.fromBody(asErrorBody(parseJson(data))))
      return
    }
    // Words that are no JSON object (keep-alives dressed up as data) say nothing.
    if (!data.startsWith("{")) return
    framed = true
    const whole = parseJson(data)
    // Some servers forget the blank line between frames.
    const chunks = whole === undefined && data.includes("\n") ? data.split("\n").map(parseJson) : [whole]
    for (const chunk of chunks) {
      if (typeof chunk !== "object" || chunk === null) {
        fail(OpenAiErrors.invalidResponse("The model server sent a piece of its answer that can not be read.", true))
        return
      }
      if (OpenAiErrors.errorOf(chunk) !== undefined) {
        fail(OpenAiErrors.fromBody(chunk))
        return
      }
      onChunk(chunk)
    }
    if (finishReason !== undefined) phase = "finishing"
    else if (phase === "waiting" && parts.length > 0) phase = "streaming"
  }

  const sse = SseDecoder.make({ onFrame, maxFrame: options.maxFrame })

  const refusal = (kind: SseDecoder.NotAStream): ModelError => {
    switch (kind) {
      case "too-large":
        return OpenAiErrors.invalidResponse("The model server sent a piece of its answer that is too large.", false)
      case "markup":
        return OpenAiErrors.invalidResponse("The model server answered with a web page instead of a stream.", false)
      case "json": {
        const body = parseJson(sse.body())
        return OpenAiErrors.errorOf(body) === undefined
          ? OpenAiErrors.invalidResponse("The model server answered with one JSON body instead of a stream.", false)
          : OpenAiErrors.fromBody(body)
      }
    }
  }

  return {
    phase: () => phase,
    push: (bytes, out) => {
      if (phase === "done" || phase === "failed") return
      parts = out
      if (sse.push(bytes)) return
      const refused = sse.refused()
      // A JSON body is read to its end, for the error that it may hold.
      if (refused !== undefined && (refused !== "json" || sse.body().length >= SseDecoder.bodyLimit)) {
        fail(refusal(refused))
      }
    },
    end: (out) => {
      parts = out
      if (phase !== "done" && phase !== "failed") {
        const before = phase
        sse.end()
        // The rest was no whole frame: it was cut, which is not the server's fault, or harmless.
        if (failure?.code === "invalid_response" && sse.refused() === undefined) phase = before
      }
      if (phase === "failed") return failure
      const refused = sse.refused()
      if (refused !== undefined) return refusal(refused)
      if (finishReason === undefined) {
        return framed
          ? OpenAiErrors.truncated()
          : OpenAiErrors.invalidResponse("The model server's answer was empty.", true)
      }
      if (finishReason === "insufficient_system_resource" || finishReason === "error" || finishReason === "abort") {
        return OpenAiErrors.abandoned(finishReason)
      }
      calls.end(parts)
      parts.push({
        type: "finish",
        reason: reasonOf(finishReason, calls.count() > 0),
        usage: usage ?? noUsage,
        ...(options.keepReasoning && reasoning !== "" && { side: { reasoning_content: reasoning } })
      })
      return undefined
    }
  }
}

interface Delta {
  readonly content?: unknown
  readonly refusal?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly tool_calls?: unknown
}

interface Choice {
  readonly index?: unknown
  readonly delta?: Delta | null
  readonly finish_reason?: unknown
  readonly usage?: unknown
}

/**
 * The value of a JSON text, `undefined` for any other text.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const asErrorBody = (value: unknown): unknown =>
  OpenAiErrors.errorOf(value) === undefined ? { error: value ?? {} } : value

const nonEmpty = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const firstChoice = (chunk: object): Choice | undefined => {
  const choices = "choices" in chunk ? chunk.choices : undefined
  if (!Array.isArray(choices)) return undefined
  return choices.find(
    (choice: Choice | null): choice is Choice =>
      typeof choice === "object" && choice !== null && (choice.index === undefined || choice.index === 0)
  )
}

/** The label is trusted only where the content does not know better. */
const reasonOf = (label: string, hasCalls: boolean): ModelFinishReason => {
  switch (label) {
    case "length":
    case "max_tokens":
    case "model_length":
      return "length"
    case "content_filter":
    case "safety":
    case "sensitive":
      return "content_filter"
    default:
      return hasCalls ? "tool_calls" : "stop"
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined

const countIn = (value: unknown, field: string): number | undefined =>
  typeof value === "object" && value !== null ? count((value as Record<string, unknown>)[field]) : undefined

const readUsage = (value: unknown, price: Price | undefined): Usage | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const inputTokens = countIn(value, "prompt_tokens") ?? 0
  const outputTokens = countIn(value, "completion_tokens") ?? 0
  const cached =
    countIn("prompt_tokens_details" in value ? value.prompt_tokens_details : undefined, "cached_tokens") ??
    countIn(value, "prompt_cache_hit_tokens")
  const reasoning = countIn(
    "completion_tokens_details" in value ? value.completion_tokens_details : undefined,
    "reasoning_tokens"
  )
  const usage: Usage = {
    inputTokens,
    outputTokens,
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
    totalTokens: countIn(value, "total_tokens") ?? inputTokens + outputTokens
  }
  return ModelPrice.priced(usage, price)
}
