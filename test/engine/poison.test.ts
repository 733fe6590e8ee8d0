import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/agent/Agent.js"
import { noUsage } from "../../src/domain/AgentEvent.js"
import * as Ids from "../../src/domain/Ids.js"
import * as Engine from "../../src/engine/Engine.js"
import * as Process from "../../src/engine/Process.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as ResumePolicy from "../../src/resume/ResumePolicy.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { alone, until } from "./support.js"

const huge = { inputTokens: Number.MAX_VALUE, outputTokens: -5, totalTokens: Number.POSITIVE_INFINITY }

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

const others = Script.make((request) => Script.turn(Script.text(JSON.stringify(request.messages.at(-1)))))

/** What a provider says that knows nothing of what a log can hold. */
const strange = (finish: unknown): Script.ScriptedModel => ({
  ...others,
  stream: () =>
    Stream.fromIterable([{ type: "text-delta", id: "t", delta: "strange" }, JSON.parse(JSON.stringify(finish))])
})

it.live("an event that no log can hold does not stop the runs of others", () =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const poison = yield* engine.start({ message: "x", modelId: "strange" })
    yield* until(poison.runId, ({ error }) => error?.code === "recovery_exhausted")
    const later = yield* engine.start({ message: "later" })
    yield* until(later.runId, ({ status }) => status === "completed")
  }).pipe(
    Effect.provide(
      alone({
        model: others,
        models: { strange: strange({ type: "finish", reason: "no such reason", usage: noUsage }) },
        resume: { leaseTtlMs: 100, maxAttempts: 1 }
      })
    )
  )
)

it.live("tokens beyond all measure are counted as far as they can be", () =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { runId } = yield* engine.start({ message: "x" })
    const { usage } = yield* until(runId, ({ status }) => status === "completed")
    // Of two turns.
    const most = 2e11
    expect(usage).toEqual({ inputTokens: most, outputTokens: 0, totalTokens: most, costUsd: most })
    expect((yield* engine.list({})).items.map((run) => run.usage)).toEqual([usage])
  }).pipe(
    Effect.provide(
      alone({
        model: Script.make(
          [
            { ...Script.turn(Script.call("nothing", {})), usage: huge },
            { ...Script.turn(Script.text("done")), usage: huge }
          ],
          { price: { input: 1e308, output: 1 } }
        )
      })
    )
  )
)
