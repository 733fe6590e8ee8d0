import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as TestClock from "effect/TestClock"
import { CurrentUser } from "../../src/domain/Owner.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { alone } from "./support.js"

interface Job {
  readonly user: string
  readonly ms: number
}

const jobs: FastCheck.Arbitrary<ReadonlyArray<Job>> = FastCheck.array(
  FastCheck.record({ user: FastCheck.constantFrom("alice", "bob", "carol", "dave"), ms: FastCheck.nat(500) }),
  { minLength: 1, maxLength: 12 }
)

/** Round robin, said another way: everybody's first runs in the order in which they came, then the second ones, … */
const inTurns = (all: ReadonlyArray<Job>): ReadonlyArray<number> => {
  const users = [...new Set(all.map((job) => job.user))]
  const turn = (index: number) => all.slice(0, index).filter((job) => job.user === all[index]?.user).length
  return all
    .map((job, index) => ({ index, turn: turn(index), user: users.indexOf(job.user) }))
    .sort((a, b) => a.turn - b.turn || a.user - b.user)
    .map(({ index }) => index)
}

it.effect.prop(
  "users take turns, however many runs each has brought and however long they take",
  [jobs],
  ([all]) => {
    const began: Array<number> = []
    const model = Script.make((request) => {
      const text = request.messages.findLast((message) => message.role === "user")?.content
      const index = Number(text)
      if (index >= 0) began.push(index)
      return Script.turn(Script.sleep(index >= 0 ? (all[index]?.ms ?? 0) : 100), Script.text("done"))
    })
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const start = (user: string, message: string) =>
        Effect.provideService(engine.start({ message }), CurrentUser, user)
      // Holds the only worker until everybody is there.
      yield* start("zoe", "-1")
      yield* TestClock.adjust(50)
      const runs = yield* Effect.forEach(all, (job, index) => start(job.user, String(index)))
      const positions = yield* Effect.forEach(runs, ({ runId }, index) =>
        Effect.map(
          Effect.provideService(engine.snapshot(runId), CurrentUser, all[index]?.user ?? ""),
          (snapshot) => snapshot.queuePosition
        )
      )
      expect(positions).toEqual(all.map((_, index) => inTurns(all).indexOf(index)))
      yield* TestClock.adjust(all.reduce((sum, job) => sum + job.ms + 50, 500))
      expect(began).toEqual(inTurns(all))
    }).pipe(Effect.provide(alone({ model, limits: { maxConcurrentRuns: 1 }, pollMs: 60_000 })))
  },
  { fastCheck: { numRuns: 15 } }
)
