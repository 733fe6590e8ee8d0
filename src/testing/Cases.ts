/**
 * A plan and the laws as one property, for any test runner that knows fast-check.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Arbitraries, Cases } from "runlet/testing"
 *
 * it.prop("runs keep the laws", [Arbitraries.plan], ([plan]) => Cases.hold(plan), 60_000)
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Law } from "./Law.js"
import * as Laws from "./Laws.js"
import type { Plan } from "./Plan.js"
import * as Simulation from "./Simulation.js"
import * as Timeline from "./Timeline.js"

/**
 * Laws were broken. The message is the whole report: the violations, the plan to run again, and the timeline.
 *
 * @since 0.1.0
 * @category errors
 */
export class LawsBroken extends Schema.TaggedError<LawsBroken>()("LawsBroken", {
  message: Schema.String,
  violations: Schema.Array(Schema.String)
}) {}

/**
 * What a plan is run with, and what it is checked against: by default every law of this package.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Simulation.Options {
  readonly laws?: ReadonlyArray<Law> | undefined
}

/**
 * Runs a plan and checks it.
 *
 * @since 0.1.0
 * @category checking
 */
export const check = (plan: Plan, options: Options = {}): Effect.Effect<Simulation.Outcome, LawsBroken> =>
  Effect.flatMap(Simulation.run(plan, options), (outcome) => {
    const { broken, observed } = outcome
    const violations = broken === undefined ? Laws.check(observed, options.laws) : [`the simulation broke: ${broken}`]
    return violations.length === 0
      ? Effect.succeed(outcome)
      : Effect.fail(new LawsBroken({ message: Timeline.report(outcome.plan, observed, violations), violations }))
  })

/**
 * Runs a plan now, and throws `LawsBroken` when it breaks a law. A simulation waits for nothing outside of itself, so
 * it needs no promise.
 *
 * @since 0.1.0
 * @category checking
 */
export const hold = (plan: Plan, options?: Options): void => {
  const checked = Effect.runSync(Effect.either(check(plan, options)))
  if (checked._tag === "Left") throw checked.left
}
