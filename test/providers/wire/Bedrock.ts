/** What Amazon Bedrock's ConverseStream says: frames of its binary event stream, the usage behind the end. */
import { EventStreamCodec } from "@smithy/eventstream-codec"
import { fromUtf8, toUtf8 } from "@smithy/util-utf8"
import * as Script from "../../../src/testing/UpstreamScript.js"

type Json = { readonly [key: string]: unknown }

const codec = new EventStreamCodec(toUtf8, fromUtf8)

const frame = (headers: Readonly<Record<string, string>>, body: Json): Script.Step =>
  Script.raw(
    codec.encode({
      headers: Object.fromEntries(
        Object.entries({ ...headers, ":content-type": "application/json" }).map(([name, value]) => [
          name,
          { type: "string", value }
        ])
      ),
      body: new TextEncoder().encode(JSON.stringify({ ...body, p: "abcdefgh" }))
    })
  )

export const event = (type: string, body: Json): Script.Step =>
  frame({ ":message-type": "event", ":event-type": type }, body)

export const exception = (type: string): Script.Step =>
  frame({ ":message-type": "exception", ":exception-type": type }, { message: "No. wJalr-canary" })

export type Block =
  | { readonly thinking: ReadonlyArray<string>; readonly signature: string }
  | { readonly text: ReadonlyArray<string> }
  | { readonly call: string; readonly name: string; readonly args: ReadonlyArray<string> }

const blockSteps = (block: Block, contentBlockIndex: number): ReadonlyArray<Script.Step> => {
  const delta = (delta: Json) => event("contentBlockDelta", { contentBlockIndex, delta })
  const stop = event("contentBlockStop", { contentBlockIndex })
  if ("thinking" in block) {
    return [
      ...block.thinking.map((text) => delta({ reasoningContent: { text } })),
      delta({ reasoningContent: { signature: block.signature } }),
      stop
    ]
  }
  if ("text" in block) return [...block.text.map((text) => delta({ text })), stop]
  return [
    event("contentBlockStart", {
      contentBlockIndex,
      start: { toolUse: { toolUseId: block.call, name: block.name } }
    }),
    ...block.args.map((input) => delta({ toolUse: { input } })),
    stop
  ]
}

export const end = (stopReason: string): ReadonlyArray<Script.Step> => [
  event("messageStop", { stopReason }),
  event("metadata", {
    metrics: { latencyMs: 1200 },
    usage: { inputTokens: 120, outputTokens: 40, totalTokens: 160, cacheReadInputTokens: 64, cacheWriteInputTokens: 0 }
  })
]

/** Some blocks, and then whatever comes instead of an end. */
export const begun = (
  blocks: ReadonlyArray<Block>,
  rest: ReadonlyArray<Script.Step>,
  options?: Omit<Script.Reply, "steps">
): Script.Reply =>
  Script.reply([event("messageStart", { role: "assistant" }), blocks.flatMap(blockSteps), rest], {
    headers: { "content-type": "application/vnd.amazon.eventstream" },
    ...options
  })

/** A whole turn of these blocks. */
export const turn = (blocks: ReadonlyArray<Block>, options?: Omit<Script.Reply, "steps">): Script.Reply =>
  begun(blocks, end(blocks.some((block) => "call" in block) ? "tool_use" : "end_turn"), options)

export const refused = (status: number, type: string): Script.Reply =>
  Script.body(status, "application/json", JSON.stringify({ message: "No. wJalr-canary" }), { "x-amzn-errortype": type })
