/**
 * What a scripted model server says, byte for byte, as plain data that can be sent to another process.
 *
 * @since 0.1.0
 */

/**
 * One thing that the server does while it answers: write text or bytes, wait for some milliseconds, or wait until a
 * gate of this name is released.
 *
 * @since 0.1.0
 * @category models
 */
export type Step =
  | { readonly text: string }
  | { readonly base64: string }
  | { readonly waitMs: number }
  | { readonly gate: string }

/**
 * One answer.
 *
 * - `status` (200) and `headers` (an event stream); `head: "never"` sends neither and waits, `headAfterMs` waits first
 * - `framing`: `chunked` (default), or `close`: the body ends with the connection, so that a FIN is a clean end
 * - `pieceBytes`: every write is cut into pieces of so many bytes, each given to the socket in its own turn
 * - `end`: after the last step the answer is ended properly (`end`, default), the socket is closed without an end mark
 *   (`fin`), reset (`reset`), or left open until the client leaves (`open`)
 *
 * @since 0.1.0
 * @category models
 */
export interface Reply {
  readonly status?: number | undefined
  readonly headers?: { readonly [name: string]: string } | undefined
  readonly head?: "never" | undefined
  readonly headAfterMs?: number | undefined
  readonly framing?: "chunked" | "close" | undefined
  readonly pieceBytes?: number | undefined
  readonly steps: ReadonlyArray<Step>
  readonly end?: "end" | "fin" | "reset" | "open" | undefined
}

/**
 * What the server knows of a request. `body` is its JSON, `at` and `closedAt` are epoch milliseconds: when it had
 * arrived, and when its answer was over or its socket closed. `aborted` tells that the client left before the answer
 * was over. `connection` numbers the sockets. `refused` is what a strict server had against it.
 *
 * @since 0.1.0
 * @category models
 */
export interface UpstreamRequest {
  readonly n: number
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly text: string
  readonly body: unknown
  readonly at: number
  readonly connection: number
  readonly closedAt: number | undefined
  readonly aborted: boolean
  readonly refused: string | undefined
}

/**
 * The answers by number of the request, the last one for all further ones; or a function of the request.
 *
 * @since 0.1.0
 * @category models
 */
export type Script = ReadonlyArray<Reply> | ((request: UpstreamRequest) => Reply)

/**
 * An answer of steps and groups of steps.
 *
 * @since 0.1.0
 * @category constructors
 */
export const reply = (
  steps: ReadonlyArray<Step | ReadonlyArray<Step>>,
  options?: Omit<Reply, "steps"> | undefined
): Reply => ({ ...options, steps: steps.flat() })

/**
 * An answer that is no stream.
 *
 * @since 0.1.0
 * @category constructors
 */
export const body = (status: number, contentType: string, content: string, headers?: Reply["headers"]): Reply => ({
  status,
  headers: { "content-type": contentType, ...headers },
  steps: content === "" ? [] : [{ text: content }]
})

/**
 * Bytes as they are.
 *
 * @since 0.1.0
 * @category steps
 */
export const raw = (content: string | Uint8Array): Step =>
  typeof content === "string" ? { text: content } : { base64: Buffer.from(content).toString("base64") }

/**
 * A frame around any JSON value.
 *
 * @since 0.1.0
 * @category steps
 */
export const data = (value: unknown): Step => raw(`data: ${JSON.stringify(value)}\n\n`)

/**
 * A chunk with this delta.
 *
 * @since 0.1.0
 * @category steps
 */
export const delta = (value: unknown, finishReason: string | null = null): Step =>
  data({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    model: "scripted",
    choices: [{ index: 0, delta: value, finish_reason: finishReason }]
  })

/**
 * A chunk of text.
 *
 * @since 0.1.0
 * @category steps
 */
export const text = (content: string): Step => delta({ content })

/**
 * A chunk of `reasoning_content`.
 *
 * @since 0.1.0
 * @category steps
 */
export const reasoning = (content: string): Step => delta({ reasoning_content: content, content: null })

/**
 * A fragment of a tool call. Absent fields are absent on the wire, "" is sent as "".
 *
 * @since 0.1.0
 * @category steps
 */
export const toolCall = (fragment: {
  readonly index?: number | undefined
  readonly id?: string | null | undefined
  readonly name?: string | null | undefined
  readonly args?: string | null | undefined
}): Step =>
  delta({
    tool_calls: [
      {
        index: fragment.index,
        id: fragment.id,
        type: "function",
        function: { name: fragment.name, arguments: fragment.args }
      }
    ]
  })

/**
 * A chunk that only says why the turn ended.
 *
 * @since 0.1.0
 * @category steps
 */
export const finish = (reason: string): Step => delta({}, reason)

/**
 * A chunk with usage and no choice.
 *
 * @since 0.1.0
 * @category steps
 */
export const usage = (
  input: number,
  output: number,
  details?: { readonly cached?: number; readonly reasoning?: number } | undefined
): Step =>
  data({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    choices: [],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      ...(details?.cached !== undefined && { prompt_tokens_details: { cached_tokens: details.cached } }),
      ...(details?.reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: details.reasoning } })
    }
  })

/**
 * The end mark of the stream.
 *
 * @since 0.1.0
 * @category steps
 */
export const done: Step = raw("data: [DONE]\n\n")

/**
 * A comment line, as keep-alives are.
 *
 * @since 0.1.0
 * @category steps
 */
export const comment = (content: string): Step => raw(`: ${content}\n\n`)

/**
 * Nothing for some milliseconds.
 *
 * @since 0.1.0
 * @category steps
 */
export const wait = (ms: number): Step => ({ waitMs: ms })

/**
 * Nothing until the gate of this name is opened.
 *
 * @since 0.1.0
 * @category steps
 */
export const gate = (name: string): Step => ({ gate: name })

/**
 * A whole answer: text in some pieces, finish reason, usage, end mark.
 *
 * @since 0.1.0
 * @category constructors
 */
export const answer = (...pieces: ReadonlyArray<string>): Reply =>
  reply([pieces.map(text), finish("stop"), usage(10, pieces.length), done])

/**
 * A whole answer that calls tools.
 *
 * @since 0.1.0
 * @category constructors
 */
export const calls = (
  ...items: ReadonlyArray<{ readonly id: string; readonly name: string; readonly args: string }>
): Reply => reply([items.map((item, index) => toolCall({ index, ...item })), finish("tool_calls"), usage(10, 5), done])

interface Message {
  readonly role?: unknown
  readonly content?: unknown
  readonly tool_call_id?: unknown
  readonly tool_calls?: unknown
  readonly prefix?: unknown
}

/**
 * The messages of a request.
 *
 * @since 0.1.0
 * @category accessors
 */
export const messagesOf = (request: Pick<UpstreamRequest, "body">): ReadonlyArray<Message> => {
  const { body } = request
  const messages = typeof body === "object" && body !== null && "messages" in body ? body.messages : undefined
  return Array.isArray(messages) ? messages : []
}

/**
 * The text of the last user message.
 *
 * @since 0.1.0
 * @category accessors
 */
export const lastUserText = (request: Pick<UpstreamRequest, "body">): string => {
  const content = messagesOf(request).findLast((message) => message.role === "user")?.content
  return typeof content === "string" ? content : ""
}

/**
 * What a strict server has against a history: every call must be answered exactly once, directly behind it, no answer
 * may lack its call, arguments must be JSON objects, and the last word must be a user's or a tool's, or a draft marked
 * with `prefix: true`. `undefined` when there is nothing.
 *
 * @since 0.1.0
 * @category predicates
 */
export const objection = (messages: ReadonlyArray<Message>): string | undefined => {
  let open = new Set<string>()
  for (const [i, message] of messages.entries()) {
    if (message.role === "tool") {
      const id = typeof message.tool_call_id === "string" ? message.tool_call_id : ""
      if (!open.delete(id)) return `messages[${i}]: answers no open call`
      if (typeof message.content !== "string") return `messages[${i}]: content is no text`
      continue
    }
    if (open.size > 0) return `messages[${i}]: calls before it are not answered`
    if (message.role === "assistant") {
      const found = callsOf(message.tool_calls)
      if (typeof found === "string") return `messages[${i}]: ${found}`
      if (found.size === 0 && (typeof message.content !== "string" || message.content === "")) {
        return `messages[${i}]: an assistant message says nothing`
      }
      open = found
    } else if (message.role !== "user" && message.role !== "system") {
      return `messages[${i}]: unknown role`
    } else if (typeof message.content !== "string") {
      return `messages[${i}]: content is no text`
    }
  }
  if (open.size > 0) return "calls at the end are not answered"
  const last = messages.at(-1)
  if (last?.role === "user" || last?.role === "tool") return undefined
  return last?.prefix === true
    ? undefined
    : "the last message is neither a user's nor a tool's, nor a draft to go on with"
}

const callsOf = (value: unknown): Set<string> | string => {
  const ids = new Set<string>()
  if (value === undefined) return ids
  if (!Array.isArray(value) || value.length === 0) return "tool_calls is no list of calls"
  for (const call of value) {
    const id: unknown = call?.id
    const args: unknown = call?.function?.arguments
    const name: unknown = call?.function?.name
    if (typeof id !== "string" || id === "") return "a call has no id"
    if (ids.has(id)) return "two calls have one id"
    if (typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) return "a call has no valid name"
    if (typeof args !== "string" || !isObjectText(args)) return "the arguments of a call are no JSON object"
    ids.add(id)
  }
  return ids
}

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
