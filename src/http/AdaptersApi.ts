/**
 * The contract of the endpoints that speak other protocols: what clients of those send, and where. Safe for browsers.
 *
 * @since 0.1.0
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import * as RunError from "../domain/RunError.js"
import { CancelResult, StartBody } from "./RunsSchemas.js"

const summary = (text: string, description = text) => OpenApi.annotations({ summary: text, description })
const stream = (description: string) =>
  HttpApiSchema.Text({ contentType: "text/event-stream" }).annotations({ description })
const NoContent = Schema.Void.annotations(HttpApiSchema.annotations({ status: 204 }))

const runPath = Schema.Struct({ runId: Schema.String })

/** A client's own name for a thread of messages. */
const name = Schema.String.pipe(Schema.minLength(1), Schema.maxLength(256))

const Approval = Schema.Struct({
  id: Schema.String,
  approved: Schema.optional(Schema.Boolean),
  reason: Schema.optional(Schema.String.pipe(Schema.maxLength(1000))),
  descriptor: Schema.optional(Schema.Unknown)
})

const UiMessagePart = Schema.Struct({
  type: Schema.String,
  text: Schema.optional(Schema.String),
  state: Schema.optional(Schema.String),
  approval: Schema.optional(Approval)
})

/**
 * A message as the AI SDK keeps it. Only its text counts, and the answers to approval requests of the last one.
 *
 * @since 0.1.0
 * @category models
 */
export const UiMessage = Schema.Struct({
  id: Schema.optional(Schema.String),
  role: Schema.Literal("user", "assistant"),
  parts: Schema.Array(UiMessagePart),
  metadata: Schema.optional(Schema.Unknown)
}).annotations({ identifier: "UiMessage" })
/**
 * @since 0.1.0
 * @category models
 */
export type UiMessage = typeof UiMessage.Type

/**
 * What `useChat` sends: the chat's id, its messages (or the last one alone, as `message`), and why. The other fields are
 * those that start a run.
 *
 * @since 0.1.0
 * @category models
 */
export const UiChatBody = Schema.Struct({
  ...Struct.omit(StartBody.fields, "message", "messages", "conversationId", "background"),
  id: name,
  messages: Schema.optional(Schema.NonEmptyArray(UiMessage)),
  message: Schema.optional(UiMessage),
  trigger: Schema.optional(Schema.Literal("submit-message", "regenerate-message")),
  messageId: Schema.optional(Schema.NullOr(Schema.String))
}).annotations({ identifier: "UiChatBody" })

const chatPath = Schema.Struct({ chatId: Schema.String })
const version = Schema.Struct({
  version: Schema.optional(
    Schema.Union(Schema.String, Schema.Array(Schema.String)).annotations({
      description: "The major version of the `ai` package that reads the answer.",
      jsonSchema: { type: "string", enum: ["6", "7"], default: "6" }
    })
  )
})
const UiStream = stream("The run as a UI message stream of the AI SDK.")

/**
 * The endpoints that `DefaultChatTransport` of the AI SDK talks to.
 *
 * @since 0.1.0
 * @category api
 */
export const aiSdk = HttpApiGroup.make("aiSdk")
  .add(
    HttpApiEndpoint.post("chat", "/adapters/ai-sdk/chat")
      .setUrlParams(version)
      .setPayload(UiChatBody)
      .addSuccess(UiStream)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .addError(RunError.Compacted, { status: 410 })
      .addError(RunError.Unprocessable, { status: 422 })
      .annotateContext(
        summary("Send a message, an approval, or regenerate the last answer, and watch what comes of it")
      )
  )
  .add(
    HttpApiEndpoint.get("messages", "/adapters/ai-sdk/chat/:chatId")
      .setPath(chatPath)
      .addSuccess(Schema.Struct({ id: Schema.String, messages: Schema.Array(Schema.Unknown) }))
      .annotateContext(summary("The messages of a chat, for a page that is loaded anew"))
  )
  .add(
    HttpApiEndpoint.get("stream", "/adapters/ai-sdk/chat/:chatId/stream")
      .setPath(chatPath)
      .setUrlParams(version)
      .addSuccess(UiStream)
      .addSuccess(NoContent)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Compacted, { status: 410 })
      .annotateContext(summary("Watch the chat's last answer from its beginning; 204 when nothing is left to watch"))
  )
  .add(
    HttpApiEndpoint.post("cancel", "/adapters/ai-sdk/chat/:chatId/cancel")
      .setPath(chatPath)
      .addSuccess(CancelResult)
      .addSuccess(NoContent)
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("Stop the chat's last answer; 204 when there is none"))
  )

const AgUiMessage = Schema.Struct({
  id: Schema.String,
  role: Schema.String,
  content: Schema.optional(Schema.Unknown)
})

const AgUiResume = Schema.Struct({
  interruptId: Schema.String,
  status: Schema.Literal("resolved", "cancelled"),
  payload: Schema.optional(Schema.Unknown)
})

/**
 * What an AG-UI client sends: the thread, its own name for the run, messages of which the last is the user's, or answers
 * to interrupts. `forwardedProps` may have the fields that start a run.
 *
 * @since 0.1.0
 * @category models
 */
export const AgUiBody = Schema.Struct({
  threadId: name,
  runId: name,
  messages: Schema.Array(AgUiMessage),
  forwardedProps: Schema.optional(Schema.NullOr(Schema.Unknown)),
  resume: Schema.optional(Schema.Array(AgUiResume))
}).annotations({ identifier: "AgUiBody" })

/**
 * The fields of `forwardedProps` that start a run.
 *
 * @since 0.1.0
 * @category models
 */
export const AgUiProps = Schema.Struct(
  Struct.omit(StartBody.fields, "message", "messages", "conversationId", "background")
)

const AgUiStream = stream("The run as events of AG-UI.")
const parameter = (description: string) =>
  Schema.optional(Schema.Union(Schema.String, Schema.Array(Schema.String)).annotations({ description }))
const clientRunId = parameter("Your name for the run.")

/**
 * The endpoints that AG-UI clients talk to.
 *
 * @since 0.1.0
 * @category api
 */
export const agUi = HttpApiGroup.make("agUi")
  .add(
    HttpApiEndpoint.post("run", "/adapters/ag-ui")
      .setPayload(AgUiBody)
      .addSuccess(AgUiStream)
      .addError(RunError.Conflict, { status: 409 })
      .addError(RunError.Compacted, { status: 410 })
      .addError(RunError.Unprocessable, { status: 422 })
      .annotateContext(summary("Run the agent for the thread's last message, or answer what it asked"))
  )
  .add(
    HttpApiEndpoint.get("events", "/adapters/ag-ui/:runId/events")
      .setPath(runPath)
      .setUrlParams(
        Schema.Struct({
          after: parameter("The id of the last event that you have; `Last-Event-ID` wins."),
          threadId: parameter("Your name for the thread."),
          clientRunId
        })
      )
      .addSuccess(AgUiStream)
      .addError(RunError.InvalidCursor, { status: 400 })
      .addError(RunError.Compacted, { status: 410 })
      .annotateContext(summary("Watch a run, behind `Last-Event-ID` or with all messages of its thread first"))
  )
  .add(
    HttpApiEndpoint.get("thread", "/adapters/ag-ui/threads/:threadId/events")
      .setPath(Schema.Struct({ threadId: Schema.String }))
      .setUrlParams(Schema.Struct({ clientRunId }))
      .addSuccess(AgUiStream)
      .addSuccess(NoContent)
      .addError(RunError.Compacted, { status: 410 })
      .annotateContext(summary("Watch the thread's last run, with all messages first; 204 when it has none"))
  )
  .add(
    HttpApiEndpoint.post("cancel", "/adapters/ag-ui/:runId/cancel")
      .setPath(runPath)
      .addSuccess(CancelResult)
      .annotateContext(summary("Stop a run"))
  )
  .addError(RunError.NotFound, { status: 404 })

/**
 * The endpoint that clients of Durable Streams read a run's log from. `HEAD` answers where it ends.
 *
 * @since 0.1.0
 * @category api
 */
export const durableStreams = HttpApiGroup.make("durableStreams").add(
  HttpApiEndpoint.get("read", "/adapters/durable-streams/:runId")
    .setPath(runPath)
    .setUrlParams(
      Schema.Struct({
        offset: parameter("The last `Stream-Next-Offset`; `-1`, the default, is the beginning, `now` the end."),
        live: parameter("`long-poll` or `sse`: wait for what comes."),
        cursor: parameter("The last `Stream-Cursor`.")
      })
    )
    .addSuccess(Schema.Array(Schema.Unknown).annotations({ description: "Envelopes; an SSE stream with `live=sse`." }))
    .addSuccess(NoContent)
    .addError(RunError.InvalidCursor, { status: 400 })
    .addError(RunError.NotFound, { status: 404 })
    .addError(RunError.Compacted, { status: 410 })
    .annotateContext(summary("Read a run's log behind an offset, as it stands or live"))
)
