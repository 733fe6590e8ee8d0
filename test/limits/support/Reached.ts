/** What was counted of limits in this process. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** By limit, how often the metric of this name was raised. */
export const counts = (name = "runlet_limits_reached_total"): Effect.Effect<Record<string, number>> =>
  Effect.map(Metric.snapshot, (pairs) =>
    Object.fromEntries(
      pairs
        .filter(({ metricKey, metricState }) => metricKey.name === name && "count" in metricState)
        .map(({ metricKey: { tags }, metricState }) => [
          tags.find(({ key }) => key === "limit")?.value ?? "",
          "count" in metricState ? Number(metricState.count) : 0
        ])
    )
  )

/** How often this limit has refused something so far. */
export const reached = (limit: string): Effect.Effect<number> => Effect.map(counts(), (all) => all[limit] ?? 0)
