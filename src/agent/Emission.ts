/**
 * What the loop gives out: events without numbers, in the order in which they must be stored.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { ToolConflict } from "../tool/Tool.js"

/**
 * - `Events`: to be stored together. With `durable` the stream is not pulled on before they are, so that what follows
 *   them in the stream (a tool's handler) begins after its intent is on disk. `side` is a provider's own data of the
 *   turn, for the same transaction. `within` runs in the transaction; where it fails, `onConflict` is stored instead
 * - `Fail`: the leg ends with an `error`; `Finish`: it ends here, because there is no budget for more
 *
 * @since 0.1.0
 * @category models
 */
export type Emission =
  | {
      readonly _tag: "Events"
      readonly events: ReadonlyArray<AgentEvent>
      readonly durable: boolean
      readonly side?: { readonly iteration: number; readonly data: unknown } | undefined
      readonly within?: Effect.Effect<void, ToolConflict> | undefined
      readonly onConflict?: ((conflict: ToolConflict) => AgentEvent) | undefined
    }
  | { readonly _tag: "Fail"; readonly code: string; readonly message: string; readonly recoverable: boolean }
  | { readonly _tag: "Finish"; readonly reason: "budget" }

/**
 * What whoever runs a step does with an emission. The step goes on when it is done.
 *
 * @since 0.1.0
 * @category models
 */
export type Use<E> = (emission: Emission) => Effect.Effect<void, E>

/**
 * Events that nobody waits for.
 *
 * @since 0.1.0
 * @category constructors
 */
export const events = (all: ReadonlyArray<AgentEvent>): Emission => ({ _tag: "Events", events: all, durable: false })

/**
 * Events that must be on disk before anything else happens.
 *
 * @since 0.1.0
 * @category constructors
 */
export const durable = (
  all: ReadonlyArray<AgentEvent>,
  more?: Pick<Extract<Emission, { readonly _tag: "Events" }>, "side" | "within" | "onConflict">
): Emission => ({ _tag: "Events", events: all, durable: true, ...more })
