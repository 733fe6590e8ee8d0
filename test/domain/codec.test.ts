import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ParseError } from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as Envelope from "../../src/domain/Envelope.js"
import * as Events from "../../src/testing/EventArbitraries.js"

const runId = "run_01890000-0000-7000-8000-000000000001"

const read = (text: string) => Effect.runSync(Envelope.decodeEvent(text))

describe("events and envelopes as text", () => {
  it.prop(
    "an event reads back as it was written",
    [Events.event],
    ([event]) => {
      expect(read(Envelope.encodeEvent(event))).toStrictEqual(event)
    },
    { fastCheck: { numRuns: 200 } }
  )

  it.prop(
    "an event is written as its codec writes it",
    [Events.event],
    ([event]) => {
      expect(Envelope.encodeEvent(event)).toBe(JSON.stringify(Schema.encodeSync(AgentEvent)(event)))
    },
    { fastCheck: { numRuns: 500 } }
  )

  it.each([
    { type: "text-delta", id: "0" },
    { type: "reasoning-delta", id: "0", delta: 1 },
    { type: "text-delta", delta: "" }
  ])("%j is no event, and is not written", (event) => {
    expect(() => Reflect.apply(Envelope.encodeEvent, undefined, [event])).toThrow(ParseError)
  })

  it.prop(
    "a spliced envelope is the envelope",
    [Events.event],
    ([event]) => {
      const text = Envelope.splice(runId, 7, Envelope.encodeEvent(event), 9)
      const envelope = Envelope.decodeSync(JSON.parse(text))
      expect(envelope).toStrictEqual({ runId, seq: 7, event, createdAt: 9 })
      expect(JSON.parse(text)).toStrictEqual(JSON.parse(JSON.stringify(envelope)))
    },
    { fastCheck: { numRuns: 150 } }
  )

  it.prop("an unknown field is dropped, an unknown type is refused", [Events.event], ([event]) => {
    expect(read(JSON.stringify({ ...event, surplus: 1 }))).toStrictEqual(event)
    expect(() => read(JSON.stringify({ ...event, type: "other" }))).toThrow()
  })

  it.effect("refuses envelopes without a proper place", () =>
    Effect.forEach([0, -1, 1.5, "1", null], (seq) =>
      Effect.map(
        Effect.either(Envelope.decode({ runId, seq, event: { type: "iteration-end", iteration: 1 }, createdAt: 1 })),
        (read) => expect(read._tag).toBe("Left")
      )
    )
  )
})
