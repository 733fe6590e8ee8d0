import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Cursor from "../../src/http/Cursor.js"

const ok = (result: Either.Either<number, unknown>) => Either.getOrUndefined(result)

describe("cursor", () => {
  it.prop("every decimal integer is itself", [FastCheck.nat({ max: Number.MAX_SAFE_INTEGER })], ([n]) => {
    expect(ok(Cursor.fromText(String(n), "after"))).toBe(n)
    expect(ok(Cursor.fromJson(n, "after"))).toBe(n)
  })

  it.prop("text is a cursor only if it is written like one", [FastCheck.string()], ([text]) => {
    const value = ok(Cursor.fromText(text, "after"))
    if (value !== undefined && text !== "") expect(String(value)).toBe(text)
  })

  it("absent and empty are the start", () => {
    for (const text of [undefined, ""]) expect(ok(Cursor.fromText(text, "after"))).toBe(0)
    for (const value of [undefined, null]) expect(ok(Cursor.fromJson(value, "after"))).toBe(0)
  })

  it("nothing is guessed", () => {
    const wrong = ["-1", "+1", " 1", "1 ", "01", "1e2", "1.0", "0x1", "NaN", "١", "1,2", "null", "9007199254740993"]
    for (const text of wrong) expect([text, ok(Cursor.fromText(text, "after"))]).toEqual([text, undefined])
    for (const value of ["1", "", 1.5, -1, -0, true, [], {}, Number.NaN, 1e300]) {
      expect([value, ok(Cursor.fromJson(value, "after"))]).toEqual([value, undefined])
    }
  })

  it("the header wins over the address, unless it is empty", () => {
    expect(ok(Cursor.fromRequest({ lastEventId: "7", after: "3" }))).toBe(7)
    expect(ok(Cursor.fromRequest({ lastEventId: "7", after: "nonsense" }))).toBe(7)
    expect(ok(Cursor.fromRequest({ lastEventId: "", after: "3" }))).toBe(3)
    expect(ok(Cursor.fromRequest({ lastEventId: undefined, after: "3" }))).toBe(3)
    expect(ok(Cursor.fromRequest({ lastEventId: "x", after: "3" }))).toBeUndefined()
    expect(ok(Cursor.fromRequest({ lastEventId: undefined, after: ["3", "3"] }))).toBeUndefined()
  })
})
