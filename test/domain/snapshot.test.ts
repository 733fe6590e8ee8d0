import { describe, expect, it } from "@effect/vitest"
import * as RunState from "../../src/domain/RunState.js"
import * as RunView from "../../src/domain/RunView.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import * as Events from "../../src/testing/EventArbitraries.js"

describe("the snapshot", () => {
  it.prop(
    "goes on as the log does, from every point to every later one",
    [Events.log],
    ([log]) => {
      const first = log[0]
      if (first === undefined) return
      const states: Array<RunState.RunState> = []
      for (const envelope of log) {
        states.push(RunState.reduce(states.at(-1) ?? RunState.empty(first.runId), envelope))
      }
      for (let n = 0; n < states.length; n++) {
        const from = states[n]
        if (from === undefined) continue
        // As a page has it: through JSON.
        let state = Snapshot.toView(JSON.parse(JSON.stringify(Snapshot.of(from))))
        expect(Snapshot.of(state)).toEqual(Snapshot.of(from))
        for (let m = n + 1; m < log.length; m++) {
          const envelope = log[m]
          const expected = states[m]
          if (envelope === undefined || expected === undefined) continue
          state = RunView.reduce(state, envelope)
          if (m === log.length - 1 || m === n + 1) expect(Snapshot.of(state)).toEqual(Snapshot.of(expected))
        }
      }
    },
    { fastCheck: { numRuns: 60 } }
  )
})
