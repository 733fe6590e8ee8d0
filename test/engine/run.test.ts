import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"
import { alone, log, node, types, until } from "./support.js"

const lookup = (effects: Array<string>): Tool => ({
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object" },
  check: Effect.succeed,
  execute: (input) =>
    Effect.sync(() => {
      effects.push(`lookup ${JSON.stringify(input)}`)
      return { found: input }
    })
})

const save = (effects: Array<string>): Tool => ({
  name: "save",
  description: "Saves",
  kind: "write",
  parameters: { type: "object" },
  check: Effect.succeed,
  preview: (input) =>
    Effect.sync(() => {
      effects.push("preview")
      return { will: input }
    }),
  commit: (input) =>
    Effect.sync(() => {
      effects.push(`commit ${JSON.stringify(input)}`)
      return { result: "saved" }
    })
})

const toolTurns = (name: string, input: unknown) => [
  Script.turn(Script.text("Let me see. "), Script.call(name, input, "c1")),
  Script.turn(Script.text("Done."))
]

describe("a run", () => {
  it.live("streams an answer", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      const events = yield* log(run.runId)
      expect(events.at(-1)?.type).toBe("finish")
      expect((yield* engine.snapshot(run.runId)).text).toBe("Hello, world")
    }).pipe(
      Effect.provide(
        alone({ model: Script.make([Script.turn(Script.reasoning("hm"), Script.text("Hello", ", world"))]) })
      )
    )
  )

  it.live("gives a model back what it wanted kept of its own turns, and nothing of another's", () => {
    const named = (side: unknown) => Script.make(() => ({ moves: [Script.text("a")], side }))
    const [model, other] = [named({ of: "m" }), named({ of: "other" })]
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const first = yield* engine.start({ message: "hi" })
      yield* log(first.runId)
      for (const modelId of ["other", "m"]) {
        const next = yield* engine.start({ message: "hi", conversationId: first.conversationId, modelId })
        yield* log(next.runId)
      }
      const sides = (asked: Script.ScriptedModel) =>
        asked.requests
          .at(-1)
          ?.messages.flatMap((message) => (message.role === "assistant" ? [message.side ?? null] : []))
      expect([sides(other), sides(model)]).toEqual([[null], [{ of: "m" }, null]])
    }).pipe(Effect.provide(alone({ model, models: { other } })))
  })

  it.live("runs a read-only tool", () => {
    const effects: Array<string> = []
    const model = Script.make(toolTurns("lookup", { q: 1 }))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      expect(types(yield* log(run.runId)).filter((type) => type.startsWith("tool-"))).toEqual([
        "tool-call-start",
        "tool-call-delta",
        "tool-call-ready",
        "tool-start",
        "tool-call-result"
      ])
      expect(effects).toEqual(['lookup {"q":1}'])
      expect(model.requests[1]?.messages).toEqual([
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Let me see. " },
            { type: "tool-call", toolCallId: "c1", toolName: "lookup", argumentsText: '{"q":1}' }
          ]
        },
        { role: "tool", toolCallId: "c1", toolName: "lookup", result: { found: { q: 1 } }, isError: false }
      ])
    }).pipe(Effect.provide(alone({ model, tools: [lookup(effects)] })))
  })

  it.live("asks before it writes", () => {
    const effects: Array<string> = []
    const model = Script.make(toolTurns("save", { text: "a" }))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      const waiting = yield* until(run.runId, (snapshot) => snapshot.status === "waiting_approval")
      expect(effects).toEqual(["preview"])
      const request = waiting.pendingApprovals[0]
      const answer = yield* engine.decide(run.runId, request?.approvalId ?? "", {
        decision: "approve",
        previewHash: request?.previewHash
      })
      expect(answer.decision).toBe("approved")
      const again = yield* engine.decide(run.runId, request?.approvalId ?? "", { decision: "approve" })
      expect(again).toEqual(answer)
      const mistaken = { decision: "approve", previewHash: "of something else" } as const
      expect((yield* Effect.flip(engine.decide(run.runId, request?.approvalId ?? "", mistaken)))._tag).toBe("Conflict")
      expect(
        types(yield* log(run.runId)).filter((type) => /^(approval|tool-start|tool-call-result)/.test(type))
      ).toEqual(["tool-start", "approval-request", "approval-decision", "tool-start", "tool-call-result"])
      expect(effects).toEqual(["preview", 'commit {"text":"a"}'])
    }).pipe(Effect.provide(alone({ model, tools: [save(effects)] })))
  })

  it.live("is cancelled in the middle", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      yield* until(run.runId, (snapshot) => snapshot.text === "abc")
      const answer = yield* engine.cancel(run.runId)
      expect(answer.status).toBe("cancelled")
      const events = yield* log(run.runId)
      expect(events.at(-1)?.type).toBe("cancelled")
      expect((yield* engine.snapshot(run.runId)).text).toBe("abc")
      expect(yield* engine.cancel(run.runId)).toEqual(answer)
    }).pipe(Effect.provide(alone({ model: Script.make([Script.turn(Script.text("abc"), Script.hang)]) })))
  )

  it.live("fails recoverably and goes on when asked", () => {
    const model = Script.make((request) =>
      request.attempt === 1
        ? Script.turn(Script.text("The tide tur"), Script.fail("connection"))
        : Script.turn(Script.text("The tide turns at noon."))
    )
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      yield* until(run.runId, (snapshot) => snapshot.status === "failed")
      const all = yield* Effect.all(
        Array.from({ length: 30 }, () => engine.resume(run.runId)),
        { concurrency: "unbounded" }
      )
      expect(all.filter((one) => one._tag === "resumed").length).toBe(1)
      yield* until(run.runId, (snapshot) => snapshot.status === "completed")
      expect((yield* engine.snapshot(run.runId)).text).toBe("The tide turns at noon.")
      expect(types(yield* log(run.runId)).filter((type) => /^(error|run-resumed|finish)$/.test(type))).toEqual([
        "error",
        "run-resumed",
        "finish"
      ])
      expect(model.requests.length).toBe(2)
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("regenerates once for one key", () => {
    const model = Script.make(() => Script.turn(Script.text("abc"), Script.hang))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const old = yield* engine.start({ message: "hi" })
      yield* until(old.runId, (snapshot) => snapshot.text === "abc")
      const first = yield* engine.regenerate(old.runId, { idempotencyKey: "k" })
      yield* until(first.runId, (snapshot) => snapshot.text === "abc")
      const again = yield* engine.regenerate(old.runId, { idempotencyKey: "k" })
      expect(again.runId).toBe(first.runId)
      expect((yield* engine.snapshot(old.runId)).cancelled?.by).toBe("superseded")
      expect((yield* engine.snapshot(first.runId)).status).toBe("streaming")
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("finds the run of a repeated request, also when its model is gone from the configuration", () => {
    const model = Script.make(() => Script.turn(Script.text("abc")))
    const request = { message: "hi", modelId: "old", idempotencyKey: "k" }
    return Effect.gen(function* () {
      const before = yield* Effect.flatMap(RunEngine, (engine) => engine.start(request)).pipe(
        Effect.provide(node({ model, modelId: "old" }))
      )
      yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        expect((yield* engine.start(request)).runId).toBe(before.runId)
        expect((yield* Effect.flip(engine.start({ ...request, message: "ho" })))._tag).toBe("Conflict")
        for (const idempotencyKey of [undefined, "other"]) {
          const refused = yield* Effect.flip(engine.start({ ...request, idempotencyKey }))
          expect(refused).toMatchObject({ _tag: "Unprocessable", path: "modelId" })
        }
      }).pipe(Effect.provide(node({ model, modelId: "new" })))
    }).pipe(Effect.provide(MemoryStore.layerShared))
  })

  it.live("leaves the last of the versions that are asked for at once", () => {
    const model = Script.make(() => Script.turn(Script.text("abc"), Script.hang))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const old = yield* engine.start({ message: "hi" })
      const versions = yield* Effect.all(
        Array.from({ length: 5 }, () => engine.regenerate(old.runId)),
        { concurrency: "unbounded" }
      )
      const ends = yield* Effect.forEach(versions, (run) => engine.snapshot(run.runId))
      expect(ends.filter((run) => run.status !== "cancelled").length).toBe(1)
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("ends nothing for a request that is refused", () => {
    const model = Script.make(() => Script.turn(Script.text("abc"), Script.hang))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* engine.start({ message: "hi" })
      yield* until(run.runId, (snapshot) => snapshot.text === "abc")
      const { conversationId } = run
      // The only place in the queue is taken by a run of another conversation, which waits for the only worker.
      yield* engine.start({ message: "other" })
      const refused = [
        engine.regenerate(run.runId),
        engine.start({ message: "next", conversationId, onBusy: "interrupt" })
      ]
      for (const request of refused) expect((yield* Effect.flip(request))._tag).toBe("LimitReached")
      expect((yield* engine.snapshot(run.runId)).status).toBe("streaming")
    }).pipe(Effect.provide(alone({ model, limits: { maxConcurrentRuns: 1, maxQueuedRuns: 1 } })))
  })

  it.live("leaves the last of those that interrupt at once", () => {
    const model = Script.make(() => Script.turn(Script.text("abc"), Script.hang))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { conversationId } = yield* engine.start({ message: "hi" })
      for (const key of [undefined, "k"]) {
        const runs = yield* Effect.all(
          Array.from({ length: 4 }, (_, n) =>
            engine.start({
              message: "next",
              conversationId,
              onBusy: "interrupt",
              idempotencyKey: key === undefined ? undefined : `${key}${n}`
            })
          ),
          { concurrency: "unbounded" }
        )
        const ends = yield* Effect.forEach(runs, (run) => engine.snapshot(run.runId))
        expect(ends.filter((run) => run.status !== "cancelled").length).toBe(1)
      }
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("that is cancelled while its effect is being stored leaves nothing known that is old", () => {
    const effects: Array<string> = []
    const model = Script.make(({ iteration, messages }) => {
      const asked =
        messages.flatMap((message) => (message.role === "user" ? [String(message.content)] : [])).at(-1) ?? ""
      return iteration === 1 ? Script.turn(Script.call(asked, {}, `c-${asked}`)) : Script.turn(Script.text("Done."))
    })
    const gate = Effect.unsafeMakeLatch(true)
    let held = false
    const store = Layer.effect(
      RunStore,
      Effect.map(RunStore, (store) =>
        RunStore.of({
          ...store,
          append: (batch) => {
            if (!JSON.stringify(batch.map(({ events }) => events)).includes("saved")) return store.append(batch)
            held = true
            return Effect.zipRight(gate.await, store.append(batch))
          }
        })
      )
    ).pipe(Layer.provide(MemoryStore.layerProcess))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const ask = (message: string) => Effect.map(engine.start({ message }), ({ runId }) => runId)
      const looked = () => effects.filter((effect) => effect.startsWith("lookup")).length
      for (let n = 0; n < 2; n++) yield* log(yield* ask("lookup"))
      expect(looked()).toBe(1)
      const saving = yield* ask("save")
      const waiting = yield* until(saving, ({ status }) => status === "waiting_approval")
      yield* gate.close
      yield* engine.decide(saving, waiting.pendingApprovals[0]?.approvalId ?? "", { decision: "approve" })
      yield* Effect.iterate(0, { while: (n) => !held && n < 500, body: (n) => Effect.delay(Effect.succeed(n + 1), 10) })
      const answer = yield* Effect.fork(engine.cancel(saving))
      yield* Effect.sleep("50 millis")
      yield* gate.open
      expect((yield* answer).status).toBe("cancelled")
      yield* log(yield* ask("lookup"))
      expect(looked()).toBe(2)
    }).pipe(Effect.provide(alone({ model, store, tools: [{ ...lookup(effects), cacheable: true }, save(effects)] })))
  })
})
