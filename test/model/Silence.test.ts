import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Silence from "../../src/model/Silence.js"

/** A clock moved by hand, whose timers are late when the process stands still, and whose wall time may jump. */
class HandClock implements Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private now = 0
  private wall = 1_700_000_000_000
  private sleepers: Array<{ readonly due: number; readonly wake: () => void }> = []
  unsafeCurrentTimeMillis = () => this.wall
  unsafeCurrentTimeNanos = () => BigInt(Math.round(this.now * 1e6))
  currentTimeMillis = Effect.sync(this.unsafeCurrentTimeMillis)
  currentTimeNanos = Effect.sync(this.unsafeCurrentTimeNanos)
  scheduler = () => Effect.dieMessage("not used")
  sleep = (duration: Duration.Duration) =>
    Effect.async<void>((resume) => {
      this.sleepers.push({ due: this.now + Duration.toMillis(duration), wake: () => resume(Effect.void) })
    })
  setWall(ms: number) {
    this.wall = ms
  }
  private move(to: number) {
    this.wall += to - this.now
    this.now = to
    const due = this.sleepers.filter((sleeper) => sleeper.due <= to)
    this.sleepers = this.sleepers.filter((sleeper) => sleeper.due > to)
    for (const { wake } of due) wake()
  }
  /** Time passes, and every timer is in time. */
  pass = (ms: number): Effect.Effect<void> =>
    Effect.gen(this, function* () {
      const until = this.now + ms
      for (;;) {
        yield* Effect.yieldNow()
        const next = Math.min(until, ...this.sleepers.map(({ due }) => due))
        this.move(next)
        yield* Effect.yieldNow()
        if (next === until) return
      }
    })
  /** Time passes, and only then the timers that it made late go off. */
  stand = (ms: number): Effect.Effect<void> =>
    Effect.zipRight(
      Effect.yieldNow(),
      Effect.suspend(() => {
        this.move(this.now + ms)
        return Effect.yieldNow()
      })
    )
}

const watched = (shortestMs: number) =>
  Effect.gen(function* () {
    const clock = new HandClock()
    const silence = Silence.make(clock, shortestMs)
    const fiber = yield* Effect.fork(Effect.withClock(silence.tooLong, clock))
    return { clock, silence, isOver: () => fiber.unsafePoll() !== null, stop: Fiber.interrupt(fiber) }
  })

const span = 1_000

describe("silence", () => {
  it.effect("is over in time, and not before", () =>
    Effect.gen(function* () {
      const { clock, isOver, silence } = yield* watched(span)
      silence.begin(span)
      yield* clock.pass(span - 1)
      expect(isOver()).toBe(false)
      yield* clock.pass(1)
      expect([isOver(), silence.broken()]).toEqual([true, true])
    })
  )

  it.effect("is not counted while nothing is waited for", () =>
    Effect.gen(function* () {
      const { clock, isOver, silence, stop } = yield* watched(span)
      yield* clock.pass(10 * span)
      silence.begin(span)
      yield* clock.pass(span - 1)
      silence.end()
      yield* clock.pass(10 * span)
      expect(isOver()).toBe(false)
      yield* stop
    })
  )

  for (const jump of [-3_600_000, 3_600_000]) {
    it.effect(`does not depend on a wall clock that jumps by ${jump / 1000} s`, () =>
      Effect.gen(function* () {
        const { clock, isOver, silence } = yield* watched(span)
        silence.begin(span)
        yield* clock.pass(span / 2)
        clock.setWall(clock.unsafeCurrentTimeMillis() + jump)
        yield* clock.pass(span / 2 - 1)
        expect(isOver()).toBe(false)
        yield* clock.pass(1)
        expect(isOver()).toBe(true)
      })
    )
  }

  const standstill = FastCheck.integer({ min: span + Silence.lateMs, max: 100 * span })
  const alive = FastCheck.integer({ min: 0, max: span - 1 })
  it.effect.prop(
    "after a standstill of the process begins anew, and is over in its time",
    [FastCheck.array(FastCheck.tuple(alive, standstill), { minLength: 1, maxLength: 5 })],
    ([steps]) =>
      Effect.gen(function* () {
        const { clock, isOver, silence } = yield* watched(span)
        silence.begin(span)
        for (const [ms, stood] of steps) {
          yield* clock.pass(ms)
          yield* clock.stand(stood)
          expect(isOver()).toBe(false)
        }
        yield* clock.pass(span - 1)
        expect(isOver()).toBe(false)
        yield* clock.pass(1)
        expect(isOver()).toBe(true)
      })
  )
})
