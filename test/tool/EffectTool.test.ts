import * as Ai from "@effect/ai/Tool"
import * as AiToolkit from "@effect/ai/Toolkit"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ToolPhase } from "../../src/domain/AgentEvent.js"
import * as AiTool from "../../src/tool/AiTool.js"
import * as EffectTool from "../../src/tool/EffectTool.js"
import type { Tool, ToolContext } from "../../src/tool/Tool.js"
import { ToolFailure } from "../../src/tool/Tool.js"
import * as ToolRunner from "../../src/tool/ToolRunner.js"

const context = (phase: ToolPhase): ToolContext => ({
  user: "alice",
  runId: "run",
  conversationId: "conversation",
  toolCallId: "call",
  phase,
  idempotencyKey: "key",
  currentDocument: null,
  progress: () => Effect.void
})

/** As the loop does it: check, then run what was checked. */
const call = (tool: Tool, phase: ToolPhase, input: unknown) =>
  Effect.flatMap(tool.check(input), (checked) =>
    ToolRunner.run({ tool, phase, input: checked, context: context(phase), timeoutMs: 1000, maxResultBytes: 10_000 })
  )

const problemOf = (tool: Tool, input: unknown): Effect.Effect<string> =>
  Effect.match(tool.check(input), { onSuccess: () => "", onFailure: (message) => message })

class Prefix extends Context.Tag("test/Prefix")<Prefix, string>() {}

const Parameters = Schema.Struct({
  count: Schema.NumberFromString,
  at: Schema.optional(Schema.DateFromString),
  nested: Schema.optional(Schema.Struct({ list: Schema.Array(Schema.Int) }))
})

describe("EffectTool", () => {
  const tool = EffectTool.make({
    name: "double",
    description: "Doubles",
    kind: "readonly",
    parameters: Parameters,
    success: Schema.Struct({ when: Schema.DateFromString, doubled: Schema.NumberFromString }),
    execute: ({ at, count }) => Effect.succeed({ when: at ?? new Date(0), doubled: count * 2 })
  })

  it.effect("handlers get decoded input and results are encoded", () =>
    Effect.gen(function* () {
      expect(yield* call(tool, "execute", { count: "21", at: "2024-01-02T00:00:00.000Z" })).toEqual({
        _tag: "Settled",
        ok: true,
        result: { when: "2024-01-02T00:00:00.000Z", doubled: "42" }
      })
    })
  )

  it("shows the model the schema of what it must send", () => {
    expect(tool.parameters).toMatchObject({
      type: "object",
      required: ["count"],
      additionalProperties: false,
      properties: { count: { type: "string" }, nested: { type: "object" } }
    })
    expect(EffectTool.parametersOf(Schema.Struct({}))).toEqual({
      type: "object",
      properties: {},
      additionalProperties: false
    })
    class Named extends Schema.Class<Named>("Named")({ a: Schema.Trim }) {}
    expect(EffectTool.parametersOf(Named)).toMatchObject({ type: "object", properties: { a: { type: "string" } } })
  })

  it.effect("says what is wrong and where", () =>
    Effect.gen(function* () {
      const problem = (input: unknown) => problemOf(tool, input)
      expect(yield* problem({})).toBe("count: is missing")
      expect(yield* problem({ count: 1 })).toContain("count: ")
      expect(yield* problem({ count: "1", nested: { list: [1, 2.5] } })).toContain("nested.list.1: ")
      expect(yield* problem({ count: "1", confirmed: true })).toContain("confirmed: ")
      for (const wrong of [null, [], "text", 42, undefined]) {
        expect((yield* problem(wrong)).length).toBeGreaterThan(0)
      }
    })
  )

  it.effect("a result that is not as declared is a failure of a reading, and never undoes an act", () =>
    Effect.gen(function* () {
      const broken = (kind: "readonly" | "effectful") =>
        EffectTool.make({
          name: "broken",
          description: "",
          kind,
          parameters: Schema.Struct({}),
          success: Schema.Struct({ a: Schema.NonEmptyString }),
          execute: () => Effect.succeed({ a: "" })
        })
      expect(yield* call(broken("readonly"), "execute", {})).toMatchObject({ ok: false })
      expect(yield* call(broken("effectful"), "execute", {})).toMatchObject({ ok: true, result: { a: "" } })
    })
  )

  it.effect("handlers may use services of where the tool is made", () =>
    Effect.gen(function* () {
      const tool = yield* EffectTool.makeWith({
        name: "greet",
        description: "",
        kind: "write",
        parameters: Schema.Struct({ name: Schema.String }),
        preview: ({ name }) => Effect.map(Prefix, (prefix) => `${prefix} ${name}?`),
        commit: ({ name }) => Effect.map(Prefix, (prefix) => ({ result: `${prefix} ${name}!` })),
        probe: () => Effect.map(Prefix, (result) => ({ state: "applied" as const, result }))
      }).pipe(Effect.provideService(Prefix, "hello"))
      expect(yield* call(tool, "preview", { name: "you" })).toMatchObject({ result: "hello you?" })
      expect(yield* call(tool, "commit", { name: "you" })).toMatchObject({ result: "hello you!" })
      expect(yield* ToolRunner.probe(tool, context("commit"), { timeoutMs: 1000, maxResultBytes: 1000 })).toEqual({
        state: "applied",
        result: "hello"
      })
    })
  )

  it.effect("the kind may depend on the input, decoded or not", () =>
    Effect.gen(function* () {
      const tool = EffectTool.make({
        name: "either",
        description: "",
        kind: "effectful",
        kindOf: ({ count }) => (count > 10 ? "write" : "readonly"),
        parameters: Parameters,
        execute: () => Effect.succeed(1)
      })
      const input = { count: "11" }
      expect(ToolRunner.kindOf(tool, input)).toBe("write")
      expect(ToolRunner.kindOf(tool, yield* tool.check(input))).toBe("write")
      expect(ToolRunner.kindOf(tool, { count: "1" })).toBe("readonly")
      expect(ToolRunner.kindOf(tool, null)).toBe("effectful")
    })
  )

  it("a kind without its handler is refused at once", () => {
    const make = (kind: "readonly" | "write") => () =>
      EffectTool.make({ name: "empty", description: "", kind, parameters: Schema.Struct({}) })
    expect(make("write")).toThrow(/empty.*commit/)
    expect(make("readonly")).toThrow(/empty.*execute/)
  })
})

describe("AiTool", () => {
  const Search = Ai.make("search", {
    description: "Searches",
    parameters: { count: Schema.NumberFromString },
    success: Schema.Struct({ next: Schema.NumberFromString }),
    failure: Schema.Struct({ message: Schema.String, code: Schema.NumberFromString })
  })
    .annotate(Ai.Readonly, true)
    .annotate(Ai.Title, "Searching…")
  const Send = Ai.make("send", { description: "Sends", success: Schema.String })
    .annotate(Ai.Idempotent, true)
    .annotate(Ai.Destructive, false)

  it.effect("facts come from the annotations, cautiously", () =>
    Effect.gen(function* () {
      const search = yield* AiTool.fromAiTool(Search, ({ count }) => Effect.succeed({ next: count + 1 }))
      expect(search).toMatchObject({ name: "search", description: "Searches", title: "Searching…", kind: "readonly" })
      const send = yield* AiTool.fromAiTool(Send, () => Effect.succeed("sent"))
      expect(send).toMatchObject({ kind: "effectful", idempotent: true })
      expect(send.unattended).toBe(undefined)
      expect(send.parameters).toMatchObject({ type: "object" })
      const free = yield* AiTool.fromAiTool(Send, () => Effect.succeed("sent"), { unattended: true })
      expect(free.unattended).toBe(true)
    })
  )

  it.effect("input is decoded once, results and failures are encoded", () =>
    Effect.gen(function* () {
      const search = yield* AiTool.fromAiTool(Search, ({ count }) =>
        count === 0 ? Effect.fail({ message: "zero", code: 7 }) : Effect.map(Prefix, () => ({ next: count + 1 }))
      ).pipe(Effect.provideService(Prefix, ""))
      expect(yield* call(search, "execute", { count: "1" })).toEqual({
        _tag: "Settled",
        ok: true,
        result: { next: "2" }
      })
      expect(yield* call(search, "execute", { count: "0" })).toEqual({
        _tag: "Settled",
        ok: false,
        result: { error: "zero", details: { message: "zero", code: "7" } }
      })
      expect(yield* problemOf(search, { count: 1 })).toContain("count")
    })
  )

  it.effect("a toolkit gives its tools with its handlers", () =>
    Effect.gen(function* () {
      const kit = AiToolkit.make(Search, Send)
      const tools = yield* AiTool.fromToolkit(kit, { send: { unattended: true } }).pipe(
        Effect.provide(
          kit.toLayer({
            search: ({ count }) =>
              count === 0 ? Effect.fail({ message: "zero", code: 7 }) : Effect.succeed({ next: count + 1 }),
            send: () => Effect.succeed("sent")
          })
        )
      )
      expect(tools.map(({ kind, name, unattended }) => [name, kind, unattended])).toEqual([
        ["search", "readonly", undefined],
        ["send", "effectful", true]
      ])
      const [search, send] = tools
      if (search === undefined || send === undefined) {
        return expect.fail("two tools")
      }
      expect(yield* call(search, "execute", { count: "1" })).toMatchObject({ ok: true, result: { next: "2" } })
      expect(yield* call(search, "execute", { count: "0" })).toMatchObject({ ok: false, result: { error: "zero" } })
      expect(yield* call(send, "execute", {})).toMatchObject({ ok: true, result: "sent" })
    })
  )
})

describe("failures", () => {
  it.effect("carry their details", () =>
    Effect.gen(function* () {
      const tool = EffectTool.make({
        name: "fails",
        description: "",
        kind: "readonly",
        parameters: Schema.Struct({}),
        execute: () => Effect.fail(new ToolFailure({ message: "no", result: { hint: "try again" } }))
      })
      expect(yield* call(tool, "execute", {})).toMatchObject({
        ok: false,
        result: { error: "no", details: { hint: "try again" } }
      })
    })
  )
})
