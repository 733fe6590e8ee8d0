/**
 * The port to a language model: one request in, a stream of parts out. Providers implement it, the agent loop uses it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { ModelFinishReason, Usage } from "../domain/AgentEvent.js"
import type { OfferedTool } from "../domain/RunInput.js"

/**
 * A call as the model made it. `argumentsText` is JSON of an object.
 *
 * @since 0.1.0
 * @category models
 */
export interface CallPart {
  readonly type: "tool-call"
  readonly toolCallId: string
  readonly toolName: string
  readonly argumentsText: string
}

/**
 * A message of the prompt. Every call of an assistant message is answered exactly once by the `tool` messages directly
 * behind it. `side` is what the provider wants back for its own turn (signatures, encrypted reasoning), as the same
 * provider gave it in `ModelFinish.side`.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string }
  | {
      readonly role: "assistant"
      readonly content: ReadonlyArray<{ readonly type: "text" | "reasoning"; readonly text: string } | CallPart>
      readonly side?: unknown
    }
  | {
      readonly role: "tool"
      readonly toolCallId: string
      readonly toolName: string
      readonly result: unknown
      readonly isError: boolean
    }

/**
 * What the loop asks of a model. With `continueDraft` the last message is an assistant draft that the model goes on
 * writing; it is only set for models with `continuesDraft`. `maxOutputTokens` is what is left of the run's budget for
 * the output of this turn; absent, the run has none.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelRequest {
  readonly runId: string
  readonly conversationId: string
  readonly attempt: number
  readonly iteration: number
  readonly messages: ReadonlyArray<ModelMessage>
  readonly tools: ReadonlyArray<OfferedTool>
  readonly enableThinking: boolean
  readonly continueDraft: boolean
  readonly maxOutputTokens?: number | undefined
}

/**
 * The model's turn is complete. A stream that ends without it is a truncation. `side` is opaque JSON that must go back
 * to the provider with this turn; it never enters an event.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelFinish {
  readonly type: "finish"
  readonly reason: ModelFinishReason
  readonly usage: Usage
  readonly side?: unknown
}

/**
 * A piece of a model's turn. `id` names a text or reasoning part within the turn; `call` names a call within the turn
 * (any text that is unique in it), `toolCallId` is the provider's own id when it gave one. A call's parts may
 * interleave with those of others. A call is complete with the turn.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelPart =
  | { readonly type: "text-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "reasoning-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "tool-call-start"; readonly call: string; readonly toolCallId?: string; readonly toolName: string }
  | { readonly type: "tool-call-delta"; readonly call: string; readonly delta: string }
  | ModelFinish

/**
 * Why a model's turn failed.
 *
 * - `code`: a stable word for programs, such as `rate_limited`, `overloaded`, `truncated`, `timeout`, `unauthorized`,
 *   `bad_request`, `connection`, `invalid_response`, `content_filter`
 * - `retryable`: the same request may succeed in a moment, if none of its output was published
 * - `recoverable`: a person may continue the run later
 * - `message`: readable, without secrets and without the upstream's raw body
 *
 * @since 0.1.0
 * @category errors
 */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  code: Schema.String,
  message: Schema.String,
  retryable: Schema.Boolean,
  recoverable: Schema.Boolean,
  retryAfterMs: Schema.optional(Schema.Number)
}) {}

/**
 * A model, ready to be called. Interrupting the stream ends the request and closes its socket.
 *
 * - `contextWindow`: tokens that a request may hold, a million if not known; longer histories are compacted
 * - `continuesDraft`: whether a request may end with an unfinished assistant message
 * - `price`: US dollars per million tokens
 * - `provider`, `name`: who serves it, in the words of OpenTelemetry's `gen_ai.provider.name`, and what it is called
 *   there; for traces alone
 *
 * @since 0.1.0
 * @category models
 */
export interface Model {
  readonly stream: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  readonly contextWindow?: number | undefined
  readonly continuesDraft?: boolean | undefined
  readonly price?: Price | undefined
  readonly provider?: string | undefined
  readonly name?: string | undefined
}

/**
 * US dollars per million tokens.
 *
 * @since 0.1.0
 * @category models
 */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number | undefined
}
