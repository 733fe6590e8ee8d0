import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as Secrets from "../../src/domain/Secrets.js"
import * as GroupCommit from "../../src/engine/GroupCommit.js"
import { LiveTails } from "../../src/engine/LiveTail.js"
import * as RunLog from "../../src/engine/RunLog.js"
import { RunWriter } from "../../src/engine/RunWriter.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import { append, begin, text } from "../../src/testing/store/fixtures.js"

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
      { windowMs: 0, patienceMs: 1000, load: Effect.succeed(0), now: Effect.orDie(store.now) }
    )
    const tails = new LiveTails()
    const writerOf = (row: typeof first) =>
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
