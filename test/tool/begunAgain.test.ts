import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { afterAll, expect, test, vi } from "vitest"

/** Where work is cut before it is done as a whole, in milliseconds. */
const cuts = [1, 2, 4, 8, 16, 32, 64]

vi.mock("../../src/tool/Bounded.js", async (original) => {
  const actual = await original<typeof import("../../src/tool/Bounded.js")>()
  const bounded: typeof actual.bounded = (work, boundMs) => {
    for (const cut of cuts) {
      try {
        actual.bounded(work, cut)
      } catch {
        // It is begun again.
      }
    }
    return actual.bounded(work, boundMs)
  }
  return { bounded }
})

let looks = 0
vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: ++looks * 1_000_000, system: 0 }))
afterAll(() => vi.restoreAllMocks())

// The first schema of a process is compiled cold, so it takes longest and is cut in most places.
test.each(["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"])(
  "a schema that was cut off anywhere while it was compiled can be compiled again (%s)",
  async ($schema) => {
    const { compile } = await import("../../src/tool/JsonSchema.js")
    const schema = { $schema, type: "object", properties: { q: { type: "string" } }, required: ["q"] }
    const check = await Effect.runPromise(compile("lookup", schema))
    expect(await Effect.runPromise(check({ q: "a" }))).toEqual({ q: "a" })
    expect(Either.isLeft(await Effect.runPromise(Effect.either(check({}))))).toBe(true)
  }
)
