import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as RunStatus from "../../src/domain/RunStatus.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import * as TestStack from "../../src/testing/TestStack.js"
import { VirtualTime } from "../../src/testing/VirtualTime.js"

const script: Script.Script = (request) =>
  JSON.stringify(request.messages).includes("long") ? Script.turn(Script.hang) : Script.turn(Script.text("short"))

/** A process that is busy with a long run, and loses the answer to the claim of the next one. */
const busy = (faults: TestStack.Options["faults"]) => {
  const time = new VirtualTime({ seed: 1, maxTasks: 200_000 })
  return Effect.gen(function* () {
    const { archive, processes } = yield* TestStack.TestStack
    for (const process of processes) yield* process.start
    const engine = processes[0]?.running()?.engine
    if (engine === undefined) return yield* Effect.dieMessage("The process did not start")
    yield* engine.start({ message: "long" })
    yield* time.advance(1_000)
    const { runId } = yield* Effect.retry(engine.start({ message: "short" }), { times: 3 })
    yield* time.advance(20_000)
    const row = yield* archive.find({ runId, userId: "local" })
    return RunStatus.isEnded(Option.getOrThrow(row).status)
  }).pipe(
    Effect.provide(Logger.remove(Logger.defaultLogger)),
    Effect.provide(TestStack.layer({ script, faults, resume: { leaseTtlMs: 4_000 } })),
    (program) => time.run(program),
    Effect.map((exit) => expect(Option.map(exit, Exit.getOrElse(String))).toEqual(Option.some(true)))
  )
}

describe("a run that its own busy process has lost sight of", () => {
  // The first claims find the long run, and then nothing.
  for (const nth of [1, 2, 3, 4, 5, 6]) {
    it.effect(`is found again when the answer to claim ${nth} is lost`, () =>
      busy([[{ operation: "claimQueued", nth, kind: "lose" }]])
    )
  }
  for (const nth of [8, 10, 12, 14, 16, 18, 20, 22]) {
    it.effect(`is found again when the store does not answer read ${nth}`, () =>
      busy([[{ operation: "read", nth, kind: "fail", times: 2 }]])
    )
  }
})
