/**
 * Cases of appending: order, fencing, compare-and-set, batches, transactions.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Append, RunStore } from "../../store/RunStore.js"
import { ToolConflict } from "../../tool/Tool.js"
import {
  append,
  assert,
  begin,
  create,
  define,
  encoded,
  end,
  ending,
  rowOf,
  type StoreCase,
  seqsOf,
  text,
  texts,
  upTo
} from "./fixtures.js"

const running = { status: "running" } as const

/**
 * The cases of `append`.
 *
 * @since 0.1.0
 * @category cases
 */
export const appends: ReadonlyArray<StoreCase> = [
  define(
    "seqs are 1, 2, 3 … over creation, claim and appends of every size",
    Effect.gen(function* () {
      const run = yield* begin()
      assert.equal(run.lastSeq, 3)
      let last = 3
      for (const size of [1, 2, 4, 5, 6, 49, 50, 56, 500, 561]) {
        const outcome = yield* append({ key: run.key, epoch: run.epoch, events: texts(size), set: running })
        last += size
        assert.deepEqual(outcome, { _tag: "Appended", lastSeq: last, epoch: run.epoch })
      }
      assert.deepEqual(yield* seqsOf(run.key), upTo(last))
      assert.equal((yield* rowOf(run.key)).lastSeq, last)
    })
  ),

  define(
    "what is read back is what was appended, byte for byte",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const deltas = [
        "",
        "a\nb\r\n\u2028\u0000",
        'quote " and \\',
        "ü 漢字 🙂 \u{1F468}\u200D\u{1F469}",
        "x".repeat(70_000)
      ]
      const events = deltas.map((delta, index) => text(delta, 1_700_000_000_000 + index))
      yield* append({ key: run.key, epoch: run.epoch, events, set: running })
      const stored = yield* store.events({ key: run.key, after: 3, limit: 100 })
      assert.deepEqual(
        stored,
        events.map((event, index) => ({ ...event, seq: index + 4 }))
      )
      const envelopes = yield* store.envelopes({ key: run.key, runId: run.runId, after: 3, limit: 100 })
      assert.deepEqual(
        envelopes.map(({ createdAt, event, runId, seq }) => ({ createdAt, event, runId, seq })),
        deltas.map((delta, index) => ({
          createdAt: 1_700_000_000_000 + index,
          event: { type: "text-delta", id: "t", delta },
          runId: run.runId,
          seq: index + 4
        }))
      )
    })
  ),

  define(
    "a stale epoch is fenced and leaves nothing behind",
    Effect.gen(function* () {
      const run = yield* begin()
      const before = yield* rowOf(run.key)
      for (const epoch of [run.epoch - 1, run.epoch + 1]) {
        const outcome = yield* append({ key: run.key, epoch, events: texts(2), set: { status: "streaming" } })
        assert.deepEqual(outcome, { _tag: "Fenced" })
      }
      assert.deepEqual(yield* rowOf(run.key), before)
      assert.deepEqual(yield* seqsOf(run.key), upTo(3))
    })
  ),

  define(
    "an append without an epoch needs no ownership",
    Effect.gen(function* () {
      const run = yield* begin()
      const outcome = yield* append({ key: run.key, events: texts(1), set: running })
      assert.deepEqual(outcome, { _tag: "Appended", lastSeq: 4, epoch: run.epoch })
    })
  ),

  define(
    "an append decided from another seq has moved",
    Effect.gen(function* () {
      const run = yield* begin()
      const one: Append = { key: run.key, epoch: run.epoch, expectedSeq: 3, events: texts(2), set: running }
      assert.deepEqual(yield* append(one), { _tag: "Appended", lastSeq: 5, epoch: run.epoch })
      assert.deepEqual(yield* append(one), { _tag: "Moved", lastSeq: 5 })
      assert.deepEqual(yield* append({ ...one, epoch: run.epoch - 1 }), { _tag: "Fenced" })
      assert.deepEqual(yield* seqsOf(run.key), upTo(5))
    })
  ),

  define(
    "more of an answer is held to its epoch, its place and a run that goes on, as everything else",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all(Array.from({ length: 7 }, () => begin()))
      const [done, broken] = runs
      if (done === undefined || broken === undefined) return assert.fail("There is no run")
      yield* end(done)
      yield* append({
        key: broken.key,
        epoch: broken.epoch,
        events: texts(1),
        set: { status: "failed", recoverable: true }
      })
      const before = yield* Effect.forEach(runs, (run) => rowOf(run.key))
      const seqs = yield* Effect.forEach(runs, (run) => seqsOf(run.key))
      const at = 1_800_000_000_000
      const batch = before.map(
        ({ epoch, key, lastSeq }, index): Append => ({
          key,
          epoch: index === 2 ? epoch - 1 : index === 3 ? epoch + 1 : epoch,
          expectedSeq: index === 4 ? lastSeq - 1 : index === 5 ? lastSeq + 1 : lastSeq,
          events: [text("a", at), text("b", at)]
        })
      )
      const outcomes = yield* store.append(batch)
      assert.deepEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Fenced", "Fenced", "Fenced", "Fenced", "Moved", "Moved", "Appended"]
      )
      for (const [index, row] of before.entries()) {
        const stored = index === 6
        const last = row.lastSeq + (stored ? 2 : 0)
        const now = yield* rowOf(row.key)
        assert.deepEqual(now, { ...row, lastSeq: last, updatedAt: stored ? at : row.updatedAt })
        assert.deepEqual(yield* seqsOf(row.key), stored ? upTo(last) : seqs[index])
      }
    })
  ),

  define(
    "in a batch of many runs the refused ones drop out alone, and outcomes keep their order",
    Effect.gen(function* () {
      const store = yield* RunStore
      const runs = yield* Effect.all(Array.from({ length: 12 }, () => begin()))
      const batch = runs.map(
        (run, index): Append => ({
          key: run.key,
          epoch: index === 3 ? run.epoch - 1 : run.epoch,
          expectedSeq: index === 7 ? 99 : 3,
          events: texts(index + 1),
          set: { status: "streaming" }
        })
      )
      const outcomes = yield* store.append(batch)
      for (const [index, run] of runs.entries()) {
        const refused = index === 3 || index === 7
        assert.equal(outcomes[index]?._tag, index === 3 ? "Fenced" : index === 7 ? "Moved" : "Appended")
        assert.deepEqual(yield* seqsOf(run.key), upTo(refused ? 3 : index + 4))
        assert.equal((yield* rowOf(run.key)).status, refused ? "running" : "streaming")
      }
    })
  ),

  define(
    "several appends to one run in a batch happen one after the other",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const other = yield* begin()
      const outcomes = yield* store.append([
        { key: run.key, epoch: run.epoch, events: texts(2), set: { status: "streaming" } },
        { key: other.key, epoch: other.epoch, events: texts(1), set: running },
        { key: run.key, expectedSeq: 3, events: texts(1), set: running },
        { key: run.key, ...ending.cancelled(), raiseEpoch: true },
        { key: run.key, epoch: run.epoch, events: texts(1), set: running }
      ])
      assert.deepEqual(outcomes, [
        { _tag: "Appended", lastSeq: 5, epoch: run.epoch },
        { _tag: "Appended", lastSeq: 4, epoch: other.epoch },
        { _tag: "Moved", lastSeq: 5 },
        { _tag: "Appended", lastSeq: 6, epoch: run.epoch + 1 },
        { _tag: "Fenced" }
      ])
      assert.equal((yield* rowOf(run.key)).status, "cancelled")
      assert.deepEqual(yield* store.append([]), [])
    })
  ),

  define(
    "a raised epoch takes the run away from its owner",
    Effect.gen(function* () {
      const run = yield* begin()
      const raised = yield* append({ key: run.key, raiseEpoch: true, events: texts(1), set: running })
      assert.deepEqual(raised, { _tag: "Appended", lastSeq: 4, epoch: run.epoch + 1 })
      const row = yield* rowOf(run.key)
      assert.equal(row.epoch, run.epoch + 1)
      assert.equal(row.owner, undefined)
      assert.deepEqual(yield* append({ key: run.key, epoch: run.epoch, events: texts(1), set: running }), {
        _tag: "Fenced"
      })
    })
  ),

  define(
    "a run that has ended for good refuses everything",
    Effect.gen(function* () {
      for (const how of [ending.completed(), ending.cancelled(), ending.failed(false)]) {
        const run = yield* begin()
        yield* end(run, how)
        for (const raiseEpoch of [false, true]) {
          const outcome = yield* append({ key: run.key, raiseEpoch, events: texts(1), set: running })
          assert.deepEqual(outcome, { _tag: "Fenced" })
        }
        assert.deepEqual(yield* seqsOf(run.key), upTo(4))
      }
    })
  ),

  define(
    "a recoverably failed run goes on only with a raised epoch",
    Effect.gen(function* () {
      const run = yield* begin()
      yield* end(run, ending.failed(true))
      const failed = yield* rowOf(run.key)
      assert.equal(failed.recoverable, true)
      assert.deepEqual(failed.error, { code: "broken", message: "It broke." })
      assert.equal(failed.endedAt, 2)
      assert.equal(failed.owner, undefined)
      assert.deepEqual(yield* append({ key: run.key, epoch: run.epoch, events: texts(1), set: running }), {
        _tag: "Fenced"
      })
      const resumed = yield* append({
        key: run.key,
        expectedSeq: failed.lastSeq,
        raiseEpoch: true,
        onlyIfLatest: true,
        events: texts(1),
        set: { status: "running", attempt: 2, error: null, lease: { owner: "p2", ttlMs: 1000 } }
      })
      assert.deepEqual(resumed, { _tag: "Appended", lastSeq: 5, epoch: run.epoch + 1 })
      const row = yield* rowOf(run.key)
      assert.equal(row.status, "running")
      assert.equal(row.recoverable, undefined)
      assert.equal(row.error, undefined)
      assert.equal(row.endedAt, undefined)
      assert.equal(row.attempt, 2)
      assert.equal(row.owner, "p2")
    })
  ),

  define(
    "only the latest run of a conversation may go on where that is asked for",
    Effect.gen(function* () {
      const first = yield* begin()
      yield* end(first, ending.failed(true))
      const resume: Append = {
        key: first.key,
        raiseEpoch: true,
        onlyIfLatest: true,
        events: texts(1),
        set: running
      }
      const second = yield* begin({ conversationId: first.conversationId })
      assert.deepEqual(yield* append(resume), { _tag: "Moved", lastSeq: 4 })
      yield* end(second, ending.failed(true))
      assert.deepEqual(yield* append(resume), { _tag: "Moved", lastSeq: 4 })
      assert.equal((yield* append({ ...resume, key: second.key }))._tag, "Appended")
    })
  ),

  define(
    "whether a run is the latest is asked after what came before it in its batch",
    Effect.gen(function* () {
      const first = yield* begin()
      const second = yield* create({ conversationId: first.conversationId })
      const ask = { key: second.key, onlyIfLatest: true, events: texts(1) }
      const store = yield* RunStore
      const outcomes = yield* store.append([{ key: first.key, epoch: first.epoch, ...ending.cancelled() }, ask])
      assert.deepEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Appended", "Appended"]
      )
    })
  ),

  define(
    "an older version of an answer is not the latest",
    Effect.gen(function* () {
      const old = yield* begin()
      yield* end(old, ending.failed(true))
      const again = yield* create({
        conversationId: old.conversationId,
        userMessageId: old.userMessageId,
        regeneratedFrom: old
      })
      yield* append({ key: again.key, raiseEpoch: true, ...ending.cancelled() })
      const outcome = yield* append({
        key: old.key,
        raiseEpoch: true,
        onlyIfLatest: true,
        events: texts(1),
        set: running
      })
      assert.deepEqual(outcome, { _tag: "Moved", lastSeq: 4 })
    })
  ),

  define(
    "absent fields of a change stay, present ones are set, null clears",
    Effect.gen(function* () {
      const run = yield* begin()
      const usage = { inputTokens: 3, outputTokens: 4, reasoningTokens: 1, totalTokens: 7, costUsd: 0.25 }
      yield* append({
        key: run.key,
        events: texts(1, 50),
        set: { status: "streaming", attempt: 3, iteration: 2, usage, nextExpiry: 1_800_000_000_000 }
      })
      const full = yield* rowOf(run.key)
      assert.deepEqual(
        [full.status, full.attempt, full.iteration, full.usage, full.nextExpiry, full.updatedAt, full.owner],
        ["streaming", 3, 2, usage, 1_800_000_000_000, 50, "p1"]
      )
      yield* append({ key: run.key, events: texts(1, 60), set: running })
      assert.deepEqual(yield* rowOf(run.key), { ...full, status: "running", lastSeq: full.lastSeq + 1, updatedAt: 60 })
      yield* append({ key: run.key, events: texts(1, 70), set: { status: "running", nextExpiry: null } })
      assert.equal((yield* rowOf(run.key)).nextExpiry, undefined)
      yield* append({ key: run.key, events: texts(1, 80), set: { status: "completed", recoverable: true } })
      assert.equal((yield* rowOf(run.key)).recoverable, undefined)
    })
  ),

  define(
    "an append renews or gives up the lease, and only an executing run has an owner",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin({}, { ttlMs: 10 })
      yield* append({
        key: run.key,
        events: texts(1),
        set: { status: "streaming", lease: { owner: "p1", ttlMs: 500_000 } }
      })
      const now = yield* store.now
      const renewed = yield* rowOf(run.key)
      assert.ok(renewed.leaseExpiresAt !== undefined && renewed.leaseExpiresAt > now + 400_000)
      yield* append({ key: run.key, events: texts(1), set: { status: "streaming", lease: null } })
      const given = yield* rowOf(run.key)
      assert.deepEqual([given.owner, given.leaseExpiresAt], [undefined, undefined])

      const parked = yield* begin()
      yield* append({ key: parked.key, events: texts(1), set: { status: "waiting_approval" } })
      const waiting = yield* rowOf(parked.key)
      assert.deepEqual([waiting.owner, waiting.leaseExpiresAt], [undefined, undefined])
    })
  ),

  define(
    "an append that changes nothing of the row leaves it and its lease alone, and is fenced like any other",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin({}, { ttlMs: 500_000 })
      const other = yield* begin()
      const before = yield* rowOf(run.key)
      const outcomes = yield* store.append([
        { key: run.key, epoch: run.epoch, expectedSeq: before.lastSeq, events: texts(3, 70) },
        { key: other.key, epoch: other.epoch, events: texts(1), set: running },
        { key: run.key, epoch: run.epoch - 1, events: texts(1) },
        { key: run.key, epoch: run.epoch, expectedSeq: before.lastSeq, events: texts(1) }
      ])
      const lastSeq = before.lastSeq + 3
      assert.deepEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Appended", "Appended", "Fenced", "Moved"]
      )
      assert.deepEqual(outcomes[0], { _tag: "Appended", lastSeq, epoch: run.epoch })
      assert.deepEqual(yield* rowOf(run.key), { ...before, lastSeq, updatedAt: 70 })
      yield* end(run, ending.failed(true))
      const [late] = yield* store.append([{ key: run.key, events: texts(1) }])
      assert.deepEqual(late, { _tag: "Fenced" })
    })
  ),

  define(
    "an effect that goes with an append is run once, in order, and only when the append is accepted",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const seen: Array<string> = []
      const within = (name: string) => Effect.sync(() => void seen.push(name))
      const outcomes = yield* store.append([
        { key: run.key, epoch: run.epoch, events: texts(1), set: running },
        { key: run.key, epoch: run.epoch, events: texts(1), set: running, within: within("one") },
        { key: run.key, epoch: run.epoch - 1, events: texts(1), set: running, within: within("fenced") },
        { key: run.key, expectedSeq: 1, events: texts(1), set: running, within: within("moved") },
        { key: run.key, epoch: run.epoch, events: texts(1), set: running, within: within("two") }
      ])
      assert.deepEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Appended", "Appended", "Fenced", "Moved", "Appended"]
      )
      assert.deepEqual(seen, ["one", "two"])
      assert.deepEqual(yield* seqsOf(run.key), upTo(6))
    })
  ),

  define(
    "an append whose effect reports a conflict is rejected, stores nothing and leaves the others alone",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const other = yield* begin()
      const before = yield* rowOf(run.key)
      const outcomes = yield* store.append([
        { key: other.key, epoch: other.epoch, events: texts(1), set: running },
        {
          key: run.key,
          epoch: run.epoch,
          events: texts(3),
          set: { status: "streaming", iteration: 9 },
          within: Effect.fail(new ToolConflict({ message: "changed" }))
        },
        { key: other.key, epoch: other.epoch, events: texts(1), set: running }
      ])
      assert.deepEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Appended", "Rejected", "Appended"]
      )
      const rejected = outcomes[1]
      assert.ok(rejected?._tag === "Rejected" && rejected.conflict.message === "changed")
      assert.deepEqual(yield* rowOf(run.key), before)
      assert.deepEqual(yield* seqsOf(run.key), upTo(3))
      assert.deepEqual(yield* seqsOf(other.key), upTo(5))
    })
  ),

  define(
    "an effect that dies or is interrupted stores nothing, and the store goes on",
    Effect.gen(function* () {
      const run = yield* begin()
      for (const within of [Effect.dieMessage("broken tool"), Effect.interrupt]) {
        const exit = yield* Effect.exit(
          append({ key: run.key, epoch: run.epoch, events: texts(1), set: running, within })
        )
        assert.ok(Exit.isFailure(exit))
        assert.deepEqual(yield* seqsOf(run.key), upTo(3))
      }
      const outcome = yield* append({ key: run.key, epoch: run.epoch, events: texts(1), set: running })
      assert.deepEqual(outcome, { _tag: "Appended", lastSeq: 4, epoch: run.epoch })
    })
  ),

  define(
    "concurrent appends to one run lose nothing",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const outcomes = yield* Effect.forEach(
        upTo(40),
        (n) => append({ key: run.key, epoch: run.epoch, events: [text(`n${n}`), text(`m${n}`)], set: running }),
        { concurrency: "unbounded" }
      )
      assert.equal(outcomes.filter(({ _tag }) => _tag === "Appended").length, 40)
      const events = yield* store.events({ key: run.key, after: 3, limit: 1000 })
      assert.deepEqual(
        events.map(({ seq }) => seq),
        upTo(83).slice(3)
      )
      assert.equal(new Set(events.map(({ json }) => json)).size, 80)
    })
  ),

  define(
    "of many decisions from the same state exactly one is taken",
    Effect.gen(function* () {
      const run = yield* begin()
      const outcomes = yield* Effect.forEach(
        upTo(20),
        () => append({ key: run.key, expectedSeq: 3, events: texts(1), set: running }),
        { concurrency: "unbounded" }
      )
      assert.equal(outcomes.filter(({ _tag }) => _tag === "Appended").length, 1)
      assert.equal(outcomes.filter(({ _tag }) => _tag === "Moved").length, 19)
    })
  ),

  define(
    "a run that is not there is fenced",
    Effect.gen(function* () {
      assert.deepEqual(yield* append({ key: 987_654, events: texts(1), set: running }), { _tag: "Fenced" })
    })
  ),

  define(
    "pages of the log follow the cursor and end",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      yield* append({ key: run.key, epoch: run.epoch, events: texts(20), set: running })
      const pages: Array<number> = []
      let after = 0
      for (;;) {
        const page = yield* store.events({ key: run.key, after, limit: 7 })
        const last = page.at(-1)
        if (last === undefined) break
        pages.push(page.length)
        assert.equal(page[0]?.seq, after + 1)
        after = last.seq
      }
      assert.deepEqual(pages, [7, 7, 7, 2])
      assert.deepEqual(yield* store.events({ key: run.key, after: 23, limit: 7 }), [])
    })
  ),

  define(
    "the checkpoints of a run are read by themselves",
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      const checkpoint = (seq: number) =>
        encoded({ type: "checkpoint", runId: run.runId, seq, checkpointKind: "assistant_delta" }, 5)
      yield* append({
        key: run.key,
        events: [text("a"), checkpoint(5), text("b"), checkpoint(7)],
        set: running
      })
      const checkpoints = yield* store.checkpoints(run.key)
      assert.deepEqual(
        checkpoints.map(({ seq, type }) => [seq, type]),
        [
          [5, "checkpoint"],
          [7, "checkpoint"]
        ]
      )
    })
  )
]
