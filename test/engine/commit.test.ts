import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as Secrets from "../../src/domain/Secrets.js"
import * as GroupCommit from "../../src/engine/GroupCommit.js"
import { LiveTails } from "../../src/engine/LiveTail.js"
import * as RunLog from "../../src/engine/RunLog.js"
import { RunWriter } from "../../src/engine/RunWriter.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { type RunRow, RunStore, type StoreError } from "../../src/store/RunStore.js"
import { append, begin, text } from "../../src/testing/store/fixtures.js"

/** Writers of runs, as a process has them that executes these. */
const writers =
  (store: RunStore["Type"], tails: LiveTails, commit: GroupCommit.GroupCommit) =>
  (row: RunRow): Effect.Effect<RunWriter, StoreError> =>
    Effect.map(
      RunLog.load(store, row),
      (state) =>
        new RunWriter(row.key, row.runId, row.epoch, state, {
          tails,
          checkpointEvery: 1000,
          secrets: Secrets.make([]),
          lease: { owner: "p1", ttlMs: 60_000 },
          notify: commit.notify,
          onClose: () => undefined
        })
    )

const said = (delta: string): AgentEvent => ({ type: "text-delta", id: "t", delta })

it.scopedLive("a run has one append under way, also when it has more to say while another's log is read", () =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const [first, other] = [yield* begin(), yield* begin()]
    const batches: Array<ReadonlyArray<number>> = []
    let more: Effect.Effect<void> = Effect.void
    const commit = yield* GroupCommit.make(
      {
        ...store,
        append: (batch) => {
          batches.push(batch.map(({ key }) => key))
          return store.append(batch)
        },
        envelopes: (query) =>
          Effect.zipRight(query.key === other.key ? Effect.suspend(() => more) : Effect.void, store.envelopes(query))
      },
      { windowMs: 0, patienceMs: 1000, turn: Effect.yieldNow(), now: Effect.orDie(store.now) }
    )
    const tails = new LiveTails()
    const writerOf = writers(store, tails, commit)
    const [one, two] = [yield* writerOf(first), yield* writerOf(other)]
    // Somebody else writes to the second run, so that its log is read before its next append; meanwhile the first goes on.
    yield* append({ key: other.key, events: [text("foreign")] })
    more = Effect.orDie(one.offer([said("b")]))
    yield* one.offer([said("a")])
    two.stale = true
    yield* two.offer([said("c")])
    yield* Effect.all([one.settled, two.settled])
    more = Effect.void
    yield* one.settled
    for (const keys of batches) expect(new Set(keys).size).toBe(keys.length)
    for (const [row, writer] of [
      [first, one],
      [other, two]
    ] as const) {
      expect(writer.state).toEqual(yield* RunLog.load(store, row))
      const stored = yield* store.events({ key: row.key, after: 0, limit: 100 })
      const shown = tails.behind(row.key, stored.length - 1) ?? []
      expect(shown.map(({ json }) => JSON.parse(json).createdAt)).toEqual([stored.at(-1)?.createdAt])
    }
  }).pipe(Effect.timeout("10 seconds"), Effect.provide(MemoryStore.layer))
)

const windowMs = 5

/** A committing fiber whose turns of the event loop do what the test says, and what it has stored so far. */
const committing = (onTurn: () => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const batches: Array<ReadonlyArray<string>> = []
    const commit = yield* GroupCommit.make(
      {
        ...store,
        append: (batch) => {
          batches.push(batch.flatMap(({ events }) => events.map(({ json }) => JSON.parse(json).delta)))
          return store.append(batch)
        }
      },
      {
        windowMs,
        patienceMs: 1000,
        turn: Effect.zipRight(Effect.yieldNow(), Effect.suspend(onTurn)),
        now: Effect.orDie(store.now)
      }
    )
    const writerOf = writers(store, new LiveTails(), commit)
    const next = Effect.flatMap(Effect.orDie(begin()), writerOf)
    return { batches, next }
  })

it.scoped("what comes while turns bring more is one transaction, and a quiet turn ends it without any time", () =>
  Effect.gen(function* () {
    const later: Array<Effect.Effect<void>> = []
    const { batches, next } = yield* committing(() => later.shift() ?? Effect.void)
    const [one, two, three] = [yield* next, yield* next, yield* next]
    later.push(Effect.orDie(two.offer([said("b")])), Effect.orDie(three.offer([said("c")])))
    yield* one.offer([said("a")])
    while (batches.length === 0) yield* Effect.yieldNow()
    expect(batches).toEqual([["a", "b", "c"]])
  }).pipe(Effect.provide(MemoryStore.layer))
)

it.scoped("two transactions lie the window apart, and what comes between them shares the second", () =>
  Effect.gen(function* () {
    const { batches, next } = yield* committing(() => Effect.void)
    const [one, two] = [yield* next, yield* next]
    yield* one.commit([said("a")])
    const rest = yield* Effect.fork(Effect.all([one.commit([said("b")]), two.commit([said("c")])], { concurrency: 2 }))
    yield* TestClock.adjust(windowMs - 1)
    expect(batches).toEqual([["a"]])
    yield* TestClock.adjust(1)
    yield* Fiber.join(rest)
    expect(batches).toEqual([["a"], ["b", "c"]])
  }).pipe(Effect.provide(MemoryStore.layer))
)

it.scoped("without a quiet turn each transaction waits twice as long as the one before, up to a bound", () =>
  Effect.gen(function* () {
    const { batches, next } = yield* committing(() => Effect.sleep(2))
    const source = yield* next
    // Every turn of two milliseconds adds pieces; those of a transaction are joined.
    yield* Effect.fork(Effect.forever(Effect.zipRight(source.offer([said(".")]), Effect.sleep(1))))
    while (batches.length < 6) yield* TestClock.adjust(1)
    const lengths = batches.slice(0, 6).map((pieces) => pieces.join("").length)
    for (const [index, length] of lengths.entries()) {
      const rest = index === 0 ? 0 : windowMs
      const patience = Math.min(20 * windowMs, windowMs * 2 ** index)
      expect(Math.abs(length - rest - patience)).toBeLessThanOrEqual(2)
    }
  }).pipe(Effect.provide(MemoryStore.layer))
)
