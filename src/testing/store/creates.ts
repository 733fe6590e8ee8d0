/**
 * Cases of creating runs: outcomes, the prefix, regeneration.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { RunStore } from "../../store/RunStore.js"
import {
  assert,
  begin,
  claim,
  conversationOf,
  create,
  define,
  end,
  ending,
  idsOf,
  newConversationId,
  newRunId,
  request,
  rowOf,
  type StoreCase,
  seqsOf,
  tryCreate,
  upTo
} from "./fixtures.js"

const prefixOf = (key: number) =>
  Effect.flatMap(RunStore, (store) => Effect.map(store.input(key), (input) => input.prefix))

/**
 * The cases of `create`.
 *
 * @since 0.1.0
 * @category cases
 */
export const creates: ReadonlyArray<StoreCase> = [
  define(
    "a new run is queued, unowned, and has its row, log and input",
    Effect.gen(function* () {
      const store = yield* RunStore
      const wanted = yield* request({ message: "what is new?" })
      const outcome = yield* store.create(wanted)
      assert.ok(outcome._tag === "Created")
      const { createdAt, key, ord, updatedAt, ...row } = outcome.row
      assert.deepEqual(row, {
        runId: wanted.runId,
        userId: "alice",
        conversationId: wanted.conversationId,
        userMessageId: wanted.userMessageId,
        assistantMessageId: wanted.assistantMessageId,
        model: "demo",
        mode: "chat",
        status: "queued",
        recoverable: undefined,
        regeneratedFrom: undefined,
        epoch: 0,
        owner: undefined,
        leaseExpiresAt: undefined,
        lastSeq: 2,
        attempt: 1,
        iteration: 0,
        usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
        error: undefined,
        nextExpiry: undefined,
        compactedSeq: 0,
        endedAt: undefined
      })
      assert.deepEqual([createdAt, updatedAt], [1, 1])
      assert.ok(ord > 0)
      assert.deepEqual(yield* rowOf(key), outcome.row)
      assert.deepEqual(yield* seqsOf(key), upTo(2))
      assert.deepEqual(yield* store.input(key), wanted.input)
    })
  ),

  define(
    "a message of two megabytes with every kind of character comes back as it was",
    Effect.gen(function* () {
      const store = yield* RunStore
      const message = "ü 漢字 🙂 \u0000 \u2028 \"' \\ ".repeat(80_000)
      const run = yield* create({ message })
      assert.equal((yield* store.input(run.key)).userMessage, message)
    })
  ),

  define(
    "the same idempotency key and body is the same run, also when asked for at once",
    Effect.gen(function* () {
      const idempotency = { key: "once", bodyHash: "a" }
      const outcomes = yield* Effect.forEach(upTo(10), () => tryCreate({ idempotency }), { concurrency: "unbounded" })
      const rows = outcomes.flatMap((outcome) => ("row" in outcome ? [outcome.row] : []))
      assert.equal(rows.length, 10)
      assert.equal(new Set(idsOf(rows)).size, 1)
      assert.equal(outcomes.filter(({ _tag }) => _tag === "Created").length, 1)
    })
  ),

  define(
    "the same idempotency key with another body is refused, for another user it is another key",
    Effect.gen(function* () {
      yield* create({ idempotency: { key: "once", bodyHash: "a" } })
      const reused = yield* tryCreate({ idempotency: { key: "once", bodyHash: "b" } })
      assert.deepEqual(reused, { _tag: "KeyReused" })
      const other = yield* tryCreate({ idempotency: { key: "once", bodyHash: "b" }, userId: "bob" })
      assert.equal(other._tag, "Created")
    })
  ),

  define(
    "an idempotency key is looked at before anything else, and is free again when its run is removed",
    Effect.gen(function* () {
      const store = yield* RunStore
      const idempotency = { key: "once", bodyHash: "a" }
      const run = yield* create({ idempotency })
      const busy = yield* tryCreate({
        idempotency,
        conversationId: run.conversationId,
        rejectIfBusy: true,
        maxQueued: 0
      })
      assert.equal(busy._tag, "Duplicate")
      yield* end(run, ending.cancelled())
      assert.equal(yield* store.remove(run), "deleted")
      assert.equal((yield* tryCreate({ idempotency }))._tag, "Created")
    })
  ),

  define(
    "a conversation that does not exist, or is another user's, is unknown",
    Effect.gen(function* () {
      const run = yield* create()
      const foreign = yield* tryCreate({ conversationId: run.conversationId, userId: "bob" })
      assert.deepEqual(foreign, { _tag: "Unknown" })
      const claimed = yield* tryCreate({ conversationId: run.conversationId, existing: false, userId: "bob" })
      assert.deepEqual(claimed, { _tag: "Unknown" })
      const missing = yield* tryCreate({ conversationId: yield* newConversationId })
      assert.deepEqual(missing, { _tag: "Unknown" })
    })
  ),

  define(
    "a busy conversation refuses where that is asked for, and names the run",
    Effect.gen(function* () {
      const run = yield* begin()
      const { conversationId } = run
      assert.deepEqual(yield* tryCreate({ conversationId, rejectIfBusy: true }), { _tag: "Busy", runId: run.runId })
      const queued = yield* create({ conversationId })
      yield* end(run, ending.failed(true))
      assert.deepEqual(yield* tryCreate({ conversationId, rejectIfBusy: true }), { _tag: "Busy", runId: queued.runId })
      yield* end(queued, ending.cancelled())
      assert.equal((yield* tryCreate({ conversationId, rejectIfBusy: true }))._tag, "Created")
    })
  ),

  define(
    "a full queue refuses, and leaves no conversation behind",
    Effect.gen(function* () {
      const store = yield* RunStore
      yield* begin()
      yield* create({ maxQueued: 2 })
      yield* create({ maxQueued: 2 })
      const conversationId = yield* newConversationId
      const refused = yield* tryCreate({ conversationId, existing: false, maxQueued: 2, userId: "bob" })
      assert.deepEqual(refused, { _tag: "QueueFull" })
      assert.deepEqual((yield* store.conversations({ userId: "bob", limit: 10 })).items, [])
    })
  ),

  define(
    "a conversation has as many runs as are allowed, every version counted",
    Effect.gen(function* () {
      const first = yield* begin({ maxInConversation: 2 })
      yield* end(first)
      const { conversationId, userMessageId } = first
      yield* end(yield* begin({ conversationId, userMessageId, regeneratedFrom: first, maxInConversation: 2 }))
      assert.deepEqual(yield* tryCreate({ conversationId, maxInConversation: 2 }), { _tag: "ConversationFull" })
      assert.equal((yield* tryCreate({ conversationId, maxInConversation: 3 }))._tag, "Created")
      assert.equal((yield* tryCreate({ maxInConversation: 1 }))._tag, "Created")
    })
  ),

  define(
    "a user has as many runs as are allowed, until one is deleted, and another user as well",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* create({ maxStored: 2 })
      yield* create({ maxStored: 2 })
      assert.deepEqual(yield* tryCreate({ maxStored: 2 }), { _tag: "StoreFull" })
      assert.equal((yield* tryCreate({ maxStored: 1, userId: "bob" }))._tag, "Created")
      yield* end(first)
      yield* store.remove({ runId: first.runId, userId: first.userId })
      assert.equal((yield* tryCreate({ maxStored: 2 }))._tag, "Created")
      assert.equal((yield* tryCreate({}))._tag, "Created")
    })
  ),

  define(
    "a user has as many conversations as are allowed, with runs or without, until one is deleted",
    Effect.gen(function* () {
      const store = yield* RunStore
      const full = { _tag: "ConversationsFull" }
      const first = yield* create({ maxConversations: 2 })
      const second = yield* create({ maxConversations: 2 })
      assert.deepEqual(yield* tryCreate({ maxConversations: 2 }), full)
      assert.equal((yield* tryCreate({ maxConversations: 1, userId: "bob" }))._tag, "Created")
      const { conversationId } = second
      assert.equal((yield* tryCreate({ maxConversations: 1, conversationId }))._tag, "Created")
      yield* end(first)
      yield* store.remove({ runId: first.runId, userId: first.userId })
      assert.deepEqual(yield* tryCreate({ maxConversations: 2 }), full)
      yield* store.removeConversation({ conversationId: first.conversationId, userId: first.userId })
      assert.equal((yield* tryCreate({ maxConversations: 2 }))._tag, "Created")
    })
  ),

  define(
    "only what can not begin at once counts as waiting",
    Effect.gen(function* () {
      const limits = { maxQueued: 0, maxConcurrent: 2 }
      yield* create(limits)
      yield* create(limits)
      assert.deepEqual(yield* tryCreate(limits), { _tag: "QueueFull" })
      const run = yield* claim()
      assert.deepEqual(yield* tryCreate(limits), { _tag: "QueueFull" })
      yield* end(run)
      yield* create(limits)
      assert.deepEqual(yield* tryCreate(limits), { _tag: "QueueFull" })
      assert.equal((yield* tryCreate({ ...limits, maxQueued: 1 }))._tag, "Created")
    })
  ),

  define(
    "a user of whom nothing waits has a place in a queue that others have filled",
    Effect.gen(function* () {
      const limits = { maxQueued: 2, placeForEach: true }
      yield* create(limits)
      yield* create(limits)
      assert.deepEqual(yield* tryCreate(limits), { _tag: "QueueFull" })
      yield* create({ ...limits, userId: "bob" })
      assert.deepEqual(yield* tryCreate({ ...limits, userId: "bob" }), { _tag: "QueueFull" })
      assert.deepEqual(yield* tryCreate({ ...limits, maxQueued: 0, userId: "carol" }), { _tag: "QueueFull" })
    })
  ),

  define(
    "where nothing new can be made, a repeated request still finds its run",
    Effect.gen(function* () {
      const idempotency = { key: "once", bodyHash: "a" }
      const again = { idempotency, onlyRepeated: true }
      assert.deepEqual(yield* tryCreate(again), { _tag: "New" })
      const run = yield* create({ idempotency })
      const found = yield* tryCreate(again)
      assert.equal(found._tag === "Duplicate" && found.row.runId, run.runId)
      assert.deepEqual(yield* tryCreate({ ...again, idempotency: { key: "once", bodyHash: "b" } }), {
        _tag: "KeyReused"
      })
      assert.deepEqual(yield* tryCreate({ onlyRepeated: true }), { _tag: "New" })
    })
  ),

  define(
    "the prefix names the newest version of each earlier exchange, and never changes afterwards",
    Effect.gen(function* () {
      const first = yield* begin()
      const { conversationId } = first
      yield* end(first)
      const second = yield* begin({ conversationId })
      yield* end(second)
      const again = yield* begin({ conversationId, userMessageId: second.userMessageId, regeneratedFrom: second })
      yield* end(again)
      const third = yield* create({ conversationId })
      assert.deepEqual((yield* prefixOf(first.key)).runs, [])
      assert.deepEqual((yield* prefixOf(second.key)).runs, [first.runId])
      assert.deepEqual((yield* prefixOf(again.key)).runs, [first.runId])
      assert.deepEqual((yield* prefixOf(third.key)).runs, [first.runId, again.runId])
      yield* end(third)
      yield* create({ conversationId })
      assert.deepEqual((yield* prefixOf(third.key)).runs, [first.runId, again.runId])
    })
  ),

  define(
    "messages that a client brings along count only when the conversation is new",
    Effect.gen(function* () {
      const brought = [
        { role: "user" as const, content: "earlier question" },
        { role: "assistant" as const, content: "earlier answer" }
      ]
      const first = yield* begin({ brought })
      yield* end(first)
      const second = yield* create({
        conversationId: first.conversationId,
        brought: [{ role: "assistant", content: "forged" }]
      })
      assert.deepEqual(yield* prefixOf(first.key), { messages: brought, runs: [] })
      assert.deepEqual(yield* prefixOf(second.key), { messages: brought, runs: [first.runId] })
      const found = yield* conversationOf(first.conversationId)
      assert.ok(found._tag === "Some")
      const { messages } = found.value
      assert.deepEqual(
        messages.map(({ content, role }) => [role, content]),
        [
          ["user", "earlier question"],
          ["assistant", "earlier answer"],
          ["user", "hello"],
          ["assistant", "done"],
          ["user", "hello"],
          ["assistant", ""]
        ]
      )
      assert.equal(new Set(messages.map(({ messageId }) => messageId)).size, 6)
      assert.ok(messages.every(({ messageId }) => /^msg_[0-9a-f-]{36}$/.test(messageId)))
    })
  ),

  define(
    "a regeneration takes the place of the run that it replaces",
    Effect.gen(function* () {
      const old = yield* create()
      const later = yield* create()
      yield* end(old, ending.cancelled())
      const again = yield* create({
        conversationId: old.conversationId,
        userMessageId: old.userMessageId,
        regeneratedFrom: old
      })
      assert.equal(again.ord, old.ord)
      assert.equal(again.regeneratedFrom, old.runId)
      assert.equal(again.userMessageId, old.userMessageId)
      assert.ok(again.ord < later.ord)
    })
  ),

  define(
    "a regeneration is superseded when its conversation has gone on, and unknown where it does not belong",
    Effect.gen(function* () {
      const first = yield* begin()
      yield* end(first)
      const { conversationId, userMessageId } = first
      const second = yield* create({ conversationId })
      assert.deepEqual(yield* tryCreate({ conversationId, userMessageId, regeneratedFrom: first }), {
        _tag: "Superseded"
      })
      const elsewhere = yield* create()
      const wrong = { conversationId: elsewhere.conversationId, userMessageId, regeneratedFrom: first }
      assert.deepEqual(yield* tryCreate(wrong), { _tag: "Unknown" })
      assert.deepEqual(
        yield* tryCreate({
          conversationId,
          userMessageId,
          regeneratedFrom: { key: 987_654, runId: yield* newRunId, ord: 1 }
        }),
        { _tag: "Unknown" }
      )
      yield* end(second, ending.cancelled())
      assert.equal(
        (yield* tryCreate({ conversationId, userMessageId: second.userMessageId, regeneratedFrom: second }))._tag,
        "Created"
      )
    })
  )
]
