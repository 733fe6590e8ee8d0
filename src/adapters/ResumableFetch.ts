/**
 * A `fetch` for AG-UI's `HttpAgent` whose responses do not break: when the connection does, it asks for what lies behind
 * the last event that came, and the agent never notices.
 *
 * @since 0.1.0
 */

/**
 * - `fetch`: the one underneath
 * - `delayMs`: how long to wait before each try (1000)
 * - `maxTries`: how many tries in a row may fail before the response does (20)
 * - `cancelOnAbort`: whether aborting the agent's run stops it on the server as well (true)
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumableOptions {
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  readonly delayMs?: number | undefined
  readonly maxTries?: number | undefined
  readonly cancelOnAbort?: boolean | undefined
}

/**
 * Why a connection is given up when its reader leaves a run that goes on.
 *
 * @internal
 * @since 0.1.0
 * @category internals
 */
export const left = new DOMException("The reader left.", "AbortError")

/**
 * Makes the `fetch` that `new HttpAgent({ url, fetch: resumableFetch() })` takes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const resumableFetch =
  (options: ResumableOptions = {}) =>
  (url: string, init: RequestInit): Promise<Response> => {
    const input: unknown = typeof init.body === "string" ? JSON.parse(init.body) : {}
    const name = (key: string) =>
      typeof input === "object" && input !== null && key in input ? String(input[key as keyof typeof input]) : ""
    return resuming({ ...options, url, init, path: "", threadId: name("threadId"), clientRunId: name("runId") })
  }

/**
 * What to ask for: `path` behind the adapter's `url`. The names are the client's own, for the events of the rest to bear.
 *
 * @internal
 * @since 0.1.0
 * @category internals
 */
export interface Asked extends ResumableOptions {
  readonly url: string
  readonly path: string
  readonly init: RequestInit
  readonly threadId: string
  readonly clientRunId: string
}

/**
 * The response to one request, which goes on over as many connections as it takes.
 *
 * @internal
 * @since 0.1.0
 * @category internals
 */
export const resuming = async (asked: Asked): Promise<Response> => {
  const { cancelOnAbort = true, clientRunId, init, path, threadId, url } = asked
  const request = asked.fetch ?? ((url: string, init: RequestInit) => fetch(url, init))
  const response = await request(`${url}${path}`, init)
  const runId = response.headers.get("x-run-id")
  if (!response.ok || response.body === null || runId === null) return response

  const { body: _, method: __, ...rest } = init
  const headers = new Headers(init.headers)
  headers.delete("content-type")
  const over = new AbortController()
  if (cancelOnAbort) {
    const { signal } = init
    const cancel = () => {
      if (signal?.reason === left) return
      const stop = { ...rest, method: "POST", headers, signal: null }
      request(`${url}/${runId}/cancel`, stop).catch(() => undefined)
    }
    signal?.addEventListener("abort", cancel, { signal: over.signal })
  }
  const names = new URLSearchParams({ threadId, clientRunId })
  const reopen = (cursor: string, signal: AbortSignal) => {
    if (cursor !== "") headers.set("last-event-id", cursor)
    return request(`${url}/${runId}/events?${names}`, { ...rest, method: "GET", headers, signal })
  }
  return new Response(frames(response.body, reopen, asked, over), response)
}

/** Resolves after a time, or at once when the signal is given. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener("abort", done)
  })

const isLast = (text: string): boolean => /(?<![^\n])data: \{"type":"(RUN_FINISHED|RUN_ERROR)"/.test(text)

/**
 * What a run's connections say, as one stream. A frame is passed on when an id says that it is complete: an event of the
 * log may be several frames, and what a cut left over of it comes again.
 */
const frames = (
  first: ReadableStream<Uint8Array>,
  reopen: (cursor: string, signal: AbortSignal) => Promise<Response>,
  { delayMs = 1000, init, maxTries = 20 }: Asked,
  over: AbortController
): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder()
  const signal = init.signal == null ? over.signal : AbortSignal.any([init.signal, over.signal])
  let reader = first.getReader()
  let decoder = new TextDecoder()
  let rest = ""
  let cursor = ""
  let tries = 0

  const again = async (cause: unknown): Promise<void> => {
    for (;;) {
      if (signal.aborted || tries >= maxTries) throw cause
      tries += 1
      await pause(delayMs, signal)
      const response = await reopen(cursor, signal).catch(() => undefined)
      if (response?.ok === true && response.body !== null) {
        reader = response.body.getReader()
        decoder = new TextDecoder()
        rest = ""
        return
      }
      if (response !== undefined && response.status < 500 && response.status !== 429) throw cause
    }
  }

  const read = async (): Promise<string> => {
    try {
      const { done, value } = await reader.read()
      if (!done) {
        tries = 0
        return decoder.decode(value, { stream: true })
      }
    } catch (cause) {
      await again(cause)
      return ""
    }
    await again(new TypeError("The stream ended before the run."))
    return ""
  }

  /** Takes what is complete out of `rest`. */
  const complete = (): string => {
    const end = [...rest.matchAll(/(?<![^\n])id: (\d+)\n(?:[^\n]+\n)*\n/g)].at(-1)
    if (end === undefined) return ""
    cursor = end[1] ?? cursor
    const length = end.index + end[0].length
    const text = rest.slice(0, length)
    rest = rest.slice(length)
    return text
  }

  return new ReadableStream(
    {
      pull: async (controller) => {
        let text = ""
        while (text === "") {
          // A connection that broke has taken its rest with it: what was read is added to what there is then.
          const more = await read()
          rest += more
          text = complete()
        }
        controller.enqueue(encoder.encode(text))
        if (!isLast(text)) return
        over.abort(left)
        controller.close()
      },
      cancel: (reason) => {
        over.abort(left)
        return reader.cancel(reason)
      }
    },
    { highWaterMark: 0 }
  )
}
