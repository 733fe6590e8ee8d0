/**
 * Messages of the AI SDK made from what a run has come to, for a page that is loaded anew.
 *
 * Law: it is the message that the SDK's own client makes of the run's whole stream.
 *
 * @since 0.1.0
 */
import type * as RunState from "../domain/RunState.js"
import * as AiSdk from "./AiSdk.js"
import type { ApprovalDescriptor, Chunk, MessageMetadata } from "./AiSdkChunks.js"

/**
 * Where a tool part stands, with the fields that belong to it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolPart {
  readonly type: `tool-${string}`
  readonly toolCallId: string
  readonly state:
    | "input-streaming"
    | "input-available"
    | "approval-requested"
    | "approval-responded"
    | "output-available"
    | "output-error"
    | "output-denied"
  readonly providerExecuted: true
  readonly toolMetadata: { readonly kind: string }
  readonly title?: string
  readonly input?: unknown
  readonly rawInput?: unknown
  readonly output?: unknown
  readonly errorText?: string
  readonly approval?: {
    readonly id: string
    readonly descriptor: ApprovalDescriptor
    readonly approved?: boolean
    readonly reason?: string
  }
}

/**
 * A part of a message.
 *
 * @since 0.1.0
 * @category models
 */
export type MessagePart =
  | { readonly type: "step-start" }
  | { readonly type: "text"; readonly text: string; readonly state: "streaming" | "done" }
  | { readonly type: "reasoning"; readonly id: string; readonly text: string; readonly state: "streaming" | "done" }
  | ToolPart

/**
 * A message as `useChat` takes it in `messages`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Message {
  readonly id: string
  readonly role: "user" | "assistant"
  readonly metadata?: Partial<MessageMetadata>
  readonly parts: ReadonlyArray<MessagePart>
}

/**
 * The message that a run has written so far.
 *
 * @since 0.1.0
 * @category conversions
 */
export const messageOf = (run: RunState.RunState): Message => {
  const [state, chunks] = AiSdk.replay(run)
  let id = ""
  let metadata: Partial<MessageMetadata> = {}
  const parts: Array<MessagePart> = []
  for (const chunk of [...chunks, ...AiSdk.close(state)]) {
    if (chunk.type === "start") id = chunk.messageId
    if ("messageMetadata" in chunk) metadata = { ...metadata, ...chunk.messageMetadata }
    apply(parts, chunk)
  }
  return { id, role: "assistant", metadata, parts }
}

const apply = (parts: Array<MessagePart>, chunk: Chunk): void => {
  switch (chunk.type) {
    case "start-step":
      parts.push({ type: "step-start" })
      return
    case "text-start":
      parts.push({ type: "text", text: "", state: "streaming" })
      return
    case "reasoning-start":
      parts.push({ type: "reasoning", id: chunk.id, text: "", state: "streaming" })
      return
    // Of a state that is replayed, only the last piece of text can be open.
    case "text-delta":
    case "reasoning-delta":
      last(parts, (part) => ({ ...part, text: part.text + chunk.delta }))
      return
    case "text-end":
    case "reasoning-end":
      last(parts, (part) => ({ ...part, state: "done" }))
      return
    case "tool-input-start": {
      const { title, toolCallId, toolMetadata, toolName } = chunk
      parts.push({
        type: `tool-${toolName}`,
        toolCallId,
        state: "input-streaming",
        providerExecuted: true,
        toolMetadata,
        ...(title !== undefined && { title })
      })
      return
    }
    default:
      if ("toolCallId" in chunk) tool(parts, chunk.toolCallId, toolChange(chunk))
  }
}

/** What a chunk about a call that is there changes of its part. */
const toolChange = (chunk: Chunk): Partial<ToolPart> => {
  switch (chunk.type) {
    case "tool-input-delta":
      return { rawInput: chunk.inputTextDelta }
    case "tool-input-available":
      return { state: "input-available", input: chunk.input }
    case "tool-input-error":
      return { state: "output-error", rawInput: chunk.input, errorText: chunk.errorText }
    case "tool-approval-request":
      return {
        state: "approval-requested",
        approval: { id: chunk.approvalId, descriptor: chunk.approvalDescriptor }
      }
    case "tool-output-available":
      return { state: "output-available", output: chunk.output }
    case "tool-output-error":
      return { state: "output-error", errorText: chunk.errorText }
    case "tool-output-denied":
      return { state: "output-denied" }
    default:
      return {}
  }
}

type TextPart = Extract<MessagePart, { readonly text: string }>

const last = (parts: Array<MessagePart>, change: (part: TextPart) => TextPart): void => {
  const part = parts.at(-1)
  if (part !== undefined && "text" in part) parts[parts.length - 1] = change(part)
}

const tool = (parts: Array<MessagePart>, toolCallId: string, change: Partial<ToolPart>): void => {
  const index = parts.findLastIndex((part) => "toolCallId" in part && part.toolCallId === toolCallId)
  const part = parts[index]
  if (part !== undefined && "toolCallId" in part) parts[index] = { ...part, ...change }
}

/**
 * A user's message, which is text alone.
 *
 * @since 0.1.0
 * @category conversions
 */
export const userMessage = (id: string, text: string): Message => ({
  id,
  role: "user",
  parts: [{ type: "text", text, state: "done" }]
})

/**
 * The text of a message's parts.
 *
 * @since 0.1.0
 * @category conversions
 */
export const textOf = (message: {
  readonly role: "user" | "assistant"
  readonly parts: ReadonlyArray<{ readonly type: string; readonly text?: string | undefined }>
}): string =>
  message.parts
    .flatMap(({ text, type }) => (type === "text" && text !== undefined ? [text] : []))
    .join(message.role === "user" ? "\n" : "")
