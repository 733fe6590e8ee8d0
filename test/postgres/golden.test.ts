import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RunStore } from "../../src/store/RunStore.js"
import { golden } from "../golden/files.js"
import { logOf, Settled, scenarios } from "../golden/scenarios.js"
import { describePostgres } from "./support/Database.js"
import { postgresWith } from "./support/Stores.js"

/** So many turns of the event loop without a question to the store, and nobody goes on by himself any more. */
const quietTurns = 20

const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))

const isFunction = (value: unknown): value is (...args: ReadonlyArray<unknown>) => unknown =>
  typeof value === "function"

/** A store that knows how many of its answers are awaited. */
const counted = (store: RunStore["Type"]) => {
  let waiting = 0
  const around = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => waiting++),
      () => effect,
      () => Effect.sync(() => waiting--)
    )
  const isEffect = (value: unknown): value is Effect.Effect<unknown> => Effect.isEffect(value)
  const watched = (value: unknown): unknown => (isEffect(value) ? around(value) : value)
  const all = new Proxy(store, {
    get: (target, name): unknown => {
      const value: unknown = Reflect.get(target, name)
      if (!isFunction(value)) return watched(value)
      return (...args: ReadonlyArray<unknown>) => watched(value(...args))
    }
  })
  const settled: Effect.Effect<void> = Effect.gen(function* () {
    for (let quiet = 0; quiet < quietTurns; quiet++) {
      yield* turn
      if (waiting > 0) quiet = -1
    }
  })
  return { store: all, settled }
}

describePostgres("logs in PostgreSQL", () => {
  for (const scenario of scenarios) {
    it.scoped(`are those that they always were: ${scenario.title}`, () =>
      Effect.gen(function* () {
        // Tools that begin together ask together; by one connection they are answered in their order.
        const context = yield* Layer.build(postgresWith({ readers: 1 }))
        const { settled, store } = counted(yield* Effect.provide(RunStore, context))
        const log = yield* logOf(scenario).pipe(
          Effect.provideService(RunStore, store),
          Effect.provideService(Settled, settled)
        )
        expect(log).toEqual(golden(scenario.name))
      })
    )
  }
})
