import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"
import { alone, until } from "./support.js"

const read: Tool = {
  name: "read",
  description: "Reads a page",
  kind: "readonly",
  parameters: { type: "object" },
  check: Effect.succeed,
  execute: (input) => Effect.succeed({ input, page: "word ".repeat(120) })
}

const size = (messages: unknown): number => JSON.stringify(messages).length / 4

it.live("a conversation that outgrows the model's window is compacted once, and checkpoints show what was sent", () => {
  const window = 1000
  const model = Script.make(() => Script.turn(Script.text("an answer of some length. ".repeat(20))), {
    contextWindow: window
  })
  return Effect.gen(function* () {
    const engine = yield* RunEngine
    let conversationId: string | undefined
    for (let n = 1; n <= 9; n++) {
      const run = yield* engine.start({ message: `question ${n}`, conversationId })
      conversationId = run.conversationId
      yield* until(run.runId, (snapshot) => snapshot.status === "completed")
      const sent = model.requests.at(-1)?.messages ?? []
      expect(size(sent)).toBeLessThan(window)
      expect(sent.at(-1)).toEqual({ role: "user", content: `question ${n}` })
      const [last] = (yield* engine.checkpoints(run.runId)).slice(-1)
      const checkpoint = yield* engine.checkpoint(run.runId, last?.seq ?? 0)
      expect(checkpoint.resumeState.compressedMessages).toEqual(sent)
    }
    const prompts = model.requests.map((request) => request.messages)
    const compacted = prompts.filter((messages) => messages[0]?.role === "system")
    expect(compacted.length).toBeGreaterThan(1)
    expect(prompts[0]?.[0]).toEqual({ role: "user", content: "question 1" })
    // Until it is full again, a prompt is the one before and what came since: nothing is left out twice or brought back.
    const [first = [], second = []] = compacted
    expect(second.slice(0, first.length)).toEqual(first)
  }).pipe(Effect.provide(alone({ model })))
})

it.live("a single run with many tool results stays within the window and keeps its question", () => {
  const window = 1500
  const rounds = 14
  const model = Script.make(
    (request) =>
      request.iteration < rounds
        ? Script.turn(Script.call("read", { n: request.iteration }))
        : Script.turn(Script.text("Done.")),
    { contextWindow: window }
  )
  return Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = yield* engine.start({ message: "read everything" })
    yield* until(run.runId, (snapshot) => snapshot.status === "completed")
    expect(model.requests).toHaveLength(rounds)
    for (const { messages } of model.requests) {
      expect(size(messages)).toBeLessThan(window)
      expect(messages.filter((message) => message.role === "user")).toEqual([
        { role: "user", content: "read everything" }
      ])
      const calls = messages.flatMap((message) =>
        message.role === "assistant"
          ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
          : []
      )
      const answers = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []))
      expect(answers).toEqual(calls)
    }
  }).pipe(Effect.provide(alone({ model, tools: [read], limits: { maxIterations: 20 } })))
})

it.live("what is left out of a conversation is not read either, and one without a known window has a bound too", () => {
  const long = "word ".repeat(100_000)
  const model = Script.make(() => Script.turn(Script.text("Yes.")))
  const read: Array<number> = []
  let reads = 0
  const counting = Layer.effect(
    RunStore,
    Effect.map(RunStore, (store) => ({
      ...store,
      input: (key: number) =>
        Effect.suspend(() => {
          reads += 1
          return store.input(key)
        })
    }))
  ).pipe(Layer.provide(MemoryStore.layerProcess))
  return Effect.gen(function* () {
    const engine = yield* RunEngine
    let conversationId: string | undefined
    for (let n = 1; n <= 16; n++) {
      reads = 0
      const run = yield* engine.start({ message: `${n} ${long}`, conversationId })
      conversationId = run.conversationId
      yield* until(run.runId, (snapshot) => snapshot.status === "completed")
      read.push(reads)
      const sent = model.requests.at(-1)?.messages ?? []
      expect(size(sent)).toBeLessThan(1_000_000)
      expect(sent.at(-1)).toMatchObject({ role: "user" })
    }
    // Seven fit, and never more than those are looked at.
    expect(Math.max(...read)).toBeLessThanOrEqual(9)
    expect(read.at(-1)).toBeLessThanOrEqual(9)
  }).pipe(Effect.provide(alone({ model, store: counting })))
})
