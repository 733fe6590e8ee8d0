/**
 * What the parts of a provider know of the turn that they work on. A provider's client sees bytes and its own events,
 * the bridge sees what a library made of them; here they meet.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ModelFinishReason, Usage } from "../domain/AgentEvent.js"
import type { ModelError } from "./Model.js"
import type { JsonObject } from "./OpenAiRequest.js"

/**
 * One turn, while it lasts.
 *
 * - `body`: fields of this request's body
 * - `begun`: output was given out
 * - `failure`: why the turn failed, in more detail than a library's error can say
 * - `finish`: how the turn ended, as the provider itself said it
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  readonly body: JsonObject
  begun: boolean
  failure?: ModelError
  finish?: { readonly reason: ModelFinishReason; readonly usage: Usage }
}

/**
 * The turn that a fiber works on.
 *
 * @since 0.1.0
 * @category services
 */
export class ProviderTurn extends Context.Tag("runlet/model/ProviderTurn")<ProviderTurn, Turn>() {}

/**
 * A turn of which nothing is known yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (body: JsonObject): Turn => ({ body, begun: false })

/**
 * The turn of this fiber; one that nobody looks at where there is none.
 *
 * @since 0.1.0
 * @category accessors
 */
export const current: Effect.Effect<Turn> = Effect.map(
  Effect.serviceOption(ProviderTurn),
  Option.getOrElse(() => make({}))
)
