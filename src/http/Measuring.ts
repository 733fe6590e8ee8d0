/**
 * The figures of a server as one text: what Effect's metrics have counted, what is under way in the store, and how the
 * process does.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import * as Metrics from "../domain/Metrics.js"
import type { Unavailable } from "../domain/RunError.js"
import type { RunEngine } from "../engine/RunEngine.js"
import * as ProcessFigures from "./ProcessFigures.js"
import * as Prometheus from "./Prometheus.js"

const ofStore = (census: Effect.Effect.Success<RunEngine["Type"]["census"]>): ReadonlyArray<Prometheus.Family> => {
  const { bytes, executing, freeBytes, queued, running, streaming, waiting_approval } = census
  return [
    Prometheus.family("gauge", "runlet_runs", "Runs of all processes that have not ended, by status.", {
      label: "status",
      of: { queued, running, streaming, waiting_approval }
    }),
    Prometheus.family("gauge", "runlet_runs_executing", "Runs that this process executes.", executing),
    ...(bytes === undefined ? [] : [Prometheus.family("gauge", "runlet_store_bytes", "Size of the database.", bytes)]),
    ...(freeBytes === undefined
      ? []
      : [Prometheus.family("gauge", "runlet_store_free_bytes", "Unused part of the database.", freeBytes)])
  ]
}

/**
 * Begins to watch the process for as long as the scope is open. The effect inside is the text of the figures as they
 * are.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  engine: RunEngine["Type"]
): Effect.Effect<Effect.Effect<string, Unavailable>, never, Scope.Scope> =>
  Effect.map(Effect.tap(ProcessFigures.make, Effect.sync(Metrics.register)), (ofProcess) =>
    Effect.gen(function* () {
      const store = ofStore(yield* engine.census)
      const counted = Prometheus.fromPairs(yield* Metric.snapshot, "runlet_")
      return Prometheus.render([...store, ...counted, ...(yield* ofProcess)])
    })
  )
