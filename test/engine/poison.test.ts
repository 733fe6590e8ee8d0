import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/agent/Agent.js"
import * as Ids from "../../src/domain/Ids.js"
import * as Engine from "../../src/engine/Engine.js"
import * as Process from "../../src/engine/Process.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as ResumePolicy from "../../src/resume/ResumePolicy.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { until } from "./support.js"

/** A store that breaks, in a way that nobody foresaw, on what says "poison". */
const breaking = Layer.map(MemoryStore.layer, (context) => {
  const store = Context.get(context, RunStore)
  return Context.add(context, RunStore, {
    ...store,
    append: (batch) =>
      batch.some(({ events }) => events.some(({ json }) => json.includes("poison")))
        ? Effect.die(new Error("Nobody foresaw this"))
        : store.append(batch)
  })
})

it.live("what breaks the store in one run does not stop the others", () =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const runs = yield* Effect.forEach(["first", "poison", "second", "third"], (message) => engine.start({ message }))
    for (const [n, { runId }] of runs.entries()) {
      if (n !== 1) yield* until(runId, ({ status }) => status === "completed")
    }
    const later = yield* engine.start({ message: "later" })
    yield* until(later.runId, ({ status }) => status === "completed")
    expect((yield* engine.snapshot(runs[1]?.runId ?? "")).text).toBe("")
    expect((yield* engine.cancel(runs[1]?.runId ?? "")).status).toBe("cancelled")
  }).pipe(
    Effect.provide(
      Engine.layerWith({ commitWindowMs: 5, pollMs: 20 }).pipe(
        Layer.provide([Process.layer, breaking]),
        Layer.provide([
          Ids.layer,
          ResumePolicy.layerRestartIteration,
          Agent.layer({
            models: {
              m: Script.make((request) => Script.turn(Script.text(JSON.stringify(request.messages.at(-1)))))
            }
          })
        ])
      )
    )
  )
)
