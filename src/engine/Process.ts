/**
 * Who this process is, how busy it is, and whether another one still lives.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { IdGenerator } from "../domain/Ids.js"

/**
 * `owner` names the process in leases. `isGone` answers whether the owner of a lease is known to have died; a process
 * on another host is never known to. `load` answers for which share of the time since it was last asked, 0 to 1, the
 * event loop had work.
 *
 * @since 0.1.0
 * @category services
 */
export class Process extends Context.Tag("runlet/Process")<
  Process,
  {
    readonly owner: string
    readonly isGone: (owner: string) => Effect.Effect<boolean>
    readonly load: Effect.Effect<number>
  }
>() {}

/**
 * A process that knows of no other, leases of others run out by time alone, and takes its event loop for idle.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Process, never, IdGenerator> = Layer.effect(
  Process,
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    return { owner: yield* ids.key, isGone: () => Effect.succeed(false), load: Effect.succeed(0) }
  })
)
