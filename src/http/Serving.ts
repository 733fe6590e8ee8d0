/**
 * What the handlers of one server share: its limits, the streams it has open, and whether it is about to stop.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Limits } from "../domain/Limits.js"
import * as Metrics from "../domain/Metrics.js"
import { CurrentUser } from "../domain/Owner.js"
import { LimitReached, Unavailable } from "../domain/RunError.js"

/**
 * - `accepting`: fails once the server drains
 * - `slot`: takes one of the user's streams until the request's scope closes
 * - `slots`: takes so many of them at once, or, where nothing is open, all that there are
 * - `reading`: a reader that is told to end, cleanly, when the server drains; it is one until the request's scope closes
 * - `later`: runs an effect beside the request, at most as long as the server lives
 *
 * @since 0.1.0
 * @category services
 */
export class Serving extends Context.Tag("runlet/http/Serving")<
  Serving,
  {
    readonly limits: Limits
    readonly accepting: Effect.Effect<void, Unavailable>
    readonly draining: Effect.Effect<boolean>
    readonly slot: Effect.Effect<void, LimitReached, Scope.Scope>
    readonly slots: (count: number) => Effect.Effect<void, LimitReached, Scope.Scope>
    readonly reading: (end: () => void) => Effect.Effect<void, never, Scope.Scope>
    readonly later: (effect: Effect.Effect<void>) => Effect.Effect<void>
    /** From now on nothing new is accepted. */
    readonly refuse: Effect.Effect<void>
    /** Ends every open stream. */
    readonly endStreams: Effect.Effect<void>
  }
>() {}

/** Like `acquireRelease`, which keeps how a thing was acquired as well for as long as the scope is open. */
const held = <E>(take: Effect.Effect<void, E>, give: Effect.Effect<void>): Effect.Effect<void, E, Scope.Scope> =>
  Effect.uninterruptible(
    Effect.zipRight(
      take,
      Effect.flatMap(Effect.scope, (scope) => Scope.addFinalizer(scope, give))
    )
  )

/**
 * The shared state of one server. `limited` says whether the limits per user apply.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly limits: Limits
  readonly limited: boolean
}): Effect.Effect<Serving["Type"], never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const { limited, limits } = options
    const streams = new Map<string, number>()
    const readers = new Set<() => void>()
    let draining = false

    const take = (user: string, count: number) =>
      Effect.suspend(() => {
        const open = streams.get(user) ?? 0
        if (open > 0 && open + count > limits.maxStreamsPerUser) {
          return new LimitReached({
            message: `You have ${open} streams open. Close one, or try again later.`,
            limit: "maxStreamsPerUser",
            retryAfterMs: 1000
          })
        }
        streams.set(user, open + count)
        return Effect.void
      })

    const give = (user: string, count: number) =>
      Effect.sync(() => {
        const open = (streams.get(user) ?? count) - count
        if (open === 0) streams.delete(user)
        else streams.set(user, open)
      })

    const slots = (count: number) =>
      limited ? Effect.flatMap(CurrentUser, (user) => held(take(user, count), give(user, count))) : Effect.void

    return {
      limits,
      accepting: Effect.suspend(() =>
        draining
          ? new Unavailable({ message: "This server is about to stop. Try again in a moment.", retryAfterMs: 1000 })
          : Effect.void
      ),
      draining: Effect.sync(() => draining),
      slot: slots(1),
      slots,
      reading: (end) =>
        held(
          Effect.sync(() => {
            readers.add(end)
            Metrics.viewer(1)
          }),
          Effect.sync(() => {
            readers.delete(end)
            Metrics.viewer(-1)
          })
        ),
      later: (effect) => Effect.asVoid(Effect.forkIn(effect, scope)),
      refuse: Effect.sync(() => {
        draining = true
      }),
      endStreams: Effect.sync(() => {
        for (const end of readers) end()
      })
    }
  })
