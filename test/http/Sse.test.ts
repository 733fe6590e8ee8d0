import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Sse from "../../src/http/Sse.js"

const parse = (pieces: Iterable<Uint8Array>) => {
  const events: Array<Sse.SseEvent> = []
  const comments: Array<string> = []
  const retries: Array<number> = []
  const parser = Sse.makeParser({
    onEvent: (event) => events.push(event),
    onComment: (text) => comments.push(text),
    onRetry: (ms) => retries.push(ms)
  })
  for (const piece of pieces) parser.push(piece)
  return { events, comments, retries }
}

const bytes = (text: string) => new TextEncoder().encode(text)

const cut = (whole: Uint8Array, cuts: ReadonlyArray<number>) => {
  const at = [...new Set(cuts.map((_) => (whole.length === 0 ? 0 : _ % whole.length)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => whole.subarray(from, at[index] ?? whole.length))
}

const texts = FastCheck.array(
  FastCheck.oneof(
    FastCheck.fullUnicodeString(),
    FastCheck.constantFrom("\n", "\r", "id: 9", "\r\ndata: x\n\n", "🐼", "\0")
  )
)

describe("sse", () => {
  it.prop(
    "what is written is read back, however it is cut and whatever it says",
    [texts, FastCheck.array(FastCheck.nat()), FastCheck.constantFrom("\n", "\r\n", "\r"), FastCheck.boolean()],
    ([contents, cuts, lineEnd, mark]) => {
      const frames = contents.map((delta, index) => Sse.frame(index + 1, JSON.stringify({ delta })))
      const stream = Sse.preamble(1000) + frames.join(Sse.heartbeat)
      const whole = bytes((mark ? "\ufeff" : "") + stream.replaceAll("\n", lineEnd))
      const { comments, events, retries } = parse(cut(whole, cuts))
      expect(events.map(({ data }) => JSON.parse(data).delta)).toEqual(contents)
      expect(events.map(({ id }) => id)).toEqual(contents.map((_, index) => String(index + 1)))
      expect(comments).toEqual(["ok", ...contents.slice(1).map(() => " hb")])
      expect(retries).toEqual([1000])
    }
  )

  it("every single byte may come alone", () => {
    const whole = bytes("id: 1\r\ndata: 春眠 🐼 é\r\n\r\nid: 2\rdata: b\r\rdata: c\n\n")
    expect(parse(Array.from(whole, (byte) => Uint8Array.of(byte))).events).toEqual([
      { id: "1", event: "message", data: "春眠 🐼 é" },
      { id: "2", event: "message", data: "b" },
      { id: "2", event: "message", data: "c" }
    ])
  })

  it("control frames do not move the cursor", () => {
    const frame: Sse.ControlFrame = { type: "resume-start", runId: "run_1", fromSeq: 3, replayedCount: 2 }
    const { events } = parse([bytes(Sse.frame(3, "{}") + Sse.control(frame))])
    expect(events[1]?.id).toBe("3")
    expect(JSON.parse(events[1]?.data ?? "")).toEqual(frame)
  })

  it("the rules of the format hold at their edges", () => {
    const { comments, events, retries } = parse([
      bytes(
        "data:a\ndata: b\ndata\n\nevent: only\n\nevent: named\ndata: x\n\nid: 1\0\nretry: 1x\nretry: 20\n:c\nfoo: bar\ndata: y\n\ndata: cut off"
      )
    ])
    expect(events).toEqual([
      { id: "", event: "message", data: "a\nb\n" },
      { id: "", event: "named", data: "x" },
      { id: "", event: "message", data: "y" }
    ])
    expect(comments).toEqual(["c"])
    expect(retries).toEqual([20])
  })

  it("a long line in many pieces takes linear time", () => {
    const piece = bytes("x".repeat(1024))
    const { events } = parse([bytes("data: "), ...Array.from({ length: 8192 }, () => piece), bytes("\n\n")])
    expect(events[0]?.data.length).toBe(8192 * 1024)
  })
})
