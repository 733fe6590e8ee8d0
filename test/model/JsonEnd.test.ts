import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as JsonEnd from "../../src/model/JsonEnd.js"
import type { ModelPart } from "../../src/model/Model.js"
import * as OpenAiCalls from "../../src/model/OpenAiCalls.js"

afterEach(() => {
  vi.restoreAllMocks()
})

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Objects, arrays and strings as texts, some with a mistake somewhere or something behind them. */
const texts = FastCheck.oneof(FastCheck.object(), FastCheck.array(FastCheck.json()), FastCheck.string()).chain(
  (value) => {
    const text = JSON.stringify(value)
    const character = FastCheck.constantFrom('"', "\\", "{", "}", "[", "]", " ", "\n", ",", "x", "\u00a0")
    return FastCheck.oneof(
      FastCheck.constant(text),
      FastCheck.tuple(FastCheck.nat(text.length), character).map(
        ([at, put]) => text.slice(0, at) + put + text.slice(at)
      ),
      FastCheck.string().map((rest) => text + rest)
    )
  }
)

describe("the end of a JSON text", () => {
  it.prop("is where a parser would find it, at every length", [texts], ([text]) => {
    // What begins as a number or a word has no end of its own.
    FastCheck.pre(/^\s*["[{]/.test(text))
    const end = JsonEnd.make()
    for (let length = 1; length <= text.length; length++) {
      end.push(text.charAt(length - 1))
      const known = text.slice(0, length)
      expect([known, end.isReached(known)]).toEqual([known, isJson(known)])
    }
  })

  it("is found without reading the arguments of a call again for each of their pieces", () => {
    const calls = OpenAiCalls.make()
    const out: Array<ModelPart> = []
    const push = (id: number, text: string) =>
      calls.push(
        [{ index: 0, id: `id-${id}`, function: { ...(id === 0 && { name: "lookup" }), arguments: text } }],
        out
      )
    const parse = vi.spyOn(JSON, "parse")
    push(0, '{"q":"')
    for (let id = 1; id <= 1_000; id++) push(id, "}")
    push(1_001, '"}')
    push(1_002, " ")
    expect(calls.count()).toBe(2)
    expect(parse).toHaveBeenCalledTimes(1)
  })
})
