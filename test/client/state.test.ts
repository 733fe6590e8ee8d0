import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import * as State from "../../src/client/ClientState.js"
import { RunletError } from "../../src/client/RunletError.js"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as RunState from "../../src/domain/RunState.js"
import * as RunView from "../../src/domain/RunView.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import * as Arbitraries from "../../src/testing/EventArbitraries.js"

const all = (log: ReadonlyArray<Envelope>) => RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log)
type Step = (state: State.ClientState) => State.ClientState
const play = (steps: ReadonlyArray<Step>, from: State.ClientState = State.initial) =>
  steps.reduce((state, step) => step(state), from)
const attached = (log: ReadonlyArray<Envelope>) => State.enter(log[0]?.runId ?? "", { link: "resuming" })
const snapshotAt =
  (log: ReadonlyArray<Envelope>, seq: number): Step =>
  (state) =>
    State.show(state, Snapshot.of(all(log.slice(0, seq))))
const events =
  (list: ReadonlyArray<Envelope>): Step =>
  (state) =>
    State.hear(state, list)
const changed =
  (changes: Parameters<typeof State.change>[1]): Step =>
  (state) =>
    State.change(state, changes)
const refused = (_tag: "Unauthorized" | "NotFound", status: number) =>
  changed({ error: new RunletError(status, { _tag, message: "no" }) })

/** Whatever a client that shows a run with this log can hear. */
const heard = (log: ReadonlyArray<Envelope>): FastCheck.Arbitrary<Step> => {
  const place = FastCheck.integer({ min: 0, max: log.length })
  return FastCheck.oneof(
    {
      weight: 4,
      arbitrary: FastCheck.tuple(place, FastCheck.nat(6)).map(([from, length]) =>
        events(log.slice(from, from + length))
      )
    },
    { weight: 1, arbitrary: place.filter((seq) => seq > 0).map((seq) => snapshotAt(log, seq)) },
    {
      weight: 2,
      arbitrary: FastCheck.constantFrom<State.Link>("open", "interrupted", "resuming").map((link) => changed({ link }))
    },
    { weight: 1, arbitrary: FastCheck.boolean().map((starting) => changed({ starting })) }
  )
}

const refusal = FastCheck.constantFrom(
  refused("Unauthorized", 401),
  refused("NotFound", 404),
  changed({ error: undefined })
)

const runThrough = (steps: (log: ReadonlyArray<Envelope>) => FastCheck.Arbitrary<Step>) =>
  Arbitraries.log.chain((log) =>
    FastCheck.tuple(FastCheck.constant(log), FastCheck.array(steps(log), { maxLength: 40 }))
  )

const run = runThrough((log) =>
  FastCheck.oneof({ weight: 7, arbitrary: heard(log) }, { weight: 1, arbitrary: refusal })
)

describe("the state of a client", () => {
  it("applies each event once and in order, whatever comes twice, late, early or not at all", () => {
    FastCheck.assert(
      FastCheck.property(run, ([log, steps]) => {
        let state = attached(log)
        for (const step of steps) {
          const before = state.run?.seq ?? 0
          state = step(state)
          const seq = state.run?.seq ?? 0
          expect(seq).toBeGreaterThanOrEqual(before)
          expect(state.cursor?.lastAppliedSeq).toBe(seq)
          expect(RunState.text(state.run ?? RunState.empty(""))).toBe(RunState.text(all(log.slice(0, seq))))
        }
        // However it got here, the rest brings it to the end.
        const end = play([snapshotAt(log, log.length), events(log)], state)
        expect(Snapshot.of(end.run ?? RunState.empty(""))).toEqual(Snapshot.of(all(log)))
        expect(end.ahead).toEqual([])
      }),
      { numRuns: 300 }
    )
  })

  it("needs no snapshot when nothing is missing, in whatever order it comes", () => {
    const shuffled = Arbitraries.log.chain((log) =>
      FastCheck.tuple(
        FastCheck.constant(log),
        FastCheck.shuffledSubarray([...log], { minLength: log.length, maxLength: log.length })
      )
    )
    FastCheck.assert(
      FastCheck.property(shuffled, ([log, order]) => {
        const state = play(
          order.map((envelope) => events([envelope, envelope])),
          attached(log)
        )
        expect(state.run).toEqual(log.reduce(RunView.reduce, RunView.empty(log[0]?.runId ?? "")))
        expect(state.ahead).toEqual([])
      }),
      { numRuns: 200 }
    )
  })

  it("shows a phase that follows from the run and the connection, and no other", () => {
    FastCheck.assert(
      FastCheck.property(run, ([log, steps]) => {
        let state = attached(log)
        for (const step of steps) {
          state = step(state)
          const status = state.run?.status
          const ended = status === "completed" || status === "cancelled" || status === "failed"
          if (state.error !== undefined && !state.signedOut) expect(state.phase).toBe("failed")
          else if (ended) expect(state.phase).toBe(status)
          else if (state.link !== "open") expect(state.phase).toBe(state.link)
          else expect(state.phase).toBe(status === "waiting_approval" ? "waiting-approval" : "streaming")
          if (state.canContinue) expect([status, state.run?.recoverable]).toEqual(["failed", true])
        }
      }),
      { numRuns: 200 }
    )
  })

  it("never leaves a final state by anything that is heard", () => {
    FastCheck.assert(
      FastCheck.property(runThrough(heard), ([log, steps]) => {
        const whole = all(log)
        FastCheck.pre(whole.status === "completed" || whole.status === "cancelled")
        let state = play([events(log)], attached(log))
        for (const step of steps) {
          state = step(state)
          expect(state.phase).toBe(whole.status)
        }
      })
    )
  })

  it("shows another run only when told to", () => {
    FastCheck.assert(
      FastCheck.property(Arbitraries.log, (log) => {
        const other = State.enter("other")
        expect(play([events(log), snapshotAt(log, log.length)], other).run).toBe(other.run)
        expect(play([events(log), snapshotAt(log, log.length)])).toBe(State.initial)
      })
    )
  })

  it("names the message it belongs to from the moment a run is accepted", () => {
    const ids = { runId: "run_1", conversationId: "conv_1", assistantMessageId: "msg_2" }
    expect(State.enter("run_1", { cursor: { ...ids, lastAppliedSeq: 0 } })).toMatchObject({
      phase: "streaming",
      cursor: { ...ids, lastAppliedSeq: 0 }
    })
  })

  it("tells a missing sign-in from a run that can not be shown", () => {
    const shown = State.enter("run_1")
    expect(play([changed({ link: "interrupted" }), refused("Unauthorized", 401)], shown)).toMatchObject({
      phase: "interrupted",
      signedOut: true,
      canContinue: false
    })
    expect(play([refused("NotFound", 404)], shown)).toMatchObject({ phase: "failed", signedOut: false })
  })

  it("stays the same object when nothing changes", () => {
    expect(State.hear(State.initial, [])).toBe(State.initial)
  })
})
