/** Runs cases until a law is broken, and says which and after how many. */
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Arbitraries from "../../src/testing/Arbitraries.js"
import * as Laws from "../../src/testing/Laws.js"
import * as Simulation from "../../src/testing/Simulation.js"

const cases = Number(process.env.RUNLET_CASES ?? 1000)
const seed = Number(process.env.RUNLET_SEED ?? 1)

/** No longer than this, milliseconds. */
const limit = Number(process.env.RUNLET_MS ?? 600_000)
const began = performance.now()

const plans = FastCheck.sample(Arbitraries.plan, { numRuns: cases, seed })

const say = (outcome: unknown, code: number): never => {
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
  process.exit(code)
}

for (const [index, plan] of plans.entries()) {
  if (performance.now() - began > limit) say({ killed: false, cases: index }, 1)
  const { broken, observed } = Effect.runSync(Simulation.run(plan))
  const [violation] = broken === undefined ? Laws.check(observed) : [`it comes to no end: ${broken.slice(0, 200)}`]
  if (violation !== undefined) say({ killed: true, cases: index + 1, law: violation.split(": ")[0], violation }, 0)
}
say({ killed: false, cases }, 1)
