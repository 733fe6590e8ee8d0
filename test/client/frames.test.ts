import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { makeReader } from "../../src/client/Frames.js"
import * as Sse from "../../src/http/Sse.js"
import * as Arbitraries from "../../src/testing/EventArbitraries.js"

const encoder = new TextEncoder()

const cutAt = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const marks = [0, ...[...new Set(places)].sort((a, b) => a - b), bytes.length]
  return marks.slice(1).map((end, index) => bytes.subarray(marks[index], end))
}

const wholeParser = (pieces: ReadonlyArray<Uint8Array>): ReadonlyArray<unknown> => {
  const found: Array<unknown> = []
  const parser = Sse.makeParser({ onEvent: ({ data, id }) => id !== "" && found.push(JSON.parse(data)) })
  for (const piece of pieces) parser.push(piece)
  return found
}

const mine = (pieces: ReadonlyArray<Uint8Array>): ReadonlyArray<unknown> => {
  const read = makeReader()
  return pieces.flatMap((piece) => read(piece))
}

describe("the reader of frames", () => {
  const text = (log: ReadonlyArray<{ readonly seq: number }>) =>
    Sse.preamble(1000) +
    Sse.control({ type: "resume-start", runId: "r", fromSeq: 0, replayedCount: 1 }) +
    log.map((envelope) => Sse.frame(envelope.seq, JSON.stringify(envelope)) + Sse.heartbeat).join("")

  it("reads what a whole parser reads, wherever the bytes are cut", () => {
    FastCheck.assert(
      FastCheck.property(
        Arbitraries.log.chain((log) => {
          const bytes = encoder.encode(text(log))
          return FastCheck.tuple(
            FastCheck.constant(log),
            FastCheck.constant(bytes),
            FastCheck.array(FastCheck.nat(bytes.length), { maxLength: 30 })
          )
        }),
        ([log, bytes, places]) => {
          const pieces = cutAt(bytes, places)
          expect(mine(pieces)).toEqual(log)
          expect(wholeParser(pieces)).toEqual(log)
        }
      )
    )
  })

  it("reads text with line breaks and characters of several bytes, byte by byte", () => {
    const envelope = { runId: "r", seq: 1, event: { type: "text-delta", id: "t", delta: "語\r\n\u2028😀\n\ndata: x" } }
    const bytes = encoder.encode(text([envelope]))
    expect(mine(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual([envelope])
  })

  it("gives nothing for a frame that the end cuts off", () => {
    const bytes = encoder.encode(Sse.frame(1, JSON.stringify({ seq: 1, event: {} })))
    const end = bytes.length - 2
    expect(mine([bytes.subarray(0, end)])).toEqual([])
  })

  it("takes time linear in the length of a line", () => {
    const long = "x".repeat(4_000_000)
    const bytes = encoder.encode(Sse.frame(1, JSON.stringify({ seq: 1, event: long })))
    const pieces = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, i) =>
      bytes.subarray(i * 1000, i * 1000 + 1000)
    )
    const from = performance.now()
    expect(mine(pieces)).toEqual([{ seq: 1, event: long }])
    expect(performance.now() - from).toBeLessThan(2000)
  })

  it("says when the data of a frame is no JSON", () => {
    expect(() => mine([encoder.encode("data: {\n\n")])).toThrow(SyntaxError)
  })
})
