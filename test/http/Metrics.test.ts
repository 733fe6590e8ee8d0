import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import { noUsage } from "../../src/domain/AgentEvent.js"
import * as Metrics from "../../src/domain/Metrics.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Measuring from "../../src/http/Measuring.js"
import { type Family, fromPairs, render } from "../../src/http/Prometheus.js"
import { parse } from "./Exposition.js"
import * as Fake from "./FakeEngine.js"
import { start } from "./Server.js"

const census = { queued: 0, running: 0, streaming: 0, waiting_approval: 0, executing: 0, bytes: 2, freeBytes: 1 }

const unescape = (text: string) =>
  text.replace(/\\(["\\n])/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped))

const figuresOf = (text: string) => parse(text).figures

describe("the text format", () => {
  it.prop(
    "gives back every label and number, whatever is in it",
    [FastCheck.fullUnicodeString(), FastCheck.double(), FastCheck.fullUnicodeString()],
    ([label, value, help]) => {
      const family: Family = {
        name: "a_b",
        help,
        type: "gauge",
        samples: [{ labels: [["label", label]], value }]
      }
      const [key = "", read] = [...figuresOf(render([family]))][0] ?? []
      expect(unescape(key.slice('a_b{label="'.length, -'"}'.length))).toBe(label)
      expect(Object.is(read, value) || read === value).toBe(true)
    }
  )

  it.effect("a histogram's buckets grow, and the last one holds all", () =>
    Effect.gen(function* () {
      const times = Metric.histogram("test_times_seconds", MetricBoundaries.fromIterable([0.1, 1]), "Times")
      for (const value of [0.05, 0.1, 0.5, 7]) yield* Metric.update(times, value)
      yield* Metric.update(Metric.tagged(times, "of", "others"), 2)
      const text = render(fromPairs(yield* Metric.snapshot, "test_times"))
      expect(text).toContain("# HELP test_times_seconds Times\n# TYPE test_times_seconds histogram\n")
      expect(Object.fromEntries(figuresOf(text))).toMatchObject({
        'test_times_seconds_bucket{le="0.1"}': 2,
        'test_times_seconds_bucket{le="1"}': 3,
        'test_times_seconds_bucket{le="+Inf"}': 4,
        test_times_seconds_sum: 7.65,
        test_times_seconds_count: 4,
        'test_times_seconds_bucket{of="others",le="1"}': 0,
        'test_times_seconds_bucket{of="others",le="+Inf"}': 1
      })
    })
  )

  it("a label has a bounded number of values", () => {
    for (let i = 0; i < 500; i++) Metrics.limitReached(`limit ${i}`)
    const text = render(fromPairs(Effect.runSync(Metric.snapshot), "runlet_limits_reached_total"))
    const figures = figuresOf(text)
    expect(figures.size).toBeLessThanOrEqual(101)
    expect(figures.get('runlet_limits_reached_total{limit="other"}')).toBeGreaterThanOrEqual(399)
  })
})

describe("/metrics", () => {
  it.scopedLive("tells what is under way, how the process does, and what was counted", () =>
    Effect.gen(function* () {
      const { call, open } = yield* start()
      const watched = yield* open({ path: "/chat", json: { message: "a secret word" } })
      yield* watched.until((text) => text.includes("run-start"))
      const answer = yield* call({ path: "/metrics" })
      expect(answer.status).toBe(200)
      expect(answer.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8")
      expect(answer.headers["cache-control"]).toBe("no-store")
      const { figures, types } = parse(answer.body)
      expect(Object.fromEntries(figures)).toMatchObject({
        'runlet_runs{status="queued"}': 1,
        'runlet_runs{status="running"}': 2,
        'runlet_runs{status="streaming"}': 3,
        'runlet_runs{status="waiting_approval"}': 4,
        runlet_runs_executing: 5,
        runlet_store_bytes: 8192
      })
      expect(figures.get("runlet_viewers")).toBeGreaterThanOrEqual(1)
      expect(figures.get("process_resident_memory_bytes")).toBeGreaterThan(1e6)
      expect(figures.get("process_start_time_seconds")).toBeGreaterThan(1.6e9)
      expect(types.get("runlet_event_loop_delay_seconds")).toBe("summary")
      expect(answer.body).not.toMatch(/\b(?:run|conv|msg)_|secret|\/chat/)

      yield* watched.close
    })
  )

  it.scopedLive("the event loop's delay is of the time since the last look", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const slowest = Effect.map(call({ path: "/metrics" }), ({ body }) =>
        figuresOf(body).get('runlet_event_loop_delay_seconds{quantile="1"}')
      )
      // The clock of the histogram has to tick once before and once behind the block.
      yield* Effect.sleep("60 millis")
      yield* Effect.sync(() => {
        const until = performance.now() + 400
        while (performance.now() < until);
      })
      yield* Effect.sleep("60 millis")
      expect(yield* slowest).toBeGreaterThan(0.3)
    })
  )

  it.effect("each figure is in the README's table, and no other", () =>
    Effect.gen(function* () {
      const state = RunState.empty("run_1")
      const end = { type: "error", code: "x", message: "y", recoverable: false, usage: noUsage } as const
      const usage = { ...noUsage, costUsd: 1 }
      Metrics.transition(state, { ...state, firstTokenAt: 5, usage, attempt: 2, end })
      Metrics.transition(state, { ...state, status: "cancelled", end: { type: "cancelled", by: "limit", usage } })
      Metrics.stored([
        { type: "model-retry", iteration: 1, retry: 1, delayMs: 1, code: "x" },
        {
          type: "approval-request",
          approvalId: "a",
          toolCallId: "c",
          toolName: "t",
          reason: "write",
          input: {},
          preview: {},
          previewHash: "h",
          expiresAt: 1
        },
        {
          type: "tool-call-result",
          toolCallId: "c",
          toolName: "t",
          ok: true,
          state: "done",
          result: 1,
          source: "executed",
          durationMs: 1
        }
      ])
      Metrics.started()
      Metrics.committed(1, 1)
      Metrics.appendRefused("Moved")
      Metrics.storeFailed("corrupt")
      Metrics.lockAwaited()
      Metrics.compacted()
      Metrics.expired()
      Metrics.viewer(1)
      Metrics.viewer(-1)
      Metrics.viewerBehind(1)
      const fake = yield* Fake.make({ heartbeatMs: 1000 })
      const text = yield* Effect.flatten(Measuring.make({ ...fake.engine, census: Effect.succeed(census) }))
      const shown = [...parse(text).types.keys()].sort()
      const readme = readFileSync(join(__dirname, "../../README.md"), "utf8")
      const table = /\| metric \| labels[\s\S]*?\n\n/.exec(readme)?.[0] ?? ""
      const named = [...table.matchAll(/`((?:runlet|process|nodejs)_[a-z_]+)`/g)].map(([, name]) => name).sort()
      expect(shown).toEqual(named)
    }).pipe(Effect.scoped)
  )

  it.scopedLive("wants a credential where there are any", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ tokens: { "token-a": "alice" } })
      expect((yield* call({ path: "/metrics" })).status).toBe(401)
      const answer = yield* call({ path: "/metrics", headers: { authorization: "Bearer token-a" } })
      expect(answer.status).toBe(200)
      expect(answer.body).not.toContain("alice")
    })
  )
})
