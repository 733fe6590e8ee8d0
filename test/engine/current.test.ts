import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as RunLog from "../../src/engine/RunLog.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import { append, begin, ending, rowOf, texts } from "../../src/testing/store/fixtures.js"

describe("the state of a run that this process executes", () => {
  it.effect("comes from memory, and from the store as soon as another process has written", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const run = yield* begin()
      yield* append({ key: run.key, epoch: run.epoch, events: texts(3), set: { status: "streaming" } })
      const state = yield* RunLog.load(store, run)
      const active = { writer: { state } }
      expect(yield* RunLog.current(store, yield* rowOf(run.key), active)).toBe(state)
      yield* append({ key: run.key, raiseEpoch: true, ...ending.cancelled() })
      const row = yield* rowOf(run.key)
      expect(yield* RunLog.current(store, row, active)).toMatchObject({ status: "cancelled", seq: row.lastSeq })
      // What is in memory may be newer than a row that was read a moment ago.
      expect(yield* RunLog.current(store, run, active)).toBe(state)
      expect(yield* RunLog.current(store, row, undefined)).toMatchObject({ status: "cancelled" })
    }).pipe(Effect.provide(MemoryStore.layer))
  )
})
