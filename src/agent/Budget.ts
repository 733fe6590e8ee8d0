/**
 * What a run may spend. It is looked at before a model is called, with what its prompt is sure to cost, and when a turn
 * is complete, before anything is done that it asks for.
 *
 * @since 0.1.0
 */
import type { Usage } from "../domain/AgentEvent.js"
import type { RunLimits } from "../domain/RunInput.js"
import type { ModelMessage, Price } from "../model/Model.js"

/**
 * Whether nothing is left.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSpent = (usage: Usage, limits: RunLimits): boolean =>
  (limits.maxTokens !== null && usage.totalTokens >= limits.maxTokens) ||
  (limits.maxCostUsd !== null && (usage.costUsd ?? 0) >= limits.maxCostUsd)

/** More bytes than a token has in any language that people write, on average; so what comes out is too few, not too many. */
const bytesPerToken = 8

/** Tokens that these messages have at least. */
const leastTokens = (messages: ReadonlyArray<ModelMessage>): number =>
  Math.floor(Buffer.byteLength(JSON.stringify(messages), "utf8") / bytesPerToken)

/**
 * Whether the prompt alone would cost more than is left.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTooMuch = (
  usage: Usage,
  limits: RunLimits,
  messages: ReadonlyArray<ModelMessage>,
  price: Price | undefined
): boolean => {
  if (limits.maxTokens === null && limits.maxCostUsd === null) return false
  const tokens = leastTokens(messages)
  const costUsd = (tokens * (price?.cachedInput ?? price?.input ?? 0)) / 1_000_000
  return (
    (limits.maxTokens !== null && usage.totalTokens + tokens > limits.maxTokens) ||
    (limits.maxCostUsd !== null && (usage.costUsd ?? 0) + costUsd > limits.maxCostUsd)
  )
}
