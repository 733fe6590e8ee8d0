/**
 * A `fetch` for AG-UI's `HttpAgent` whose responses do not break: when the connection does, it asks for what lies behind
 * the last event that came, and the agent never notices.
 *
 * @since 0.1.0
 */

/**
 * - `fetch`: the one underneath
 * - `delayMs`: how long to wait before each try (1000), which is forgotten with every event
 * - `maxTries`: how many tries in a row may fail before the response does (20)
 * - `cancelOnAbort`: whether aborting the agent's run stops it on the server as well (true)
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumableOptions {
  readonly fetch?: ((url: string, init?: RequestInit) => Promise<Response>) | undefined
  readonly delayMs?: number | undefined
  readonly maxTries?: number | undefined
  readonly cancelOnAbort?: boolean | undefined
}

/**
 * Makes the `fetch` that `new HttpAgent({ url, fetch: resumableFetch() })` takes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const resumableFetch = (options: ResumableOptions = {}) => {
  const { cancelOnAbort = true, delayMs = 1000, maxTries = 20 } = options
  const request = options.fetch ?? ((url: string, init?: RequestInit) => fetch(url, init))
  return async (url: string, init: RequestInit): Promise<Response> => {
    const response = await request(url, init)
    const runId = response.headers.get("x-run-id")
    if (!response.ok || response.body === null || runId === null) return response
    const signal = init.signal ?? undefined
    const { "Content-Type": _, ...headers } = Object.fromEntries(new Headers(init.headers))
    if (cancelOnAbort) {
      const path = url.replace(/\/adapters\/ag-ui.*$/, `/runs/${runId}/cancel`)
      signal?.addEventListener("abort", () => {
        request(path, { method: "POST", headers: { ...headers, "content-type": "application/json" } }).catch(
          () => undefined
        )
      })
    }
    let cursor = ""
    const reopen = () =>
      request(`${url}/${runId}/events?${namesOf(init.body)}`, {
        headers: { ...headers, ...(cursor !== "" && { "last-event-id": cursor }) },
        ...(signal !== undefined && { signal })
      })
    const body = frames(response.body, reopen, { delayMs, maxTries, signal, seen: (id) => (cursor = id) })
    return new Response(body, response)
  }
}

/** The client's own names for the thread and the run, which the events of the rest have to bear. */
const namesOf = (body: RequestInit["body"]): string => {
  const input: unknown = typeof body === "string" ? JSON.parse(body) : {}
  const text = (name: string) =>
    typeof input === "object" && input !== null && name in input ? String(input[name as keyof typeof input]) : ""
  return new URLSearchParams({ threadId: text("threadId"), clientRunId: text("runId") }).toString()
}

const isLast = (frame: string): boolean => /"type":"(RUN_FINISHED|RUN_ERROR)"/.test(frame)

/** Whole frames only: the part of one that a cut left over comes again. */
const frames = (
  first: ReadableStream<Uint8Array>,
  reopen: () => Promise<Response>,
  options: {
    readonly delayMs: number
    readonly maxTries: number
    readonly signal: AbortSignal | undefined
    readonly seen: (id: string) => void
  }
): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder()
  let reader = first.getReader()
  let decoder = new TextDecoder()
  let rest = ""
  let tries = 0
  let over = false

  const again = async (cause: unknown): Promise<void> => {
    for (;;) {
      if (options.signal?.aborted === true || tries >= options.maxTries) throw cause
      tries += 1
      await new Promise((resolve) => setTimeout(resolve, options.delayMs))
      const response = await reopen().catch(() => undefined)
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
      if (!done) return decoder.decode(value, { stream: true })
    } catch (cause) {
      await again(cause)
      return ""
    }
    await again(new TypeError("The stream ended before the run."))
    return ""
  }

  return new ReadableStream(
    {
      pull: async (controller) => {
        while (!over) {
          rest += await read()
          const blocks = rest.split("\n\n")
          rest = blocks.pop() ?? ""
          if (blocks.length === 0) continue
          tries = 0
          for (const block of blocks) {
            const id = /^id: (\d+)$/m.exec(block)?.[1]
            if (id !== undefined) options.seen(id)
            over ||= isLast(block)
          }
          controller.enqueue(encoder.encode(`${blocks.join("\n\n")}\n\n`))
          break
        }
        if (over) controller.close()
      },
      cancel: (reason) => reader.cancel(reason)
    },
    { highWaterMark: 0 }
  )
}
