/**
 * What a turn costs.
 *
 * @since 0.1.0
 */
import type { Usage } from "../domain/AgentEvent.js"
import type { Price } from "./Model.js"

/**
 * US dollars. Tokens that came from the provider's cache are part of the input.
 *
 * @since 0.1.0
 * @category accessors
 */
export const costOf = (price: Price, { cachedInputTokens = 0, inputTokens, outputTokens }: Usage): number => {
  const cached = Math.min(cachedInputTokens, inputTokens)
  const fresh = inputTokens - cached
  return (fresh * price.input + cached * (price.cachedInput ?? price.input) + outputTokens * price.output) / 1e6
}

/**
 * The usage with what it costs, where the model has a price and the provider told none.
 *
 * @since 0.1.0
 * @category conversions
 */
export const priced = (usage: Usage, price: Price | undefined): Usage =>
  price === undefined || usage.costUsd !== undefined ? usage : { ...usage, costUsd: costOf(price, usage) }
