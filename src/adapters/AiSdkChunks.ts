/**
 * The chunks of the AI SDK's UI message stream, as far as a run has something to say in them. Plain types and text, so
 * that nothing of the SDK is needed to write them.
 *
 * @since 0.1.0
 */
import type { EventOf, ToolKind, Usage } from "../domain/AgentEvent.js"
import type { RunStatus } from "../domain/RunStatus.js"

/**
 * The major version of the `ai` package that reads the stream. 7 knows chunks that 6 refuses.
 *
 * @since 0.1.0
 * @category models
 */
export type Version = 6 | 7

/**
 * The metadata of a message that a run wrote. `seq` is how far its stream has come, and names the place from which the
 * same message goes on after an approval. Times are epoch milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface MessageMetadata {
  readonly runId: string
  readonly conversationId: string
  readonly model: string
  readonly createdAt: number
  readonly seq?: number | undefined
  readonly status?: RunStatus | undefined
  readonly finishReason?: EventOf<"finish">["finishReason"] | undefined
  readonly usage?: Usage | undefined
  readonly timing?: EventOf<"finish">["timing"] | undefined
  readonly error?: { readonly code: string; readonly recoverable: boolean } | undefined
}

/**
 * What stands in `approval.descriptor` of a tool part: everything that a person needs to decide.
 *
 * @since 0.1.0
 * @category models
 */
export interface ApprovalDescriptor {
  readonly runId: string
  readonly reason: EventOf<"approval-request">["reason"]
  readonly input: unknown
  readonly preview: unknown
  readonly previewHash: string
  readonly expiresAt: number
  readonly cause?: EventOf<"approval-request">["cause"] | undefined
}

/**
 * One chunk. Those of type `data-…` are transient: an application gets them in `onData`, they are no part of a message.
 *
 * @since 0.1.0
 * @category models
 */
export type Chunk =
  | { readonly type: "start"; readonly messageId: string; readonly messageMetadata: MessageMetadata }
  | { readonly type: "start-step" | "finish-step" | "reset-step" }
  | { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; readonly id: string }
  | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
  | {
      readonly type: "tool-input-start"
      readonly toolCallId: string
      readonly toolName: string
      readonly providerExecuted: true
      readonly toolMetadata: { readonly kind: ToolKind }
      readonly title?: string
    }
  | { readonly type: "tool-input-delta"; readonly toolCallId: string; readonly inputTextDelta: string }
  | {
      readonly type: "tool-input-available"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly providerExecuted: true
      readonly title?: string
    }
  | {
      readonly type: "tool-input-error"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly errorText: string
      readonly providerExecuted: true
    }
  | {
      readonly type: "tool-approval-request"
      readonly approvalId: string
      readonly toolCallId: string
      readonly approvalDescriptor: ApprovalDescriptor
    }
  | {
      readonly type: "tool-approval-response"
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string
    }
  | { readonly type: "tool-output-available"; readonly toolCallId: string; readonly output: unknown }
  | { readonly type: "tool-output-error"; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: "tool-output-denied"; readonly toolCallId: string }
  | {
      readonly type: "data-run-status"
      readonly data: { readonly status: RunStatus; readonly reason?: string }
      readonly transient: true
    }
  | {
      readonly type: "data-tool-progress"
      readonly data: { readonly toolCallId: string; readonly text: string }
      readonly transient: true
    }
  | {
      readonly type: "data-model-retry"
      readonly data: { readonly retry: number; readonly delayMs: number; readonly code: string }
      readonly transient: true
    }
  | { readonly type: "message-metadata"; readonly messageMetadata: Partial<MessageMetadata> }
  | {
      readonly type: "finish"
      readonly finishReason: "stop" | "length" | "content-filter" | "tool-calls" | "other"
      readonly messageMetadata: Partial<MessageMetadata>
    }
  | { readonly type: "abort"; readonly reason?: string }
  | { readonly type: "error"; readonly errorText: string }

/**
 * The headers of a response that is such a stream.
 *
 * @since 0.1.0
 * @category encoding
 */
export const headers: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no"
}

/**
 * The text of chunks as server-sent events. The id stands with the last of them: whoever has it has all.
 *
 * @since 0.1.0
 * @category encoding
 */
export const encode = (chunks: ReadonlyArray<Chunk>, seq?: number): string => {
  let text = ""
  for (const [index, chunk] of chunks.entries()) {
    const id = seq !== undefined && index === chunks.length - 1 ? `id: ${seq}\n` : ""
    text += `${id}data: ${JSON.stringify(chunk)}\n\n`
  }
  return text
}

/**
 * The text that ends a stream which has said everything.
 *
 * @since 0.1.0
 * @category encoding
 */
export const done = "data: [DONE]\n\n"
