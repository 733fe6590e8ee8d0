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

/** Tokens that these messages have at least, and what they cost then. */
const leastOf = (messages: ReadonlyArray<ModelMessage>, price: Price | undefined) => {
  const tokens = leastTokens(messages)
  return { tokens, costUsd: (tokens * (price?.cachedInput ?? price?.input ?? 0)) / million }
}

const million = 1_000_000

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
  const { costUsd, tokens } = leastOf(messages, price)
  return (
    (limits.maxTokens !== null && usage.totalTokens + tokens > limits.maxTokens) ||
    (limits.maxCostUsd !== null && (usage.costUsd ?? 0) + costUsd > limits.maxCostUsd)
  )
}

/**
 * How many tokens the answer to this prompt may have, one at least; none where no budget of the run says it.
 *
 * @since 0.1.0
 * @category accessors
 */
export const leftForOutput = (
  usage: Usage,
  limits: RunLimits,
  messages: ReadonlyArray<ModelMessage>,
  price: Price | undefined
): number | undefined => {
  const byCost = limits.maxCostUsd !== null && price !== undefined && price.output > 0
  if (limits.maxTokens === null && !byCost) return undefined
  const { costUsd, tokens } = leastOf(messages, price)
  const left = Math.min(
    limits.maxTokens === null ? Number.POSITIVE_INFINITY : limits.maxTokens - usage.totalTokens - tokens,
    byCost
      ? (((limits.maxCostUsd ?? 0) - (usage.costUsd ?? 0) - costUsd) / price.output) * million
      : Number.POSITIVE_INFINITY
  )
  return Math.max(1, Math.floor(left))
}
