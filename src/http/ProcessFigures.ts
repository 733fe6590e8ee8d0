/**
 * Figures of the process itself: its processor time, its memory, and how late its event loop is.
 *
 * @since 0.1.0
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Family, family } from "./Prometheus.js"

/** How often the event loop is looked at, in milliseconds. */
const resolution = 20

const nanosecondsPerSecond = 1e9

/**
 * Begins to watch the event loop, for as long as the scope is open. The effect inside gives the figures as they are; those
 * of the event loop are of the time since it was run last.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Effect.Effect<ReadonlyArray<Family>>, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  ),
  (histogram) =>
    Effect.sync(() => {
      // What is measured is the time between two looks, which is the resolution when nothing is late.
      const late = (nanoseconds: number): number =>
        Math.max(0, (Number.isFinite(nanoseconds) ? nanoseconds : 0) - resolution * 1e6) / nanosecondsPerSecond
      const delays =
        histogram.count === 0
          ? { "0.5": 0, "0.99": 0, "1": 0 }
          : { "0.5": late(histogram.percentile(50)), "0.99": late(histogram.percentile(99)), "1": late(histogram.max) }
      histogram.reset()
      const { system, user } = process.cpuUsage()
      const { heapUsed, rss } = process.memoryUsage()
      return [
        family(
          "summary",
          "runlet_event_loop_delay_seconds",
          "How late the event loop was since the last look, by quantile.",
          { label: "quantile", of: delays }
        ),
        family("counter", "process_cpu_seconds_total", "Processor time of the process.", (user + system) / 1e6),
        family("gauge", "process_resident_memory_bytes", "Memory of the process.", rss),
        family("gauge", "process_start_time_seconds", "When the process began, in seconds since 1970.", startedAt),
        family("gauge", "nodejs_heap_size_used_bytes", "Memory in use by JavaScript.", heapUsed)
      ]
    })
)

const startedAt = Math.round(performance.timeOrigin) / 1000
