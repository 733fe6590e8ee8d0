import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as fc from "fast-check"
import type { OfferedTool } from "../../src/domain/RunInput.js"
import * as Demo from "../../src/model/Demo.js"
import * as Text from "../../src/model/DemoText.js"
import type { ModelError, ModelMessage, ModelPart, ModelRequest } from "../../src/model/Model.js"
import * as English from "../../src/tool/documents/seed/English.js"

const tools = (...names: ReadonlyArray<string>): ReadonlyArray<OfferedTool> =>
  names.map((name) => ({ name, description: "", kind: "readonly", parameters: {} }))

const everything = tools(
  "document_search",
  "document_read",
  "document_write",
  "document_update",
  "memory_write",
  "memory_recall"
)

const request = (messages: ReadonlyArray<ModelMessage> | string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  runId: "run",
  conversationId: "conversation",
  attempt: 1,
  iteration: 1,
  messages: typeof messages === "string" ? [{ role: "user", content: messages }] : messages,
  tools: everything,
  enableThinking: true,
  continueDraft: false,
  ...more
})

const still = Demo.make({ pace: 0 })

const parts = (asked: ModelRequest): Effect.Effect<ReadonlyArray<ModelPart>, ModelError> =>
  Effect.map(Stream.runCollect(still.stream(asked)), Chunk.toReadonlyArray)

const textOf = (all: ReadonlyArray<ModelPart>, type: "text-delta" | "reasoning-delta" = "text-delta") =>
  all.map((part) => (part.type === type ? part.delta : "")).join("")

const callsOf = (all: ReadonlyArray<ModelPart>) => {
  const calls = new Map<string, { name: string; json: string }>()
  for (const part of all) {
    if (part.type === "tool-call-start") {
      calls.set(part.call, { name: part.toolName, json: "" })
    } else if (part.type === "tool-call-delta") {
      const call = calls.get(part.call)
      if (call === undefined) {
        return expect.fail("a delta before its call")
      }
      call.json += part.delta
    }
  }
  return [...calls.values()].map(({ json, name }): { name: string; input: unknown } => ({
    name,
    input: JSON.parse(json)
  }))
}

type Answers = (call: { name: string; input: unknown }) => { result: unknown; isError?: boolean }

/** The conversation to its end, as the loop would lead it: every call answered at once. */
const converse = (message: string, answers: Answers, more: Partial<ModelRequest> = {}) =>
  Effect.gen(function* () {
    const messages: Array<ModelMessage> = [{ role: "user", content: message }]
    const calls: Array<{ name: string; input: unknown }> = []
    for (let iteration = 1; iteration <= 6; iteration++) {
      const all = yield* parts(request(messages, { iteration, ...more }))
      const made = callsOf(all)
      const finish = all.at(-1)
      expect(finish).toMatchObject({ type: "finish", reason: made.length > 0 ? "tool_calls" : "stop" })
      if (made.length === 0) {
        return { text: textOf(all), calls }
      }
      calls.push(...made)
      messages.push({
        role: "assistant",
        content: made.map(({ input, name }, index) => ({
          type: "tool-call" as const,
          toolCallId: `${iteration}.${index}`,
          toolName: name,
          argumentsText: JSON.stringify(input)
        }))
      })
      for (const [index, call] of made.entries()) {
        const { isError = false, result } = answers(call)
        messages.push({ role: "tool", toolCallId: `${iteration}.${index}`, toolName: call.name, result, isError })
      }
    }
    return expect.fail("the conversation does not end")
  })

const library: Answers = ({ input, name }) => {
  const page = English.pages.find(({ id }) => id === "runlet/resume")
  if (name === "document_search") {
    return { result: { results: [{ id: "runlet/resume", title: page?.title, excerpt: "…", readOnly: true }] } }
  }
  return JSON.stringify(input).includes("runlet/resume")
    ? { result: page }
    : { result: { error: "There is no such document." }, isError: true }
}

describe("the demo model", () => {
  it.effect("looks a question up, reads, and answers from what it read", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* converse("How does a client resume after a lost connection?", library)
      expect(calls).toEqual([
        { name: "document_search", input: { query: "How does a client resume after a lost connection?" } },
        { name: "document_read", input: { id: "runlet/resume" } }
      ])
      expect(text).toContain("Last-Event-ID")
      expect(text).toContain("runlet.config.json")
      expect(text).toContain("demo model")
    })
  )

  it.effect("thinks aloud", () =>
    Effect.gen(function* () {
      expect(textOf(yield* parts(request("What is a run?")), "reasoning-delta")).toContain("What is a run?")
    })
  )

  it.effect("answers Chinese in Chinese", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* converse("断线后如何恢复？", ({ name }) =>
        name === "document_search"
          ? { result: { results: [{ id: "zh", title: "简介", readOnly: true }] } }
          : { result: { title: "简介", text: "天气很好。断线以后，客户端带着序号重新连接来恢复。" } }
      )
      expect(calls[0]).toEqual({ name: "document_search", input: { query: "断线后如何恢复？" } })
      expect(text).toContain("断线以后，客户端带着序号重新连接来恢复。")
      expect(text).not.toContain("天气")
      expect(text).toContain("演示模型")
    })
  )

  it.effect("says so when there is nothing to find or nothing to look with", () =>
    Effect.gen(function* () {
      const nothing = yield* converse("What about zebras?", () => ({ result: { results: [] } }))
      expect(nothing.text).toContain("/help")
      const alone = yield* converse("What is a run?", library, { tools: [] })
      expect(alone.calls).toEqual([])
      expect(alone.text).toContain("demo model")
    })
  )

  it.effect("gives the same parts for the same request, and lives with anything", () =>
    Effect.gen(function* () {
      const odd = [
        "",
        " ",
        "/",
        "/call",
        "/call x {",
        "/write",
        "/write :",
        "/update",
        "/long 99999999999",
        "/long 0",
        "\ud800",
        "😀".repeat(50),
        "a".repeat(10_000),
        "__proto__",
        '/call __proto__ {"__proto__":1}'
      ]
      for (const message of odd) {
        expect(yield* parts(request(message))).toEqual(yield* parts(request(message)))
      }
      const results = [
        null,
        undefined,
        1,
        "x",
        [],
        {},
        { results: 1 },
        { results: [null, {}, { id: 1 }] },
        { error: 1 }
      ]
      for (const result of results) {
        for (const isError of [true, false]) {
          for (const message of ["hello", "/write a: b", "/recall x", "/update a: b", "/call document_read {}"]) {
            const { text } = yield* converse(message, () => ({ result, isError }))
            expect(text).not.toBe("")
          }
        }
      }
      expect(textOf(yield* parts(request([])))).toContain("/help")
    }).pipe(Effect.catchAll((error) => Effect.sync(() => expect.fail(String(error)))))
  )

  it.effect("counts words", () =>
    Effect.gen(function* () {
      const all = yield* parts(request("/long 10"))
      expect(all.at(-1)).toEqual({
        type: "finish",
        reason: "stop",
        usage: { inputTokens: 2, outputTokens: 10, totalTokens: 12 }
      })
    })
  )
})

describe("words that steer it", () => {
  it.effect("/help lists them all", () =>
    Effect.gen(function* () {
      const { text } = yield* converse("/help", library)
      for (const word of [
        "write",
        "update",
        "remember",
        "recall",
        "plan",
        "call",
        "fail-tool",
        "long",
        "slow",
        "cut"
      ]) {
        expect(text).toContain(`/${word}`)
      }
    })
  )

  it.effect("/write proposes, and tells what came of it", () =>
    Effect.gen(function* () {
      const write = (result: unknown, isError = false) =>
        converse("/write Shopping: milk: 1 l\nbread", () => ({ result, isError }))
      const done = yield* write({ applied: true, result: { id: "doc_1" } })
      expect(done.calls).toEqual([{ name: "document_write", input: { title: "Shopping", text: "milk: 1 l\nbread" } }])
      expect(done.text).toContain("exactly once")
      expect((yield* write({ applied: false, rejected: true }, true)).text).toContain("rejected")
      expect((yield* write({ applied: false, expired: true }, true)).text).toContain("in time")
      expect((yield* write({ error: "no room" }, true)).text).toContain("no room")
      expect((yield* converse("/write x: y", library, { tools: tools("document_search") })).text).toContain(
        "not offered"
      )
    })
  )

  it.effect("/update finds a document by its title", () =>
    Effect.gen(function* () {
      const { calls } = yield* converse("/update Shopping: eggs", ({ name }) =>
        name === "document_search"
          ? {
              result: {
                results: [
                  { id: "runlet/runs", title: "Shopping", readOnly: true },
                  { id: "doc_1", title: "Shopping", readOnly: false }
                ]
              }
            }
          : { result: { applied: true } }
      )
      expect(calls).toEqual([
        { name: "document_search", input: { query: "Shopping" } },
        { name: "document_update", input: { id: "doc_1", text: "eggs" } }
      ])
      const known = yield* converse("/update doc_7: eggs", () => ({ result: { applied: true } }))
      expect(known.calls).toEqual([{ name: "document_update", input: { id: "doc_7", text: "eggs" } }])
    })
  )

  it.effect("/remember and /recall", () =>
    Effect.gen(function* () {
      const kept = yield* converse("/remember I like tea", () => ({ result: { applied: true } }))
      expect(kept.calls).toEqual([{ name: "memory_write", input: { text: "I like tea" } }])
      const found = yield* converse("/recall tea", () => ({ result: { memories: [{ text: "I like tea" }] } }))
      expect(found.calls).toEqual([{ name: "memory_recall", input: { query: "tea" } }])
      expect(found.text).toContain("- I like tea")
    })
  )

  it.effect("/call calls any tool", () =>
    Effect.gen(function* () {
      const { calls, text } = yield* converse('/call lookup {"q":"x"}', () => ({ result: { found: 42 } }), {
        tools: tools("lookup")
      })
      expect(calls).toEqual([{ name: "lookup", input: { q: "x" } }])
      expect(text).toContain("42")
    })
  )

  it.effect("/plan numbers its steps", () =>
    Effect.gen(function* () {
      const { text } = yield* converse("/plan resume a run after a page reload", library)
      expect(text).toMatch(/^1\. /m)
    })
  )

  it.effect("/fail-tool fails and goes on", () =>
    Effect.gen(function* () {
      const alone = yield* converse("/fail-tool", library)
      expect(alone.calls).toEqual([{ name: "document_read", input: { id: "no-such-document" } }])
      expect(alone.text).toContain("There is no such document.")
      const asked = yield* converse("/fail-tool How does a client resume?", library)
      expect(asked.calls.map(({ name }) => name)).toEqual(["document_read", "document_search", "document_read"])
      expect(asked.text).toContain("resume")
    })
  )

  it.effect("/cut breaks off the first attempt alone", () =>
    Effect.gen(function* () {
      const first = yield* Stream.runCollect(Stream.either(still.stream(request("/cut /long 100"))))
      const said = Chunk.toReadonlyArray(first)
      expect(said).toHaveLength(51)
      expect(said.at(-1)).toMatchObject({
        _tag: "Left",
        left: { code: "truncated", recoverable: true, retryable: false }
      })
      expect(textOf(yield* parts(request("/cut /long 100", { attempt: 2 }))).split(/\s+/)).toHaveLength(100)
    })
  )

  it.effect("/long says exactly so many words", () =>
    Effect.forEach([1, 7, 400, 5000], (count) =>
      Effect.map(parts(request(`/long ${count}`)), (all) => expect(textOf(all).trim().split(/\s+/)).toHaveLength(count))
    )
  )
})

describe("a draft", () => {
  it.effect("is continued where it ends, wherever it was cut", () =>
    Effect.gen(function* () {
      const whole = textOf(yield* parts(request("/cut /long 60", { attempt: 2 })))
      for (const length of [1, 10, 77, whole.length]) {
        const rest = yield* parts(
          request(
            [
              { role: "user", content: "/cut /long 60" },
              { role: "assistant", content: [{ type: "text", text: whole.slice(0, length) }] }
            ],
            { attempt: 2, continueDraft: true }
          )
        )
        expect(whole.slice(0, length) + textOf(rest)).toBe(whole)
        expect(textOf(rest, "reasoning-delta")).toBe("")
      }
    })
  )
})

describe("pace", () => {
  const run = (message: string) =>
    Effect.gen(function* () {
      let heard = 0
      const fiber = yield* Effect.fork(
        Stream.runForEach(Demo.make().stream(request(message)), () => Effect.sync(() => void heard++))
      )
      return { fiber, heard: () => heard }
    })

  it.effect("one word after the other", () =>
    Effect.gen(function* () {
      const { fiber, heard } = yield* run("/long 10")
      yield* TestClock.adjust(Duration.millis(34))
      expect(heard()).toBe(0)
      yield* TestClock.adjust(Duration.millis(1))
      expect(heard()).toBe(1)
      yield* TestClock.adjust(Duration.millis(35 * 9))
      expect(heard()).toBe(11)
      expect(Exit.isSuccess(yield* Fiber.await(fiber))).toBe(true)
    })
  )

  it.effect("/slow takes its time", () =>
    Effect.gen(function* () {
      const { fiber, heard } = yield* run("/slow /long 10")
      yield* TestClock.adjust(Duration.millis(35 * 8))
      expect(heard()).toBe(1)
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust(Duration.minutes(1))
      expect(heard()).toBe(1)
    })
  )
})

describe("words", () => {
  it.prop("joined are the text", [fc.fullUnicodeString()], ([text]) => {
    expect(Text.words(text).join("")).toBe(text)
  })
  it.prop("never end inside a character", [fc.fullUnicodeString()], ([text]) => {
    expect(Text.words(text).every((word) => !/\p{Surrogate}/u.test(word))).toBe(true)
  })
  it("are short where there are no blanks", () => {
    expect(Text.words("Hello big world")).toEqual(["Hello", " big", " world"])
    expect(Text.words("断线以后恢复。")).toEqual(["断线", "以后", "恢复", "。"])
  })
})
