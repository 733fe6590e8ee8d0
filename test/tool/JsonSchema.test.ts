import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JsonSchema from "../../src/tool/JsonSchema.js"

const of = (q: unknown) => ({ type: "object", properties: { q } })

/** Why an input is refused; `undefined` when it is not. */
const refusal = <E>(checked: Effect.Effect<unknown, E>): Effect.Effect<E | undefined> =>
  Effect.match(checked, { onFailure: (why) => why, onSuccess: () => undefined })

it.live("a check that would not end is refused, and the next one is not disturbed", () =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile("t", of({ type: "string", pattern: "^(a+)+$" }))
    const begun = performance.now()
    expect(yield* refusal(check({ q: `${"a".repeat(60)}!` }))).toBe("takes too long to be checked")
    expect(performance.now() - begun).toBeLessThan(10_000)
    expect(yield* check({ q: "aaa" })).toEqual({ q: "aaa" })
    expect(yield* refusal(check({ q: "b" }))).toContain("q: must match pattern")
  })
)

it.live("so is one that compares everything with everything", () =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile("t", of({ type: "array", uniqueItems: true }))
    const q = Array.from({ length: 200_000 }, (_, n) => ({ n }))
    expect(yield* refusal(check({ q }))).toBe("takes too long to be checked")
    expect(yield* check({ q: q.slice(0, 10) })).toEqual({ q: q.slice(0, 10) })
  })
)

it.live("many of them leave the process time for others, and do not spoil what is checked quickly", () =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile("t", of({ type: "string", pattern: "^(a+)+$" }))
    let turns = 0
    const turn = setInterval(() => turns++, 1)
    yield* Effect.addFinalizer(() => Effect.sync(() => clearInterval(turn)))
    const begun = performance.now()
    for (let n = 1; n <= 30; n++) {
      expect(yield* refusal(check({ q: `${"a".repeat(60)}!` }))).toBe("takes too long to be checked")
      expect(turns).toBeGreaterThanOrEqual(n)
      expect(yield* check({ q: "aaa" })).toEqual({ q: "aaa" })
    }
    // A second for each would be half a minute.
    expect(performance.now() - begun).toBeLessThan(20_000)
  }).pipe(Effect.scoped)
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

it.live("a thousand tools are ready in a moment, and what one calls something is nothing to the others", () =>
  Effect.gen(function* () {
    const begun = performance.now()
    const checks = yield* Effect.forEach(Array.from({ length: 1_000 }), (_, n) =>
      JsonSchema.compile(`t${n}`, {
        $id: "https://example.com/same",
        ...of({ $ref: "#/$defs/q" }),
        $defs: { q: { $id: "https://example.com/inner", const: n } }
      }).pipe(Effect.orElse(() => JsonSchema.compile(`t${n}`, of({ const: n }))))
    )
    expect(performance.now() - begun).toBeLessThan(20_000)
    for (const n of [0, 1, 999]) {
      expect(yield* checks[n]?.({ q: n }) ?? Effect.fail("none")).toEqual({ q: n })
      expect(yield* refusal(checks[n]?.({ q: n + 1 }) ?? Effect.void)).toContain("q: must be equal to constant")
    }
  })
)

it.live("schemas of both drafts are checked themselves", () =>
  Effect.gen(function* () {
    for (const $schema of ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]) {
      const check = yield* JsonSchema.compile("t", { $schema, ...of({ type: "integer" }) })
      expect(yield* check({ q: 1 })).toEqual({ q: 1 })
      expect(yield* refusal(check({ q: "1" }))).toBe("q: must be integer")
      expect((yield* Effect.flip(JsonSchema.compile("t", { $schema, ...of({ type: "text" }) }))).message).toContain(
        "not a usable JSON Schema: schema is invalid: data/properties/q/type"
      )
    }
  })
)
