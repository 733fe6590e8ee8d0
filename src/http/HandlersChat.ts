/**
 * Starting runs, going on with them, and showing what comes of it.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { Conflict } from "../domain/RunError.js"
import * as Tracing from "../domain/Tracing.js"
import { type Accepted, RunEngine } from "../engine/RunEngine.js"
import * as Body from "./Body.js"
import * as Cursor from "./Cursor.js"
import { BadRequest, PayloadTooLarge, RunsApi } from "./RunsApi.js"
import * as Schemas from "./RunsSchemas.js"
import { Serving } from "./Serving.js"
import type * as Sse from "./Sse.js"
import * as Streams from "./Streams.js"

const decodeStart = Body.decode(Schemas.StartBody)
const decodeContinue = Body.decode(Schemas.ContinueBody)

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The caller's trace context; one that is malformed is no reason to refuse a request.
 *
 * @since 0.1.0
 * @category requests
 */
export const traceOf = (request: HttpServerRequest): string | undefined => {
  const header = request.headers.traceparent
  return Tracing.parse(header) === undefined ? undefined : header
}

/**
 * The key under which a request may be repeated: 1 to 255 visible characters.
 *
 * @since 0.1.0
 * @category requests
 */
export const idempotencyKey = (request: HttpServerRequest): Either.Either<string | undefined, BadRequest> => {
  const key = request.headers["idempotency-key"]
  return key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)
    ? Either.right(key)
    : Either.left(new BadRequest({ message: "Idempotency-Key must have 1 to 255 visible ASCII characters." }))
}

/**
 * Whether the caller does not wait for the run.
 *
 * @since 0.1.0
 * @category requests
 */
export const inBackground = (request: HttpServerRequest, body: { readonly background?: boolean | undefined }) =>
  body.background === true ||
  (request.headers.prefer ?? "").split(",").some((_) => _.trim().toLowerCase() === "respond-async")

/**
 * The answer that names a run and shows nothing of it.
 *
 * @since 0.1.0
 * @category responses
 */
export const acceptedLater = (run: Accepted): HttpServerResponse.HttpServerResponse => {
  const { assistantMessageId, conversationId, runId, status } = run
  return HttpServerResponse.unsafeJson(
    { runId, conversationId, assistantMessageId, status },
    { status: 202, headers: { "x-run-id": runId, location: `/runs/${runId}` } }
  )
}

/**
 * The answer that shows a run from its beginning, or only names it.
 *
 * @since 0.1.0
 * @category responses
 */
export const answer = (run: Accepted, background: boolean) =>
  Effect.gen(function* () {
    if (background) return acceptedLater(run)
    const engine = yield* RunEngine
    // The start of a log is a cursor that every log has.
    const view = yield* Effect.catchTag(engine.view(run.runId, 0), "InvalidCursor", Effect.die)
    return yield* Streams.respond({ runId: run.runId, view })
  })

const tooLong = (path: string, limit: "maxMessages" | "maxMessageChars", message: string) =>
  Either.left(new PayloadTooLarge({ message: `${path}: ${message}`, path, limit }))

/**
 * What the schema can not say: one of the two ways to bring the message, and the limits of this server.
 *
 * @since 0.1.0
 * @category requests
 */
export const checked = <Body extends Pick<typeof Schemas.StartBody.Type, "message" | "messages">>(
  body: Body,
  limits: Serving["Type"]["limits"]
) =>
  Either.gen(function* () {
    const { message, messages } = body
    if ((message === undefined) === (messages === undefined)) {
      return yield* Either.left(
        new BadRequest({ message: "Send either `message` or `messages`, one of them.", path: "messages" })
      )
    }
    if (message !== undefined && message.length > limits.maxMessageChars) {
      return yield* tooLong(
        "message",
        "maxMessageChars",
        `a message may have at most ${limits.maxMessageChars} characters`
      )
    }
    if (messages !== undefined) {
      const last = messages.length - 1
      if (messages.length > limits.maxMessages) {
        return yield* tooLong("messages", "maxMessages", `a request may have at most ${limits.maxMessages} messages`)
      }
      const long = messages.findIndex(({ content }) => content.length > limits.maxMessageChars)
      if (long !== -1) {
        return yield* tooLong(
          `messages[${long}].content`,
          "maxMessageChars",
          `a message may have at most ${limits.maxMessageChars} characters`
        )
      }
      if (messages[last]?.role !== "user" || messages[last]?.content === "") {
        const path = `messages[${last}]`
        return yield* Either.left(
          new BadRequest({ message: `${path}: the last message must be the user's, and not empty`, path })
        )
      }
    }
    return body
  })

const start = (json: unknown) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const engine = yield* RunEngine
    const { limits, slot } = yield* Serving
    const { background, ...body } = yield* checked(yield* decodeStart(json), limits)
    const alone = inBackground(request, { background })
    if (!alone) yield* slot
    const run = yield* engine.start({
      ...body,
      idempotencyKey: yield* idempotencyKey(request),
      trace: traceOf(request)
    })
    return yield* answer(run, alone)
  })

/**
 * Goes on with a run and shows the log behind the cursor. What can not go on is said in the stream, so that a page
 * has one place to look.
 *
 * @since 0.1.0
 * @category responses
 */
export const goOn = (options: {
  readonly runId: string
  readonly after: number
  readonly assistantMessageId: string | undefined
  readonly conversationId: string | undefined
  readonly background: boolean
}) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const engine = yield* RunEngine
    const { after, assistantMessageId, background, conversationId, runId } = options
    const resumed = yield* engine.resume(runId, {
      lastAppliedSeq: after,
      assistantMessageId,
      conversationId,
      trace: traceOf(request)
    })
    if (background) {
      return resumed._tag === "unavailable"
        ? yield* new Conflict({ message: `This run can not go on. ${resumed.reason}`, runId })
        : acceptedLater(resumed.run)
    }
    const refusal = (reason: string, recoverable: boolean): Sse.ControlFrame => ({
      type: "resume-unavailable",
      runId,
      reason,
      recoverable
    })
    const begin = (replayedCount: number): Sse.ControlFrame => ({
      type: "resume-start",
      runId,
      fromSeq: after,
      replayedCount
    })
    const last = resumed._tag === "unavailable" ? refusal(resumed.reason, resumed.recoverable) : undefined
    if (resumed._tag === "unavailable" && !resumed.readable) {
      return yield* Streams.respond({ runId, control: begin(0), last })
    }
    const view = yield* Effect.either(engine.view(runId, after))
    if (Either.isRight(view)) {
      return yield* Streams.respond({
        runId,
        view: view.right,
        after,
        control: begin(view.right.lastSeq - after),
        last
      })
    }
    if (view.left._tag !== "Compacted") return yield* Effect.fail(view.left)
    return yield* Streams.respond({ runId, control: begin(0), last: last ?? refusal(view.left.message, false) })
  })

const chat = Effect.gen(function* () {
  const request = yield* HttpServerRequest
  const { accepting, slot } = yield* Serving
  const json = yield* Body.json
  yield* accepting
  if (!isRecord(json) || json.resume === undefined) return yield* start(json)
  const after = isRecord(json.resume) ? yield* Cursor.fromJson(json.resume.lastAppliedSeq, "resume.lastAppliedSeq") : 0
  const { resume, ...body } = yield* decodeContinue(json)
  const background = inBackground(request, body)
  if (!background) yield* slot
  return yield* goOn({
    runId: resume.runId,
    after,
    assistantMessageId: resume.assistantMessageId,
    conversationId: resume.conversationId,
    background
  })
})

/**
 * The handlers of the calls that start runs and go on with them.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "chat", (handlers) =>
  Effect.map(RunEngine, (engine) =>
    handlers
      .handleRaw("chat", () => chat)
      .handleRaw("stream", () => chat)
      .handle("models", () => Effect.succeed({ items: engine.models }))
  )
)
