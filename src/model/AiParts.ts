/**
 * A model's turn from the parts of an `@effect/ai` stream. Not an Effect: it runs for every piece of every stream.
 *
 * @since 0.1.0
 */
import type { ModelFinishReason, Usage } from "../domain/AgentEvent.js"
import { noUsage } from "../domain/AgentEvent.js"
import * as AiErrors from "./AiErrors.js"
import type { Metadata, Side, SidePart } from "./AiPrompt.js"
import * as CallText from "./CallText.js"
import type { ModelError, ModelFinish, ModelPart } from "./Model.js"
import * as OpenAiErrors from "./OpenAiErrors.js"

/**
 * What is read of a stream's part, whatever tools the stream was opened with.
 *
 * @since 0.1.0
 * @category models
 */
export interface StreamPart {
  readonly type: string
  readonly id?: unknown
  readonly name?: unknown
  readonly delta?: unknown
  readonly params?: unknown
  readonly providerExecuted?: unknown
  readonly metadata?: unknown
  readonly reason?: unknown
  readonly usage?: unknown
  readonly error?: unknown
}

/**
 * - `read`: what a part adds to the turn, and whether it ended it in failure
 * - `end`: the stream is over: the `finish`, or why there is none. `told` is what the provider itself said of the end
 * - `hasBadCall`: whether a call is of a tool that was not offered, or its arguments are no JSON object
 *
 * @since 0.1.0
 * @category models
 */
export interface Reader {
  readonly read: (part: StreamPart, out: Array<ModelPart>) => ModelError | undefined
  readonly end: (told: Pick<ModelFinish, "reason" | "usage"> | undefined) => ModelFinish | ModelError
  readonly hasBadCall: () => boolean
}

interface OpenPart {
  readonly type: SidePart["type"]
  text: string
  metadata: Metadata | undefined
}

interface OpenCall extends OpenPart {
  readonly toolName: string
}

/**
 * A reader of one turn of the model `name`, to which these tools were offered.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (name: string, offered: ReadonlySet<string>): Reader => {
  const parts: Array<OpenPart> = []
  const open = new Map<string, OpenPart>()
  const calls = new Map<string, OpenCall>()
  /** Calls that the provider runs itself are none of ours. */
  const foreign = new Set<string>()
  let finished: Pick<ModelFinish, "reason" | "usage"> | "error" | undefined

  const find = (type: "text" | "reasoning", id: string): OpenPart => {
    const key = `${type} ${id}`
    const known = open.get(key)
    if (known !== undefined) return known
    const part: OpenPart = { type, text: "", metadata: undefined }
    parts.push(part)
    open.set(key, part)
    return part
  }

  const begin = (id: string, toolName: string, out: Array<ModelPart>): OpenCall => {
    const known = calls.get(id)
    if (known !== undefined) return known
    const call: OpenCall = { type: "tool-call", toolName, text: "", metadata: undefined }
    parts.push(call)
    calls.set(id, call)
    out.push({ type: "tool-call-start", call: id, ...(id !== "" && { toolCallId: id }), toolName })
    return call
  }

  const argue = (call: OpenCall, id: string, delta: string, out: Array<ModelPart>): void => {
    if (delta === "") return
    call.text += delta
    out.push({ type: "tool-call-delta", call: id, delta })
  }

  return {
    read: (part, out) => {
      const id = typeof part.id === "string" ? part.id : ""
      const delta = typeof part.delta === "string" ? part.delta : ""
      const toolName = typeof part.name === "string" ? part.name : ""
      if (part.providerExecuted === true) foreign.add(id)
      switch (part.type) {
        case "text-start":
        case "text-delta":
        case "text-end":
        case "reasoning-start":
        case "reasoning-delta":
        case "reasoning-end": {
          const type = part.type.startsWith("text") ? "text" : "reasoning"
          const known = find(type, id)
          known.text += delta
          known.metadata = merged(known.metadata, part.metadata)
          if (delta !== "") out.push({ type: `${type}-delta`, id: `${type}-${id}`, delta })
          return undefined
        }
        case "tool-params-start":
          if (!foreign.has(id)) begin(id, toolName, out)
          return undefined
        case "tool-params-delta": {
          const call = calls.get(id)
          if (call !== undefined) argue(call, id, delta, out)
          return undefined
        }
        case "tool-call": {
          if (foreign.has(id)) return undefined
          const call = begin(id, toolName, out)
          call.metadata = merged(call.metadata, part.metadata)
          // Providers that do not stream arguments give them here, whole.
          if (call.text === "") argue(call, id, JSON.stringify(part.params ?? {}), out)
          return undefined
        }
        case "finish":
          finished = part.reason === "error" ? "error" : { reason: reasonOf(part.reason), usage: usageOf(part.usage) }
          return undefined
        case "error":
          return AiErrors.ofPart(part.error)
        default:
          return undefined
      }
    },
    end: (told) => {
      const ended = told ?? finished
      if (ended === undefined) return OpenAiErrors.truncated()
      if (ended === "error") return OpenAiErrors.abandoned("error")
      const reason = ended.reason === "stop" || ended.reason === "tool_calls" ? byContent(calls.size) : ended.reason
      const side = sideOf(name, parts)
      return { type: "finish", reason, usage: ended.usage, ...(side !== undefined && { side }) }
    },
    hasBadCall: () =>
      [...calls.values()].some(
        ({ text, toolName }) => !offered.has(toolName) || (text !== "" && CallText.objectOf(text) === undefined)
      )
  }
}

/** The label is trusted only where the content does not know better. */
const byContent = (calls: number): ModelFinishReason => (calls > 0 ? "tool_calls" : "stop")

const reasonOf = (reason: unknown): ModelFinishReason => {
  switch (reason) {
    case "length":
      return "length"
    case "content-filter":
      return "content_filter"
    default:
      return "stop"
  }
}

/** Empty text is in no log, so the history has no such part either. */
const sideOf = (name: string, parts: ReadonlyArray<OpenPart>): Side | undefined => {
  const kept = parts.filter(({ type, text }) => type !== "text" || text !== "")
  if (kept.every(({ metadata }) => metadata === undefined)) return undefined
  return {
    by: name,
    parts: kept.map(({ metadata, text, type }): SidePart => {
      const said = metadata === undefined ? {} : { metadata }
      return type === "reasoning" ? { type, text, ...said } : { type, ...said }
    })
  }
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Later words add to earlier ones. Only what JSON can hold is kept. */
const merged = (before: Metadata | undefined, more: unknown): Metadata | undefined => {
  if (!isRecord(more)) return before
  let all = before
  for (const [provider, said] of Object.entries(more)) {
    if (!isRecord(said)) continue
    const plain: unknown = JSON.parse(JSON.stringify(said))
    if (isRecord(plain) && Object.keys(plain).length > 0) all = { ...all, [provider]: { ...all?.[provider], ...plain } }
  }
  return all
}

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined

const usageOf = (value: unknown): Usage => {
  if (!isRecord(value)) return noUsage
  const inputTokens = count(value.inputTokens) ?? 0
  const outputTokens = count(value.outputTokens) ?? 0
  const reasoningTokens = count(value.reasoningTokens)
  const cachedInputTokens = count(value.cachedInputTokens)
  return {
    inputTokens,
    outputTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
    totalTokens: Math.max(count(value.totalTokens) ?? 0, inputTokens + outputTokens)
  }
}
