import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore, StoreError } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { node } from "./support.js"

type Turns = RunStore["Type"]["turns"]

/** A process that reads states as `reading` says. */
const reader = (reading: (turns: Turns) => Turns = (turns) => turns) =>
  Layer.build(
    node({
      model: Script.make(() => Script.turn(Script.hang)),
      limits: { maxConcurrentRuns: 100, maxRunsPerUser: 100, maxQueuedRuns: 100 },
      resume: { leaseTtlMs: 4_000 },
      store: Layer.map(MemoryStore.layerProcess, (context) => {
        const store = Context.get(context, RunStore)
        return Context.make(RunStore, { ...store, turns: reading(store.turns) })
      })
    })
  )

const pass = (times: number) =>
  Effect.repeatN(Effect.zipRight(TestClock.adjust("500 millis"), Effect.yieldNow()), times * 2)

/** So many runs that a process has begun and left. */
const leave = (count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const context = yield* reader()
      const engine = Context.get(context, RunEngine)
      const ids = yield* Effect.forEach(Array.from({ length: count }), () =>
        Effect.map(engine.start({ message: "hello" }), ({ runId }) => runId)
      )
      yield* pass(1)
      return ids
    })
  )

const look = (ids: ReadonlyArray<string>) =>
  Effect.flatMap(MemoryStore.Shared, ({ data }) =>
    Effect.sync(() =>
      ids.map((runId) => {
        const row = [...data.runs.values()].find((run) => run.row.runId === runId)?.row
        return { epoch: row?.epoch, attempt: row?.attempt, held: row?.owner !== undefined }
      })
    )
  )

const begunOnce = { epoch: 2, attempt: 2, held: true }

describe("runs that were left behind", () => {
  it.scoped("are held and begun again once, however long it takes to read them all", () =>
    Effect.gen(function* () {
      const ids = yield* leave(30)
      // Four rounds of more than half a lease each.
      yield* Effect.fork(reader((turns) => (query) => Effect.delay(turns(query), Duration.seconds(3))))
      for (let n = 0; n < 28; n++) {
        yield* pass(0)
        expect((yield* look(ids)).filter(({ held }) => !held)).toEqual([])
      }
      expect(yield* look(ids)).toEqual(ids.map(() => begunOnce))
    }).pipe(Effect.provide(MemoryStore.layerShared))
  )

  it.scoped("do not wait for one among them that can not be read now", () =>
    Effect.gen(function* () {
      const ids = yield* leave(5)
      let failures = 1
      const gone = new StoreError({ reason: "unavailable", method: "turns", cause: new Error("not now") })
      yield* Effect.fork(reader((turns) => (query) => (failures-- > 0 ? Effect.fail(gone) : turns(query))))
      yield* pass(0)
      expect((yield* look(ids)).map(({ attempt }) => attempt)).toEqual([1, 2, 2, 2, 2])
      yield* pass(14)
      expect((yield* look(ids)).map(({ attempt }) => attempt)).toEqual([2, 2, 2, 2, 2])
    }).pipe(Effect.provide(MemoryStore.layerShared))
  )
})
