/**
 * Everything about one run, and the list of them.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { NotFound } from "../domain/RunError.js"
import type { RunStatus } from "../domain/RunStatus.js"
import * as Status from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import { RunEngine } from "../engine/RunEngine.js"
import * as ListCursor from "../store/ListCursor.js"
import * as Body from "./Body.js"
import * as Cursor from "./Cursor.js"
import * as Chat from "./HandlersChat.js"
import { BadRequest, RunsApi } from "./RunsApi.js"
import * as Schemas from "./RunsSchemas.js"
import { Serving } from "./Serving.js"
import * as Streams from "./Streams.js"

type Parameter = string | ReadonlyArray<string> | undefined

const once = (name: string, value: Parameter): Either.Either<string | undefined, BadRequest> =>
  value === undefined || typeof value === "string"
    ? Either.right(value)
    : Either.left(new BadRequest({ message: `${name} may be given once.`, path: name }))

/**
 * Reads the parameters of a list: a limit of 1 to 200, 50 by default, and the cursor of the next page, if `decode`
 * knows it.
 *
 * @since 0.1.0
 * @category requests
 */
export const paging = (
  parameters: { readonly limit?: Parameter; readonly cursor?: Parameter },
  { decode }: { readonly decode: (cursor: string) => Option.Option<unknown> }
) =>
  Either.gen(function* () {
    const limit = yield* once("limit", parameters.limit)
    const cursor = yield* once("cursor", parameters.cursor)
    if (limit !== undefined && (!/^[1-9][0-9]{0,2}$/.test(limit) || Number(limit) > 200)) {
      return yield* Either.left(new BadRequest({ message: "limit must be an integer from 1 to 200.", path: "limit" }))
    }
    if (cursor !== undefined && Option.isNone(decode(cursor))) {
      return yield* Either.left(
        new BadRequest({ message: "cursor must be the nextCursor of the page before.", path: "cursor" })
      )
    }
    return { limit: limit === undefined ? 50 : Number(limit), cursor }
  })

const isStatus = (text: string): text is RunStatus => Status.all.some((status) => status === text)

const statusOf = (value: Parameter): Either.Either<RunStatus | undefined, BadRequest> =>
  Either.flatMap(once("status", value), (text) =>
    text === undefined || isStatus(text)
      ? Either.right(text)
      : Either.left(new BadRequest({ message: `status must be one of ${Status.all.join(", ")}.`, path: "status" }))
  )

const decodeCancel = Body.decode(Schemas.CancelBody)
const decodeDecide = Body.decode(Schemas.DecideBody)
const decodeRegenerate = Body.decode(Schemas.RegenerateBody)
const decodeResume = Body.decode(Schemas.ResumeRunBody)

const events = (runId: string, after: Parameter) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { accepting, slot } = yield* Serving
    const { headers } = yield* HttpServerRequest
    const cursor = yield* Cursor.fromRequest({ lastEventId: headers["last-event-id"], after })
    yield* accepting
    const view = yield* engine.view(runId, cursor)
    // Nothing will follow: an EventSource that is told so stops asking.
    if (view.ended && cursor === view.lastSeq) return HttpServerResponse.empty({ status: 204 })
    yield* slot
    return yield* Streams.respond({ runId, view, after: cursor })
  })

const cancel = (runId: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const body = yield* decodeCancel(yield* Body.json)
    return HttpServerResponse.unsafeJson(yield* engine.cancel(runId, body))
  })

const decide = (runId: string, approvalId: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const body = yield* decodeDecide(yield* Body.json)
    if ((body.decision === "edit") !== "input" in body) {
      return yield* new BadRequest({ message: "input: belongs to the decision `edit`, and only to it", path: "input" })
    }
    return HttpServerResponse.unsafeJson(yield* engine.decide(runId, approvalId, body))
  })

const regenerate = (runId: string) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const engine = yield* RunEngine
    const { accepting, slot } = yield* Serving
    const body = yield* decodeRegenerate(yield* Body.json)
    const background = Chat.inBackground(request, body)
    yield* accepting
    if (!background) yield* slot
    const run = yield* engine.regenerate(runId, {
      modelId: body.modelId,
      idempotencyKey: yield* Chat.idempotencyKey(request)
    })
    return yield* Chat.answer(run, background)
  })

const resume = (runId: string) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const { accepting, slot } = yield* Serving
    const json = yield* Body.json
    const after = yield* Cursor.fromJson(
      typeof json === "object" && json !== null && "lastAppliedSeq" in json ? json.lastAppliedSeq : undefined,
      "lastAppliedSeq"
    )
    const { assistantMessageId, conversationId, ...body } = yield* decodeResume(json)
    const background = Chat.inBackground(request, body)
    yield* accepting
    if (!background) yield* slot
    return yield* Chat.goOn({
      runId,
      after,
      assistantMessageId,
      conversationId,
      background
    })
  })

const trace = (runId: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { slot } = yield* Serving
    const run = Snapshot.header(yield* engine.snapshot(runId))
    yield* slot
    const view = yield* Effect.catchTag(engine.view(runId, 0), "InvalidCursor", Effect.die)
    return yield* Streams.trace(view, { format: "runlet-trace", version: 1, run })
  })

/**
 * The handlers of the calls about one run, and of the list of runs.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "runs", (handlers) =>
  Effect.map(RunEngine, (engine) =>
    handlers
      .handle("list", ({ urlParams }) =>
        Effect.gen(function* () {
          const query = yield* paging(urlParams, ListCursor.runs)
          const conversationId = yield* once("conversationId", urlParams.conversationId)
          const status = yield* statusOf(urlParams.status)
          return yield* engine.list({ ...query, conversationId, status })
        })
      )
      .handle("get", ({ path }) => Effect.flatMap(engine.snapshot(path.runId), Streams.whole))
      .handle("remove", ({ path }) => engine.remove(path.runId))
      .handle("events", ({ path, urlParams }) => events(path.runId, urlParams.after))
      .handleRaw("cancel", ({ path }) => cancel(path.runId))
      .handleRaw("decide", ({ path }) => decide(path.runId, path.approvalId))
      .handleRaw("regenerate", ({ path }) => regenerate(path.runId))
      .handleRaw("resume", ({ path }) => resume(path.runId))
      .handle("checkpoints", ({ path }) => Effect.map(engine.checkpoints(path.runId), (items) => ({ items })))
      .handle("checkpoint", ({ path }) =>
        /^[1-9][0-9]{0,14}$/.test(path.seq)
          ? Effect.flatMap(engine.checkpoint(path.runId, Number(path.seq)), Streams.whole)
          : new NotFound({ message: "There is no such checkpoint." })
      )
      .handle("trace", ({ path }) => trace(path.runId))
  )
)
