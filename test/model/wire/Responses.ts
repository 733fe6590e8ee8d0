/** What OpenAI's Responses interface says, event by event, and what it refuses. */
import * as Script from "../../../src/testing/UpstreamScript.js"

type Json = { readonly [key: string]: unknown }

export type Item =
  | { readonly reasoning: ReadonlyArray<string>; readonly encrypted?: string }
  | { readonly text: ReadonlyArray<string> }
  | { readonly refusal: ReadonlyArray<string> }
  | { readonly call: string; readonly name: string; readonly args: ReadonlyArray<string> }

export const usage = {
  input_tokens: 120,
  input_tokens_details: { cached_tokens: 64 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 16 },
  total_tokens: 160
}

/** The response object as it stands in every event that has one. */
const response = (more: Json): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 1_753_000_000,
  status: "in_progress",
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: "gpt-5-2025-08-07",
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: "medium", summary: "detailed" },
  safety_identifier: null,
  service_tier: "default",
  store: false,
  temperature: 1,
  text: { format: { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  usage: null,
  user: null,
  metadata: {},
  ...more
})

/** Numbers events as the server does. */
export const events = () => {
  let sequence_number = 0
  return (type: string, more: Json): Script.Step =>
    Script.raw(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...more })}\n\n`)
}

type Say = ReturnType<typeof events>

const begin = (say: Say): ReadonlyArray<Script.Step> => [
  say("response.created", { response: response({}) }),
  say("response.in_progress", { response: response({}) })
]

const itemSteps = (say: Say, item: Item, output_index: number): ReadonlyArray<Script.Step> => {
  const added = (value: Json) => say("response.output_item.added", { output_index, item: value })
  const done = (value: Json) => say("response.output_item.done", { output_index, item: value })
  if ("reasoning" in item) {
    const item_id = `rs_${output_index}`
    const whole = item.reasoning.join("")
    const summary_index = 0
    const base = { id: item_id, type: "reasoning", encrypted_content: item.encrypted ?? null }
    const place = { item_id, output_index, summary_index }
    return [
      added({ ...base, summary: [] }),
      ...(whole === ""
        ? []
        : [
            say("response.reasoning_summary_part.added", { ...place, part: { type: "summary_text", text: "" } }),
            ...item.reasoning.map((delta) =>
              say("response.reasoning_summary_text.delta", { ...place, delta, obfuscation: "xyz" })
            ),
            say("response.reasoning_summary_text.done", { ...place, text: whole }),
            say("response.reasoning_summary_part.done", { ...place, part: { type: "summary_text", text: whole } })
          ]),
      done({ ...base, summary: whole === "" ? [] : [{ type: "summary_text", text: whole }] })
    ]
  }
  if ("call" in item) {
    const item_id = `fc_${output_index}`
    const base = { id: item_id, type: "function_call", call_id: item.call, name: item.name }
    const whole = item.args.join("")
    return [
      added({ ...base, status: "in_progress", arguments: "" }),
      ...item.args.map((delta) => say("response.function_call_arguments.delta", { item_id, output_index, delta })),
      say("response.function_call_arguments.done", { item_id, output_index, arguments: whole }),
      done({ ...base, status: "completed", arguments: whole })
    ]
  }
  const item_id = `msg_${output_index}`
  const place = { item_id, output_index, content_index: 0 }
  const refused = "refusal" in item
  const pieces = refused ? item.refusal : item.text
  const part = (value: string) =>
    refused ? { type: "refusal", refusal: value } : { type: "output_text", annotations: [], logprobs: [], text: value }
  const message = { id: item_id, type: "message", role: "assistant" }
  return [
    added({ ...message, status: "in_progress", content: [] }),
    say("response.content_part.added", { ...place, part: part("") }),
    ...pieces.map((delta) =>
      refused
        ? say("response.refusal.delta", { ...place, delta })
        : say("response.output_text.delta", { ...place, delta, logprobs: [], obfuscation: "abc" })
    ),
    say("response.content_part.done", { ...place, part: part(pieces.join("")) }),
    done({ ...message, status: "completed", content: [part(pieces.join(""))] })
  ]
}

/** A whole turn of these items. */
export const turn = (items: ReadonlyArray<Item>, end: Json = {}): Script.Reply => {
  const say = events()
  const incomplete = "incomplete_details" in end
  return Script.reply([
    begin(say),
    ...items.map((item, index) => itemSteps(say, item, index)),
    say(incomplete ? "response.incomplete" : "response.completed", {
      response: response({ status: incomplete ? "incomplete" : "completed", usage, ...end })
    })
  ])
}

/** Some items, and then whatever comes instead of an end. */
export const begun = (
  items: ReadonlyArray<Item>,
  rest: (say: Say) => ReadonlyArray<Script.Step>,
  options?: Omit<Script.Reply, "steps">
): Script.Reply => {
  const say = events()
  return Script.reply([begin(say), ...items.map((item, index) => itemSteps(say, item, index)), rest(say)], options)
}

export const failed = (say: Say, code: string): Script.Step =>
  say("response.failed", {
    response: response({ status: "failed", error: { code, message: "The server had an error." } })
  })

/** Comes in long turns and is in no schema of the events. */
export const keepalive = (say: Say): Script.Step => say("keepalive", {})

export const refusal = (status: number, code: string | null, type: string, headers?: Script.Reply["headers"]) =>
  Script.body(
    status,
    "application/json",
    JSON.stringify({ error: { message: "No. sk-canary-77f0a1", type, param: null, code } }),
    headers
  )

const records = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])

export const inputOf = ({ body }: Pick<Script.UpstreamRequest, "body">): ReadonlyArray<Json> =>
  records((body as Json | undefined)?.input)

/** What the interface has against a request, `undefined` for nothing. */
export const objection = ({ body, headers, path }: Script.UpstreamRequest): string | undefined => {
  const { input, model, store, stream, tools } = (body ?? {}) as Json
  if (path !== "/v1/responses") return `there is nothing at ${path}`
  if (typeof headers.authorization !== "string" || !headers.authorization.startsWith("Bearer ")) return "no key"
  if (typeof model !== "string" || stream !== true || !Array.isArray(input)) return "a field is missing"
  for (const tool of records(tools)) {
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(tool.name))) return "a tool has an invalid name"
    if ((tool.parameters as Json | undefined)?.type !== "object") return "a tool has no schema of an object"
    if (tool.strict === true) return "a strict schema needs additionalProperties: false"
  }
  const open = new Set<unknown>()
  const ids = new Set<unknown>()
  for (const [i, item] of records(input).entries()) {
    if (typeof item.id === "string") {
      if (ids.has(item.id)) return `input[${i}]: duplicate item`
      ids.add(item.id)
    }
    switch (item.type) {
      case "reasoning": {
        if (store !== true && typeof item.encrypted_content !== "string") return `input[${i}]: reasoning is not stored`
        const next = records(input)[i + 1]
        if (next?.role !== "assistant" && next?.type !== "function_call" && next?.type !== "reasoning") {
          return `input[${i}]: reasoning without the item that it belongs to`
        }
        break
      }
      case "function_call":
        if (!/^.{1,64}$/.test(String(item.call_id))) return `input[${i}]: call_id is too long`
        if (open.has(item.call_id)) return `input[${i}]: two calls have one id`
        open.add(item.call_id)
        break
      case "function_call_output":
        if (!open.delete(item.call_id)) return `input[${i}]: answers no call`
        if (typeof item.output !== "string") return `input[${i}]: output is no text`
        break
      default: {
        if (!["user", "assistant", "system", "developer"].includes(String(item.role))) return `input[${i}]: no role`
        const isText = typeof item.content === "string" || records(item.content).length > 0
        if (!isText) return `input[${i}]: no content`
      }
    }
  }
  return open.size === 0 ? undefined : "a call is not answered"
}

/** A script whose requests are looked at as the interface would. */
export const strict =
  (script: (request: Script.UpstreamRequest) => Script.Reply) =>
  (request: Script.UpstreamRequest): Script.Reply => {
    const found = objection(request)
    return found === undefined
      ? script(request)
      : Script.body(
          400,
          "application/json",
          JSON.stringify({ error: { type: "invalid_request_error", message: found } })
        )
  }

export const lastUserText = (request: Script.UpstreamRequest): string => {
  const content = inputOf(request).findLast(({ role }) => role === "user")?.content
  return typeof content === "string"
    ? content
    : records(content)
        .map(({ text }) => String(text))
        .join("")
}
