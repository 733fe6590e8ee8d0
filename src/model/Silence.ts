/**
 * How long another party has been silent, as seen by a process that may stand still itself.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * Watches over the time in which something is waited for. One fiber for many waits, which looks at a number now and
 * then: a race for every wait would cost more than all the rest of it.
 *
 * - `begin`: a wait begins, which should be over in `ms`; `end`: it is over
 * - `tooLong`: completes when a wait has gone beyond its time
 * - `broken`: whether one has
 *
 * Time in which this process stood still (stopped, suspended, its event loop busy) is nobody's silence: what was said
 * meanwhile waits in the socket. A wait begins anew after it. Changes of the wall clock mean nothing.
 *
 * @since 0.1.0
 * @category models
 */
export interface Silence {
  readonly begin: (ms: number) => void
  readonly end: () => void
  readonly tooLong: Effect.Effect<void>
  readonly broken: () => boolean
}

/**
 * A look that comes later than this, in milliseconds, tells that the process stood still. Far more than the delay of a
 * timer in a busy process.
 *
 * @since 0.1.0
 * @category constants
 */
export const lateMs = 100

/**
 * `shortestMs`: no wait is given less. A wait is looked at four times or more, so that a standstill in the midst of it
 * is seen as well.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (clock: Clock.Clock, shortestMs: number): Silence => {
  const strideMs = Math.max(1, shortestMs / 4)
  const nowMs = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6
  let allowedMs = 0
  let deadline = Number.POSITIVE_INFINITY
  let broken = false

  const look: Effect.Effect<void> = Effect.suspend(() => {
    const leftMs = deadline - nowMs()
    if (leftMs <= 0) {
      broken = true
      return Effect.void
    }
    const napMs = Math.ceil(Math.min(leftMs, strideMs))
    const due = nowMs() + napMs
    return Effect.flatMap(Effect.sleep(napMs), () => {
      const now = nowMs()
      if (now - due > lateMs && deadline !== Number.POSITIVE_INFINITY) deadline = now + allowedMs
      return look
    })
  })

  return {
    begin: (ms) => {
      allowedMs = ms
      deadline = nowMs() + ms
    },
    end: () => {
      deadline = Number.POSITIVE_INFINITY
    },
    tooLong: look,
    broken: () => broken
  }
}

/**
 * Ends an effect that takes longer, with what `late` says. Time in which this process stood still does not count, as
 * above: the effect has its whole time again after it.
 *
 * @since 0.1.0
 * @category bounding
 */
export const within =
  <A2, E2>(ms: number, late: Effect.Effect<A2, E2>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A | A2, E | E2, R> =>
    Effect.flatMap(Effect.clock, (clock) => {
      const silence = make(clock, ms)
      silence.begin(ms)
      return Effect.raceFirst(
        effect,
        Effect.flatMap(silence.tooLong, () => late)
      )
    })
