/**
 * Cases of reading, listing and deleting.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type AgentEvent, noUsage } from "../../domain/AgentEvent.js"
import * as RunState from "../../domain/RunState.js"
import type { ConversationRow, MessagePlace, Page, RunRow, StoreError, TurnRow } from "../../store/RunStore.js"
import { RunStore } from "../../store/RunStore.js"
import {
  append,
  assert,
  begin,
  conversationOf,
  create,
  define,
  end,
  ending,
  idsOf,
  newConversationId,
  newRunId,
  rowOf,
  type StoreCase,
  texts,
  upTo
} from "./fixtures.js"

// A turn as the fold makes it.
const turn = (runId: string, n: number, seq: number): TurnRow => {
  const events: ReadonlyArray<AgentEvent> = [
    { type: "text-delta", id: "t", delta: `turn ${n}` },
    { type: "tool-call-start", toolCallId: `c${n}`, toolName: "lookup", kind: "readonly" },
    { type: "tool-call-ready", toolCallId: `c${n}`, toolName: "lookup", input: { q: ["ü", null, 1] } },
    { type: "model-end", iteration: n, finishReason: "tool_calls", usage: { ...noUsage, outputTokens: n } }
  ]
  const state = events.reduce(
    (folded, event, index) => RunState.reduce(folded, { seq: index + 1, event, createdAt: index }),
    RunState.empty(runId)
  )
  const { closed: _, open, ...header } = state
  if (open === undefined) return assert.fail("The fold has no turn")
  // What is stored is JSON: a field without a value is not there.
  return JSON.parse(JSON.stringify({ n, seq, turn: { ...open, n }, header: { ...header, seq } }))
}

/** Every page of a list, by following its cursors. */
const pages = <A>(next: (cursor: string | undefined) => Effect.Effect<Page<A>, StoreError>) =>
  Effect.gen(function* () {
    const all: Array<ReadonlyArray<A>> = []
    let cursor: string | undefined
    do {
      const page = yield* next(cursor)
      all.push(page.items)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return all
  })

/**
 * The cases of reading, listing and deleting.
 *
 * @since 0.1.0
 * @category cases
 */
export const reads: ReadonlyArray<StoreCase> = [
  define(
    "a run is found by its owner alone",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* create()
      assert.deepEqual(yield* store.find({ runId: run.runId, userId: "alice" }), Option.some(run))
      assert.deepEqual(yield* store.find({ runId: run.runId, userId: "bob" }), Option.none())
      assert.deepEqual(yield* store.find({ runId: yield* newRunId, userId: "alice" }), Option.none())
      assert.deepEqual(yield* store.row(987_654), Option.none())
    })
  ),

  define(
    "runs are listed newest first, page by page, each once",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all(upTo(7).map(() => create()))
      yield* create({ userId: "bob" })
      const found = yield* pages((cursor) => store.list({ userId: "alice", limit: 3, cursor }))
      assert.deepEqual(
        found.map(({ length }) => length),
        [3, 3, 1]
      )
      assert.deepEqual(found.flat(), runs.toReversed())
      const whole = yield* store.list({ userId: "alice", limit: 7 })
      assert.equal(whole.items.length, 7)
      assert.equal(whole.nextCursor, undefined)
      assert.deepEqual((yield* store.list({ userId: "carol", limit: 7 })).items, [])
    })
  ),

  define(
    "a run that is created between two pages disturbs neither",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all(upTo(4).map(() => create()))
      const first = yield* store.list({ userId: "alice", limit: 2 })
      yield* create()
      const second = yield* store.list({ userId: "alice", limit: 2, cursor: first.nextCursor })
      assert.deepEqual(idsOf([...first.items, ...second.items]), idsOf(runs.toReversed()))
    })
  ),

  define(
    "lists are narrowed by conversation and status, and an invented cursor answers nothing",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* begin()
      yield* end(first)
      const second = yield* create({ conversationId: first.conversationId })
      const other = yield* create()
      const { conversationId } = first
      const list = (query: { conversationId?: string; status?: RunRow["status"]; cursor?: string; userId?: string }) =>
        Effect.map(store.list({ userId: "alice", limit: 10, ...query }), ({ items }) => idsOf(items))
      assert.deepEqual(yield* list({ conversationId }), [second.runId, first.runId])
      assert.deepEqual(yield* list({ status: "queued" }), [other.runId, second.runId])
      assert.deepEqual(yield* list({ conversationId, status: "completed" }), [first.runId])
      assert.deepEqual(yield* list({ conversationId, userId: "bob" }), [])
      for (const cursor of ["", "nonsense", "LTE", "%%%", "MS41"]) assert.deepEqual(yield* list({ cursor }), [])
    })
  ),

  define(
    "turns come back in order, up to a seq, and a later write of one replaces it",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const rows = [turn(run.runId, 1, 5), turn(run.runId, 2, 7), turn(run.runId, 3, 9)]
      for (const row of rows) {
        yield* append({ key: run.key, events: texts(2), set: { status: "running" }, turn: row })
      }
      assert.deepEqual(yield* store.turns({ key: run.key }), rows)
      assert.deepEqual(yield* store.turns({ key: run.key, upTo: 8 }), rows.slice(0, 2))
      assert.deepEqual(yield* store.turns({ key: run.key, upTo: 4 }), [])
      const replaced = turn(run.runId, 2, 11)
      yield* append({ key: run.key, events: texts(2), set: { status: "running" }, turn: replaced })
      assert.deepEqual((yield* store.turns({ key: run.key }))[1], replaced)
    })
  ),

  define(
    "a provider's own data comes back by iteration",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const other = yield* begin()
      const data = { signature: "ü🙂", list: [1, null, { deep: true }] }
      yield* append({
        key: run.key,
        events: texts(1),
        set: { status: "running" },
        sides: [
          { iteration: 2, data },
          { iteration: 1, data: null }
        ]
      })
      yield* append({
        key: run.key,
        events: texts(1),
        set: { status: "running" },
        sides: [{ iteration: 1, data: "new" }]
      })
      assert.deepEqual(yield* store.sides(run.key), [
        { iteration: 1, data: "new" },
        { iteration: 2, data }
      ])
      assert.deepEqual(yield* store.sides(other.key), [])
    })
  ),

  define(
    "a conversation shows its messages, and the newest version of a regenerated answer",
    Effect.gen(function* () {
      const first = yield* begin({ message: "first", title: "About something" })
      const { conversationId } = first
      yield* end(first, ending.completed("answer one"))
      const second = yield* begin({ conversationId, message: "second" })
      yield* end(second, ending.completed("answer two"))
      const again = yield* begin({
        conversationId,
        message: "second",
        userMessageId: second.userMessageId,
        regeneratedFrom: second
      })
      const shown = Effect.map(conversationOf(conversationId), Option.getOrThrow)
      assert.deepEqual((yield* shown).messages.at(-1), {
        messageId: again.assistantMessageId,
        role: "assistant",
        content: "",
        runId: again.runId,
        status: "running",
        createdAt: 1
      })
      yield* end(again, ending.completed("answer two, better"))
      const { conversation, messages } = yield* shown
      assert.deepEqual(conversation, {
        conversationId,
        title: "About something",
        createdAt: 1,
        updatedAt: 2,
        lastRunId: again.runId,
        lastStatus: "completed"
      })
      assert.deepEqual(messages, [
        message(first.userMessageId, "user", "first", first.runId, undefined),
        message(first.assistantMessageId, "assistant", "answer one", first.runId, "completed"),
        message(second.userMessageId, "user", "second", again.runId, undefined),
        message(again.assistantMessageId, "assistant", "answer two, better", again.runId, "completed")
      ])
      assert.deepEqual(yield* conversationOf(conversationId, "bob"), Option.none())
      const unknown = yield* newConversationId
      assert.deepEqual(yield* conversationOf(unknown), Option.none())
    })
  ),

  define(
    "a long conversation is read in pages that are short, in order, and whole together",
    Effect.gen(function* () {
      const store = yield* RunStore
      const long = "x".repeat(400_000)
      const brought = [
        { role: "user" as const, content: "brought 1" },
        { role: "assistant" as const, content: "brought 2" }
      ]
      const { conversationId, ...first } = yield* begin({ message: `${long}0`, brought })
      yield* end({ conversationId, ...first })
      for (const n of upTo(7)) yield* end(yield* begin({ conversationId, message: `${long}${n}` }))
      const lengths: Array<number> = []
      const questions: Array<string> = []
      let after: MessagePlace | undefined
      do {
        const found = yield* store.conversation({ conversationId, userId: "alice", limit: 100, after })
        const { messages, next } = Option.getOrThrow(found)
        lengths.push(messages.reduce((sum, { content }) => sum + content.length, 0))
        for (const { content, role } of messages) if (role === "user") questions.push(content.slice(-1))
        after = next
      } while (after !== undefined)
      assert.deepEqual(questions, ["1", "0", "1", "2", "3", "4", "5", "6", "7"])
      assert.ok(Math.max(...lengths) <= 1024 * 1024, `pages of ${lengths.join()}`)
      const behind = { conversationId, limit: 1, after: { part: "runs" as const, at: first.ord } }
      const next = Option.getOrThrow(yield* store.conversation({ ...behind, userId: "alice" }))
      assert.deepEqual(
        next.messages.map(({ content }) => content.slice(-1)),
        ["1", "e"]
      )
      assert.deepEqual(yield* store.conversation({ ...behind, userId: "bob" }), Option.none())
    })
  ),

  define(
    "an answer that is being continued is empty until it has ended again",
    Effect.gen(function* () {
      const run = yield* begin()
      const { conversationId } = run
      const answer = Effect.map(
        conversationOf(conversationId),
        (found) => Option.getOrThrow(found).messages.at(-1)?.content
      )
      yield* end(run, ending.failed(true))
      assert.equal(yield* answer, "half")
      yield* append({ key: run.key, raiseEpoch: true, events: texts(1), set: { status: "running" } })
      assert.equal(yield* answer, "")
      yield* end(run, ending.completed("whole"))
      assert.equal(yield* answer, "whole")
    })
  ),

  define(
    "conversations are listed by their last change, page by page, for their owner",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs: Array<RunRow> = []
      for (const _ of upTo(5)) runs.push(yield* begin())
      yield* create({ userId: "bob" })
      const changed = runs[1]
      assert.ok(changed !== undefined)
      yield* end(changed)
      const found = yield* pages((cursor) => store.conversations({ userId: "alice", limit: 2, cursor }))
      assert.deepEqual(
        found.map(({ length }) => length),
        [2, 2, 1]
      )
      const ids = (rows: ReadonlyArray<ConversationRow>) => rows.map(({ conversationId }) => conversationId)
      assert.equal(found[0]?.[0]?.conversationId, changed.conversationId)
      assert.deepEqual([found[0]?.[0]?.lastRunId, found[0]?.[0]?.lastStatus], [changed.runId, "completed"])
      assert.deepEqual(ids(found.flat()).toSorted(), runs.map(({ conversationId }) => conversationId).toSorted())
      assert.deepEqual((yield* store.conversations({ userId: "alice", limit: 2, cursor: "nonsense" })).items, [])
    })
  ),

  define(
    "a conversation is renamed by its owner alone",
    Effect.gen(function* () {
      const store = yield* RunStore
      const { conversationId } = yield* create()
      assert.equal(yield* store.renameConversation({ conversationId, userId: "bob", title: "stolen" }), false)
      assert.equal(yield* store.renameConversation({ conversationId, userId: "alice", title: "renamed" }), true)
      const { conversation } = Option.getOrThrow(yield* conversationOf(conversationId))
      assert.equal(conversation.title, "renamed")
    })
  ),

  define(
    "a run is removed by its owner, once it has ended, with all that was stored of it",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const { conversationId, key, runId } = run
      yield* append({
        key,
        events: texts(1),
        set: { status: "running" },
        turn: turn(runId, 1, 4),
        sides: [{ iteration: 1, data: 1 }]
      })
      assert.equal(yield* store.remove({ runId, userId: "alice" }), "active")
      yield* end(run, ending.failed(true))
      assert.equal(yield* store.remove({ runId, userId: "bob" }), "unknown")
      assert.equal(yield* store.remove({ runId, userId: "alice" }), "deleted")
      assert.equal(yield* store.remove({ runId, userId: "alice" }), "unknown")
      assert.deepEqual(yield* store.row(key), Option.none())
      assert.deepEqual(yield* store.events({ key, after: 0, limit: 10 }), [])
      assert.deepEqual(yield* store.turns({ key }), [])
      assert.deepEqual(yield* store.sides(key), [])
      assert.equal((yield* Effect.either(store.input(key)))._tag, "Left")
      const { conversation, messages } = Option.getOrThrow(yield* conversationOf(conversationId))
      assert.deepEqual(messages, [])
      assert.equal(conversation.lastRunId, undefined)
      const next = yield* create({ conversationId })
      assert.ok(next.key > key)
    })
  ),

  define(
    "removing one version of an answer keeps the question and shows the other",
    Effect.gen(function* () {
      const store = yield* RunStore
      const old = yield* begin({ message: "question" })
      yield* end(old, ending.completed("old answer"))
      const { conversationId, userMessageId } = old
      const again = yield* begin({ conversationId, userMessageId, regeneratedFrom: old })
      yield* end(again, ending.completed("new answer"))
      assert.equal(yield* store.remove({ runId: again.runId, userId: "alice" }), "deleted")
      const { messages } = Option.getOrThrow(yield* conversationOf(conversationId))
      assert.deepEqual(
        messages.map(({ content }) => content),
        ["question", "old answer"]
      )
    })
  ),

  define(
    "what was asked in a conversation is counted, of what was brought along and of each exchange once",
    Effect.gen(function* () {
      const store = yield* RunStore
      const asked = (conversationId: string, userId = "alice") =>
        Effect.map(store.questions({ conversationId, userId }), Option.getOrUndefined)
      const first = yield* begin({
        message: "third",
        brought: [
          { role: "user", content: "first" },
          { role: "assistant", content: "an answer" },
          { role: "user", content: "second" }
        ]
      })
      const { conversationId, userMessageId } = first
      yield* end(first, ending.completed("answer"))
      assert.deepEqual(yield* asked(conversationId), { count: 3, last: "third" })
      const again = yield* begin({ conversationId, userMessageId, message: "third", regeneratedFrom: first })
      yield* end(again, ending.completed("another"))
      assert.deepEqual(yield* asked(conversationId), { count: 3, last: "third" })
      const next = yield* begin({ conversationId, message: "fourth" })
      assert.deepEqual(yield* asked(conversationId), { count: 4, last: "fourth" })
      yield* end(next)
      for (const { runId } of [next, again, first]) yield* store.remove({ runId, userId: "alice" })
      assert.deepEqual(yield* asked(conversationId), { count: 2, last: "second" })
      assert.equal(yield* asked(conversationId, "bob"), undefined)
      assert.equal(yield* asked(yield* newConversationId), undefined)
    })
  ),

  define(
    "what is long is removed whole, by a run and by a conversation",
    Effect.gen(function* () {
      const store = yield* RunStore
      const long = (conversationId?: string) =>
        Effect.gen(function* () {
          const run = yield* begin({ ...(conversationId !== undefined && { conversationId }) })
          yield* append({ key: run.key, events: texts(1_300), set: { status: "running" } })
          yield* end(run)
          return run
        })
      const alone = yield* long()
      assert.equal(yield* store.remove({ runId: alone.runId, userId: "alice" }), "deleted")
      const first = yield* long()
      const { conversationId } = first
      const second = yield* long(conversationId)
      assert.equal(yield* store.removeConversation({ conversationId, userId: "alice" }), "deleted")
      for (const { key } of [alone, first, second]) {
        assert.deepEqual(yield* store.row(key), Option.none())
        assert.deepEqual(yield* store.events({ key, after: 0, limit: 1 }), [])
      }
      assert.deepEqual(yield* conversationOf(conversationId), Option.none())
    })
  ),

  define(
    "a conversation is removed with its runs, unless one of them is active",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* begin({ idempotency: { key: "k", bodyHash: "h" } })
      const { conversationId } = first
      yield* end(first, ending.failed(true))
      const second = yield* create({ conversationId })
      const other = yield* create()
      assert.equal(yield* store.removeConversation({ conversationId, userId: "alice" }), "active")
      yield* end(second, ending.cancelled())
      assert.equal(yield* store.removeConversation({ conversationId, userId: "bob" }), "unknown")
      assert.equal(yield* store.removeConversation({ conversationId, userId: "alice" }), "deleted")
      assert.equal(yield* store.removeConversation({ conversationId, userId: "alice" }), "unknown")
      for (const { key } of [first, second]) {
        assert.deepEqual(yield* store.row(key), Option.none())
        assert.deepEqual(yield* store.events({ key, after: 0, limit: 10 }), [])
      }
      assert.deepEqual(idsOf((yield* store.list({ userId: "alice", limit: 10 })).items), [other.runId])
      assert.deepEqual(yield* rowOf(other.key), other)
    })
  ),

  define(
    "summaries come back oldest first, and go with the runs that they tell of",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs: Array<RunRow> = []
      const first = yield* begin()
      yield* end(first)
      runs.push(first)
      const { conversationId } = first
      for (const _ of upTo(3)) {
        const run = yield* begin({ conversationId })
        yield* end(run)
        runs.push(run)
      }
      const [a, b, c, d] = idsOf(runs)
      assert.ok(a !== undefined && b !== undefined && c !== undefined && d !== undefined)
      const compaction = (uptoRunId: string, madeIn: string, summary: string) => ({
        conversationId,
        uptoRunId,
        uptoIteration: 1,
        summary,
        madeIn,
        madeAt: 4
      })
      const one = compaction(a, c, "one")
      const two = compaction(b, c, "two")
      yield* store.saveCompaction(one)
      yield* store.saveCompaction(two)
      yield* store.saveCompaction(compaction(yield* newRunId, c, "of nothing"))
      assert.deepEqual(yield* store.compactions(conversationId), [one, two])
      yield* store.remove({ runId: b, userId: "alice" })
      assert.deepEqual(yield* store.compactions(conversationId), [one])
      yield* store.remove({ runId: d, userId: "alice" })
      assert.deepEqual(yield* store.compactions(conversationId), [one])
      yield* store.remove({ runId: c, userId: "alice" })
      assert.deepEqual(yield* store.compactions(conversationId), [])
      assert.deepEqual(yield* store.compactions(yield* newConversationId), [])
    })
  ),

  define(
    "the store is ready and has a clock",
    Effect.gen(function* () {
      const store = yield* RunStore
      assert.equal(yield* store.ready, true)
      const before = yield* store.now
      assert.ok((yield* store.now) >= before)
    })
  )
]

const message = (
  messageId: string,
  role: "user" | "assistant",
  content: string,
  runId: string,
  status: RunRow["status"] | undefined
) => ({ messageId, role, content, runId, status, createdAt: 1 })
