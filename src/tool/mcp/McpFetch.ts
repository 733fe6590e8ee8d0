/**
 * What a Model Context Protocol server is called with over HTTP: bounded, to allowed addresses alone, and with word of
 * calls whose answer can not come any more.
 *
 * @since 0.1.0
 */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Agent, fetch } from "undici"

/**
 * The field of a call's `_meta` in which its key is sent, so that a server can tell a repeated call.
 *
 * @since 0.1.0
 * @category constants
 */
export const keyField = "runlet/idempotency-key"

/**
 * - `isAllowed`: whether an address may be called
 * - `maxMessageBytes`: bound of one answer
 * - `onTooLong`: an answer is longer than that
 * - `onEnd`: the stream in which the call with this key would be answered is over; `resumable` when the server may go on
 *   in another one
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly isAllowed: (url: string) => boolean
  readonly maxMessageBytes: number
  readonly onTooLong: () => void
  readonly onEnd: (key: string, resumable: boolean) => void
}

interface Sent {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: {
    readonly requestId?: unknown
    readonly _meta?: { readonly [field: string]: unknown }
  }
}

const sentOf = (body: unknown): Sent => {
  try {
    const value: unknown = typeof body === "string" ? JSON.parse(body) : undefined
    return typeof value === "object" && value !== null ? value : {}
  } catch {
    return {}
  }
}

/**
 * A `fetch` whose connections end with the scope. Silence is allowed for as long as the caller waits.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<FetchLike, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Agent({ bodyTimeout: 0, headersTimeout: 0 })),
      (agent) => Effect.promise(() => agent.destroy())
    ),
    (dispatcher): FetchLike => {
      const open = new Map<unknown, AbortController>()
      return async (url, init) => {
        const address = String(url)
        if (!options.isAllowed(address)) {
          throw Object.assign(new Error("The host is not in outgoing.allowHosts"), { code: "ERR_HOST_NOT_ALLOWED" })
        }
        const sent = sentOf(init?.body)
        const own = new AbortController()
        const isRequest = sent.id !== undefined && sent.method !== undefined
        if (isRequest) open.set(sent.id, own)
        const key = sent.params?._meta?.[keyField]
        const ended = (resumable: boolean) => {
          open.delete(sent.id)
          if (typeof key === "string") options.onEnd(key, resumable)
        }
        try {
          const response = await fetch(address, {
            method: init?.method ?? "GET",
            headers: [...new Headers(init?.headers)],
            ...(typeof init?.body === "string" && { body: init.body }),
            redirect: init?.redirect === "follow" ? "manual" : (init?.redirect ?? "manual"),
            signal: init?.signal ? AbortSignal.any([init.signal, own.signal]) : own.signal,
            dispatcher
          })
          const { status, statusText } = response
          const headers = [...response.headers]
          const body =
            response.body === null
              ? null
              : bounded(response.body, isRequest ? options.maxMessageBytes : undefined, options.onTooLong, ended)
          return new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers })
        } finally {
          // The server was told; nobody waits for an answer.
          if (sent.method === "notifications/cancelled") open.get(sent.params?.requestId)?.abort()
        }
      }
    }
  )

/** The same bytes, up to a bound, with a word at their end. */
const bounded = (
  body: {
    readonly getReader: () => { read: () => Promise<{ done: boolean; value?: unknown }>; cancel: () => Promise<void> }
  },
  maxBytes: number | undefined,
  tooLong: () => void,
  ended: (resumable: boolean) => void
): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  let size = 0
  let resumable = false
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done, value } = await reader.read()
        if (done || !(value instanceof Uint8Array)) {
          controller.close()
          ended(resumable)
          return
        }
        size += value.length
        if (maxBytes !== undefined && size > maxBytes) {
          tooLong()
          await reader.cancel()
          throw new Error(`The answer is longer than ${maxBytes} bytes`)
        }
        // Events with ids are kept by the server for whoever comes again.
        resumable ||= /(^|\n)id:/.test(Buffer.from(value).toString("latin1"))
        controller.enqueue(value)
      } catch (error) {
        controller.error(error)
        ended(resumable)
      }
    },
    cancel: async () => {
      await reader.cancel()
      ended(resumable)
    }
  })
}
