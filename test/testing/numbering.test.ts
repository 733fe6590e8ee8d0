import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { type AgentEvent, noUsage } from "../../src/domain/AgentEvent.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Secrets from "../../src/domain/Secrets.js"
import * as Numbering from "../../src/engine/Numbering.js"
import { Sanitizer } from "../../src/engine/Sanitizer.js"
import * as Events from "../../src/testing/EventArbitraries.js"
import { wellFormed } from "../../src/tool/Json.js"

const delta: FastCheck.Arbitrary<AgentEvent> = FastCheck.record({
  type: FastCheck.constantFrom("text-delta" as const, "reasoning-delta" as const),
  id: FastCheck.constantFrom("a", "b"),
  delta: FastCheck.string({ maxLength: 4 })
})

const texts = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let last: string | undefined
  for (const event of events) {
    if (!("delta" in event)) {
      out.push(`[${event.type}]`)
      last = undefined
      continue
    }
    const part = `${event.type} ${"id" in event ? event.id : event.toolCallId}`
    if (part === last) out[out.length - 1] += event.delta
    else out.push(`${part}: ${event.delta}`)
    last = part
  }
  return out
}

describe("joining deltas", () => {
  it.prop(
    "keeps every text, in order, and leaves no two neighbours that could be one",
    [FastCheck.array(FastCheck.oneof(delta, Events.event), { maxLength: 30 })],
    ([events]) => {
      const joined = Numbering.join(events)
      expect(texts(joined)).toEqual(texts(events))
      expect(Numbering.join(joined)).toEqual(joined)
      expect(joined.length).toBe(texts(events).length)
    },
    { fastCheck: { numRuns: 200 } }
  )
})

describe("numbering", () => {
  it.prop(
    "counts on without a hole, folds what it wrote, and keeps the text",
    [Events.log, FastCheck.integer({ min: 1, max: 5 })],
    ([log, every]) => {
      const runId = log[0]?.runId ?? ""
      const events = log.map((envelope) => envelope.event).filter((event) => event.type !== "checkpoint")
      const numbered = Numbering.number(RunState.empty(runId), events, 1, 0, every)
      expect(numbered.events.map((event) => event.seq)).toEqual(numbered.events.map((_, index) => index + 1))
      const whole = RunState.reduceAll(RunState.empty(runId), log)
      expect(RunState.text(numbered.state)).toBe(RunState.text(whole))
      expect(numbered.state.status).toBe(whole.status)
      for (const { json, seq } of numbered.events) {
        const event: AgentEvent = JSON.parse(json)
        if (event.type === "checkpoint") expect(event.seq).toBe(seq)
      }
    },
    { fastCheck: { numRuns: 200 } }
  )
})

describe("the sanitizer", () => {
  it.prop(
    "gives out the well-formed text however it was split, and never half a character",
    [Events.utf16, FastCheck.array(FastCheck.nat(24), { maxLength: 8 })],
    ([text, cuts]) => {
      const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b)
      const pieces = [0, ...at].map((start, index) => text.slice(start, at[index] ?? text.length))
      const sanitizer = new Sanitizer(Secrets.make([]))
      const out: Array<AgentEvent> = []
      for (const piece of pieces) out.push(...sanitizer.push({ type: "text-delta", id: "a", delta: piece }))
      out.push(...sanitizer.push({ type: "iteration-end", iteration: 1 }))
      const deltas = out.flatMap((event) => ("delta" in event ? [event.delta] : []))
      expect(deltas.join("")).toBe(wellFormed(text))
      for (const one of deltas) expect(wellFormed(one)).toBe(one)
      expect(out.at(-1)?.type).toBe("iteration-end")
    },
    { fastCheck: { numRuns: 1000 } }
  )

  it.prop(
    "shows all text of a run in its order, and a secret of it nowhere, whatever parts it came in",
    [FastCheck.array(FastCheck.tuple(FastCheck.nat(7), FastCheck.constantFrom("think", "part", "call", "turn")))],
    ([cuts]) => {
      const secret = "hdr-canary-55443322"
      const sanitizer = new Sanitizer(Secrets.make([secret]))
      const out: Array<AgentEvent> = []
      const push = (event: AgentEvent) => out.push(...sanitizer.push(event))
      let rest = `before ${secret} after`
      let part = 0
      for (const [length, between] of cuts) {
        push({ type: "text-delta", id: `${part}`, delta: rest.slice(0, length) })
        rest = rest.slice(length)
        part++
        if (between === "think") push({ type: "reasoning-delta", id: `${part}`, delta: "hm" })
        if (between === "call")
          push({ type: "tool-call-start", toolCallId: `${part}`, toolName: "t", kind: "readonly" })
        if (between === "turn") push({ type: "model-end", iteration: 1, finishReason: "stop", usage: noUsage })
      }
      push({ type: "text-delta", id: `${part}`, delta: rest })
      push({ type: "iteration-end", iteration: 1 })
      const text = out.flatMap((event) => (event.type === "text-delta" ? [event.delta] : [])).join("")
      // What came before enough was known to hold it back, then markers alone.
      expect(text).toMatch(/^before (?:h|hd|hdr|hdr-|hdr-c|hdr-ca|hdr-can)?(?:\[redacted\])+ after$/)
    },
    { fastCheck: { numRuns: 1000 } }
  )

  it.prop(
    "keeps interleaved parts apart",
    [Events.utf16, Events.utf16, FastCheck.array(FastCheck.boolean(), { maxLength: 60 })],
    ([a, b, turns]) => {
      const sanitizer = new Sanitizer(Secrets.make([]))
      const rest = {
        a: [...Array(a.length).keys()].map((i) => a[i] ?? ""),
        b: [...Array(b.length).keys()].map((i) => b[i] ?? "")
      }
      const out = { a: "", b: "" }
      const take = (part: "a" | "b") => {
        const unit = rest[part].shift()
        if (unit === undefined) return
        for (const event of sanitizer.push({ type: "text-delta", id: part, delta: unit })) {
          if (event.type === "text-delta") out[event.id === "a" ? "a" : "b"] += event.delta
        }
      }
      for (const turn of turns) take(turn ? "a" : "b")
      while (rest.a.length > 0) take("a")
      while (rest.b.length > 0) take("b")
      for (const event of sanitizer.push({ type: "iteration-end", iteration: 1 })) {
        if (event.type === "text-delta") out[event.id === "a" ? "a" : "b"] += event.delta
      }
      expect(out).toEqual({ a: wellFormed(a), b: wellFormed(b) })
    },
    { fastCheck: { numRuns: 200 } }
  )
})
