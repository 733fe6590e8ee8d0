/**
 * Reading events of providers that say more than their libraries know of.
 *
 * @since 0.1.0
 */
import { unsafeSecureJsonParse } from "@effect/ai/Tool"
import type { Usage } from "../domain/AgentEvent.js"

/**
 * An object of an event.
 *
 * @since 0.1.0
 * @category models
 */
export type Fields = { readonly [key: string]: unknown }

/**
 * The value as an object; one without fields for anything else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const fields = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

/**
 * The value as a text, "" for anything else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const text = (value: unknown): string => (typeof value === "string" ? value : "")

/**
 * The value as a count, `undefined` for anything else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined

/**
 * Usage from its counts; `input` counts cached tokens too.
 *
 * @since 0.1.0
 * @category constructors
 */
export const usage = (
  input: number,
  output: number,
  cached: number | undefined,
  reasoning: number | undefined
): Usage => ({
  inputTokens: input,
  outputTokens: output,
  ...(reasoning !== undefined && { reasoningTokens: reasoning }),
  ...(cached !== undefined && { cachedInputTokens: Math.min(cached, input) }),
  totalTokens: input + output
})

/**
 * Whether a library will read the arguments of a call; no text stands for no arguments.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isReadable = (args: string): boolean => {
  try {
    const value = args === "" ? {} : unsafeSecureJsonParse(args)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
