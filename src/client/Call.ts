/**
 * One request to the server, with the credential of the caller and the patience of a reader. Failures are thrown as
 * `RunletError`.
 *
 * @since 0.1.0
 */
import { type ErrorBody, RunletError, unreachable } from "./RunletError.js"

/**
 * Calls a function after so many milliseconds, unless the returned one is called before.
 *
 * @since 0.1.0
 * @category options
 */
export type Timer = (callback: () => void, milliseconds: number) => () => void

/**
 * - `baseUrl`: where the server is; by default the page's own origin
 * - `token`: the bearer token, asked for at every request; without one, cookies of the same origin go along
 * - `heartbeatMs`: how often the server says that it lives (15,000). What is silent for two and a half times as long
 *   is taken for dead, what is not answered at all after that time itself
 * - `fetch`, `timer`: for tests and other platforms
 *
 * @since 0.1.0
 * @category options
 */
export interface ApiOptions {
  readonly baseUrl?: string | undefined
  readonly token?: (() => string | undefined | Promise<string | undefined>) | undefined
  readonly heartbeatMs?: number | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timer?: Timer | undefined
}

/**
 * - `key`: an idempotency key: the same key and body are the same run, however often they are sent
 * - `signal`: gives the request up
 * - `onBytes`: is given each piece of a stream. Nothing more is read once it gives `true`
 *
 * @since 0.1.0
 * @category models
 */
export interface CallOptions {
  readonly body?: object | undefined
  readonly key?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onBytes?: ((bytes: Uint8Array) => unknown) | undefined
}

/**
 * Sends a request and gives the answer, of the shape that the contract gives it. Of a stream it says that there was one;
 * of an answer without a body, `false`.
 *
 * @since 0.1.0
 * @category models
 */
export type Call = <A>(method: string, path: string, options?: CallOptions) => Promise<A>

/**
 * The timer of the platform.
 *
 * @since 0.1.0
 * @category options
 */
export const platformTimer: Timer = (callback, milliseconds) => {
  const timer = setTimeout(callback, milliseconds)
  return () => clearTimeout(timer)
}

/**
 * Where a run is, or something of it.
 *
 * @since 0.1.0
 * @category paths
 */
export const runPath = (runId: string, rest = ""): string => `/runs/${encodeURIComponent(runId)}${rest}`

/**
 * The way to one server.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeCall = (options: ApiOptions): Call => {
  const { baseUrl = "", fetch = globalThis.fetch, heartbeatMs = 15_000, timer = platformTimer, token } = options

  return async (method, path, { body, key, onBytes, signal } = {}) => {
    const abort = new AbortController()
    const stop = () => abort.abort()
    // What only reads is answered at once; when it is not, the connection was dead before it was used.
    let rest = timer(stop, heartbeatMs * (method === "GET" ? 1 : 2.5))
    try {
      const bearer = await token?.()
      const response = await fetch(baseUrl + path, {
        method,
        cache: "no-store",
        signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
        headers: {
          prefer: "respond-async",
          ...(bearer && { authorization: `Bearer ${bearer}` }),
          ...(key && { "idempotency-key": key }),
          ...(body && { "content-type": "application/json" })
        },
        // Without a body there is none: `undefined` is no JSON.
        body: JSON.stringify(body)
      })
      if (!response.ok) {
        const refusal: Partial<ErrorBody> | null = await response.json().catch(() => null)
        throw refusal?._tag
          ? new RunletError(response.status, refusal as ErrorBody)
          : unreachable(undefined, response.status)
      }
      // Some browsers give an empty answer a body.
      if (response.status === 204 || !response.body) return false
      if (!onBytes) return await response.json()
      const reader = response.body.getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return true
        rest()
        rest = timer(stop, heartbeatMs * 2.5)
        if (onBytes(value) === true) {
          stop()
          return true
        }
      }
    } catch (error) {
      throw unreachable(error)
    } finally {
      rest()
    }
  }
}
