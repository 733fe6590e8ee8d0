import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestStack from "../../src/testing/TestStack.js"
import { VirtualTime } from "../../src/testing/VirtualTime.js"

describe("several processes with nothing to do", () => {
  it.effect("rest, and do not wake each other for ever", () => {
    const time = new VirtualTime({ seed: 1, maxTasks: 20_000 })
    return Effect.gen(function* () {
      const { processes } = yield* TestStack.TestStack
      for (const process of processes) yield* Effect.forkDaemon(process.start)
      yield* time.advance(5_000)
      expect(processes.map((process) => process.running()?.name)).toEqual(["p0.1", "p1.1", "p2.1"])
    }).pipe(
      Effect.provide(TestStack.layer({ script: [], processes: 3 })),
      (program) => time.run(program),
      Effect.map((exit) => expect(exit).toMatchObject({ _tag: "Some", value: { _tag: "Success" } }))
    )
  })
})
