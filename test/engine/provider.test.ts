/** What becomes of a provider's stream when the run goes on without it, and of the run when the provider misbehaves. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { RunEngine } from "../../src/engine/RunEngine.js"
import type { ModelError, ModelPart } from "../../src/model/Model.js"
import * as ModelPull from "../../src/model/ModelPull.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import type { ScriptedModel } from "../../src/testing/ScriptedModel.js"
import { alone, log, types, until } from "./support.js"

const say = (delta: string): ModelPart => ({ type: "text-delta", id: "t", delta })
const finish: ModelPart = {
  type: "finish",
  reason: "stop",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
}
type Parts = Stream.Stream<ModelPart, ModelError>

describe.each([
  ["a stream", (parts: Parts): Parts => parts],
  ["a pull", (parts: Parts): Parts => ModelPull.stream(ModelPull.of(parts))]
] as const)("a provider that is %s", (_, as) => {
  const modelOf = (stream: () => Parts): ScriptedModel => ({ stream: () => as(stream()), requests: [] })

  it.live.each([
    [
      "that throws",
      () => {
        throw new Error("a mistake")
      }
    ],
    ["that dies at once", () => Stream.die(new Error("a mistake"))],
    ["that dies in the middle", () => Stream.concat(Stream.make(say("one")), Stream.die(new Error("a mistake")))]
  ] as const)("%s fails its run, which can be continued, and says nothing of why", ([, stream]) =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      const ended = yield* until(runId, ({ status }) => status === "failed")
      expect(ended.error?.code).toBe("internal")
      expect(ended.recoverable).toBe(true)
      expect(JSON.stringify(yield* log(runId))).not.toContain("a mistake")
    }).pipe(Effect.provide(alone({ model: modelOf(stream) })))
  )

  it.live("is let go by a cancel, and what it says then is not heard", () => {
    let released = 0
    const model = modelOf(() =>
      Stream.make(say("one ")).pipe(
        Stream.concat(Stream.drain(Stream.fromEffect(Effect.never))),
        Stream.concat(Stream.make(say("late"), finish)),
        Stream.ensuring(Effect.sync(() => released++))
      )
    )
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      yield* until(runId, (snapshot) => snapshot.status === "streaming")
      yield* engine.cancel(runId)
      yield* Effect.iterate(0, {
        while: (n) => released < 1 && n < 500,
        body: (n) => Effect.delay(Effect.succeed(n + 1), 10)
      })
      expect(released).toBeGreaterThan(0)
      const events = yield* log(runId)
      expect(events.at(-1)?.type).toBe("cancelled")
      expect(types(events).filter((type) => type === "cancelled")).toHaveLength(1)
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("is let go while the cancel is still being stored", () => {
    let released = false
    const model = modelOf(() =>
      Stream.concat(Stream.make(say("one")), Stream.never).pipe(Stream.ensuring(Effect.sync(() => (released = true))))
    )
    const gate = Effect.unsafeMakeLatch(true)
    const store = Layer.effect(
      RunStore,
      Effect.map(RunStore, (store) =>
        RunStore.of({ ...store, append: (batch) => Effect.zipRight(gate.await, store.append(batch)) })
      )
    ).pipe(Layer.provide(MemoryStore.layerProcess))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      yield* until(runId, (snapshot) => snapshot.status === "streaming")
      yield* gate.close
      const answer = yield* Effect.fork(engine.cancel(runId))
      yield* Effect.iterate(0, {
        while: (n) => !released && n < 500,
        body: (n) => Effect.delay(Effect.succeed(n + 1), 10)
      })
      expect(released).toBe(true)
      expect((yield* engine.snapshot(runId)).status).toBe("streaming")
      yield* gate.open
      expect((yield* answer).status).toBe("cancelled")
      expect(types(yield* log(runId)).filter((type) => type === "cancelled" || type === "run-resumed")).toEqual([
        "cancelled"
      ])
    }).pipe(Effect.provide(alone({ model, store })))
  })

  it.live("is not heard after its finish", () => {
    const model = modelOf(() =>
      Stream.make(say("one"), finish, say("two")).pipe(
        Stream.concat(Stream.make(say("three"))),
        Stream.concat(Stream.never)
      )
    )
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      yield* until(runId, (snapshot) => snapshot.status === "completed")
      const said = (yield* log(runId)).flatMap((event) => (event.type === "text-delta" ? [event.delta] : []))
      expect(said.join("")).toBe("one")
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live.each([
    ["that fails when it is let go does not take the answer back", Effect.die(new Error("cleanup"))],
    ["that does not let go holds up nobody", Effect.never]
  ] as const)("%s", ([, letGo]) => {
    const model = modelOf(() => Stream.ensuring(Stream.make(say("one"), finish), letGo))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      const ended = yield* until(runId, ({ status }) => status === "completed" || status === "failed")
      expect(ended.status).toBe("completed")
    }).pipe(Effect.provide(alone({ model })))
  })

  it.live("that does not let go of a run does not keep its engine from stopping", () => {
    const model = modelOf(() => Stream.ensuring(Stream.concat(Stream.make(say("one")), Stream.never), Effect.never))
    return Effect.gen(function* () {
      const engine = yield* RunEngine
      const { runId } = yield* engine.start({ message: "hi" })
      yield* until(runId, (snapshot) => snapshot.status === "streaming")
    }).pipe(
      Effect.provide(alone({ model })),
      Effect.disconnect,
      Effect.timeoutOption("20 seconds"),
      Effect.map((stopped) => expect(stopped._tag).toBe("Some"))
    )
  })
})
