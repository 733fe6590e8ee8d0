import { it } from "@effect/vitest"
import { Arbitraries, Cases, Law } from "runlet/testing"

const grows = Law.forEvents("an answer shrinks only with a new attempt", ({ after, before, event }) =>
  after.textLength < before.textLength && event.type !== "run-resumed"
    ? `from ${before.textLength} to ${after.textLength} characters`
    : undefined
)

it.prop("answers grow", [Arbitraries.plan], ([plan]) => Cases.hold(plan, { laws: [grows] }), {
  fastCheck: { numRuns: 20 },
  timeout: 60_000
})
