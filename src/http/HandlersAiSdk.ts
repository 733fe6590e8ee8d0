/**
 * The endpoints that the AI SDK's own client talks to: its requests become calls of the engine, and a run's log becomes
 * its stream.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import * as AiSdk from "../adapters/AiSdk.js"
import * as Chunks from "../adapters/AiSdkChunks.js"
import * as Messages from "../adapters/AiSdkMessages.js"
import { CurrentUser } from "../domain/Owner.js"
import { Conflict, NotFound, type Unavailable, Unprocessable } from "../domain/RunError.js"
import * as RunState from "../domain/RunState.js"
import * as Status from "../domain/RunStatus.js"
import { type Accepted, type DecideRequest, RunEngine, type View } from "../engine/RunEngine.js"
import * as Threads from "../engine/Threads.js"
import type { MessageRow, Questions } from "../store/RunStore.js"
import { UiChatBody, type UiMessage } from "./AdaptersApi.js"
import * as Adapting from "./Adapting.js"
import * as Body from "./Body.js"
import * as Chat from "./HandlersChat.js"
import { BadRequest, RunsApi } from "./RunsApi.js"
import { Serving } from "./Serving.js"
import * as Streams from "./Streams.js"

/** So long after its end an answer is shown once more to a client whose connection broke just before. */
const lingeringMs = 60_000

type Asked = typeof UiChatBody.Type

const decodeChat = Body.decode(UiChatBody)

const versionOf = (value: string | ReadonlyArray<string> | undefined): Either.Either<Chunks.Version, BadRequest> => {
  if (value === undefined || value === "6") return Either.right(6)
  return value === "7"
    ? Either.right(7)
    : Either.left(new BadRequest({ message: "version must be 6 or 7.", path: "version" }))
}

const show = (view: View, [state, chunks]: readonly [AiSdk.State, ReadonlyArray<Chunks.Chunk>]) =>
  Streams.send({
    writer: Adapting.writer({
      state,
      settled: view.lastSeq,
      step: AiSdk.step,
      encode: Chunks.encode,
      isBroken: ({ broken }) => broken,
      isOver: AiSdk.isOver,
      last: (end) => Chunks.encode(AiSdk.close(end), end.run.seq) + Chunks.done,
      heartbeat: ": keep-alive\n\n"
    }),
    first: `: stream-open\n\n${Chunks.encode(chunks, state.run.seq)}`,
    view,
    after: state.run.seq,
    headers: { ...Chunks.headers, "x-run-id": view.runId, location: `/runs/${view.runId}` }
  })

/** The whole message, from its first chunk. */
const fromStart = (runId: string, version: Chunks.Version) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = RunState.ofSnapshot(yield* engine.snapshot(runId))
    const view = yield* Adapting.viewOf(runId, run.seq)
    return yield* show(view, AiSdk.replay(run, version))
  })

/** The rest of a message that the client shows as it stood at `run`. */
const fromHere = (run: RunState.RunState, version: Chunks.Version) =>
  Effect.flatMap(Adapting.viewOf(run.runId, run.seq), (view) => show(view, [AiSdk.behind(run, version), []]))

const answer = (run: Accepted, version: Chunks.Version) => fromStart(run.runId, version)

/** The messages of a chat that the server knows, or none. */
const chatMessages = (conversationId: string) =>
  Effect.flatMap(RunEngine, (engine) =>
    engine.conversation(conversationId).pipe(
      Effect.map(({ messages }) => messages),
      Effect.catchTag("NotFound", () => Effect.succeed<Stream.Stream<MessageRow, Unavailable>>(Stream.empty))
    )
  )

const noQuestions: Questions = { count: 0, last: undefined }

/** How many questions of the user the server knows, and the last of them. */
const knownQuestions = (conversationId: string) =>
  Effect.flatMap(RunEngine, (engine) =>
    Effect.catchTag(engine.questions(conversationId), "NotFound", () => Effect.succeed(noQuestions))
  )

const plain = (message: UiMessage) => ({ role: message.role, content: Messages.textOf(message) })

const hasFile = ({ parts }: UiMessage) => parts.some(({ type }) => type === "file")

/** The chat's last message, from the user, as a new run. */
const begin = (asked: Asked, messages: readonly [UiMessage, ...Array<UiMessage>]) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const request = yield* HttpServerRequest
    const { limits } = yield* Serving
    const last = messages.length - 1
    if (messages[last] !== undefined && hasFile(messages[last])) {
      const path = `messages[${last}].parts`
      return yield* new Unprocessable({ message: `${path}: files can not be sent, only text`, path })
    }
    const { id, message: _1, messageId: _2, trigger: _3, ...body } = asked
    const [first, ...others] = messages
    const checked = yield* Chat.checked({ ...body, messages: [plain(first), ...others.map(plain)] }, limits)
    return yield* engine.start({
      ...checked,
      thread: id,
      idempotencyKey: yield* Chat.idempotencyKey(request),
      trace: Chat.traceOf(request)
    })
  })

const gone = new Conflict({ message: "The chat has gone on since. Load its messages again." })

/**
 * The last question once more: a retry of a request whose answer never came, a new answer, or an edit, which is refused,
 * since what was said stays said.
 */
const again = (
  asked: Asked,
  messages: readonly [UiMessage, ...Array<UiMessage>],
  conversationId: string,
  version: Chunks.Version
) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const request = yield* HttpServerRequest
    const questions = messages.filter(({ role }) => role === "user").map((message) => Messages.textOf(message))
    const known = yield* knownQuestions(conversationId)
    const run = yield* Adapting.latest(conversationId)
    if (run === undefined || questions.length === known.count + 1) {
      return yield* answer(yield* begin(asked, messages), version)
    }
    const single = asked.messages === undefined
    if (single ? questions[0] !== known.last : questions.length !== known.count) return yield* gone
    if (asked.trigger === "regenerate-message") {
      const idempotencyKey = yield* Chat.idempotencyKey(request)
      const regenerated = yield* engine.regenerate(run.runId, { modelId: asked.modelId, idempotencyKey })
      return yield* answer(regenerated, version)
    }
    if (questions.at(-1) !== known.last) {
      return yield* new Unprocessable({
        message: "A message that was answered can not be changed. Send another one, or begin a new chat.",
        path: "messageId"
      })
    }
    yield* Effect.catchTag(engine.resume(run.runId, { trace: Chat.traceOf(request) }), "InvalidCursor", Effect.die)
    return yield* fromStart(run.runId, version)
  })

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** How far the client's message has come, by its own word: a cursor, which can do no more harm than any other. */
const seqOf = ({ metadata }: UiMessage, run: RunState.RunState): number | undefined =>
  isRecord(metadata) &&
  metadata.runId === run.runId &&
  typeof metadata.seq === "number" &&
  Number.isSafeInteger(metadata.seq) &&
  metadata.seq > 0 &&
  metadata.seq <= run.seq
    ? metadata.seq
    : undefined

type Part = UiMessage["parts"][number]

const decisionOf = (approval: NonNullable<Part["approval"]>, reason: string): DecideRequest => {
  const { approved, descriptor, reason: why } = approval
  const hash = isRecord(descriptor) && typeof descriptor.previewHash === "string" ? descriptor.previewHash : undefined
  const yes = reason === "in_doubt" ? "retry" : "approve"
  const no = reason === "in_doubt" ? "abandon" : "reject"
  return { decision: approved === true ? yes : no, previewHash: hash, reason: why }
}

/** The answers that stand in the last message decide what the run asked for; then the message goes on. */
const decide = (message: UiMessage, conversationId: string, version: Chunks.Version) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const last = yield* Adapting.latest(conversationId)
    if (last === undefined) return yield* new NotFound({ message: "There is no such chat." })
    const snapshot = yield* engine.snapshot(last.runId)
    const run = RunState.ofSnapshot(snapshot)
    const seq = seqOf(message, run) ?? (snapshot.status === "waiting_approval" ? run.seq : undefined)
    if (seq === undefined) return yield* gone
    const shown = yield* Adapting.stateAt(run, seq)
    for (const { approval, state } of message.parts) {
      const request = snapshot.pendingApprovals.find(({ approvalId }) => approvalId === approval?.id)
      if (approval !== undefined && state === "approval-responded" && request !== undefined) {
        yield* engine.decide(last.runId, request.approvalId, decisionOf(approval, request.reason))
      }
    }
    return yield* fromHere(shown, version)
  })

const messagesOf = (asked: Asked): Either.Either<readonly [UiMessage, ...Array<UiMessage>], BadRequest> => {
  const { message, messages } = asked
  if (messages !== undefined && message === undefined) return Either.right(messages)
  return message !== undefined && messages === undefined
    ? Either.right([message])
    : Either.left(new BadRequest({ message: "Send either `messages` or `message`, one of them.", path: "messages" }))
}

const chat = (wanted: string | ReadonlyArray<string> | undefined) =>
  Effect.gen(function* () {
    const { accepting, slot } = yield* Serving
    const asked = yield* decodeChat(yield* Body.json)
    const version = yield* versionOf(wanted)
    yield* accepting
    const messages = yield* messagesOf(asked)
    yield* slot
    const conversationId = Threads.conversationOf(yield* CurrentUser, asked.id)
    const last = messages.at(-1)
    if (last?.role === "assistant") return yield* decide(last, conversationId, version)
    if (asked.trigger === "regenerate-message" || (asked.messageId ?? undefined) !== undefined) {
      return yield* again(asked, messages, conversationId, version)
    }
    return yield* answer(yield* begin(asked, messages), version)
  })

const nothing = HttpServerResponse.empty({ status: 204 })

const stream = (chatId: string, wanted: string | ReadonlyArray<string> | undefined) =>
  Effect.gen(function* () {
    const { accepting, slot } = yield* Serving
    const version = yield* versionOf(wanted)
    yield* accepting
    const run = yield* Adapting.latest(Threads.conversationOf(yield* CurrentUser, chatId))
    if (run === undefined) return nothing
    if (Status.isEnded(run.status) && (yield* Clock.currentTimeMillis) - run.updatedAt > lingeringMs) return nothing
    yield* slot
    return yield* fromStart(run.runId, version)
  })

const cancel = (chatId: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = yield* Adapting.latest(Threads.conversationOf(yield* CurrentUser, chatId))
    if (run === undefined) return nothing
    return HttpServerResponse.unsafeJson(yield* engine.cancel(run.runId))
  })

const messages = (chatId: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const user = yield* CurrentUser
    const rows = yield* chatMessages(Threads.conversationOf(user, chatId))
    const message = ({ content, messageId, role, runId }: MessageRow): Effect.Effect<unknown> => {
      if (role === "user") return Effect.succeed(Messages.userMessage(messageId, content))
      const text: Messages.Message = { id: messageId, role, parts: [{ type: "text", text: content, state: "done" }] }
      if (runId === undefined) return Effect.succeed(text)
      return engine.snapshot(runId).pipe(
        Effect.map((snapshot) => Messages.messageOf(RunState.ofSnapshot(snapshot))),
        // Of a run that is gone or damaged there is still what it said.
        Effect.orElseSucceed(() => text),
        Effect.provideService(CurrentUser, user)
      )
    }
    // One run at a time: what tools have said is more than what is read of a conversation at once.
    return Streams.list({ id: chatId }, "messages", Stream.mapEffect(rows, message))
  })

/**
 * The handlers of the AI SDK's endpoints.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "aiSdk", (handlers) =>
  Effect.succeed(
    handlers
      .handleRaw("chat", ({ urlParams }) => chat(urlParams.version))
      .handle("messages", ({ path }) => messages(path.chatId))
      .handle("stream", ({ path, urlParams }) => stream(path.chatId, urlParams.version))
      .handle("cancel", ({ path }) => cancel(path.chatId))
  )
)
