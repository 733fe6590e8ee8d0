/** What all ways to look at a mistake have in common: they end with one line that says what came of it. */
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Arbitraries from "../../../src/testing/Arbitraries.js"
import * as Laws from "../../../src/testing/Laws.js"
import * as Simulation from "../../../src/testing/Simulation.js"
import type { Store } from "../../../src/testing/Stores.js"

export interface Verdict {
  readonly killed: boolean
  readonly cases: number
  readonly law?: string
}

export const say = (verdict: Verdict): never => {
  process.stdout.write(`${JSON.stringify(verdict)}\n`)
  process.exit(0)
}

const seed = Number(process.env.RUNLET_SEED ?? 1)

/** Runs plans until a law is broken. */
export const simulate = (store: Store, cases: number): never => {
  const plans = FastCheck.sample(Arbitraries.plan, { numRuns: Number(process.env.RUNLET_CASES ?? cases), seed })
  for (const [index, plan] of plans.entries()) {
    const { broken, observed } = Effect.runSync(Simulation.run(plan, { store }))
    const [violation] = broken === undefined ? Laws.check(observed) : ["the simulation comes to no end"]
    if (violation !== undefined) say({ killed: true, cases: index + 1, law: violation.split(": ")[0] ?? violation })
  }
  return say({ killed: false, cases: plans.length })
}

interface Case {
  readonly name: string
  readonly run: Effect.Effect<void, { readonly message: string }>
}

/** Runs the cases of a contract until one fails. */
export const contract = (cases: ReadonlyArray<Case>): Promise<never> =>
  Effect.runPromise(
    Effect.gen(function* () {
      for (const [index, { name, run }] of cases.entries()) {
        const exit = yield* Effect.exit(run)
        if (exit._tag === "Failure") return say({ killed: true, cases: index + 1, law: name })
      }
      return say({ killed: false, cases: cases.length })
    })
  )
