import { describe, expect, it } from "@effect/vitest"
import { SpanKind, SpanStatusCode } from "@opentelemetry/api"
import * as SemConv from "@opentelemetry/semantic-conventions/incubating"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { EventOf } from "../../src/domain/AgentEvent.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import { ModelError } from "../../src/model/Model.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { alone, log, node, telling, until } from "../engine/support.js"
import { named, outline, recording, traceparent } from "./support.js"

const secret = "canary-5d2e"

const { lookup, save } = telling(secret)

const usage = { inputTokens: 7, outputTokens: 5, totalTokens: 12, cachedInputTokens: 3, reasoningTokens: 2 }

const run = (message: string, more: { readonly trace?: string } = {}) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const accepted = yield* engine.start({ message, ...more })
    const events = yield* log(accepted.runId)
    return { accepted, events, start: events[0] as EventOf<"run-start"> }
  })

describe("spans", () => {
  it.live("show a run, its iterations, and their calls, by the names of the convention and without content", () => {
    const { ended, layer, spans } = recording()
    const model = Script.make(
      [
        {
          ...Script.turn(
            Script.text(`${secret} one`),
            Script.call("lookup", { q: secret }, "c1"),
            Script.call("lookup", { q: "fail" }, "c2")
          ),
          usage
        },
        { ...Script.turn(Script.text(secret)), usage }
      ],
      { provider: "deepseek", name: "deepseek-v4" }
    )
    return Effect.gen(function* () {
      const { accepted, start } = yield* Effect.scoped(
        Effect.zipLeft(run(`hi ${secret}`), ended("invoke_agent", 1)).pipe(
          Effect.provide(alone({ model, tools: [lookup] }).pipe(Layer.provideMerge(layer)))
        )
      )
      expect(outline(spans())).toEqual([
        "runlet.start",
        "  invoke_agent",
        "    runlet.iteration",
        "      chat deepseek-v4",
        "      execute_tool lookup",
        "      execute_tool lookup",
        "    runlet.iteration",
        "      chat deepseek-v4"
      ])
      expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(1)
      expect(start.trace).toBe(traceparent(named(spans(), "runlet.start")[0]))

      const [agent] = named(spans(), "invoke_agent")
      expect(agent?.kind).toBe(SpanKind.INTERNAL)
      expect(agent?.attributes).toMatchObject({
        [SemConv.ATTR_GEN_AI_OPERATION_NAME]: SemConv.GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT,
        [SemConv.ATTR_GEN_AI_PROVIDER_NAME]: SemConv.GEN_AI_PROVIDER_NAME_VALUE_DEEPSEEK,
        [SemConv.ATTR_GEN_AI_REQUEST_MODEL]: "deepseek-v4",
        [SemConv.ATTR_GEN_AI_CONVERSATION_ID]: accepted.conversationId,
        // The bridge to the SDK makes a text of a list; over OTLP it stays one.
        [SemConv.ATTR_GEN_AI_RESPONSE_FINISH_REASONS]: expect.stringContaining('"stop"'),
        [SemConv.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: 14,
        "runlet.run.id": accepted.runId,
        "runlet.run.attempt": 1,
        "runlet.run.mode": "chat",
        "runlet.run.status": "completed"
      })
      const [chat] = named(spans(), "chat deepseek-v4")
      expect(chat?.kind).toBe(SpanKind.CLIENT)
      expect(chat?.attributes).toMatchObject({
        [SemConv.ATTR_GEN_AI_OPERATION_NAME]: SemConv.GEN_AI_OPERATION_NAME_VALUE_CHAT,
        [SemConv.ATTR_GEN_AI_PROVIDER_NAME]: "deepseek",
        [SemConv.ATTR_GEN_AI_REQUEST_MODEL]: "deepseek-v4",
        [SemConv.ATTR_GEN_AI_REQUEST_STREAM]: true,
        [SemConv.ATTR_GEN_AI_CONVERSATION_ID]: accepted.conversationId,
        [SemConv.ATTR_GEN_AI_RESPONSE_FINISH_REASONS]: expect.stringContaining('"tool_calls"'),
        [SemConv.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: 7,
        [SemConv.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: 5,
        [SemConv.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS]: 3,
        [SemConv.ATTR_GEN_AI_USAGE_REASONING_OUTPUT_TOKENS]: 2,
        [SemConv.ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK]: expect.any(Number)
      })
      const tools = named(spans(), "execute_tool lookup")
      expect(
        tools.map(({ attributes, status }) => [attributes[SemConv.ATTR_GEN_AI_TOOL_CALL_ID], status.code])
      ).toEqual(
        expect.arrayContaining([
          ["c1", SpanStatusCode.OK],
          ["c2", SpanStatusCode.ERROR]
        ])
      )
      expect(tools.find(({ status }) => status.code === SpanStatusCode.ERROR)?.attributes).toMatchObject({
        [SemConv.ATTR_GEN_AI_OPERATION_NAME]: SemConv.GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
        [SemConv.ATTR_GEN_AI_TOOL_NAME]: "lookup",
        [SemConv.ATTR_GEN_AI_TOOL_TYPE]: "function",
        "error.type": "tool_error",
        "runlet.tool.phase": "execute",
        "runlet.tool.kind": "readonly"
      })
      expect(named(spans(), "runlet.iteration").map(({ attributes }) => attributes["runlet.iteration"])).toEqual([1, 2])
      const told = JSON.stringify(
        spans().map(({ attributes, events, name, status }) => [name, attributes, events, status])
      )
      expect(told).not.toContain(secret)
      expect(told).not.toContain("/")
    })
  })

  it.live("are as many for ten thousand deltas as for one", () => {
    const { ended, layer, spans } = recording()
    const model = Script.make([Script.turn(Script.text(...Array.from({ length: 10_000 }, () => "word ")))])
    return Effect.gen(function* () {
      const { events } = yield* Effect.scoped(
        Effect.zipLeft(run("long"), ended("invoke_agent", 1)).pipe(
          Effect.provide(alone({ model }).pipe(Layer.provideMerge(layer)))
        )
      )
      expect(events.at(-1)?.type).toBe("finish")
      expect(outline(spans())).toEqual(["runlet.start", "  invoke_agent", "    runlet.iteration", "      chat m"])
      expect(spans().flatMap((span) => span.events)).toEqual([])
    })
  })

  it.live("hang below the caller's, and a caller who does not record is not recorded", () => {
    const { layer, spans } = recording()
    const model = Script.make(() => Script.turn(Script.text("hi")))
    const id = "0af7651916cd43dd8448eb211c80319c"
    return Effect.gen(function* () {
      const unrecorded = yield* run("quiet", { trace: `00-${id}-b7ad6b7169203331-00` })
      expect(spans()).toEqual([])
      expect(unrecorded.start).not.toHaveProperty("trace")

      const { start } = yield* run("loud", { trace: `00-${id}-b7ad6b7169203331-01` })
      const [accepting] = named(spans(), "runlet.start")
      expect(accepting?.parentSpanContext?.spanId).toBe("b7ad6b7169203331")
      expect(accepting?.kind).toBe(SpanKind.PRODUCER)
      expect(start.trace).toBe(traceparent(accepting))
      expect(start.trace).toContain(id)
    }).pipe(Effect.provide(alone({ model }).pipe(Layer.provideMerge(layer))))
  })

  it.live("are not there without a tracer; a log then names the caller's, if that is recorded", () => {
    const model = Script.make(() => Script.turn(Script.text("hi")))
    const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
    return Effect.gen(function* () {
      expect((yield* run("one")).start).not.toHaveProperty("trace")
      expect((yield* run("two", { trace: `${caller}-01` })).start.trace).toBe(`${caller}-01`)
      expect((yield* run("three", { trace: `${caller}-00` })).start).not.toHaveProperty("trace")
      expect((yield* run("four", { trace: "garbage" })).start).not.toHaveProperty("trace")
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("tell retries and failures by their codes, and a new attempt is linked to the one before", () => {
    const { ended, layer, spans } = recording()
    const refuse = (code: string, retryable: boolean): Script.Move => ({
      _tag: "fail",
      error: new ModelError({ code, message: `No ${secret}`, retryable, recoverable: true, retryAfterMs: 1 })
    })
    let asked = 0
    const model = Script.make(() => {
      asked++
      if (asked === 1) return Script.turn(refuse("rate_limited", true))
      return asked === 2 ? Script.turn(refuse("unauthorized", false)) : Script.turn(Script.text("At last."))
    })
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { accepted, events } = yield* run("hi")
      expect(events.at(-1)?.type).toBe("error")
      yield* ended("invoke_agent", 1)
      const [chat] = named(spans(), "chat m")
      expect(chat?.attributes).toMatchObject({ "runlet.model.retries": 1, "error.type": "unauthorized" })
      expect(chat?.status).toMatchObject({ code: SpanStatusCode.ERROR, message: "unauthorized" })
      const [first] = named(spans(), "invoke_agent")
      expect(first?.attributes).toMatchObject({ "error.type": "unauthorized", "runlet.run.status": "failed" })

      const resumer = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
      yield* engine.resume(accepted.runId, { trace: resumer })
      const all = yield* log(accepted.runId)
      yield* ended("invoke_agent", 2)
      const resumed = all.find((event) => event.type === "run-resumed")
      const second = named(spans(), "invoke_agent")[1]
      expect(resumed?.trace).toBe(traceparent(second))
      expect(second?.parentSpanContext?.spanId).toBe("c7ad6b7169203331")
      expect(second?.attributes).toMatchObject({ "runlet.run.attempt": 2, "runlet.run.status": "completed" })
      const start = all[0] as EventOf<"run-start">
      expect(second?.links.map(({ context }) => `00-${context.traceId}-${context.spanId}-01`)).toEqual([start.trace])
      expect(JSON.stringify(spans().map((span) => [span.attributes, span.events, span.status]))).not.toContain(secret)
    }).pipe(Effect.provide(alone({ model }).pipe(Layer.provideMerge(layer))))
  })

  it.live("go on below the same one when a person has decided", () => {
    const { ended, layer, spans } = recording()
    const model = Script.make([
      Script.turn(Script.text("Hm"), Script.call("save", {}, "c1")),
      Script.turn(Script.text("Done."))
    ])
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "save" })
      const { pendingApprovals } = yield* until(runId, ({ status }) => status === "waiting_approval")
      const approval = pendingApprovals[0]?.approvalId ?? ""
      yield* engine.decide(runId, approval, { decision: "approve" })
      yield* ended("invoke_agent", 2)
      expect(outline(spans())).toEqual([
        "runlet.start",
        "  invoke_agent",
        "    runlet.iteration",
        "      chat m",
        "      execute_tool save",
        "  invoke_agent",
        "    runlet.iteration",
        "      execute_tool save",
        "    runlet.iteration",
        "      chat m"
      ])
      expect(named(spans(), "execute_tool save").map(({ attributes }) => attributes["runlet.tool.phase"])).toEqual([
        "preview",
        "commit"
      ])
      expect(named(spans(), "invoke_agent").map(({ attributes }) => attributes["runlet.run.status"])).toEqual([
        "waiting_approval",
        "completed"
      ])
    }).pipe(Effect.provide(alone({ model, tools: [save] }).pipe(Layer.provideMerge(layer))))
  })

  it.live("end with a cancelled run, as interrupted and not as failed", () => {
    const { ended, layer, spans } = recording()
    return Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const model = Script.make([
        Script.turn(Script.text("Hm"), Script.wait(Deferred.succeed(begun, undefined)), Script.hang)
      ])
      yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        const { runId } = yield* engine.start({ message: "hi" })
        yield* Deferred.await(begun)
        yield* engine.cancel(runId)
        yield* ended("invoke_agent", 1)
      }).pipe(Effect.provide(alone({ model })), Effect.scoped)
      expect(outline(spans())).toEqual(["runlet.start", "  invoke_agent", "    runlet.iteration", "      chat m"])
      expect(spans().map(({ status }) => status.code)).not.toContain(SpanStatusCode.ERROR)
      expect(named(spans(), "invoke_agent")[0]?.attributes).toMatchObject({ "runlet.run.status": "cancelled" })
    }).pipe(Effect.provide(layer))
  })

  it.live("of what another process takes over are in the same trace, linked to what was cut short", () => {
    const { ended, layer, spans } = recording()
    return Effect.gen(function* () {
      const shared = yield* Layer.build(MemoryStore.layerShared)
      const begun = yield* Deferred.make<void>()
      let asked = 0
      const model = Script.make(() =>
        asked++ === 0
          ? Script.turn(Script.text("Hm"), Script.wait(Deferred.succeed(begun, undefined)), Script.hang)
          : Script.turn(Script.text("Done."))
      )
      const first = yield* Scope.make()
      const here = yield* Layer.buildWithScope(node({ model }).pipe(Layer.provide(Layer.succeedContext(shared))), first)
      const { runId } = yield* Effect.provide(
        Effect.flatMap(RunEngine, (engine) => engine.start({ message: "hi" })),
        here
      )
      yield* Deferred.await(begun)
      yield* Scope.close(first, Exit.void)
      const events = yield* Effect.provide(
        Effect.zipRight(ended("invoke_agent", 2), log(runId)),
        node({ model }).pipe(Layer.provide(Layer.succeedContext(shared)))
      )
      const start = events[0] as EventOf<"run-start">
      const resumed = events.find((event) => event.type === "run-resumed")
      expect(resumed?.reason).toBe("recovery")
      expect(outline(spans())).toEqual([
        "runlet.start",
        "  invoke_agent",
        "    runlet.iteration",
        "      chat m",
        "  invoke_agent",
        "    runlet.iteration",
        "      chat m"
      ])
      const second = named(spans(), "invoke_agent")[1]
      expect(resumed?.trace).toBe(traceparent(second))
      expect(second?.links.map(({ context }) => `00-${context.traceId}-${context.spanId}-01`)).toEqual([start.trace])
      expect(named(spans(), "invoke_agent").map(({ attributes }) => attributes["runlet.run.attempt"])).toEqual([1, 2])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.live("are made by nothing that waits, polls or looks", () => {
    const { layer, spans } = recording()
    const model = Script.make([])
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      yield* engine.list({})
      yield* engine.census
      yield* Effect.sleep("300 millis")
      expect(spans()).toEqual([])
    }).pipe(Effect.provide(alone({ model, pollMs: 5, engine: { sweepMs: 10 } }).pipe(Layer.provideMerge(layer))))
  })
})
