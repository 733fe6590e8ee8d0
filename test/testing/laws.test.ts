import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Arbitraries from "../../src/testing/Arbitraries.js"
import * as Cases from "../../src/testing/Cases.js"
import type { Plan } from "../../src/testing/Plan.js"
import * as Simulation from "../../src/testing/Simulation.js"

const cases = Number(process.env.RUNLET_CASES ?? 600)
const seed = process.env.RUNLET_SEED === undefined ? undefined : Number(process.env.RUNLET_SEED)

/** A failing case of an earlier run, as it was printed. */
const given: Plan | undefined = process.env.RUNLET_PLAN === undefined ? undefined : JSON.parse(process.env.RUNLET_PLAN)

describe("runs under any plan", () => {
  it(`keep every law, in ${given === undefined ? cases : 1} cases`, () => {
    if (given !== undefined) return Cases.hold(given)
    FastCheck.assert(
      FastCheck.property(Arbitraries.plan, (plan) => Cases.hold(plan)),
      {
        numRuns: cases,
        ...(seed !== undefined && { seed }),
        interruptAfterTimeLimit: Number(process.env.RUNLET_MS ?? 3_600_000),
        markInterruptAsFailure: false
      }
    )
  }, 3_600_000)

  it("are the same each time", () => {
    const plans = FastCheck.sample(Arbitraries.plan, { numRuns: 5, seed: 7 })
    for (const plan of plans) {
      const once = Effect.runSync(Simulation.run(plan))
      expect(Effect.runSync(Simulation.run(plan))).toEqual(once)
    }
  })
})
