/**
 * The endpoints that AG-UI clients talk to. AG-UI has no resumption of its own: here every event has an id, and a client
 * that lost its stream asks for what lies behind the last one.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import * as AgUi from "../adapters/AgUi.js"
import { CurrentUser } from "../domain/Owner.js"
import { NotFound } from "../domain/RunError.js"
import * as RunState from "../domain/RunState.js"
import type { Snapshot } from "../domain/Snapshot.js"
import { type DecideRequest, RunEngine, type View } from "../engine/RunEngine.js"
import * as Threads from "../engine/Threads.js"
import type { MessageRow } from "../store/RunStore.js"
import { AgUiBody, AgUiProps } from "./AdaptersApi.js"
import * as Adapting from "./Adapting.js"
import * as Body from "./Body.js"
import * as Cursor from "./Cursor.js"
import * as Chat from "./HandlersChat.js"
import { BadRequest, RunsApi } from "./RunsApi.js"
import { Serving } from "./Serving.js"
import * as Streams from "./Streams.js"

const decodeBody = Body.decode(AgUiBody)
const decodeProps = Body.decode(AgUiProps)

type Asked = typeof AgUiBody.Type

const show = (view: View, state: AgUi.State, events: ReadonlyArray<AgUi.Event>) =>
  Streams.send({
    writer: Adapting.writer({
      state,
      settled: view.lastSeq,
      step: AgUi.step,
      encode: AgUi.encode,
      isOver: AgUi.isOver,
      last: (end) => AgUi.encode(AgUi.close(end), end.run.seq),
      heartbeat: ": hb\n\n"
    }),
    first: `:ok\n\n${AgUi.encode(events, state.run.seq)}`,
    view,
    after: state.run.seq,
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-run-id": view.runId,
      location: `/runs/${view.runId}`
    }
  })

/**
 * The thread's messages up to the question that a run answers, as the server has them: the newest, as many as a client
 * could send back in a request.
 */
const baseOf = (conversationId: string, runId: string) =>
  Effect.gen(function* () {
    const { maxBodyBytes } = (yield* Serving).limits
    const { messages } = yield* Effect.flatMap(RunEngine, (engine) => engine.conversation(conversationId))
    const base: Array<AgUi.Message> = []
    let chars = 0
    const own = (message: MessageRow) => message.runId === runId && message.role === "assistant"
    yield* Stream.runForEach(
      Stream.takeWhile(messages, (message) => !own(message)),
      ({ content, messageId, role }) =>
        Effect.sync(() => {
          base.push({ id: messageId, role, content })
          chars += content.length
          while (chars > maxBodyBytes && base.length > 1) chars -= base.shift()?.content?.length ?? 0
        })
    )
    return base
  })

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Messages of tools, systems and activities are the client's affair; those of people and agents are text here. */
const messagesOf = (asked: Asked) => {
  const messages: Array<{ readonly role: "user" | "assistant"; readonly content: string }> = []
  for (const { content, role } of asked.messages) {
    if ((role === "user" || role === "assistant") && typeof content === "string") messages.push({ role, content })
  }
  const [first, ...others] = messages
  const last = asked.messages.at(-1)
  return first === undefined || last?.role !== "user" || typeof last.content !== "string"
    ? Either.left(
        new BadRequest({ message: "messages: the last message must be the user's, as text", path: "messages" })
      )
    : Either.right([first, ...others] as const)
}

const begin = (asked: Asked) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const request = yield* HttpServerRequest
    const { limits } = yield* Serving
    const props = yield* decodeProps(asked.forwardedProps ?? {})
    const body = yield* Chat.checked({ ...props, messages: yield* messagesOf(asked) }, limits)
    const { conversationId, runId } = yield* engine.start({
      ...body,
      thread: asked.threadId,
      idempotencyKey: yield* Chat.idempotencyKey(request),
      trace: Chat.traceOf(request)
    })
    const base = yield* baseOf(conversationId, runId)
    const names = { threadId: asked.threadId, clientRunId: asked.runId }
    const state = AgUi.behind({ ...names, base, run: RunState.empty(runId) })
    return yield* show(yield* Adapting.viewOf(runId, 0), state, [AgUi.begun(names)])
  })

const decisionOf = (answer: NonNullable<Asked["resume"]>[number], doubt: boolean): DecideRequest => {
  const payload = isRecord(answer.payload) ? answer.payload : {}
  const reason = typeof payload.reason === "string" ? payload.reason.slice(0, 1000) : undefined
  if (answer.status === "cancelled" || payload.approved !== true) {
    return { decision: doubt ? "abandon" : "reject", reason }
  }
  if (doubt) return { decision: "retry", reason }
  return "editedArgs" in payload
    ? { decision: "edit", input: payload.editedArgs, reason }
    : { decision: "approve", reason }
}

/** The answers decide what the thread's last run asked for, and the client's new run is the rest of it. */
const answer = (asked: Asked, answers: NonNullable<Asked["resume"]>) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const conversationId = Threads.conversationOf(yield* CurrentUser, asked.threadId)
    const last = yield* Adapting.latest(conversationId)
    if (last === undefined) return yield* new NotFound({ message: "There is no such thread." })
    const { pendingApprovals, ...snapshot } = yield* engine.snapshot(last.runId)
    const run = RunState.ofSnapshot({ ...snapshot, pendingApprovals })
    for (const one of answers) {
      const pending = pendingApprovals.find(({ approvalId }) => approvalId === one.interruptId)
      yield* engine.decide(last.runId, one.interruptId, decisionOf(one, pending?.reason === "in_doubt"))
    }
    const base = yield* baseOf(conversationId, last.runId)
    const names = { threadId: asked.threadId, clientRunId: asked.runId }
    const view = yield* Adapting.viewOf(last.runId, run.seq)
    // What happened while nobody watched is told by the messages.
    const begin = snapshot.status === "waiting_approval" ? AgUi.again : AgUi.attach
    return yield* show(view, ...begin({ ...names, base, run }))
  })

const run = Effect.gen(function* () {
  const { accepting, slot } = yield* Serving
  const asked = yield* decodeBody(yield* Body.json)
  yield* accepting
  yield* slot
  const { resume } = asked
  return yield* resume === undefined || resume.length === 0 ? begin(asked) : answer(asked, resume)
})

const text = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "string" && value.length <= 256 ? value : undefined

/** A run for somebody who has nothing of it. */
const whole = (snapshot: Snapshot, names: { readonly threadId: string; readonly clientRunId: string }) =>
  Effect.gen(function* () {
    const base = yield* baseOf(snapshot.conversationId, snapshot.runId)
    const run = RunState.ofSnapshot(snapshot)
    return yield* show(yield* Adapting.viewOf(run.runId, run.seq), ...AgUi.attach({ ...names, base, run }))
  })

const thread = (threadId: string, clientRunId: string | ReadonlyArray<string> | undefined) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { accepting, slot } = yield* Serving
    yield* accepting
    const last = yield* Adapting.latest(Threads.conversationOf(yield* CurrentUser, threadId))
    if (last === undefined) return HttpServerResponse.empty({ status: 204 })
    yield* slot
    const snapshot = yield* engine.snapshot(last.runId)
    return yield* whole(snapshot, { threadId, clientRunId: text(clientRunId) ?? last.runId })
  })

const events = (
  runId: string,
  parameters: { readonly [name in "after" | "threadId" | "clientRunId"]?: string | ReadonlyArray<string> | undefined }
) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { accepting, slot } = yield* Serving
    const { headers } = yield* HttpServerRequest
    const cursor = { lastEventId: headers["last-event-id"], after: parameters.after }
    const after = yield* Cursor.fromRequest(cursor)
    yield* accepting
    const view = yield* engine.view(runId, after)
    yield* slot
    const snapshot = yield* engine.snapshot(runId)
    const names = {
      threadId: text(parameters.threadId) ?? snapshot.conversationId,
      clientRunId: text(parameters.clientRunId) ?? runId
    }
    // Whoever names the very beginning has been told that the run began.
    if ((cursor.lastEventId || cursor.after || "") === "") return yield* whole(snapshot, names)
    const base = yield* baseOf(snapshot.conversationId, runId)
    const shown = yield* Adapting.stateAt(RunState.ofSnapshot(snapshot), after)
    return yield* show(view, AgUi.behind({ ...names, base, run: shown }), [])
  })

/**
 * The handlers of the AG-UI endpoints.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "agUi", (handlers) =>
  Effect.succeed(
    handlers
      .handleRaw("run", () => run)
      .handle("events", ({ path, urlParams }) => events(path.runId, urlParams))
      .handle("thread", ({ path, urlParams }) => thread(path.threadId, urlParams.clientRunId))
      .handle("cancel", ({ path }) => Effect.flatMap(RunEngine, (engine) => engine.cancel(path.runId)))
  )
)
