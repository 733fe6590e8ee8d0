import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { lossOf, pathText } from "../../src/tool/JsonText.js"

const at = (text: string) => {
  const loss = lossOf(text)
  return loss === undefined ? undefined : pathText(loss.path)
}

describe("what gets lost of JSON text", () => {
  it.prop(
    "is nothing of what JSON itself has written",
    [FastCheck.jsonValue(), FastCheck.nat(4)],
    ([value, indent]) => {
      expect(lossOf(JSON.stringify(value, null, indent))).toBeUndefined()
    }
  )

  it("is the first of two members of one name", () => {
    expect(at('{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}')).toBeUndefined()
    expect(at('{"a":1,"a":1}')).toBe("a")
    expect(at('{"x":[0,{"a":1,"b":2,"\\u0061":3}]}')).toBe("x[1].a")
    expect(at('{"__proto__":1,"__proto__":2}')).toBe("__proto__")
    expect(at('{"constructor":1,"toString":2}')).toBeUndefined()
    expect(at('{"":1,"":2}')).toBe("")
    expect(at('{"a":"}","b":"\\"","a":",\\\\"}')).toBe("a")
    expect(at('["a","a",{"a":"a"}]')).toBeUndefined()
    // Halves of pairs all become the same character.
    expect(at('{"\\ud800":1,"\\udfff":2}')).toBe("\ufffd")
    expect(at('{"\\ud83d\\ude00":1,"\\ud83d\\ude01":2}')).toBeUndefined()
    expect(at('{"a":{"b":1},"b":[],"a":{}}')).toBe("a")
  })

  it("is the end of a number that is too long", () => {
    for (const text of ["9007199254740991", "-9007199254740991", "1e300", "0.1", "3.14159265358979323846", "0", "-0"]) {
      expect([text, lossOf(text)]).toEqual([text, undefined])
    }
    for (const text of [
      "9007199254740993",
      "-9007199254740993",
      "1e400",
      "-1E+999",
      "123456789012345678901234567890"
    ]) {
      expect([text, at(`{"n":[1,${text}]}`)]).toEqual([text, "n[1]"])
    }
    expect(at("[1e400]")).toBe("[0]")
  })
})
