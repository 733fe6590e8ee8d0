import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { RunEngine } from "../../src/engine/RunEngine.js"
import { fromPairs, render } from "../../src/http/Prometheus.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { alone, log, telling } from "./support.js"

const figures = Effect.map(Metric.snapshot, (pairs) => {
  const text = render(fromPairs(pairs, "runlet_"))
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  return {
    text,
    of: new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]))
  }
})

/** What came to each figure meanwhile. */
const counted = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = (yield* figures).of
    yield* effect
    const after = yield* figures
    const change = (name: string) => (after.of.get(name) ?? 0) - (before.get(name) ?? 0)
    return { change, text: after.text }
  })

const secret = "canary-7c1f"

const { lookup, save } = telling(secret)

const model = Script.make([
  Script.turn(Script.text(`${secret} one`), Script.call("lookup", { q: secret }, "c1")),
  Script.turn(Script.text("Done."))
])

describe("figures", () => {
  it.live("count what a run did, by few words and without its content", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const { change, text } = yield* counted(
        Effect.gen(function* () {
          const run = yield* engine.start({ message: `hi ${secret}` })
          const events = yield* log(run.runId)
          expect(events.at(-1)?.type).toBe("finish")
        })
      )
      expect(change("runlet_runs_started_total")).toBe(1)
      expect(change('runlet_runs_ended_total{status="completed"}')).toBe(1)
      expect(change("runlet_run_seconds_count")).toBe(1)
      expect(change('runlet_time_to_first_token_seconds_count{model="m"}')).toBe(1)
      expect(change('runlet_tool_calls_total{state="done"}')).toBe(1)
      expect(change("runlet_tool_seconds_count")).toBe(1)
      expect(change("runlet_events_total")).toBeGreaterThan(8)
      expect(change("runlet_commit_seconds_count")).toBeGreaterThan(2)
      expect(text).not.toMatch(/run_0|conv_0|msg_0/)
      expect(text).not.toContain(secret)
      // One transaction's figures for all its events, never one for each of them.
      expect(change("runlet_commit_seconds_count")).toBeLessThanOrEqual(change("runlet_events_total"))
    }).pipe(Effect.provide(alone({ model, tools: [lookup] })))
  )

  it.live("tell the runs of all states apart", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const { change } = yield* counted(
        Effect.gen(function* () {
          const asks = yield* engine.start({ message: "save" })
          yield* Effect.repeat(engine.snapshot(asks.runId), { until: ({ status }) => status === "waiting_approval" })
          expect(yield* engine.census).toMatchObject({ waiting_approval: 1, queued: 0, running: 0, streaming: 0 })
          yield* engine.cancel(asks.runId)
          expect(yield* engine.census).toEqual({
            waiting_approval: 0,
            queued: 0,
            running: 0,
            streaming: 0,
            executing: 0
          })
        })
      )
      expect(change('runlet_runs_ended_total{status="cancelled"}')).toBe(1)
      expect(change('runlet_approvals_asked_total{reason="write"}')).toBe(1)
    }).pipe(
      Effect.provide(
        alone({ model: Script.make([Script.turn(Script.text("Hm"), Script.call("save", {}, "c1"))]), tools: [save] })
      )
    )
  )

  it.live("name the limit that ended a run", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const { change } = yield* counted(
        Effect.flatMap(engine.start({ message: "again and again" }), (run) => log(run.runId))
      )
      expect(change('runlet_run_limits_total{limit="max_iterations"}')).toBe(1)
    }).pipe(
      Effect.provide(
        alone({
          model: Script.make([
            Script.turn(Script.text("a"), Script.call("lookup", { q: 1 }, "c1")),
            Script.turn(Script.text("b"), Script.call("lookup", { q: 2 }, "c2")),
            Script.turn(Script.text("c"), Script.call("lookup", { q: 3 }, "c3"))
          ]),
          tools: [lookup],
          limits: { maxIterations: 2 }
        })
      )
    )
  )
})
