import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import type { Envelope } from "../../src/domain/Envelope.js"
import { RunId } from "../../src/domain/Ids.js"
import * as RunState from "../../src/domain/RunState.js"
import * as RunStatus from "../../src/domain/RunStatus.js"
import * as RunView from "../../src/domain/RunView.js"
import * as Events from "../../src/testing/EventArbitraries.js"

const runId = RunId.make("run_01890000-0000-7000-8000-000000000001")
const empty = RunState.empty(runId)

const numbered = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Envelope> =>
  events.map((event, index) => ({ runId, seq: index + 1, event, createdAt: index }))

const standing = FastCheck.oneof(
  FastCheck.constant(undefined),
  FastCheck.record({ status: FastCheck.constantFrom(...RunStatus.all), recoverable: FastCheck.boolean() })
)

const expectLengths = (state: RunState.RunState): void => {
  expect(RunState.text(state).length).toBe(state.textLength)
  expect(RunState.text(state, "reasoning").length).toBe(state.reasoningLength)
}

describe("the transition table", () => {
  it.prop(
    "is total, closed, and gives up at a final status",
    [standing, Events.event],
    ([from, event]) => {
      const to = RunStatus.next(from, event)
      if (to !== undefined) expect(RunStatus.all).toContain(to.status)
      if (from !== undefined && RunStatus.isFinal(from)) expect(to).toBeUndefined()
      if (from === undefined && event.type !== "run-start") expect(to).toBeUndefined()
      if (from?.status === "failed" && to !== undefined) expect(["running", "cancelled"]).toContain(to.status)
    },
    { fastCheck: { numRuns: 1000 } }
  )

  it.prop(
    "allows every step of a log that a run can write, and exactly one end for each leg",
    [Events.log],
    ([log]) => {
      let state = empty
      for (const envelope of log) {
        const before = state.seq === 0 ? undefined : state
        expect({ event: envelope.event.type, ok: RunStatus.next(before, envelope.event) !== undefined }).toEqual({
          event: envelope.event.type,
          ok: true
        })
        state = RunState.reduce(state, envelope)
      }
    },
    { fastCheck: { numRuns: 200 } }
  )
})

describe("the fold", () => {
  it.prop(
    "says the same of a delta in pieces as of the whole",
    [
      Events.log,
      FastCheck.stringMatching(/^[a-z]{1,9}$/),
      FastCheck.constantFrom("text-delta" as const, "reasoning-delta" as const)
    ],
    ([log, text, type]) => {
      const before = log.reduce(RunState.reduce, empty)
      const fold = (deltas: ReadonlyArray<string>): RunState.RunState =>
        deltas.reduce(
          (state, delta) =>
            RunState.reduce(state, { seq: state.seq + 1, event: { type, id: "new", delta }, createdAt: 1_000_000 }),
          before
        )
      // The whole opens a part, and of its pieces all but the first go on with it.
      const whole = fold([text])
      const pieces = fold([...text])
      expect({ ...pieces, seq: whole.seq }).toEqual(whole)
    },
    { fastCheck: { numRuns: 200 } }
  )

  it.prop(
    "shows of every log what the view's own fold shows, delta by delta",
    [Events.log],
    ([log]) => {
      let state = empty
      let view = RunView.empty(empty.runId)
      let firstTokenAt: number | undefined
      for (const { event, seq } of log) {
        if (["text-delta", "reasoning-delta", "tool-call-start"].includes(event.type)) firstTokenAt ??= seq
        // Each delta as many, of which all but the first go on with its part.
        const all = "delta" in event ? [...event.delta].map((delta) => ({ ...event, delta })) : [event]
        for (const one of all.length === 0 ? [event] : all) {
          const envelope = { seq: state.seq + 1, event: one, createdAt: seq }
          state = RunState.reduce(state, envelope)
          view = RunView.reduce(view, envelope)
          expect(state).toMatchObject(JSON.parse(JSON.stringify(view)))
          expect(state.firstTokenAt).toBe(firstTokenAt)
          expectLengths(state)
        }
      }
    },
    { fastCheck: { numRuns: 100 } }
  )

  it.prop(
    "never throws, whatever it is given",
    [FastCheck.array(Events.event, { maxLength: 40 })],
    ([events]) => {
      const state = RunState.reduceAll(empty, numbered(events))
      expect(state.seq).toBe(events.length)
      RunState.pendingApprovals(state)
      RunState.text(state)
    },
    { fastCheck: { numRuns: 200 } }
  )

  it.prop(
    "of a whole is the fold of its rest into the fold of its beginning",
    [Events.log, FastCheck.nat()],
    ([log, n]) => {
      const at = n % (log.length + 1)
      const whole = RunState.reduceAll(empty, log)
      expect(RunState.reduceAll(RunState.reduceAll(empty, log.slice(0, at)), log.slice(at))).toEqual(whole)
    },
    { fastCheck: { numRuns: 150 } }
  )

  it.prop(
    "ignores what it has seen",
    [Events.log, FastCheck.nat(), FastCheck.nat()],
    ([log, n, m]) => {
      const at = n % (log.length + 1)
      const back = m % (at + 1)
      const repeated = [...log.slice(0, at), ...log.slice(back)]
      expect(RunState.reduceAll(empty, repeated)).toEqual(RunState.reduceAll(empty, log))
    },
    { fastCheck: { numRuns: 150 } }
  )

  it.prop(
    "survives being written down at any point",
    [Events.log, FastCheck.nat()],
    ([log, n]) => {
      const at = n % (log.length + 1)
      const stored: RunState.RunState = JSON.parse(JSON.stringify(RunState.reduceAll(empty, log.slice(0, at))))
      const whole: unknown = JSON.parse(JSON.stringify(RunState.reduceAll(empty, log)))
      expect(JSON.parse(JSON.stringify(RunState.reduceAll(stored, log.slice(at))))).toEqual(whole)
    },
    { fastCheck: { numRuns: 150 } }
  )

  it.prop(
    "keeps as much text as it says, at every point and through every cut",
    [Events.log],
    ([log]) => {
      let state = empty
      for (const envelope of log) {
        const { event } = envelope
        state = RunState.reduce(state, envelope)
        expectLengths(state)
        if (event.type !== "run-resumed") continue
        expect(state.textLength).toBe(event.textLength)
        expect(state.reasoningLength).toBe(event.reasoningLength)
        for (const id of event.droppedToolCallIds) expect(RunState.findCall(state, id)).toBeUndefined()
      }
    },
    { fastCheck: { numRuns: 200 } }
  )

  it.prop(
    "cuts the draft to a beginning of itself",
    [Events.log],
    ([log]) => {
      let state = empty
      for (const envelope of log) {
        const before = RunState.text(state)
        state = RunState.reduce(state, envelope)
        if (envelope.event.type === "run-resumed") expect(before.startsWith(RunState.text(state))).toBe(true)
      }
    },
    { fastCheck: { numRuns: 150 } }
  )
})
