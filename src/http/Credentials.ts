/**
 * What shows who somebody is: one way of several that a server may accept.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { Unavailable } from "../domain/RunError.js"

/**
 * What the cookie of a page holds, and for how long it is good at most, in milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface Session {
  readonly value: Redacted.Redacted
  readonly forMs: number
}

/**
 * Each answers none for what it does not know, so that the next way is tried. `Unavailable`: it can not be told now.
 *
 * - `user`: the id of the user that a bearer token belongs to
 * - `session`: what a page may keep for a bearer token
 * - `sessionUser`: the id of the user that the value of the cookie belongs to
 *
 * @since 0.1.0
 * @category models
 */
export interface Credentials {
  readonly user: (token: string) => Effect.Effect<Option.Option<string>, Unavailable>
  readonly session: (token: string) => Effect.Effect<Option.Option<Session>, Unavailable>
  readonly sessionUser: (value: string) => Effect.Effect<Option.Option<string>, Unavailable>
}
