import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Arbitraries from "../../src/testing/Arbitraries.js"
import * as Cases from "../../src/testing/Cases.js"
import type { Plan } from "../../src/testing/Plan.js"
import * as Simulation from "../../src/testing/Simulation.js"

const partOf = 60
/** The same dice each time, so that a change is judged by itself; `npm run soak` throws new ones. */
const seed = Number(process.env.RUNLET_SEED ?? 1)

/** A failing case of an earlier run: the plan, as it was printed. */
const given: Plan | undefined = process.env.RUNLET_PLAN === undefined ? undefined : JSON.parse(process.env.RUNLET_PLAN)

/**
 * A case holds up the event loop. Before each of them the runner hears from its worker, which it would otherwise give up
 * on a busy machine.
 */
export const breathe = (): Promise<void> => new Promise((resume) => setImmediate(resume))

/** Checks a property case by case. */
export const holds = <A>(
  arbitrary: FastCheck.Arbitrary<A>,
  check: (value: A) => void,
  parameters: FastCheck.Parameters<[A]>
): Promise<void> =>
  FastCheck.assert(
    FastCheck.asyncProperty(arbitrary, async (value) => {
      await breathe()
      check(value)
    }),
    parameters
  )

/** Every law on so many cases, from dice of number `first` on; part by part, so that something can be seen of it. */
export const lawsHold = (
  store: string,
  { cases, first = 0, ...options }: Simulation.Options & { readonly cases: number; readonly first?: number }
): void => {
  describe(`runs under any plan, over ${store}`, { timeout: 3_600_000 }, () => {
    if (given !== undefined) it("keep every law, in the given case", () => Cases.hold(given, options))

    for (let part = 0; given === undefined && part * partOf < cases; part++) {
      const count = Math.min(partOf, cases - part * partOf)
      it(`keep every law, in ${count} cases (part ${part + 1})`, () =>
        holds(Arbitraries.plan, (plan) => Cases.hold(plan, options), {
          numRuns: count,
          seed: seed + first + part,
          interruptAfterTimeLimit: Number(process.env.RUNLET_MS ?? 3_600_000),
          markInterruptAsFailure: false
        }))
    }

    it("are the same each time", async () => {
      const plans = FastCheck.sample(Arbitraries.plan, { numRuns: 3, seed: 7 })
      for (const plan of plans) {
        await breathe()
        const once = Effect.runSync(Simulation.run(plan, options))
        expect(Effect.runSync(Simulation.run(plan, options))).toEqual(once)
      }
    })
  })
}
