/**
 * The contract of the server as one value: its calls, their bodies, answers and errors. A server implements it, the
 * OpenAPI document and typed clients are derived from it. Safe for browsers.
 *
 * @since 0.1.0
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { AgentRunCheckpoint } from "../domain/Checkpoint.js"
import { Envelope } from "../domain/Envelope.js"
import { CurrentUser } from "../domain/Owner.js"
import * as RunError from "../domain/RunError.js"
import * as Adapters from "./AdaptersApi.js"
import * as Body from "./RunsSchemas.js"

/**
 * The request is not what the contract says; `path` names the field.
 *
 * @since 0.1.0
 * @category errors
 */
export class BadRequest extends Schema.TaggedError<BadRequest>()("BadRequest", {
  message: Schema.String,
  path: Schema.optional(Schema.String)
}) {}

/**
 * No credential, or one that is not known.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", { message: Schema.String }) {}

/**
 * The request comes from a foreign page, or was sent to a foreign name.
 *
 * @since 0.1.0
 * @category errors
 */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", { message: Schema.String }) {}

/**
 * The resource exists and does not know this method; the `Allow` header names those it knows.
 *
 * @since 0.1.0
 * @category errors
 */
export class MethodNotAllowed extends Schema.TaggedError<MethodNotAllowed>()("MethodNotAllowed", {
  message: Schema.String,
  allow: Schema.Array(Schema.String)
}) {}

/**
 * The body, or one of its messages, is longer than this server takes. `limit` is the key of the configuration.
 *
 * @since 0.1.0
 * @category errors
 */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()("PayloadTooLarge", {
  message: Schema.String,
  path: Schema.optional(Schema.String),
  limit: Schema.optional(Schema.String)
}) {}

/**
 * The body is no JSON by its headers.
 *
 * @since 0.1.0
 * @category errors
 */
export class UnsupportedMediaType extends Schema.TaggedError<UnsupportedMediaType>()("UnsupportedMediaType", {
  message: Schema.String
}) {}

/**
 * The server failed. What happened is in its log, not here.
 *
 * @since 0.1.0
 * @category errors
 */
export class InternalError extends Schema.TaggedError<InternalError>()("InternalError", { message: Schema.String }) {}

/**
 * The name of the cookie that a signed-in page holds.
 *
 * @since 0.1.0
 * @category constants
 */
export const sessionCookie = "runlet_session"

/**
 * Finds out on whose behalf a request acts: by a bearer token, or by the cookie of a signed-in page.
 *
 * @since 0.1.0
 * @category middleware
 * @effect-expect-leaking HttpServerRequest ParsedSearchParams RouteContext
 */
export class Authorization extends HttpApiMiddleware.Tag<Authorization>()("runlet/Authorization", {
  failure: Schema.Union(
    Unauthorized.annotations(HttpApiSchema.annotations({ status: 401 })),
    RunError.Unavailable.annotations(HttpApiSchema.annotations({ status: 503 }))
  ),
  provides: CurrentUser,
  security: {
    bearer: HttpApiSecurity.bearer,
    cookie: HttpApiSecurity.apiKey({ in: "cookie", key: sessionCookie })
  }
}) {}

const text = (description: string, jsonSchema: object = { type: "string" }) =>
  Schema.optional(Schema.Union(Schema.String, Schema.Array(Schema.String)).annotations({ description, jsonSchema }))

const paging = {
  limit: text("How many items at most.", { type: "integer", minimum: 1, maximum: 200, default: 50 }),
  cursor: text("`nextCursor` of the page before.")
}
const runPath = Schema.Struct({ runId: Schema.String })
const conversationPath = Schema.Struct({ conversationId: Schema.String })
const NoContent = Schema.Void.annotations(HttpApiSchema.annotations({ status: 204 }))
const EventStream = HttpApiSchema.Text({ contentType: "text/event-stream" }).annotations({
  description:
    "The run's log as a stream of envelopes, then live until the run ends. `Accept: application/x-ndjson` gives one envelope a line."
})
const AcceptedLater = Body.Accepted.annotations(
  HttpApiSchema.annotations({ status: 202, description: "The run works without a viewer." })
)

const summary = (text: string, description = text) => OpenApi.annotations({ summary: text, description })

const streamHeaders = Schema.Struct({
  accept: Schema.optional(Schema.String),
  prefer: Schema.optional(
    Schema.String.annotations({ description: "`respond-async` answers 202 at once instead of a stream." })
  ),
  "idempotency-key": Schema.optional(
    Schema.String.annotations({ description: "The same key and body from the same user is the same run." })
  ),
  traceparent: Schema.optional(Schema.String)
})

const starting = <Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setHeaders(streamHeaders)
    .setPayload(Body.ChatBody)
    .addSuccess(EventStream)
    .addSuccess(AcceptedLater)
    .addError(RunError.InvalidCursor, { status: 400 })
    .addError(RunError.NotFound, { status: 404 })
    .addError(RunError.Conflict, { status: 409 })
    .addError(RunError.Compacted, { status: 410 })
    .addError(RunError.Unprocessable, { status: 422 })

/**
 * Starting runs, and going on with them.
 *
 * @since 0.1.0
 * @category api
 */
export class ChatGroup extends HttpApiGroup.make("chat")
  .add(starting("chat", "/chat").annotateContext(summary("Start a run, or resume one, and watch it")))
  .add(starting("stream", "/api/agent/stream").annotateContext(summary("The same as POST /chat")))
  .add(
    HttpApiEndpoint.get("models", "/models")
      .addSuccess(Schema.Struct({ items: Schema.Array(Body.ModelItem) }))
      .annotateContext(summary("The models that a run may ask for"))
  )
  .middleware(Authorization) {}

/**
 * Everything about one run.
 *
 * @since 0.1.0
 * @category api
 */
export class RunsGroup extends HttpApiGroup.make("runs")
  .add(
    HttpApiEndpoint.get("list", "/runs")
      .setUrlParams(
        Schema.Struct({
          ...paging,
          conversationId: text("Only runs of this conversation."),
          status: text("Only runs in this state.", {
            type: "string",
            enum: ["queued", "running", "streaming", "waiting_approval", "completed", "cancelled", "failed"]
          })
        })
      )
      .addSuccess(Body.page(Body.RunSummary))
      .annotateContext(summary("The caller's runs, newest first"))
  )
  .add(
    HttpApiEndpoint.get("get", "/runs/:runId")
      .setPath(runPath)
      .addSuccess(Body.Snapshot)
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("The run as it stands: all that a page needs after a reload"))
  )
  .add(
    HttpApiEndpoint.del("remove", "/runs/:runId")
      .setPath(runPath)
      .addSuccess(NoContent)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .annotateContext(summary("Remove an ended run and its log"))
  )
  .add(
    HttpApiEndpoint.get("events", "/runs/:runId/events")
      .setPath(runPath)
      .setUrlParams(
        Schema.Struct({
          after: text("The seq of the last event you applied.", { type: "integer", minimum: 0, default: 0 })
        })
      )
      .setHeaders(
        Schema.Struct({
          accept: Schema.optional(Schema.String),
          "last-event-id": Schema.optional(Schema.String.annotations({ description: "Wins over `after`." }))
        })
      )
      .addSuccess(EventStream)
      .addSuccess(NoContent)
      .addError(RunError.InvalidCursor, { status: 400 })
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Compacted, { status: 410 })
      .annotateContext(
        summary("Watch a run", "Only a view: it never starts or restarts work. 204 behind the last event.")
      )
  )
  .add(
    HttpApiEndpoint.post("cancel", "/runs/:runId/cancel")
      .setPath(runPath)
      .setPayload(Body.CancelBody)
      .addSuccess(Body.CancelResult)
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("Stop a run", "Answers once the run has ended, with the state it ended in."))
  )
  .add(
    HttpApiEndpoint.post("decide", "/runs/:runId/approvals/:approvalId")
      .setPath(Schema.Struct({ runId: Schema.String, approvalId: Schema.String }))
      .setPayload(Body.DecideBody)
      .addSuccess(Body.DecideResult)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .addError(RunError.Unprocessable, { status: 422 })
      .annotateContext(summary("Answer an approval request"))
  )
  .add(
    HttpApiEndpoint.post("regenerate", "/runs/:runId/regenerate")
      .setPath(runPath)
      .setHeaders(streamHeaders)
      .setPayload(Body.RegenerateBody)
      .addSuccess(EventStream)
      .addSuccess(AcceptedLater)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .addError(RunError.Compacted, { status: 410 })
      .addError(RunError.Unprocessable, { status: 422 })
      .annotateContext(summary("Answer the last user message again, as a new run"))
  )
  .add(
    HttpApiEndpoint.post("resume", "/runs/:runId/resume")
      .setPath(runPath)
      .setHeaders(streamHeaders)
      .setPayload(Body.ResumeRunBody)
      .addSuccess(EventStream)
      .addSuccess(AcceptedLater)
      .addError(RunError.InvalidCursor, { status: 400 })
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .annotateContext(summary("Go on with a run that failed recoverably, or watch it on"))
  )
  .add(
    HttpApiEndpoint.get("checkpoints", "/runs/:runId/checkpoints")
      .setPath(runPath)
      .addSuccess(Body.page(Body.CheckpointItem))
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("The recoverable boundaries of a run"))
  )
  .add(
    HttpApiEndpoint.get("checkpoint", "/runs/:runId/checkpoints/:seq")
      .setPath(Schema.Struct({ runId: Schema.String, seq: Schema.String }))
      .addSuccess(AgentRunCheckpoint)
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("One boundary with the state to go on from"))
  )
  .add(
    HttpApiEndpoint.get("trace", "/runs/:runId/trace")
      .setPath(runPath)
      .addSuccess(HttpApiSchema.Text({ contentType: "application/x-ndjson" }))
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Compacted, { status: 410 })
      .annotateContext(summary("The run so far as JSON Lines: a header, then every envelope"))
  )
  .middleware(Authorization) {}

/**
 * The threads that runs belong to.
 *
 * @since 0.1.0
 * @category api
 */
export class ConversationsGroup extends HttpApiGroup.make("conversations")
  .add(
    HttpApiEndpoint.get("list", "/conversations")
      .setUrlParams(Schema.Struct(paging))
      .addSuccess(Body.page(Body.ConversationItem))
      .annotateContext(summary("The caller's conversations, newest first"))
  )
  .add(
    HttpApiEndpoint.get("get", "/conversations/:conversationId")
      .setPath(conversationPath)
      .addSuccess(
        Schema.Struct({
          conversationId: Schema.String,
          title: Schema.String,
          messages: Schema.Array(Body.MessageItem)
        })
      )
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("The messages of a conversation"))
  )
  .add(
    HttpApiEndpoint.patch("rename", "/conversations/:conversationId")
      .setPath(conversationPath)
      .setPayload(Body.RenameBody)
      .addSuccess(NoContent)
      .addError(RunError.NotFound, { status: 404 })
      .annotateContext(summary("Give a conversation another title"))
  )
  .add(
    HttpApiEndpoint.del("remove", "/conversations/:conversationId")
      .setPath(conversationPath)
      .addSuccess(NoContent)
      .addError(RunError.NotFound, { status: 404 })
      .addError(RunError.Conflict, { status: 409 })
      .annotateContext(summary("Remove a conversation with all its runs"))
  )
  .middleware(Authorization) {}

const Health = Schema.Struct({ status: Schema.Literal("ok") })

/**
 * What may be asked without a credential.
 *
 * @since 0.1.0
 * @category api
 */
export class ServerGroup extends HttpApiGroup.make("server")
  .add(
    HttpApiEndpoint.get("health", "/healthz").addSuccess(Health).annotateContext(summary("Whether the process lives"))
  )
  .add(
    HttpApiEndpoint.get("ready", "/readyz")
      .addSuccess(Health)
      .annotateContext(summary("Whether new work is accepted and the store answers"))
  )
  .add(
    HttpApiEndpoint.post("signIn", "/session")
      .setPayload(Body.SessionBody)
      .addSuccess(NoContent)
      .addError(Unauthorized, { status: 401 })
      .annotateContext(summary("Trade a token for the cookie of the page"))
  )
  .add(
    HttpApiEndpoint.del("signOut", "/session").addSuccess(NoContent).annotateContext(summary("Give the cookie back"))
  ) {}

/**
 * What an operator reads. It holds no content and no ids, but tells how much is done and spent, so it wants a credential
 * like everything else.
 *
 * @since 0.1.0
 * @category api
 */
export class MetricsGroup extends HttpApiGroup.make("metrics")
  .add(
    HttpApiEndpoint.get("metrics", "/metrics")
      .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }))
      .annotateContext(summary("Figures for Prometheus"))
  )
  .middleware(Authorization) {}

/**
 * What the AI SDK's own client talks to.
 *
 * @since 0.1.0
 * @category api
 */
export class AiSdkGroup extends Adapters.aiSdk.middleware(Authorization) {}

/**
 * What AG-UI clients talk to.
 *
 * @since 0.1.0
 * @category api
 */
export class AgUiGroup extends Adapters.agUi.middleware(Authorization) {}

/**
 * What clients of Durable Streams read from.
 *
 * @since 0.1.0
 * @category api
 */
export class DurableStreamsGroup extends Adapters.durableStreams.middleware(Authorization) {}

/** What the platform adds by itself and this server never sends: it says `BadRequest` instead. */
const unsent = ["HttpApiDecodeError", "Issue", "PropertyKey"]

const isUnsent = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  "$ref" in value &&
  unsent.some((name) => value.$ref === `#/components/schemas/${name}`)

const withoutUnsent = (document: Record<string, unknown>): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify(document, (key, value: unknown) => {
      if (Array.isArray(value)) return value.filter((item) => !isUnsent(item))
      return unsent.includes(key) ? undefined : value
    })
  )

/**
 * The contract: all groups, and the errors that any call may answer with.
 *
 * @since 0.1.0
 * @category api
 */
export class RunsApi extends HttpApi.make("runlet")
  .add(ChatGroup)
  .add(RunsGroup)
  .add(ConversationsGroup)
  .add(ServerGroup)
  .add(MetricsGroup)
  .add(AiSdkGroup)
  .add(AgUiGroup)
  .add(DurableStreamsGroup)
  .addError(BadRequest, { status: 400 })
  .addError(Forbidden, { status: 403 })
  .addError(MethodNotAllowed, { status: 405 })
  .addError(PayloadTooLarge, { status: 413 })
  .addError(UnsupportedMediaType, { status: 415 })
  .addError(RunError.LimitReached, { status: 429 })
  .addError(InternalError, { status: 500 })
  .addError(RunError.Unavailable, { status: 503 })
  .annotate(HttpApi.AdditionalSchemas, [Envelope.annotations({ identifier: "Envelope" })])
  .annotateContext(
    OpenApi.annotations({
      title: "Runlet",
      version: "1",
      description: "Durable, resumable agent runs: start, watch, stop, approve and resume them.",
      transform: withoutUnsent
    })
  ) {}
