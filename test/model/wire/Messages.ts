/** What Anthropic's Messages interface says, event by event, and what it refuses. */
import * as Script from "../../../src/testing/UpstreamScript.js"

type Json = { readonly [key: string]: unknown }

export type Block =
  | { readonly thinking: ReadonlyArray<string>; readonly signature: string }
  | { readonly redacted: string }
  | { readonly text: ReadonlyArray<string> }
  | { readonly call: string; readonly name: string; readonly args: ReadonlyArray<string> }

export const event = (type: string, more: Json = {}): Script.Step =>
  Script.raw(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)

export const ping: Script.Step = event("ping")

/** What was read from the cache and written to it comes beside the input. */
export const start: Script.Step = event("message_start", {
  message: {
    id: "msg_01XFDUDYJgAACzvnptvVoYEL",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5-20250929",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 20,
      cache_creation_input_tokens: 36,
      cache_read_input_tokens: 64,
      cache_creation: { ephemeral_5m_input_tokens: 36, ephemeral_1h_input_tokens: 0 },
      output_tokens: 1,
      service_tier: "standard"
    }
  }
})

const blockSteps = (block: Block, index: number): ReadonlyArray<Script.Step> => {
  const begin = (content_block: Json) => event("content_block_start", { index, content_block })
  const delta = (value: Json) => event("content_block_delta", { index, delta: value })
  const stop = event("content_block_stop", { index })
  if ("thinking" in block) {
    return [
      begin({ type: "thinking", thinking: "", signature: "" }),
      ...block.thinking.map((thinking) => delta({ type: "thinking_delta", thinking })),
      delta({ type: "signature_delta", signature: block.signature }),
      stop
    ]
  }
  if ("redacted" in block) return [begin({ type: "redacted_thinking", data: block.redacted }), stop]
  if ("text" in block) {
    return [begin({ type: "text", text: "" }), ...block.text.map((text) => delta({ type: "text_delta", text })), stop]
  }
  return [
    begin({ type: "tool_use", id: block.call, name: block.name, input: {}, caller: { type: "direct" } }),
    delta({ type: "input_json_delta", partial_json: "" }),
    ...block.args.map((partial_json) => delta({ type: "input_json_delta", partial_json })),
    stop
  ]
}

export const end = (stop_reason: string): ReadonlyArray<Script.Step> => [
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 40 } }),
  event("message_stop")
]

/** Some blocks, and then whatever comes instead of an end. */
export const begun = (
  blocks: ReadonlyArray<Block>,
  rest: ReadonlyArray<Script.Step>,
  options?: Omit<Script.Reply, "steps">
): Script.Reply => Script.reply([start, ping, blocks.flatMap(blockSteps), rest], options)

/** A whole turn of these blocks. */
export const turn = (blocks: ReadonlyArray<Block>, stopReason?: string): Script.Reply =>
  begun(blocks, end(stopReason ?? (blocks.some((block) => "call" in block) ? "tool_use" : "end_turn")))

const error = (type: string, message = "No. sk-canary-77f0a1") => ({ type, message })

export const errorEvent = (type: string): Script.Step => event("error", { error: error(type) })

export const refusal = (
  status: number,
  type: string,
  headers?: Script.Reply["headers"],
  message?: string
): Script.Reply =>
  Script.body(
    status,
    "application/json",
    JSON.stringify({ type: "error", error: error(type, message), request_id: "req_1" }),
    headers
  )

const records = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

export const messagesOf = ({ body }: Pick<Script.UpstreamRequest, "body">): ReadonlyArray<Json> =>
  records((body as Json | undefined)?.messages)

const isThinking = ({ type }: Json): boolean => type === "thinking" || type === "redacted_thinking"

/** What the interface has against a request, `undefined` for nothing. */
export const objection = ({ body, headers, path }: Script.UpstreamRequest): string | undefined => {
  const { max_tokens, messages, model, stream, system, thinking, tools } = (body ?? {}) as Json
  if (path !== "/v1/messages") return `there is nothing at ${path}`
  if (headers["x-api-key"] === undefined || headers["anthropic-version"] !== "2023-06-01") return "a header is missing"
  if (typeof model !== "string" || stream !== true || typeof max_tokens !== "number") return "a field is missing"
  if (records(system).some(({ text }) => text === "")) return "system is empty"
  for (const tool of records(tools)) {
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(String(tool.name))) return "a tool has an invalid name"
    if ((tool.input_schema as Json | undefined)?.type !== "object") return "a tool has no schema of an object"
  }
  const thinks = ["enabled", "adaptive"].includes(String((thinking as Json | undefined)?.type))
  if (thinks && Number((thinking as Json).budget_tokens ?? 1_024) >= max_tokens) return "max_tokens is too small"
  const all = records(messages)
  const lastQuestion = all.findLastIndex(
    ({ content, role }) => role === "user" && !records(content).some(({ type }) => type === "tool_result")
  )
  let open = new Set<unknown>()
  for (const [i, { content, role }] of all.entries()) {
    if (role !== (i % 2 === 0 ? "user" : "assistant")) return `messages[${i}]: roles must alternate`
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : records(content)
    if (blocks.length === 0) return `messages[${i}]: no content`
    for (const { text, type } of blocks) {
      if (type === "text" && String(text).trim() === "") return `messages[${i}]: text must not be blank`
    }
    const calls = blocks.filter(({ type }) => type === "tool_use")
    if (role === "assistant") {
      if (calls.length > 0 && records(tools).length === 0) return "calls without tools"
      for (const { id } of calls) if (!/^[a-zA-Z0-9_-]+$/.test(String(id))) return `messages[${i}]: invalid id`
      for (const block of blocks.filter(isThinking)) {
        if (block.type === "thinking" && !String(block.signature).startsWith("sig:")) return "invalid signature"
        if (block.type === "thinking" && block.signature !== `sig:${String(block.thinking)}`) return "invalid signature"
      }
      const [first] = blocks
      if (thinks && i > lastQuestion && calls.length > 0 && (first === undefined || !isThinking(first))) {
        return `messages[${i}]: expected thinking, but found ${String(first?.type)}`
      }
    } else {
      const answered = blocks.flatMap(({ tool_use_id, type }) => (type === "tool_result" ? [tool_use_id] : []))
      if (answered.length !== open.size || answered.some((id) => !open.delete(id))) {
        return `messages[${i}]: calls are not answered exactly once`
      }
    }
    open = new Set(calls.map(({ id }) => id))
    if (open.size !== calls.length) return `messages[${i}]: two calls have one id`
  }
  return open.size === 0 && all.at(-1)?.role === "user" ? undefined : "the last message must be a user's"
}

/** A script whose requests are looked at as the interface would. */
export const strict =
  (script: (request: Script.UpstreamRequest) => Script.Reply) =>
  (request: Script.UpstreamRequest): Script.Reply => {
    const found = objection(request)
    if (found === undefined) return script(request)
    return Script.body(
      400,
      "application/json",
      JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: found } })
    )
  }

export const lastUserText = (request: Script.UpstreamRequest): string => {
  const last = messagesOf(request).findLast(
    ({ content, role }) => role === "user" && records(content).some(({ type }) => type === "text")
  )
  return records(last?.content)
    .map(({ text }) => String(text ?? ""))
    .join("")
}
