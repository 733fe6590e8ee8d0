import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Law from "../../engine/tailLaw.js"
import { contract } from "./support.js"

const cases = FastCheck.sample(Law.moves, { numRuns: 500, seed: Number(process.env.RUNLET_SEED ?? 1) })

await contract(
  cases.map((moves) => ({
    name: Law.name,
    run: Effect.suspend(() => {
      const message = Law.violation(moves)
      return message === undefined ? Effect.void : Effect.fail({ message })
    })
  }))
)
