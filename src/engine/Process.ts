/**
 * Who this process is, when its event loop has come round, and whether another one still lives.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { IdGenerator } from "../domain/Ids.js"

/**
 * `owner` names the process in leases. `isGone` answers whether the owner of a lease is known to have died; a process
 * on another host is never known to. `turn` waits until the event loop has done what was ready.
 *
 * @since 0.1.0
 * @category services
 */
export class Process extends Context.Tag("runlet/Process")<
  Process,
  {
    readonly owner: string
    readonly isGone: (owner: string) => Effect.Effect<boolean>
    readonly turn: Effect.Effect<void>
  }
>() {}

/**
 * A process that knows of no other, leases of others run out by time alone. A timer stands for a turn of its event loop.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Process, never, IdGenerator> = Layer.effect(
  Process,
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    return { owner: yield* ids.key, isGone: () => Effect.succeed(false), turn: Effect.sleep(0) }
  })
)
