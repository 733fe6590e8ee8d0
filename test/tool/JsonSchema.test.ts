import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JsonSchema from "../../src/tool/JsonSchema.js"

const of = (q: unknown) => ({ type: "object", properties: { q } })

it.live("a check that would not end is refused, and the next one is not disturbed", () =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile("t", of({ type: "string", pattern: "^(a+)+$" }))
    const begun = performance.now()
    expect(yield* Effect.flip(check({ q: `${"a".repeat(60)}!` }))).toBe("can not be checked within 1000 ms")
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(yield* check({ q: "aaa" })).toEqual({ q: "aaa" })
    expect(yield* Effect.flip(check({ q: "b" }))).toContain("q: must match pattern")
  })
)

it.live("so is one that compares everything with everything", () =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile("t", of({ type: "array", uniqueItems: true }))
    const q = Array.from({ length: 200_000 }, (_, n) => ({ n }))
    expect(yield* Effect.flip(check({ q }))).toBe("can not be checked within 1000 ms")
    expect(yield* check({ q: q.slice(0, 10) })).toEqual({ q: q.slice(0, 10) })
  })
)

it.effect("a schema that nests without an end, or that no engine can read, is no schema", () =>
  Effect.gen(function* () {
    let deep: unknown = { type: "string" }
    for (let n = 0; n < 20_000; n++) deep = { type: "array", items: deep }
    for (const schema of [of(deep), of({ type: "string", pattern: "(" }), of({ $ref: "http://127.0.0.1:1/x" })]) {
      const error = yield* Effect.flip(JsonSchema.compile("t", schema))
      expect(error).toMatchObject({ _tag: "ToolConfigError", tool: "t" })
      expect(error.message).not.toMatch(/\n\s+at /)
    }
  })
)
