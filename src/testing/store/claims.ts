/**
 * Cases of the queue and of leases.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type RunRow, RunStore } from "../../store/RunStore.js"
import {
  append,
  assert,
  begin,
  claim,
  create,
  define,
  end,
  ending,
  idsOf,
  park,
  requeue,
  rowOf,
  type StoreCase,
  seqsOf,
  started,
  texts,
  tryClaim,
  upTo
} from "./fixtures.js"

const p2 = { owner: "p2", ttlMs: 60_000, limit: 100 }

/**
 * The cases of claiming, renewing and releasing.
 *
 * @since 0.1.0
 * @category cases
 */
export const claims: ReadonlyArray<StoreCase> = [
  define(
    "a claim starts the run: status, epoch, lease and event together",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* create()
      const now = yield* store.now
      const claimed = yield* claim({ owner: "p1", ttlMs: 60_000 })
      assert.equal(claimed.key, run.key)
      assert.deepEqual([claimed.status, claimed.owner, claimed.lastSeq], ["running", "p1", 3])
      assert.ok(claimed.epoch > run.epoch)
      assert.ok(claimed.leaseExpiresAt !== undefined && claimed.leaseExpiresAt >= now + 60_000)
      assert.deepEqual(yield* rowOf(run.key), claimed)
      const [event] = yield* store.events({ key: run.key, after: 2, limit: 10 })
      assert.deepEqual([event?.seq, event?.type, event?.json], [3, started.type, started.json])
      assert.deepEqual(yield* tryClaim(), Option.none())
    })
  ),

  define(
    "runs start in the order in which they came",
    Effect.gen(function* () {
      const runs = yield* Effect.all(upTo(5).map(() => create()))
      const claimed = yield* Effect.all(upTo(5).map(() => claim()))
      assert.deepEqual(idsOf(claimed), idsOf(runs))
    })
  ),

  define(
    "concurrent claims never give a run away twice",
    Effect.gen(function* () {
      const runs = yield* Effect.all(upTo(30).map(() => create()))
      const claimed = yield* Effect.forEach(upTo(50), (n) => tryClaim({ owner: `p${n}` }), {
        concurrency: "unbounded"
      })
      const ids = idsOf(claimed.flatMap(Option.toArray))
      assert.deepEqual(ids.toSorted(), idsOf(runs).toSorted())
    })
  ),

  define(
    "one run of a conversation at a time, in order",
    Effect.gen(function* () {
      const first = yield* create()
      const { conversationId } = first
      const second = yield* create({ conversationId })
      const third = yield* create({ conversationId })
      const other = yield* create()
      assert.equal((yield* claim()).runId, first.runId)
      assert.equal((yield* claim()).runId, other.runId)
      assert.deepEqual(yield* tryClaim(), Option.none())
      yield* end(first)
      assert.equal((yield* claim()).runId, second.runId)
      assert.deepEqual(yield* tryClaim(), Option.none())
      yield* end(second, ending.failed(true))
      assert.equal((yield* claim()).runId, third.runId)
    })
  ),

  define(
    "a run that waits for a person holds its conversation, but no place among the executing",
    Effect.gen(function* () {
      const run = yield* begin()
      yield* create({ conversationId: run.conversationId })
      const other = yield* create()
      assert.deepEqual(yield* tryClaim({ maxConcurrent: 1 }), Option.none())
      yield* park(run)
      assert.equal((yield* claim({ maxConcurrent: 1 })).runId, other.runId)
      assert.deepEqual(yield* tryClaim({ maxConcurrent: 2 }), Option.none())
    })
  ),

  define(
    "a run back from an approval goes before runs that were never started",
    Effect.gen(function* () {
      const run = yield* begin()
      yield* park(run)
      const next = yield* create({ userId: "bob" })
      const follower = yield* create({ conversationId: run.conversationId })
      const asked = yield* create()
      yield* requeue(run)
      const queued = yield* rowOf(run.key)
      assert.deepEqual([queued.status, queued.owner, queued.leaseExpiresAt], ["queued", undefined, undefined])
      const claimed = yield* claim()
      assert.equal(claimed.runId, run.runId)
      assert.ok(claimed.epoch > run.epoch)
      assert.equal((yield* claim()).runId, next.runId)
      assert.equal((yield* claim()).runId, asked.runId)
      assert.deepEqual(yield* tryClaim(), Option.none())
      yield* end(claimed)
      assert.equal((yield* claim()).runId, follower.runId)
    })
  ),

  define(
    "that holds also against a run that came earlier and had to wait for its conversation",
    Effect.gen(function* () {
      const first = yield* begin({ userId: "bob" })
      const early = yield* create({ userId: "bob", conversationId: first.conversationId })
      const run = yield* begin()
      yield* park(run)
      yield* end(first)
      yield* requeue(run)
      assert.equal((yield* claim({ maxConcurrent: 1 })).runId, run.runId)
      yield* end(run)
      assert.equal((yield* claim({ maxConcurrent: 1 })).runId, early.runId)
    })
  ),

  define(
    "the user with the fewest executing runs goes first",
    Effect.gen(function* () {
      const alice = yield* Effect.all(upTo(3).map(() => create()))
      const bob = yield* Effect.all(upTo(2).map(() => create({ userId: "bob" })))
      const claimed = yield* Effect.all(upTo(5).map(() => claim()))
      assert.deepEqual(
        idsOf(claimed),
        idsOf([alice[0], bob[0], alice[1], bob[1], alice[2]].flatMap((row) => row ?? []))
      )
    })
  ),

  define(
    "users take turns, however much one of them has brought first",
    Effect.gen(function* () {
      const store = yield* RunStore
      const alice = yield* Effect.all(upTo(5).map(() => create()))
      const bob = yield* Effect.all(upTo(2).map(() => create({ userId: "bob" })))
      const carol = yield* create({ userId: "carol" })
      const queued = [...alice, ...bob, carol]
      const expected = yield* Effect.forEach(queued, ({ key }) => store.queuePosition(key))
      const order: Array<string> = []
      for (const _ of queued) {
        const run = yield* claim({ maxConcurrent: 1 })
        order.push(run.runId)
        yield* end(run)
      }
      assert.deepEqual(
        order,
        idsOf([alice[0], bob[0], carol, alice[1], bob[1], ...alice.slice(2)].flatMap((row) => row ?? []))
      )
      // What each was told before anything began.
      assert.deepEqual(
        expected,
        queued.map(({ runId }) => Option.some(order.indexOf(runId)))
      )
      // Whose turn is the longest ago goes first, also when the other was here before.
      yield* create({ userId: "bob" })
      const late = yield* create({ userId: "carol" })
      assert.equal((yield* claim({ maxConcurrent: 1 })).runId, late.runId)
    })
  ),

  define(
    "limits bound what executes, in all and for each user",
    Effect.gen(function* () {
      const runs = yield* Effect.all(upTo(4).map(() => create()))
      const bob = yield* create({ userId: "bob" })
      assert.deepEqual(yield* tryClaim({ maxConcurrent: 0 }), Option.none())
      yield* claim({ maxPerUser: 2 })
      yield* claim({ maxPerUser: 2 })
      yield* claim({ maxPerUser: 2 })
      assert.equal((yield* rowOf(bob.key)).status, "running")
      assert.deepEqual(yield* tryClaim({ maxPerUser: 2 }), Option.none())
      assert.deepEqual(yield* tryClaim({ maxConcurrent: 3 }), Option.none())
      assert.equal(Option.isSome(yield* tryClaim({ maxConcurrent: 4 })), true)
      for (const run of runs.slice(0, 2)) yield* end(run)
      assert.equal(Option.isSome(yield* tryClaim({ maxPerUser: 2 })), true)
    })
  ),

  define(
    "a regeneration starts in its old place",
    Effect.gen(function* () {
      const old = yield* create()
      const later = yield* create()
      yield* end(old, ending.cancelled())
      const again = yield* create({
        conversationId: old.conversationId,
        userMessageId: old.userMessageId,
        regeneratedFrom: old
      })
      assert.equal((yield* claim()).runId, again.runId)
      assert.equal((yield* claim()).runId, later.runId)
    })
  ),

  define(
    "the place in the queue counts the runs ahead",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      yield* park(run)
      const runs = yield* Effect.all(upTo(3).map(() => create()))
      const positions = Effect.forEach(runs, ({ key }) => Effect.map(store.queuePosition(key), Option.getOrUndefined))
      assert.deepEqual(yield* positions, [0, 1, 2])
      yield* requeue(run)
      assert.deepEqual(yield* positions, [1, 2, 3])
      assert.deepEqual(yield* store.queuePosition(run.key), Option.some(0))
      yield* claim()
      assert.deepEqual(yield* store.queuePosition(run.key), Option.none())
      assert.deepEqual(yield* store.queuePosition(987_654), Option.none())
    })
  ),

  define(
    "a run whose lease has run out is taken over, and its old owner fenced",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin({}, { ttlMs: 0 })
      const held = yield* begin()
      const taken = yield* store.claimAbandoned(p2)
      assert.deepEqual(
        taken.map(({ epoch, lastSeq, owner, runId, status }) => [runId, owner, epoch, status, lastSeq]),
        [[run.runId, "p2", run.epoch + 1, "running", 3]]
      )
      assert.deepEqual(taken, [yield* rowOf(run.key)])
      assert.deepEqual(yield* store.claimAbandoned(p2), [])
      const late = yield* append({ key: run.key, epoch: run.epoch, events: texts(1), set: { status: "running" } })
      assert.deepEqual(late, { _tag: "Fenced" })
      assert.equal((yield* rowOf(held.key)).owner, "p1")
      assert.deepEqual(yield* seqsOf(run.key), upTo(3))
    })
  ),

  define(
    "the lease of a dead owner is void at once",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin({}, { owner: "dead" })
      yield* append({ key: run.key, events: texts(1), set: { status: "streaming" } })
      assert.deepEqual(yield* store.claimAbandoned({ ...p2, dead: ["somebody"] }), [])
      const taken = yield* store.claimAbandoned({ ...p2, dead: ["somebody", "dead"] })
      assert.deepEqual(
        taken.map(({ runId, status }) => [runId, status]),
        [[run.runId, "streaming"]]
      )
    })
  ),

  define(
    "a run that was given up is taken at once, and only its present holder can give it up",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      yield* store.release({ key: run.key, epoch: run.epoch - 1 })
      assert.deepEqual(yield* store.claimAbandoned(p2), [])
      yield* store.release({ key: run.key, epoch: run.epoch })
      const released = yield* rowOf(run.key)
      assert.deepEqual([released.status, released.owner], ["running", undefined])
      assert.deepEqual(idsOf(yield* store.claimAbandoned(p2)), [run.runId])
    })
  ),

  define(
    "only executing runs can be abandoned",
    Effect.gen(function* () {
      const store = yield* RunStore
      yield* park(yield* begin({}, { ttlMs: 0 }))
      yield* end(yield* begin({}, { ttlMs: 0 }), ending.failed(true))
      yield* end(yield* begin({}, { ttlMs: 0 }))
      yield* create()
      assert.deepEqual(yield* store.claimAbandoned({ ...p2, dead: ["p1"] }), [])
    })
  ),

  define(
    "what was left behind is taken in its order, and no more of it than was asked for",
    Effect.gen(function* () {
      const store = yield* RunStore
      const behind = { ttlMs: 0 }
      const old = yield* begin()
      const runs = [yield* begin({}, behind), yield* begin({}, behind), yield* begin({}, behind)]
      const held = yield* begin()
      yield* end(old)
      const { conversationId, userMessageId } = old
      // Takes the place of the one that came before all others.
      const first = yield* begin({ conversationId, userMessageId, regeneratedFrom: old }, behind)
      const all = [first, ...runs]
      const taken = yield* store.claimAbandoned({ ...p2, limit: 2 })
      assert.deepEqual(idsOf(taken), idsOf(all.slice(0, 2)))
      const rest = yield* store.claimAbandoned(p2)
      assert.deepEqual(idsOf(rest), idsOf(all.slice(2)))
      const now = yield* store.now
      for (const [index, row] of [...taken, ...rest].entries()) {
        assert.deepEqual([row.owner, row.epoch], ["p2", (all[index]?.epoch ?? 0) + 1])
        assert.ok(row.leaseExpiresAt !== undefined && row.leaseExpiresAt > now)
        assert.deepEqual(yield* rowOf(row.key), row)
      }
      assert.deepEqual(yield* store.claimAbandoned(p2), [])
      assert.equal((yield* rowOf(held.key)).owner, "p1")
    })
  ),

  define(
    "concurrent recoveries never take a run twice, and leave none",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all(upTo(10).map(() => begin({}, { ttlMs: 0 })))
      const taken = yield* Effect.forEach(
        upTo(20),
        (n) => store.claimAbandoned({ owner: `q${n}`, ttlMs: 60_000, limit: 3 }),
        { concurrency: "unbounded" }
      )
      assert.deepEqual(idsOf(taken.flat()).toSorted(), idsOf(runs).toSorted())
    })
  ),

  define(
    "renewing extends the leases that an owner holds, and only those",
    Effect.gen(function* () {
      const store = yield* RunStore
      const mine = yield* begin({}, { ttlMs: 0 })
      const other = yield* begin({}, { ttlMs: 0, owner: "p2" })
      yield* store.renew({ owner: "p1", ttlMs: 60_000 })
      const row = yield* rowOf(mine.key)
      assert.ok(row.leaseExpiresAt !== undefined && row.leaseExpiresAt > (mine.leaseExpiresAt ?? 0))
      assert.deepEqual([row.epoch, row.lastSeq], [mine.epoch, mine.lastSeq])
      assert.equal((yield* rowOf(other.key)).leaseExpiresAt, other.leaseExpiresAt)
      assert.deepEqual(idsOf(yield* store.claimAbandoned({ ...p2, owner: "p3" })), [other.runId])
    })
  ),

  define(
    "an owner learns which runs it still holds",
    Effect.gen(function* () {
      const store = yield* RunStore
      const kept = yield* begin()
      const lost = yield* begin()
      const ended = yield* begin()
      yield* begin({}, { owner: "p2" })
      yield* append({ key: kept.key, epoch: kept.epoch, events: texts(2), set: { status: "streaming" } })
      yield* append({ key: lost.key, raiseEpoch: true, events: texts(1), set: { status: "running" } })
      yield* end(ended)
      assert.deepEqual(yield* store.owned("p1"), [{ key: kept.key, epoch: kept.epoch, lastSeq: 5 }])
      assert.deepEqual(yield* store.owned("nobody"), [])
      assert.deepEqual((yield* store.owners).toSorted(), ["p1", "p2"])
    })
  ),

  define(
    "approvals are due when their time has come and the run waits",
    Effect.gen(function* () {
      const store = yield* RunStore
      const now = yield* store.now
      const late = yield* begin()
      const later = yield* begin()
      const future = yield* begin()
      const never = yield* begin()
      const busy = yield* begin()
      yield* park(later, now - 1)
      yield* park(late, now - 5)
      yield* park(future, now + 1_000_000)
      yield* park(never)
      yield* append({ key: busy.key, events: texts(1), set: { status: "running", nextExpiry: now - 9 } })
      assert.deepEqual(yield* store.due(10), [late.key, later.key])
      assert.deepEqual(yield* store.due(1), [late.key])
      yield* requeue(late)
      assert.deepEqual(yield* store.due(10), [later.key])
    })
  ),

  define(
    "the census counts what has not ended, by state",
    Effect.gen(function* () {
      const store = yield* RunStore
      const count = Effect.map(store.census, ({ queued, running, streaming, waiting_approval }) => [
        queued,
        running,
        streaming,
        waiting_approval
      ])
      assert.deepEqual(yield* count, [0, 0, 0, 0])
      const parked = yield* begin()
      const streaming = yield* begin({ userId: "bob" })
      const ended = yield* begin()
      yield* begin()
      yield* park(parked)
      yield* append({ key: streaming.key, events: texts(1), set: { status: "streaming" } })
      yield* end(ended)
      yield* create()
      yield* create()
      assert.deepEqual(yield* count, [2, 1, 1, 1])
    })
  ),

  define(
    "recoverable failures before a place are found, to be superseded",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* begin()
      const { conversationId } = first
      yield* end(first, ending.failed(true))
      const second = yield* begin({ conversationId })
      yield* end(second, ending.failed(false))
      const third = yield* begin({ conversationId })
      yield* end(third, ending.failed(true))
      const fourth = yield* create({ conversationId })
      const before = (row: RunRow) => Effect.map(store.supersedable({ conversationId, before: row }), idsOf)
      assert.deepEqual(yield* before(fourth), [first.runId, third.runId])
      assert.deepEqual(yield* before(third), [first.runId])
      assert.deepEqual(yield* before(first), [])
    })
  ),

  define(
    "a recoverable failure is found to be superseded by its own next version",
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* begin()
      const { conversationId, userMessageId } = first
      yield* end(first, ending.failed(true))
      const again = yield* create({ conversationId, userMessageId, regeneratedFrom: first })
      assert.deepEqual(idsOf(yield* store.supersedable({ conversationId, before: again })), [first.runId])
      assert.deepEqual(yield* store.supersedable({ conversationId, before: first }), [])
    })
  )
]
