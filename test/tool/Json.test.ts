import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Json from "../../src/tool/Json.js"

const shuffled = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(shuffled)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, member]) => [key, shuffled(member)])
        )
      : value

const json = fc.jsonValue({ noUnicodeString: false })

describe("canonical", () => {
  it.prop("the order of keys does not matter, at any depth", [json], ([value]) => {
    expect(Json.canonical(shuffled(value))).toBe(Json.canonical(value))
  })

  it.prop("it is JSON of the same value", [json], ([value]) => {
    expect(JSON.parse(Json.canonical(value))).toEqual(JSON.parse(JSON.stringify(value)))
  })

  it.prop("different values have different texts", [json, json], ([a, b]) => {
    const same = JSON.stringify(shuffled(shuffled(a))) === JSON.stringify(shuffled(shuffled(b)))
    fc.pre(!same)
    try {
      expect(JSON.parse(JSON.stringify(a))).not.toEqual(JSON.parse(JSON.stringify(b)))
    } catch {
      return
    }
    expect(Json.canonical(a)).not.toBe(Json.canonical(b))
  })

  it("tells types, the order of arrays, and missing from null", () => {
    const same = (a: unknown, b: unknown) => Json.hash(a) === Json.hash(b)
    expect(same({ a: 1, b: { x: 1, y: 2 } }, { b: { y: 2, x: 1 }, a: 1 })).toBe(true)
    expect(same(JSON.parse('{"a":1}'), JSON.parse('{"a":1.0}'))).toBe(true)
    expect(same({ a: 1 }, { a: "1" })).toBe(false)
    expect(same({ a: 0 }, { a: false })).toBe(false)
    expect(same([1, 2], [2, 1])).toBe(false)
    expect(same({ a: null }, {})).toBe(false)
    expect(same({ a: [] }, { a: {} })).toBe(false)
    expect(same(JSON.parse('{"__proto__":{"a":1}}'), {})).toBe(false)
  })

  it("hashes like everybody else", () => {
    expect(Json.sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    expect(Json.hash({})).toBe(Json.sha256("{}"))
  })
})

describe("toJson", () => {
  it.prop("keeps what is JSON already", [json], ([value]) => {
    expect(Json.toJson(value)).toEqual(JSON.parse(JSON.stringify(value)))
  })

  it.prop(
    "makes JSON of anything",
    [
      fc.anything({
        withBigInt: true,
        withDate: true,
        withMap: true,
        withSet: true,
        withTypedArray: true,
        withSparseArray: true,
        withNullPrototype: true,
        withObjectString: true
      })
    ],
    ([value]) => {
      const text = JSON.stringify(Json.toJson(value))
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
    }
  )

  it.prop(
    "never exceeds its bound, and says so when it cuts",
    [fc.anything(), fc.integer({ min: 300, max: 2000 })],
    ([value, bytes]) => {
      const fitted = Json.fit(value, bytes)
      const whole = Json.toJson(value)
      expect(Buffer.byteLength(JSON.stringify(fitted))).toBeLessThanOrEqual(bytes)
      if (Buffer.byteLength(JSON.stringify(whole)) <= bytes - 100) {
        expect(fitted).toEqual(whole)
      }
    }
  )

  it("names what has no JSON", () => {
    expect(Json.toJson(undefined)).toBe(null)
    expect(Json.toJson([undefined, () => 1, Symbol("s")])).toEqual([null, null, null])
    expect(Json.toJson({ a: undefined, b: () => 1, c: 1 })).toEqual({ c: 1 })
    expect(Json.toJson(12345678901234567890n)).toBe("12345678901234567890")
    expect(Json.toJson(Buffer.from("hi"))).toBe("aGk=")
    expect(Json.toJson(new Uint8Array([104, 105]))).toBe("aGk=")
    expect(Json.toJson([Number.NaN, Number.POSITIVE_INFINITY, -0])).toEqual([null, null, 0])
    expect(Json.toJson(new Date(0))).toBe("1970-01-01T00:00:00.000Z")
    expect(Json.toJson(new Date(Number.NaN))).toBe(null)
    expect(Json.toJson(new Map([["a", 1]]))).toEqual([["a", 1]])
    expect(Json.toJson(new Set([1]))).toEqual([1])
    expect(Json.toJson(new Error("no"))).toEqual({ name: "Error", message: "no" })
    expect(Json.toJson("a\u0000b\ud800c")).toBe("a\u0000b\ufffdc")
  })

  it("survives objects that set traps", () => {
    const circular: Record<string, unknown> = { a: 1 }
    circular.self = circular
    expect(Json.toJson(circular)).toEqual({ a: 1, self: "[circular]" })
    const shared = { x: 1 }
    expect(Json.toJson([shared, shared])).toEqual([{ x: 1 }, { x: 1 }])
    expect(
      Json.toJson({
        get boom() {
          throw new Error("boom")
        }
      })
    ).toEqual({ boom: "[unreadable]" })
    expect(
      Json.toJson({
        toJSON: () => {
          throw new Error("boom")
        }
      })
    ).toBe("[unreadable]")
    const same = { a: 1, toJSON: () => same }
    expect(Json.toJson(same)).toEqual({ a: 1 })
    const again = (): unknown => ({ b: 1, toJSON: again })
    expect(Json.toJson(again())).toEqual({ b: 1 })
    const words = '{"toJSON":"data","then":1,"toString":2,"hasOwnProperty":3}'
    expect(JSON.stringify(Json.toJson(JSON.parse(words)))).toBe(words)
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    expect(Json.toJson(revoked.proxy)).toBe("[unreadable]")
    let deep: unknown = 1
    for (let i = 0; i < 100_000; i++) {
      deep = [deep]
    }
    expect(JSON.stringify(Json.toJson(deep))).toContain("[too deep]")
  })

  it("takes __proto__ for a key", () => {
    const result = Json.toJson(JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}'))
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true},"constructor":{"prototype":{"p":1}}}')
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect("polluted" in {}).toBe(false)
  })

  it("does not walk shared references for ever", () => {
    let value: unknown = "x"
    for (let i = 0; i < 60; i++) {
      value = [value, value]
    }
    expect(Json.fit(value, 1000)).toMatchObject({ truncated: true })
  })

  it("cuts between characters and keeps the beginning", () => {
    expect(Json.cut("a😀", 5)).toBe("a")
    expect(Json.cut("a😀", 7)).toBe("a😀")
    const fitted = Json.fit("你".repeat(10_000), 1000)
    expect(fitted).toMatchObject({ truncated: true, text: expect.stringMatching(/^你+$/) })
    expect(Json.fit(fitted, 500)).toMatchObject({ truncated: true, text: expect.stringMatching(/^你+$/) })
  })
})
