import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { OpenDocuments } from "../../src/agent/Documents.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { alone, until } from "./support.js"

it.live("the open document is read again when a run goes on, and a changed one is told to the model", () => {
  let contentHash = "one"
  const documents = Layer.succeed(OpenDocuments, {
    describe: ({ id, user }) =>
      Effect.succeed(id === "d1" && user === "local" ? Option.some({ title: "Tides", contentHash }) : Option.none())
  })
  const model = Script.make(({ attempt }) =>
    attempt < 3 ? Script.turn(Script.text("half"), Script.fail("connection")) : Script.turn(Script.text("whole"))
  )
  const system = (n: number) => {
    const first = model.requests[n]?.messages[0]
    return first?.role === "system" ? first.content : ""
  }
  return Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = yield* engine.start({ message: "hi", currentDocument: { id: "d1" } })
    yield* until(run.runId, (snapshot) => snapshot.status === "failed")
    yield* engine.resume(run.runId)
    yield* until(run.runId, (snapshot) => snapshot.status === "failed" && snapshot.attempt === 2)
    contentHash = "two"
    yield* engine.resume(run.runId)
    yield* until(run.runId, (snapshot) => snapshot.status === "completed")
    expect(system(0)).toBe('The user has the document "d1" ("Tides") open.')
    expect(system(1)).toBe(system(0))
    expect(system(2)).toContain("has changed")
    expect(system(2)).toContain("two")
    const [last] = (yield* engine.checkpoints(run.runId)).slice(-1)
    const { resumeState } = yield* engine.checkpoint(run.runId, last?.seq ?? 0)
    expect(resumeState.currentDocument).toEqual({ id: "d1", title: "Tides", contentHash: "one" })
  }).pipe(Effect.provide(alone({ model }).pipe(Layer.provide(documents))))
})
