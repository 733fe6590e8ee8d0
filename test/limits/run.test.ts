import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import * as Agent from "../../src/agent/Agent.js"
import type { EventOf } from "../../src/domain/AgentEvent.js"
import { CurrentUser } from "../../src/domain/Owner.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import type { Price } from "../../src/model/Model.js"
import * as Runlet from "../../src/node/Runlet.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"
import { alone, log, type StackOptions, types, until } from "../engine/support.js"
import { databaseFile } from "../store/support.js"
import { counts } from "./support/Reached.js"

/** A tool that answers with what `answer` makes of its input. */
const lookup = (answer: (input: unknown) => Effect.Effect<unknown>): Tool => ({
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object" },
  check: Effect.succeed,
  execute: answer
})

/** Calls a tool in every turn, without an end. */
const endless = (usage?: Script.ScriptedTurn["usage"]) =>
  Script.make((request) => ({
    ...Script.turn(Script.text("again "), Script.call("lookup", { n: request.iteration })),
    ...(usage !== undefined && { usage })
  }))

const finished = (options: StackOptions, limits?: object, message = "hi") =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = yield* engine.start({ message, ...(limits !== undefined && { limits }) })
    const events = yield* log(run.runId)
    return {
      events,
      turns: options.model.requests.length,
      results: events.filter((event) => event.type === "tool-call-result"),
      end: events.at(-1) as EventOf<"finish">
    }
  }).pipe(Effect.provide(alone(options)))

describe("maxIterations", () => {
  for (const [max, wanted, turns] of [
    [3, undefined, 3],
    [3, 2, 2],
    [3, 3, 3],
    [3, 4, 3]
  ] as const) {
    it.live(`of ${max}, asked for ${wanted ?? "none"}, ends after ${turns} turns`, () =>
      Effect.gen(function* () {
        const tools = [lookup(Effect.succeed)]
        const run = yield* finished(
          { model: endless(), tools, limits: { maxIterations: max } },
          wanted === undefined ? undefined : { maxIterations: wanted }
        )
        expect([run.turns, run.end.finishReason]).toEqual([turns, "max_iterations"])
        // What the last turn asked for was done.
        expect(run.results).toHaveLength(turns)
      })
    )
  }

  it.live("does not end an answer that needs just as many", () =>
    Effect.gen(function* () {
      const model = Script.make([Script.turn(Script.call("lookup", {})), Script.turn(Script.text("Done."))])
      const run = yield* finished({ model, tools: [lookup(Effect.succeed)], limits: { maxIterations: 2 } })
      expect([run.turns, run.end.finishReason]).toEqual([2, "stop"])
    })
  )
})

describe("one turn", () => {
  const calls = (count: number) => Array.from({ length: count }, (_, n) => Script.call("lookup", { n }))
  const changes = (count: number) =>
    Array.from({ length: count / 2 }, () => [Script.text("a"), Script.reasoning("b")]).flat()

  for (const [what, most, moves] of [
    ["asks for calls", 256, calls],
    ["changes between text and reasoning", 1_000, changes]
  ] as const) {
    it.live(`${what}, ${most} at most`, () =>
      Effect.gen(function* () {
        const turns = (count: number) => Script.make([Script.turn(...moves(count)), Script.turn(Script.text("Done."))])
        const tools = [lookup(Effect.succeed)]
        expect((yield* finished({ model: turns(most), tools })).events.at(-1)?.type).toBe("finish")
        const { events, results, turns: asked } = yield* finished({ model: turns(most + 2), tools })
        expect(events.at(-1)).toMatchObject({ type: "error", code: "invalid_response", recoverable: true })
        // Nothing of it was run, and it was not tried again.
        expect(results.every(({ state }) => state === "interrupted")).toBe(true)
        expect(asked).toBe(1)
      })
    )
  }
})

describe("maxTokens", () => {
  const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100 }
  for (const [maxTokens, turns, states] of [
    // The call of the turn that reaches the limit is not begun.
    [100, 1, ["interrupted"]],
    [199, 2, ["done", "interrupted"]],
    [200, 2, ["done", "interrupted"]],
    // One token is left, and the next prompt has more.
    [201, 2, ["done", "done"]],
    [290, 3, ["done", "done", "interrupted"]]
  ] as const) {
    it.live(`of ${maxTokens} ends after ${turns} turns of 100`, () =>
      Effect.gen(function* () {
        const run = yield* finished({ model: endless(usage), tools: [lookup(Effect.succeed)], limits: { maxTokens } })
        expect([run.turns, run.end.finishReason]).toEqual([turns, "budget"])
        expect(run.results.map(({ state }) => state)).toEqual(states)
        expect(run.events.filter((event) => event.type === "tool-start")).toHaveLength(
          states.filter((state) => state === "done").length
        )
        expect(run.end.usage.totalTokens).toBe(100 * turns)
      })
    )
  }

  it.live("does not spoil an answer that is complete", () =>
    Effect.gen(function* () {
      const model = Script.make([{ ...Script.turn(Script.text("Done.")), usage }])
      expect((yield* finished({ model, limits: { maxTokens: 100 } })).end.finishReason).toBe("stop")
    })
  )

  it.live("is told to the model, which ends its answer there", () =>
    Effect.gen(function* () {
      const model = Script.make((request) => {
        const outputTokens = request.maxOutputTokens ?? 0
        return request.iteration === 1
          ? { ...Script.turn(Script.call("lookup", {})), usage }
          : {
              ...Script.turn(Script.text("Cut o")),
              reason: "length",
              usage: { inputTokens: 60, outputTokens, totalTokens: 60 + outputTokens }
            }
      })
      const run = yield* finished({ model, tools: [lookup(Effect.succeed)], limits: { maxTokens: 1_000 } })
      expect([run.turns, run.end.finishReason]).toEqual([2, "budget"])
      const [first = 0, second = 0] = model.requests.map(({ maxOutputTokens }) => maxOutputTokens)
      // The prompt, which is estimated from below, counts too.
      expect(first).toBeLessThan(1_000)
      expect(first).toBeGreaterThan(940)
      expect(first - second).toBeGreaterThanOrEqual(100)
      expect(run.end.usage.totalTokens).toBeGreaterThanOrEqual(1_000)
      expect(run.end.usage.totalTokens).toBeLessThan(1_060)
    })
  )

  it.live("has nothing to do with an answer that is cut for another reason", () =>
    Effect.gen(function* () {
      const model = Script.make([{ ...Script.turn(Script.text("Cut o")), reason: "length", usage }])
      const run = yield* finished({ model, limits: { maxTokens: 1_000 } })
      expect(run.end.finishReason).toBe("length")
      const free = Script.make([Script.turn(Script.text("Done."))])
      yield* finished({ model: free })
      expect(free.requests[0]).not.toHaveProperty("maxOutputTokens")
    })
  )

  it.live("is looked at before a model is called, with what the prompt is sure to cost", () =>
    Effect.gen(function* () {
      const message = "word ".repeat(2_000)
      const run = (maxTokens: number) => {
        const model = Script.make([Script.turn(Script.text("Done."))])
        return finished({ model, limits: { maxTokens } }, undefined, message)
      }
      const refused = yield* run(1_000)
      expect([refused.turns, refused.end.finishReason, refused.end.usage.totalTokens]).toEqual([0, "budget", 0])
      expect(types(refused.events)).not.toContain("model-end")
      expect(yield* run(2_600)).toMatchObject({ turns: 1, end: { finishReason: "stop" } })
    })
  )
})

describe("maxCostUsd", () => {
  const usage = { inputTokens: 60, outputTokens: 40, totalTokens: 100, costUsd: 0.25 }
  for (const [maxCostUsd, turns] of [
    [0.5, 2],
    [0.500001, 3],
    [0.499999, 2]
  ] as const) {
    it.live(`of ${maxCostUsd} ends after ${turns} turns of 0.25`, () =>
      Effect.gen(function* () {
        const run = yield* finished({ model: endless(usage), tools: [lookup(Effect.succeed)], limits: { maxCostUsd } })
        expect([run.turns, run.end.finishReason]).toEqual([turns, "budget"])
      })
    )
  }

  it.live("is told to the model in tokens of its price", () =>
    Effect.gen(function* () {
      const output = (price: Price, maxCostUsd: number) => {
        const model = { ...Script.make([Script.turn(Script.text("Done."))]), price }
        return Effect.map(finished({ model, limits: { maxCostUsd } }), () => model.requests[0]?.maxOutputTokens)
      }
      expect(yield* output({ input: 0, output: 10 }, 0.5)).toBe(50_000)
      expect(yield* output({ input: 10, output: 10 }, 0.5)).toBeLessThan(50_000)
      expect(yield* output({ input: 10, output: 0 }, 0.5)).toBeUndefined()
    })
  )

  it.live("counts what the prompt is sure to cost, where the model has a price", () =>
    Effect.gen(function* () {
      const message = "word ".repeat(2_000)
      const run = (input: number) => {
        const model = { ...Script.make([Script.turn(Script.text("Done."))]), price: { input, output: 0 } }
        return finished({ model, limits: { maxCostUsd: 1 } }, undefined, message)
      }
      expect(yield* run(1_000)).toMatchObject({ turns: 0, end: { finishReason: "budget" } })
      expect(yield* run(100)).toMatchObject({ turns: 1, end: { finishReason: "stop" } })
    })
  )
})

describe("runTimeoutMs", () => {
  for (const [ms, status] of [
    [999, "completed"],
    [1_000, "completed"],
    [1_001, "cancelled"]
  ] as const) {
    it.effect(`of 1000 with an answer of ${ms} ends ${status}`, () =>
      Effect.gen(function* () {
        const engine = yield* RunEngine
        const run = yield* engine.start({ message: "hi" })
        yield* TestClock.adjust(3_000)
        const snapshot = yield* engine.snapshot(run.runId)
        expect(snapshot.status).toBe(status)
        if (status === "cancelled") expect(snapshot.cancelled?.by).toBe("limit")
      }).pipe(
        Effect.provide(
          alone({
            model: Script.make([Script.turn(Script.sleep(ms), Script.text("Done."))]),
            limits: { runTimeoutMs: 1_000 },
            pollMs: 60_000
          })
        )
      )
    )
  }

  it.effect("does not run while a person is waited for", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      yield* TestClock.adjust(10_000)
      const { pendingApprovals, status } = yield* engine.snapshot(run.runId)
      expect(status).toBe("waiting_approval")
      yield* engine.decide(run.runId, pendingApprovals[0]?.approvalId ?? "", { decision: "approve" })
      yield* TestClock.adjust(500)
      expect((yield* engine.snapshot(run.runId)).status).toBe("completed")
    }).pipe(
      Effect.provide(
        alone({
          model: Script.make([Script.turn(Script.call("save", {})), Script.turn(Script.text("Done."))]),
          tools: [save],
          limits: { runTimeoutMs: 1_000 },
          pollMs: 60_000
        })
      )
    )
  )
})

const save: Tool = {
  name: "save",
  description: "Saves",
  kind: "write",
  parameters: { type: "object" },
  check: Effect.succeed,
  commit: () => Effect.succeed({ result: "saved" })
}

describe("approvalTtlMs", () => {
  for (const [ms, state] of [
    [999, "applied"],
    [1_000, "expired"],
    [1_001, "expired"]
  ] as const) {
    it.effect(`of 1000, decided after ${ms}: ${state}`, () =>
      Effect.gen(function* () {
        const engine = yield* RunEngine
        const run = yield* engine.start({ message: "hi" })
        yield* TestClock.adjust(20)
        const { pendingApprovals } = yield* engine.snapshot(run.runId)
        yield* TestClock.adjust(ms - 20)
        const decision = engine.decide(run.runId, pendingApprovals[0]?.approvalId ?? "", { decision: "approve" })
        const answer = yield* Effect.either(decision)
        expect(answer._tag).toBe(state === "applied" ? "Right" : "Left")
        yield* TestClock.adjust(500)
        const { toolCalls, status } = yield* engine.snapshot(run.runId)
        expect([status, toolCalls[0]?.state]).toEqual(["completed", state])
      }).pipe(
        Effect.provide(
          alone({
            model: Script.make([Script.turn(Script.call("save", {})), Script.turn(Script.text("Done."))]),
            tools: [save],
            limits: { approvalTtlMs: 1_000 }
          })
        )
      )
    )
  }
})

describe("toolTimeoutMs", () => {
  for (const [ms, ok] of [
    [999, true],
    [1_000, false],
    [1_001, false]
  ] as const) {
    it.effect(`of 1000 with a tool that takes ${ms}`, () =>
      Effect.gen(function* () {
        const engine = yield* RunEngine
        const run = yield* engine.start({ message: "hi" })
        yield* TestClock.adjust(2_000)
        const { toolCalls, status } = yield* engine.snapshot(run.runId)
        expect([status, toolCalls[0]?.ok]).toEqual(["completed", ok])
        if (!ok) expect(toolCalls[0]?.result).toEqual({ error: "The tool did not answer within 1000 ms." })
      }).pipe(
        Effect.provide(
          alone({
            model: Script.make([Script.turn(Script.call("lookup", {})), Script.turn(Script.text("Done."))]),
            tools: [lookup(() => Effect.as(Effect.sleep(ms), "found"))],
            limits: { toolTimeoutMs: 1_000 },
            pollMs: 60_000
          })
        )
      )
    )
  }
})

describe("maxToolResultBytes", () => {
  // A text of n characters is n + 2 bytes of JSON.
  for (const [length, whole] of [
    [997, true],
    [998, true],
    [999, false],
    [1_000_000, false]
  ] as const) {
    it.live(`of 1000 with a text of ${length}`, () =>
      Effect.gen(function* () {
        const model = Script.make([Script.turn(Script.call("lookup", {})), Script.turn(Script.text("Done."))])
        const tools = [lookup(() => Effect.succeed("x".repeat(length)))]
        const { results } = yield* finished({ model, tools, limits: { maxToolResultBytes: 1_000 } })
        const [{ result } = { result: undefined }] = results
        expect(JSON.stringify(result).length).toBeLessThanOrEqual(1_000)
        const told = model.requests[1]?.messages.at(-1)
        expect(told).toMatchObject({ role: "tool", result })
        if (whole) expect(result).toBe("x".repeat(length))
        else {
          expect(result).toMatchObject({ truncated: true, text: expect.stringMatching(/^x{100,}$/) })
          expect(JSON.stringify(told)).toContain("This result was longer than 1000 bytes and was cut.")
        }
      })
    )
  }
})

describe("maxToolConcurrency", () => {
  for (const [calls, most] of [
    [1, 1],
    [2, 2],
    [5, 2]
  ] as const) {
    it.live(`of 2 with ${calls} calls runs ${most} at once`, () =>
      Effect.gen(function* () {
        let now = 0
        let seen = 0
        const model = Script.make([
          Script.turn(...Array.from({ length: calls }, (_, n) => Script.call("lookup", { n }))),
          Script.turn(Script.text("Done."))
        ])
        const tools = [
          lookup(() =>
            Effect.gen(function* () {
              now += 1
              seen = Math.max(seen, now)
              yield* Effect.sleep(20)
              now -= 1
              return "found"
            })
          )
        ]
        const { results } = yield* finished({ model, tools, limits: { maxToolConcurrency: 2 } })
        expect([results.length, seen]).toEqual([calls, most])
      })
    )
  }
})

describe("runs at once", () => {
  /** Starts runs that all wait, and says how many of each user execute, and what became of each request. */
  const crowd = (users: ReadonlyArray<string>, limits: NonNullable<StackOptions["limits"]>) =>
    Effect.gen(function* () {
      const open = yield* Deferred.make<void>()
      const model = Script.make(() => Script.turn(Script.wait(Deferred.await(open)), Script.text("Done.")))
      return yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        const started = yield* Effect.forEach(users, (user) =>
          Effect.either(Effect.provideService(engine.start({ message: "hi" }), CurrentUser, user)).pipe(
            // Whoever comes next finds this one where it will stay.
            Effect.tap(Effect.sleep(30))
          )
        )
        const statuses = yield* Effect.forEach(started, (one, index) =>
          one._tag === "Left"
            ? Effect.succeed(`${one.left._tag}${one.left._tag === "LimitReached" ? ` ${one.left.limit}` : ""}`)
            : Effect.map(
                Effect.provideService(engine.snapshot(one.right.runId), CurrentUser, users[index] ?? ""),
                (snapshot) => snapshot.status
              )
        )
        yield* Deferred.succeed(open, undefined)
        yield* Effect.forEach(started, (one, index) =>
          one._tag === "Left"
            ? Effect.void
            : Effect.provideService(
                until(one.right.runId, (snapshot) => snapshot.status === "completed"),
                CurrentUser,
                users[index] ?? ""
              )
        )
        return statuses
      }).pipe(Effect.provide(alone({ model, limits })))
    })

  it.live("maxConcurrentRuns: the next one waits", () =>
    Effect.gen(function* () {
      const limits = { maxConcurrentRuns: 2 }
      expect(yield* crowd(["a"], limits)).toEqual(["running"])
      expect(yield* crowd(["a", "b"], limits)).toEqual(["running", "running"])
      expect(yield* crowd(["a", "b", "c"], limits)).toEqual(["running", "running", "queued"])
    })
  )

  it.live("maxStoredRunsPerUser: the next one of the same user is refused, where there are users", () =>
    Effect.gen(function* () {
      const limits = { maxStoredRunsPerUser: 2 }
      const all = ["running", "running", "running", "LimitReached maxStoredRunsPerUser"]
      expect(yield* crowd(["a", "a", "b", "a"], limits)).toEqual(all)
    })
  )

  it.live("maxConversationsPerUser: the next one is not begun, where there are users, until one is deleted", () => {
    const model = Script.make(() => Script.turn(Script.text("Done.")))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const say = (conversationId?: string, user = "a") =>
        Effect.provideService(engine.start({ message: "hi", conversationId }), CurrentUser, user)
      const [first] = yield* Effect.all([say(), say()])
      const refused = Effect.map(Effect.flip(say()), (error) => ("limit" in error ? error.limit : error._tag))
      expect(yield* refused).toBe("maxConversationsPerUser")
      yield* say(first.conversationId)
      yield* say(undefined, "b")
      yield* Effect.gen(function* () {
        for (const { runId } of (yield* engine.list({ conversationId: first.conversationId })).items) {
          yield* until(runId, ({ status }) => status === "completed")
          yield* engine.remove(runId)
        }
      }).pipe(Effect.provideService(CurrentUser, "a"))
      // A conversation is one also when nothing is left in it.
      expect(yield* refused).toBe("maxConversationsPerUser")
      yield* Effect.provideService(engine.removeConversation(first.conversationId), CurrentUser, "a")
      yield* say()
      expect(yield* refused).toBe("maxConversationsPerUser")
    }).pipe(Effect.provide(alone({ model, limits: { maxConversationsPerUser: 2 } })))
  })

  it.live("maxConversationsPerUser: does not bound the one user of a server without authentication", () => {
    const model = Script.make(() => Script.turn(Script.text("Done.")))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      for (const _ of [1, 2, 3]) yield* engine.start({ message: "hi" })
      expect((yield* engine.conversations({})).items).toHaveLength(3)
    }).pipe(Effect.provide(alone({ model, limits: { maxConversationsPerUser: 1 }, engine: { limitUsers: false } })))
  })

  it.live("maxRunsPerConversation: the next one goes on in another conversation, without users as well", () => {
    const model = Script.make(() => Script.turn(Script.text("Done.")))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const say = (conversationId?: string) => engine.start({ message: "hi", conversationId })
      const { conversationId } = yield* say()
      yield* say(conversationId)
      expect(yield* Effect.flip(say(conversationId))).toMatchObject({
        _tag: "LimitReached",
        limit: "maxRunsPerConversation"
      })
      expect((yield* say()).conversationId).not.toBe(conversationId)
    }).pipe(Effect.provide(alone({ model, limits: { maxRunsPerConversation: 2 } })))
  })

  it.live("maxRunsPerUser: the next one of the same user waits", () =>
    Effect.gen(function* () {
      const limits = { maxRunsPerUser: 2 }
      expect(yield* crowd(["a", "a", "b"], limits)).toEqual(["running", "running", "running"])
      expect(yield* crowd(["a", "a", "a", "b"], limits)).toEqual(["running", "running", "queued", "running"])
    })
  )

  it.live("maxQueuedRuns: the next one is refused, but not the first of a user", () =>
    Effect.gen(function* () {
      const limits = { maxConcurrentRuns: 1, maxQueuedRuns: 2 }
      expect(yield* crowd(["a", "a", "a"], limits)).toEqual(["running", "queued", "queued"])
      expect(yield* crowd(["a", "a", "a", "a", "b", "b"], limits)).toEqual([
        "running",
        "queued",
        "queued",
        "LimitReached maxQueuedRuns",
        "queued",
        "LimitReached maxQueuedRuns"
      ])
      expect(yield* crowd(["a", "a", "b"], { ...limits, maxQueuedRuns: 0 })).toEqual([
        "running",
        "LimitReached maxQueuedRuns",
        "LimitReached maxQueuedRuns"
      ])
    })
  )
})

describe("maxStoreBytes", () => {
  const model = Script.make(() => Script.turn(Script.text("Done.")))
  const stack = (filename: string, maxStoreBytes: number | null) =>
    Layer.fresh(
      Runlet.layer({ filename, limitUsers: false }).pipe(
        Layer.provide(Agent.layer({ models: { m: model }, limits: { maxStoreBytes } }))
      )
    )
  const first = { message: "hi", idempotencyKey: "first" }

  it.scopedLive("bounds what is used of the store, without users as well; what was accepted stays so", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const { runId, used } = yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        const { runId } = yield* engine.start(first)
        yield* until(runId, ({ status }) => status === "completed")
        const { bytes = 0, freeBytes = 0 } = yield* (yield* RunStore).census
        return { runId, used: bytes - freeBytes }
      }).pipe(Effect.provide(stack(filename, null)))
      for (const most of [used - 1, used]) {
        yield* Effect.gen(function* () {
          const engine = yield* RunEngine
          const refused = yield* Effect.flip(engine.start({ message: "hi" }))
          expect(refused).toMatchObject({ _tag: "LimitReached", limit: "maxStoreBytes", retryAfterMs: 60_000 })
          expect(yield* Effect.flip(engine.start({ message: "hi", idempotencyKey: "new" }))).toEqual(refused)
          expect(yield* Effect.flip(engine.regenerate(runId))).toEqual(refused)
          expect(yield* engine.start(first)).toMatchObject({ runId, created: false })
          expect((yield* engine.snapshot(runId)).text).toBe("Done.")
        }).pipe(Effect.provide(stack(filename, most)))
      }
      yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        yield* engine.start({ message: "hi" })
      }).pipe(Effect.provide(stack(filename, used + 1)))
    })
  )
})

it.effect("whatever ended or was cut for a limit was counted", () =>
  Effect.gen(function* () {
    expect(yield* counts()).toEqual({ toolTimeoutMs: 2, approvalTtlMs: 2, maxToolResultBytes: 2 })
    const ended = yield* counts("runlet_run_limits_total")
    expect(Object.keys(ended).sort()).toEqual(["budget", "max_iterations", "time"])
    expect(ended).toMatchObject({ max_iterations: 4, time: 1 })
  })
)
