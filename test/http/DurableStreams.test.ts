import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Durable from "../../src/http/DurableStreams.js"

const seq = FastCheck.nat({ max: Number.MAX_SAFE_INTEGER })
const placeOf = (offset: string) => Either.getOrUndefined(Either.map(Durable.parse({ offset }), (asked) => asked.after))

describe("durable streams", () => {
  it.prop("an offset is its seq, and offsets sort as text", [seq, seq], ([a, b]) => {
    expect(placeOf(Durable.offsetOf(a))).toBe(a)
    expect(Durable.offsetOf(a) < Durable.offsetOf(b)).toBe(a < b)
  })

  it.prop("text is an offset only if it is written like one", [FastCheck.string()], ([text]) => {
    const found = placeOf(text)
    if (typeof found === "number" && text !== "-1") expect(Durable.offsetOf(found)).toBe(text)
  })

  it("knows where logs begin and end", () => {
    expect([Durable.parse({}), Durable.parse({ offset: "-1" })].map(Either.getOrThrow)).toMatchObject([
      { after: 0 },
      { after: 0 }
    ])
    expect(placeOf("now")).toBe("now")
  })

  it("guesses nothing", () => {
    const offset = Durable.offsetOf(1)
    const wrong = [
      ...["", "1", "-2", "NOW", "9999999999999999", "000000000000001e"].map((offset) => ({ offset })),
      { offset: [offset, offset] },
      { offset, live: "true" },
      { offset, live: ["sse", "sse"] },
      { live: "sse" },
      { offset, cursor: "x" },
      { offset, cursor: "1234567890123456" },
      { offset, cursor: ["1", "1"] }
    ]
    for (const one of wrong) expect([one, Either.isLeft(Durable.parse(one))]).toEqual([one, true])
  })

  it.prop(
    "a cursor never goes back, and is never the one that was asked with",
    [FastCheck.nat(), FastCheck.nat(), FastCheck.integer({ min: 1, max: 180 })],
    ([past, asked, jitter]) => {
      const now = Date.UTC(2026, 0, 1) + past
      expect(Durable.cursorOf(now, asked, jitter)).toBeGreaterThan(asked)
      expect(Durable.cursorOf(now + 20_000, undefined, jitter)).toBe(Durable.cursorOf(now, undefined, jitter) + 1)
    }
  )

  it("a tag tells an open log from a closed one, and is found among others", () => {
    const open = Durable.etag("run_1", 0, { seq: 3, upToDate: true, closed: false })
    const closed = Durable.etag("run_1", 0, { seq: 3, upToDate: true, closed: true })
    expect(open).not.toBe(closed)
    expect([Durable.matches(`"x", W/${open}`, open), Durable.matches(open, closed)]).toEqual([true, false])
    expect(Durable.matches(undefined, open)).toBe(false)
  })
})
