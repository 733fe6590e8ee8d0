/**
 * Accepting new runs: from a request to a row, an input record and the first events.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Closing from "../agent/Closing.js"
import * as ToolCatalog from "../agent/ToolCatalog.js"
import type { AgentEvent } from "../domain/AgentEvent.js"
import * as Metrics from "../domain/Metrics.js"
import { CurrentUser } from "../domain/Owner.js"
import { Conflict, LimitReached, type NotFound, Unavailable, Unprocessable } from "../domain/RunError.js"
import type { CurrentDocument, RunInput, RunLimits, TextMessage } from "../domain/RunInput.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import type { CreateOutcome, CreateRun, RunRow, StoreError } from "../store/RunStore.js"
import * as Json from "../tool/Json.js"
import type { Environment } from "./Environment.js"
import * as Numbering from "./Numbering.js"
import { noConversation, noRun } from "./Refusals.js"
import type { Accepted, StartRequest } from "./RunEngine.js"
import * as Spans from "./Spans.js"
import type { Supervisor } from "./Supervisor.js"
import * as Threads from "./Threads.js"

type Refusal = NotFound | Conflict | Unprocessable | LimitReached | Unavailable

const accepted = (row: RunRow, created: boolean): Accepted => ({
  runId: row.runId,
  conversationId: row.conversationId,
  userMessageId: row.userMessageId,
  assistantMessageId: row.assistantMessageId,
  status: row.status,
  created
})

const draining = new Unavailable({ message: "The server is shutting down. Try again in a moment.", retryAfterMs: 2000 })

/** The messages with unpaired surrogates replaced, of which the last must be the user's. */
const readMessages = (request: StartRequest): Effect.Effect<ReadonlyArray<TextMessage>, Unprocessable> => {
  const messages: ReadonlyArray<TextMessage> =
    request.messages ?? (request.message === undefined ? [] : [{ role: "user", content: request.message }])
  const last = messages.at(-1)
  if (last === undefined || last.role !== "user" || last.content.trim() === "") {
    return Effect.fail(
      new Unprocessable({
        message: "The last message must be a user's, with some text. Send `message`, or `messages` that end with one.",
        path: request.messages === undefined ? "message" : "messages"
      })
    )
  }
  return Effect.succeed(messages.map(({ content, role }) => ({ role, content: Json.wellFormed(content) })))
}

/** A request may ask for less than is configured, never for more. */
const bounded = (configured: RunLimits, wanted: Partial<RunLimits> | undefined): RunLimits => {
  const least = (a: number | null, b: number | null | undefined): number | null =>
    a === null ? (b ?? null) : b === null || b === undefined ? a : Math.min(a, b)
  return {
    maxIterations: Math.min(configured.maxIterations, wanted?.maxIterations ?? configured.maxIterations),
    maxTokens: least(configured.maxTokens, wanted?.maxTokens),
    maxCostUsd: least(configured.maxCostUsd, wanted?.maxCostUsd),
    runTimeoutMs: Math.min(configured.runTimeoutMs, wanted?.runTimeoutMs ?? configured.runTimeoutMs)
  }
}

const title = (message: string): string => {
  const line = message.trim().replace(/\s+/g, " ")
  return line.length <= 80 ? line : `${Json.wellFormed(line.slice(0, 79))}…`
}

const openDocument = (
  { documents }: Environment,
  document: StartRequest["currentDocument"],
  user: string
): Effect.Effect<CurrentDocument | null> =>
  Effect.gen(function* () {
    if (document === undefined || document === null) return null
    const found = yield* documents.describe({ id: document.id, user })
    const known = Option.getOrUndefined(found)
    const name = document.title ?? known?.title
    const contentHash = document.contentHash ?? known?.contentHash
    return {
      id: document.id,
      ...(name !== undefined && { title: name }),
      ...(contentHash !== undefined && { contentHash })
    }
  })

const firstEvents = (
  env: Environment,
  start: Extract<AgentEvent, { readonly type: "run-start" }>,
  now: number
): CreateRun["events"] =>
  Numbering.number(
    Fold.empty(start.runId),
    [
      start,
      { type: "run-status", status: "queued" },
      { type: "checkpoint", runId: start.runId, seq: 0, checkpointKind: "run_started" }
    ],
    now,
    0,
    env.agent.resume.checkpointEvery
  ).events

const storageFull = new LimitReached({
  message: "The server's storage is full. Delete conversations that you do not need any more, or try again later.",
  limit: "maxStoreBytes",
  retryAfterMs: 60_000
})

const isStorageFull = (env: Environment): Effect.Effect<boolean, StoreError> => {
  const { maxStoreBytes } = env.agent.limits
  if (maxStoreBytes === null) return Effect.succeed(false)
  return Effect.map(env.size, ({ bytes = 0, freeBytes = 0 }) => bytes - freeBytes >= maxStoreBytes)
}

const refusal = (
  env: Environment,
  model: string,
  outcome: Exclude<CreateOutcome, { readonly row: RunRow }>
): Refusal => {
  switch (outcome._tag) {
    case "New":
      return unknownModel(env, model)
    case "KeyReused":
      return new Conflict({
        message: "This Idempotency-Key was used for another request. Use a new key for a new request."
      })
    case "QueueFull":
      return new LimitReached({
        message: "Too many runs are waiting already. Try again in a moment.",
        limit: "maxQueuedRuns",
        retryAfterMs: 5000
      })
    case "StoreFull":
      return new LimitReached({
        message:
          "You have too many runs here. Delete conversations that you do not need any more, or wait until old ones are removed.",
        limit: "maxStoredRunsPerUser",
        retryAfterMs: 3_600_000
      })
    case "ConversationsFull":
      return new LimitReached({
        message: "You have as many conversations as one may have. Delete some, or go on in one of them.",
        limit: "maxConversationsPerUser",
        retryAfterMs: 3_600_000
      })
    case "ConversationFull":
      return new LimitReached({
        message: "The conversation is as long as one may be. Go on in a new one.",
        limit: "maxRunsPerConversation",
        retryAfterMs: 3_600_000
      })
    case "Unknown":
      return noConversation
    case "Superseded":
      return new Conflict({
        message: "The conversation has gone on since. Only the answer to its last user message can be regenerated."
      })
    case "Busy":
      return new Conflict({
        message: "The conversation is busy with another run. Wait for it, cancel it, or send onBusy: enqueue.",
        runId: outcome.runId
      })
  }
}

/**
 * Accepts a run.
 *
 * @since 0.1.0
 * @category starting
 */
export const start = (
  env: Environment,
  supervisor: Supervisor,
  asked: StartRequest
): Effect.Effect<Accepted, Refusal | StoreError> =>
  Effect.gen(function* () {
    if (supervisor.draining()) return yield* draining
    const user = yield* CurrentUser
    const request = env.secrets.said.json(asked)
    const messages = yield* readMessages(request)
    const model = request.modelId ?? env.agent.defaultModel
    const known = env.agent.models.has(model)
    const { idempotencyKey, trace: _, ...body } = asked
    const key = idempotencyKey === undefined ? undefined : { key: idempotencyKey, bodyHash: Json.hash(body) }
    if (!known && key === undefined) return yield* unknownModel(env, model)
    const userMessage = messages.at(-1)?.content ?? ""
    const mode = request.mode ?? "chat"
    const currentDocument = yield* openDocument(env, request.currentDocument, user)
    const row = yield* create(env, supervisor, {
      user,
      ...(yield* place(env, user, asked)),
      title: title(userMessage),
      userMessageId: yield* env.ids.message,
      model,
      brought: messages.slice(0, -1),
      input: {
        userMessage,
        prefix: { messages: [], runs: [] },
        instructions: env.agent.instructions,
        tools: ToolCatalog.offered(env.agent.tools, mode),
        limits: bounded(env.agent.limits, request.limits),
        enableThinking: request.enableThinking ?? false,
        currentDocument,
        ...(request.metadata !== undefined && { metadata: Json.toJson(request.metadata) })
      },
      mode,
      trace: request.trace,
      idempotency: key,
      // A repeated request finds its run, whatever the configuration knows by now.
      onlyRepeated: !known,
      rejectIfBusy: request.onBusy === "reject"
    })
    // Only a run that was accepted interrupts, and a repeated request interrupts nothing.
    if (request.onBusy === "interrupt" && row.created) yield* endEarlier(env, supervisor, user, row)
    return row
  })

/** Where the run belongs, and whether that must be there already. */
const place = ({ ids }: Environment, user: string, { conversationId, thread }: StartRequest) => {
  if (conversationId !== undefined) return Effect.succeed({ conversationId, existing: true })
  // An id that nobody has yet must look like one that somebody else has.
  if (thread !== undefined) {
    return Effect.succeed({ conversationId: Threads.conversationOf(user, thread), existing: Threads.isId(thread) })
  }
  return Effect.map(ids.conversation, (conversationId) => ({ conversationId, existing: false }))
}

const unknownModel = (env: Environment, model: string): Unprocessable =>
  new Unprocessable({
    message: `There is no model ${JSON.stringify(Json.cut(model, 100))}. The models are: ${[...env.agent.models.keys()].join(", ")}.`,
    path: "modelId"
  })

const create = (
  env: Environment,
  supervisor: Supervisor,
  run: {
    readonly user: string
    readonly existing: boolean
    readonly conversationId: string
    readonly title: string
    readonly userMessageId: string
    readonly model: string
    readonly mode: RunRow["mode"]
    readonly brought: ReadonlyArray<TextMessage>
    readonly input: RunInput
    readonly trace: string | undefined
    readonly regeneratedFrom?: RunRow | undefined
    readonly idempotency: CreateRun["idempotency"]
    readonly onlyRepeated: boolean
    readonly rejectIfBusy: boolean
  }
): Effect.Effect<Accepted, Refusal | StoreError> =>
  Effect.gen(function* () {
    const full = yield* isStorageFull(env)
    if (full && run.idempotency === undefined) return yield* storageFull
    const runId = yield* env.ids.run
    const assistantMessageId = yield* env.ids.message
    const now = yield* env.now
    const { conversationId, mode, model, regeneratedFrom, userMessageId } = run
    const outcome = yield* Spans.accepting(
      env.recorder,
      { row: { runId, conversationId, model }, model: env.agent.models.get(model) },
      run.trace,
      (trace) =>
        env.store.create({
          runId,
          userId: run.user,
          conversationId,
          existing: run.existing,
          title: run.title,
          userMessageId,
          assistantMessageId,
          model,
          mode,
          ...(regeneratedFrom !== undefined && {
            regeneratedFrom: { key: regeneratedFrom.key, runId: regeneratedFrom.runId, ord: regeneratedFrom.ord }
          }),
          brought: run.brought,
          input: run.input,
          events: firstEvents(
            env,
            {
              type: "run-start",
              runId,
              seq: 1,
              conversationId,
              userMessageId,
              assistantMessageId,
              model,
              mode,
              ...(regeneratedFrom !== undefined && { regeneratedFrom: regeneratedFrom.runId }),
              ...(trace !== undefined && { trace })
            },
            now
          ),
          idempotency: run.idempotency,
          onlyRepeated: run.onlyRepeated || full,
          rejectIfBusy: run.rejectIfBusy,
          maxQueued: env.agent.limits.maxQueuedRuns,
          maxConcurrent: env.agent.limits.maxConcurrentRuns,
          maxInConversation: env.agent.limits.maxRunsPerConversation,
          placeForEach: env.limitUsers,
          ...(env.limitUsers && {
            maxStored: env.agent.limits.maxStoredRunsPerUser,
            maxConversations: env.agent.limits.maxConversationsPerUser
          })
        })
    )
    if (outcome._tag === "New" && full) return yield* storageFull
    if (!("row" in outcome)) return yield* refusal(env, run.model, outcome)
    if (outcome._tag === "Created") {
      Metrics.started()
      yield* supersedeFailures(env, supervisor, outcome.row)
      supervisor.poke()
    }
    return accepted(outcome.row, outcome._tag === "Created")
  })

const supersedeFailures = (env: Environment, supervisor: Supervisor, row: RunRow): Effect.Effect<void, StoreError> =>
  Effect.flatMap(env.store.supersedable({ conversationId: row.conversationId, before: row }), (left) =>
    Effect.forEach(left, (old) => supervisor.end(old, (state) => Closing.cancellation(state, "superseded")), {
      discard: true
    })
  )

/** Ends what was accepted before this run and has not ended: of two that come at once the later one stays. */
const endEarlier = (
  env: Environment,
  supervisor: Supervisor,
  userId: string,
  run: Pick<Accepted, "conversationId" | "runId">,
  of: (row: RunRow) => boolean = () => true
): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    const { items } = yield* env.store.list({ userId, conversationId: run.conversationId, limit: 100 })
    const self = items.find((row) => row.runId === run.runId)?.key ?? 0
    yield* Effect.forEach(
      items.filter((row) => row.key < self && !RunStatus.isFinal(row) && of(row)),
      (row) => supervisor.end(row, (state) => Closing.cancellation(state, "superseded")),
      { discard: true }
    )
  })

/**
 * A new run for the user message of an earlier one.
 *
 * @since 0.1.0
 * @category starting
 */
export const regenerate = (
  env: Environment,
  supervisor: Supervisor,
  runId: string,
  options: {
    readonly modelId?: string | undefined
    readonly idempotencyKey?: string | undefined
    readonly trace?: string | undefined
  }
): Effect.Effect<Accepted, Refusal | StoreError> =>
  Effect.gen(function* () {
    if (supervisor.draining()) return yield* draining
    const user = yield* CurrentUser
    const found = yield* env.store.find({ runId, userId: user })
    if (Option.isNone(found)) return yield* noRun
    const old = found.value
    const model = options.modelId ?? old.model
    const known = env.agent.models.has(model)
    if (!known && options.idempotencyKey === undefined) return yield* unknownModel(env, model)
    const input = yield* env.store.input(old.key)
    const run = yield* create(env, supervisor, {
      user,
      existing: true,
      conversationId: old.conversationId,
      title: title(input.userMessage),
      userMessageId: old.userMessageId,
      model,
      mode: old.mode,
      brought: [],
      input: { ...input, instructions: env.agent.instructions, tools: ToolCatalog.offered(env.agent.tools, old.mode) },
      trace: options.trace,
      regeneratedFrom: old,
      idempotency:
        options.idempotencyKey === undefined
          ? undefined
          : { key: options.idempotencyKey, bodyHash: Json.hash({ regenerate: runId, model }) },
      onlyRepeated: !known,
      rejectIfBusy: false
    })
    // The new run waits in the queue until the other versions are out of its way. A request that was refused ends none
    // of them, and one that is repeated not the run that it is about.
    if (run.created) {
      yield* endEarlier(env, supervisor, user, run, (row) => row.userMessageId === old.userMessageId)
    }
    return run
  })
