import { expect, it } from "@effect/vitest"
import * as Law from "./tailLaw.js"

it.prop(
  Law.name,
  [Law.moves],
  ([moves]) => {
    expect(Law.violation(moves)).toBeUndefined()
  },
  { fastCheck: { numRuns: 500 } }
)
