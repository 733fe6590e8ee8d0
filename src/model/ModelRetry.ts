/**
 * When to ask a model again. The loop decides whether it may: only if none of the call's output was published.
 *
 * @since 0.1.0
 */
import type { ModelError } from "./Model.js"

/**
 * - `retries`: at most so many
 * - `baseMs`: the first delay, doubled for each further one, at most `maxMs`
 * - `maxRetryAfterMs`: a server that asks for a longer wait is not asked again
 *
 * @since 0.1.0
 * @category models
 */
export interface RetryOptions {
  readonly retries: number
  readonly baseMs: number
  readonly maxMs: number
  readonly maxRetryAfterMs: number
}

/**
 * Three retries, after about half a second, one and two seconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults: RetryOptions = { retries: 3, baseMs: 500, maxMs: 8_000, maxRetryAfterMs: 30_000 }

/**
 * Milliseconds to wait before the `retry`-th retry (1, 2, …), or `undefined` when there should be none. `random01` is
 * a random number of [0, 1): the delay lies between half and all of the backoff, so that many callers do not return at
 * once. A wait that the server asked for is never undercut.
 *
 * @since 0.1.0
 * @category accessors
 */
export const retryDelayMs = (
  error: ModelError,
  retry: number,
  random01: number,
  options: RetryOptions = defaults
): number | undefined => {
  if (!error.retryable || retry < 1 || retry > options.retries) return undefined
  const asked = error.retryAfterMs ?? 0
  if (asked > options.maxRetryAfterMs) return undefined
  const backoff = Math.min(options.maxMs, options.baseMs * 2 ** (retry - 1))
  return Math.round(Math.max(asked, backoff * (0.5 + random01 / 2)))
}
