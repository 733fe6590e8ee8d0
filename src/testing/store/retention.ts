/**
 * Cases of what is removed for its age.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RunState from "../../domain/RunState.js"
import { type BaseRow, type RunRow, RunStore, type StoreError } from "../../store/RunStore.js"
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
  park,
  rowOf,
  type StoreCase,
  seqsOf,
  texts,
  upTo
} from "./fixtures.js"

/** After everything that ends in these cases. */
const later = 1_000_000

/** What a case takes for the folded state. What is not there is not stored. */
const baseOf = (run: RunRow, seq: number): BaseRow => {
  const { closed: _1, end: _2, open: _3, ...state } = RunState.empty(run.runId)
  return { seq, turns: 0, state: { ...state, seq, textLength: seq } }
}

/** A run of so many events more than the few that every run has, ended. */
const ended = (options?: {
  readonly events?: number
  readonly how?: ReturnType<typeof ending.completed>
  readonly conversationId?: string
}): Effect.Effect<RunRow, StoreError, RunStore> =>
  Effect.gen(function* () {
    const { conversationId, events = 10, how } = options ?? {}
    const run = yield* begin(conversationId === undefined ? {} : { conversationId })
    yield* append({ key: run.key, epoch: run.epoch, events: texts(events), set: { status: "running" } })
    yield* end(run, how)
    return yield* rowOf(run.key)
  })

/** Removes all that compactions have left. */
const trimAll = (limit = 4) =>
  Effect.flatMap(RunStore, (store) => Effect.repeat(store.trim(limit), { while: (more) => more }))

/** Removes a run in as many steps as it takes. */
const expireAll = (key: number, endedBefore = later, limit = 4) =>
  Effect.flatMap(RunStore, (store) =>
    Effect.repeat(store.expire({ key, endedBefore, limit }), { while: (outcome) => outcome === "more" })
  )

/**
 * The cases of compaction and removal.
 *
 * @since 0.1.0
 * @category cases
 */
export const retention: ReadonlyArray<StoreCase> = [
  define(
    "runs that ended long enough ago are found, oldest first, page by page; the others are not",
    Effect.gen(function* () {
      const store = yield* RunStore
      const at = (createdAt: number) => {
        const { events, set } = ending.completed()
        return { events: events.map((event) => ({ ...event, createdAt })), set }
      }
      const late = yield* ended({ how: at(30) })
      const early = yield* ended({ how: at(10) })
      const twin = yield* ended({ how: at(10) })
      const failed = yield* ended({ how: ending.failed(true) })
      const parked = yield* begin()
      yield* park(parked)
      yield* begin()
      yield* create()
      for (const what of ["log", "run"] as const) {
        const find = (endedBefore: number, limit = 10) => store.outlived({ what, endedBefore, limit })
        assert.deepEqual(idsOf(yield* find(9)), idsOf([failed]))
        assert.deepEqual(idsOf(yield* find(10)), idsOf([failed, early, twin]))
        assert.deepEqual(idsOf(yield* find(30)), idsOf([failed, early, twin, late]))
        const first = yield* find(later, 2)
        assert.deepEqual(first, [failed, early])
        const behind = { endedAt: early.endedAt ?? 0, key: early.key }
        assert.deepEqual(yield* store.outlived({ what, endedBefore: later, limit: 10, behind }), [twin, late])
      }
    })
  ),

  define(
    "a compaction puts a state in the place of events, and leaves the rest as it is",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* ended()
      const other = yield* ended()
      const { key, lastSeq } = run
      const before = yield* store.events({ key, after: 0, limit: 100 })
      assert.deepEqual(yield* store.base(key), Option.none())
      const base = baseOf(run, lastSeq - 1)
      assert.equal(yield* store.compact({ key, lastSeq, base }), true)
      assert.deepEqual(yield* store.base(key), Option.some(base))
      assert.deepEqual(yield* rowOf(key), { ...run, compactedSeq: lastSeq - 1 })
      yield* trimAll()
      assert.deepEqual(yield* store.events({ key, after: 0, limit: 100 }), before.slice(-1))
      assert.deepEqual(yield* store.events({ key, after: lastSeq - 1, limit: 100 }), before.slice(-1))
      assert.deepEqual(yield* store.events({ key, after: lastSeq, limit: 100 }), [])
      assert.deepEqual(yield* seqsOf(other.key), upTo(other.lastSeq))
      assert.deepEqual(idsOf(yield* store.outlived({ what: "log", endedBefore: later, limit: 10 })), idsOf([other]))
      assert.equal((yield* store.outlived({ what: "run", endedBefore: later, limit: 10 })).length, 2)
      assert.equal(yield* store.trim(10), false)
    })
  ),

  define(
    "a compaction is refused for a run that has not ended, has moved on, or is compacted already",
    Effect.gen(function* () {
      const store = yield* RunStore
      const running = yield* begin()
      const parked = yield* begin()
      yield* park(parked)
      const queued = yield* create()
      for (const { key } of [running, parked, queued]) {
        const { lastSeq } = yield* rowOf(key)
        assert.equal(yield* store.compact({ key, lastSeq, base: baseOf(running, lastSeq - 1) }), false)
        assert.deepEqual(yield* store.base(key), Option.none())
      }
      const run = yield* ended()
      const { key, lastSeq } = run
      const compact = (seq: number, at = lastSeq) => store.compact({ key, lastSeq: at, base: baseOf(run, seq) })
      assert.equal(yield* compact(3, lastSeq - 1), false)
      assert.equal(yield* compact(lastSeq + 1), false)
      assert.equal(yield* compact(3), true)
      assert.equal(yield* compact(3), false)
      assert.equal(yield* compact(2), false)
      assert.equal(yield* compact(lastSeq), true)
      yield* trimAll()
      assert.deepEqual(yield* seqsOf(key), [])
      assert.equal(yield* store.compact({ key: 987_654, lastSeq: 1, base: baseOf(run, 1) }), false)
    })
  ),

  define(
    "a run that was compacted goes on counting",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* ended({ how: ending.failed(true) })
      const { key, lastSeq } = run
      yield* store.compact({ key, lastSeq, base: baseOf(run, lastSeq - 1) })
      yield* trimAll()
      const { events, set } = ending.cancelled()
      const outcome = yield* append({ key, expectedSeq: lastSeq, raiseEpoch: true, events, set })
      assert.deepEqual([outcome._tag, yield* seqsOf(key)], ["Appended", [lastSeq, lastSeq + 1]])
    })
  ),

  define(
    "events are removed a few at a time, and of one run after the other",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all([ended({ events: 7 }), ended({ events: 7 })])
      for (const run of runs) {
        yield* store.compact({ key: run.key, lastSeq: run.lastSeq, base: baseOf(run, run.lastSeq - 1) })
      }
      const left = Effect.map(
        Effect.forEach(runs, ({ key }) => seqsOf(key)),
        (seqs) => seqs.flat().length
      )
      let before = yield* left
      while (yield* store.trim(3)) {
        const now = yield* left
        assert.ok(before - now <= 3, `${before} became ${now}`)
        before = now
      }
      assert.equal(yield* left, 2)
    })
  ),

  define(
    "a run that is too old goes with all that belongs to it, and an empty conversation with it",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* ended({ events: 9 })
      const { conversationId } = first
      const second = yield* ended({ conversationId, how: ending.failed(true) })
      const other = yield* ended()
      yield* store.saveCompaction({
        conversationId,
        uptoRunId: first.runId,
        uptoIteration: 1,
        summary: "s",
        madeIn: second.runId,
        madeAt: 1
      })
      assert.equal(yield* expireAll(first.key), "removed")
      assert.deepEqual(yield* store.row(first.key), Option.none())
      assert.deepEqual(yield* seqsOf(first.key), [])
      assert.deepEqual(yield* store.compactions(conversationId), [])
      assert.deepEqual(yield* rowOf(second.key), second)
      const found = Option.getOrThrow(yield* conversationOf(conversationId))
      assert.deepEqual(
        found.messages.map(({ messageId }) => messageId),
        [second.userMessageId, second.assistantMessageId]
      )
      assert.equal(yield* expireAll(second.key), "removed")
      assert.deepEqual(yield* conversationOf(conversationId), Option.none())
      assert.equal(yield* expireAll(second.key), "removed")
      assert.deepEqual(yield* rowOf(other.key), other)
      assert.deepEqual(yield* seqsOf(other.key), upTo(other.lastSeq))
    })
  ),

  define(
    "an answer that is too old leaves the question to its newer versions",
    Effect.gen(function* () {
      const store = yield* RunStore
      const old = yield* ended()
      const { conversationId, userMessageId } = old
      yield* create({ conversationId, userMessageId, regeneratedFrom: old })
      assert.equal(yield* expireAll(old.key), "kept")
      const [row] = (yield* store.list({ userId: "alice", conversationId, limit: 1 })).items
      const run = row ?? assert.fail("The regeneration is not there")
      yield* append({ key: run.key, raiseEpoch: true, ...ending.cancelled() })
      assert.equal(yield* expireAll(old.key), "removed")
      const found = Option.getOrThrow(yield* conversationOf(conversationId))
      assert.deepEqual(
        found.messages.map(({ messageId, role }) => [role, messageId]),
        [
          ["user", userMessageId],
          ["assistant", run.assistantMessageId]
        ]
      )
    })
  ),

  define(
    "nothing is removed of a run that is young, active or waiting, or whose conversation is",
    Effect.gen(function* () {
      const store = yield* RunStore
      const young = yield* ended()
      assert.equal(yield* expireAll(young.key, (young.endedAt ?? 0) - 1), "kept")
      const parked = yield* begin()
      yield* park(parked)
      const running = yield* begin()
      const queued = yield* create()
      const old = yield* ended()
      const busy = yield* create({ conversationId: old.conversationId })
      for (const { key } of [parked, running, queued, old, busy]) {
        const { lastSeq } = yield* rowOf(key)
        assert.equal(yield* expireAll(key), "kept")
        assert.deepEqual(yield* seqsOf(key), upTo(lastSeq))
      }
      assert.equal(yield* store.expire({ key: 987_654, endedBefore: later, limit: 1 }), "removed")
    })
  )
]
