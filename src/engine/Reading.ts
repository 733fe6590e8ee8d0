/**
 * Snapshots, lists and checkpoints: what can be read of runs without following them.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentRunCheckpoint } from "../domain/Checkpoint.js"
import * as Envelope from "../domain/Envelope.js"
import { CurrentUser } from "../domain/Owner.js"
import { NotFound, type Unavailable } from "../domain/RunError.js"
import * as Fold from "../domain/RunState.js"
import type * as RunStatus from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import type {
  ConversationPage,
  ConversationRow,
  MessagePlace,
  MessageRow,
  Page,
  RunRow,
  StoreError
} from "../store/RunStore.js"
import * as Json from "../tool/Json.js"
import type { Environment } from "./Environment.js"
import { available, noConversation, noRun } from "./Refusals.js"
import type { RunSummary } from "./RunEngine.js"
import * as RunLog from "./RunLog.js"
import * as RunPrompt from "./RunPrompt.js"
import type { Supervisor } from "./Supervisor.js"

/**
 * The row of a run of the current user.
 *
 * @since 0.1.0
 * @category reading
 */
export const owned = (env: Environment, runId: string): Effect.Effect<RunRow, NotFound | StoreError> =>
  Effect.gen(function* () {
    const user = yield* CurrentUser
    const found = yield* env.store.find({ runId, userId: user })
    return Option.isSome(found) ? found.value : yield* noRun
  })

const withQueue = <A extends { readonly status: RunStatus.RunStatus }>(
  env: Environment,
  row: RunRow,
  shown: A
): Effect.Effect<A & { readonly queuePosition?: number; readonly expiresAt?: number }, StoreError> =>
  Effect.gen(function* () {
    const expiry = row.endedAt === undefined ? {} : { expiresAt: row.endedAt + env.retention.eventsMs }
    if (shown.status !== "queued") return { ...shown, ...expiry }
    const position = yield* env.store.queuePosition(row.key)
    return {
      ...shown,
      ...Option.match(position, { onNone: () => ({}), onSome: (queuePosition) => ({ queuePosition }) })
    }
  })

/**
 * The run as it stands, with whatever any process has written to it.
 *
 * @since 0.1.0
 * @category reading
 */
export const snapshot = (
  env: Environment,
  supervisor: Supervisor,
  runId: string
): Effect.Effect<Snapshot.Snapshot, NotFound | StoreError> =>
  Effect.gen(function* () {
    const row = yield* owned(env, runId)
    const state = yield* RunLog.current(env.store, row, supervisor.active(row.key))
    return yield* withQueue(env, row, Snapshot.of(state))
  })

/**
 * A row of the store as a list of runs shows it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const summary = (row: RunRow): RunSummary => ({
  runId: row.runId,
  conversationId: row.conversationId,
  userMessageId: row.userMessageId,
  assistantMessageId: row.assistantMessageId,
  status: row.status,
  ...(row.recoverable !== undefined && { recoverable: row.recoverable }),
  ...(row.error !== undefined && { error: row.error }),
  model: row.model,
  mode: row.mode,
  attempt: row.attempt,
  iteration: row.iteration,
  lastSeq: row.lastSeq,
  usage: row.usage,
  ...(row.regeneratedFrom !== undefined && { regeneratedFrom: row.regeneratedFrom }),
  createdAt: row.createdAt,
  updatedAt: row.updatedAt
})

/**
 * A page of the user's runs, newest first.
 *
 * @since 0.1.0
 * @category reading
 */
export const list = (
  env: Environment,
  query: {
    readonly conversationId?: string | undefined
    readonly status?: RunStatus.RunStatus | undefined
    readonly limit?: number | undefined
    readonly cursor?: string | undefined
  }
): Effect.Effect<Page<RunSummary>, StoreError> =>
  Effect.gen(function* () {
    const userId = yield* CurrentUser
    const { cursor, conversationId, limit = 50, status } = query
    const page = yield* env.store.list({
      userId,
      limit,
      ...(cursor !== undefined && { cursor }),
      ...(conversationId !== undefined && { conversationId }),
      ...(status !== undefined && { status })
    })
    const items = yield* Effect.forEach(page.items, (row) => withQueue(env, row, summary(row)))
    return { items, ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }) }
  })

/** How many exchanges are read of a conversation at once. */
const exchangesAtOnce = 64

/**
 * A conversation of the user with its messages, page by page. The answer of a run that has not ended is the text that it
 * has so far.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversation = (
  env: Environment,
  supervisor: Supervisor,
  conversationId: string
): Effect.Effect<
  { readonly conversation: ConversationRow; readonly messages: Stream.Stream<MessageRow, Unavailable> },
  NotFound | StoreError
> =>
  Effect.gen(function* () {
    const userId = yield* CurrentUser
    const query = { conversationId, userId, limit: exchangesAtOnce }
    const first = yield* env.store.conversation(query)
    if (Option.isNone(first)) return yield* noConversation
    const present = (message: MessageRow): Effect.Effect<MessageRow> =>
      message.role === "user" || message.runId === undefined || message.content !== ""
        ? Effect.succeed(message)
        : Effect.match(Effect.provideService(snapshot(env, supervisor, message.runId), CurrentUser, userId), {
            onFailure: () => message,
            onSuccess: ({ text }) => ({ ...message, content: text })
          })
    type Step = readonly [Chunk.Chunk<MessageRow>, Option.Option<MessagePlace | undefined>]
    const step = (found: Option.Option<ConversationPage>): Effect.Effect<Step> =>
      Option.match(found, {
        onNone: () => Effect.succeed<Step>([Chunk.empty(), Option.none()]),
        onSome: ({ messages, next }) =>
          Effect.map(
            Effect.forEach(messages, present),
            (all): Step => [Chunk.unsafeFromArray(all), Option.fromNullable(next)]
          )
      })
    const messages = Stream.paginateChunkEffect<MessagePlace | undefined, MessageRow, Unavailable, never>(
      undefined,
      (after) =>
        after === undefined ? step(first) : Effect.flatMap(available(env.store.conversation({ ...query, after })), step)
    )
    return { conversation: first.value.conversation, messages }
  })

/**
 * Where the user's run could go on from, in order.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const checkpoints = (
  env: Environment,
  runId: string
): Effect.Effect<
  ReadonlyArray<Pick<AgentRunCheckpoint, "runId" | "seq" | "kind" | "createdAt">>,
  NotFound | StoreError
> =>
  Effect.gen(function* () {
    const row = yield* owned(env, runId)
    const stored = yield* env.store.checkpoints(row.key)
    const decoded = yield* Effect.forEach(stored, (event) =>
      // One that can not be read is left out; the one before it still serves.
      Effect.map(Effect.option(Envelope.decodeEvent(event.json)), (read) =>
        Option.isSome(read) && read.value.type === "checkpoint"
          ? [{ runId, seq: event.seq, kind: read.value.checkpointKind, createdAt: event.createdAt }]
          : []
      )
    )
    return decoded.flat()
  })

const noCheckpoint = new NotFound({ message: "There is no checkpoint at this seq. List the run's checkpoints." })

/**
 * One checkpoint, put together from the log.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const checkpoint = (
  env: Environment,
  runId: string,
  seq: number
): Effect.Effect<AgentRunCheckpoint, NotFound | StoreError> =>
  Effect.gen(function* () {
    const row = yield* owned(env, runId)
    const listed = (yield* checkpoints(env, runId)).find((one) => one.seq === seq)
    if (listed === undefined) return yield* noCheckpoint
    const state = yield* RunLog.load(env.store, row, seq)
    const input = yield* env.store.input(row.key)
    const base = yield* RunPrompt.material(env, row, input, state)
    const messages = yield* RunPrompt.sent(env.store, row, base, state)
    const calls = Fold.turns(state).flatMap((turn) => turn.calls)
    const reasoning = Fold.text(state, "reasoning")
    return {
      ...listed,
      conversationId: row.conversationId,
      assistantMessageId: row.assistantMessageId,
      textLength: state.textLength,
      reasoningLength: state.reasoningLength,
      completedToolCallIds: calls.filter((call) => call.result !== undefined).map((call) => call.id),
      pendingToolCallIds: calls.filter((call) => call.result === undefined).map((call) => call.id),
      lastIteration: state.iteration,
      resumeState: {
        compressedMessages: messages,
        model: row.model,
        enableThinking: input.enableThinking,
        mode: row.mode,
        currentDocument: input.currentDocument,
        toolResults: calls.flatMap((call) =>
          call.result === undefined
            ? []
            : [
                {
                  toolCallId: call.id,
                  toolName: call.name,
                  argumentsJson: call.input === undefined ? call.args : JSON.stringify(call.input.value),
                  result: call.result.result,
                  resultHash: Json.hash(call.result.result),
                  completedAt: call.settledAt ?? state.updatedAt
                }
              ]
        ),
        assistantDraft: { text: Fold.text(state), ...(reasoning !== "" && { reasoning }) }
      }
    }
  })
