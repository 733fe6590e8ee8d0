/**
 * A world with its own time and its own scheduler. Nothing in it happens by itself: fibers run in an order that a seed
 * decides, and the clock moves only when it is told to. What happens in it is a function of the program and the seed,
 * and a day of it takes no time at all.
 *
 * `Clock`, the scheduler and `Random` are replaced for everything that `run` runs; a program in it must not wait for
 * real input or output.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { VirtualTime } from "runlet/testing"
 *
 * const time = new VirtualTime.VirtualTime({ seed: 1, shuffle: true })
 * const aDay = time.run(
 *   Effect.gen(function* () {
 *     const sleeper = yield* Effect.fork(Effect.as(Effect.sleep("1 day"), "good morning"))
 *     yield* time.advance(86_400_000)
 *     return yield* sleeper
 *   })
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type * as Scheduler from "effect/Scheduler"
import { LockClock } from "../store/internal/sqlErrors.js"

interface Sleeper {
  readonly at: number
  readonly order: number
  readonly wake: () => void
}

/**
 * - `seed`: decides all randomness
 * - `shuffle`: whether fibers that are ready run in random order (default: in the order in which they became ready)
 * - `start`: the first moment, epoch milliseconds
 * - `maxTasks`: more tasks than this without an end are taken for an endless loop
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly seed: number
  readonly shuffle?: boolean | undefined
  readonly start?: number | undefined
  readonly maxTasks?: number | undefined
}

/** Small, fast and good enough to shuffle with: mulberry32. */
const generator = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/**
 * A world: its clock and its scheduler.
 *
 * @since 0.1.0
 * @category models
 */
export class VirtualTime implements Scheduler.Scheduler, Clock.Clock {
  readonly [Clock.ClockTypeId]: Clock.ClockTypeId = Clock.ClockTypeId
  private readonly random: () => number
  private readonly shuffle: boolean
  private readonly maxTasks: number
  private ready: Array<() => void> = []
  private sleepers: Array<Sleeper> = []
  private idlers: Array<() => void> = []
  private order = 0
  private done = 0
  private millis: number

  constructor(private readonly options: Options) {
    this.random = generator(options.seed)
    this.shuffle = options.shuffle ?? false
    this.millis = options.start ?? 1_700_000_000_000
    this.maxTasks = options.maxTasks ?? 1_000_000
  }

  shouldYield(fiber: Parameters<Scheduler.Scheduler["shouldYield"]>[0]): number | false {
    return fiber.currentOpCount > 2048 ? 0 : false
  }

  scheduleTask(task: () => void): void {
    this.ready.push(task)
  }

  unsafeCurrentTimeMillis(): number {
    return this.millis
  }

  unsafeCurrentTimeNanos(): bigint {
    return BigInt(this.millis) * 1_000_000n
  }

  readonly currentTimeMillis: Effect.Effect<number> = Effect.sync(() => this.millis)

  readonly currentTimeNanos: Effect.Effect<bigint> = Effect.sync(() => this.unsafeCurrentTimeNanos())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      const ms = Duration.toMillis(duration)
      if (!Number.isFinite(ms)) return
      const sleeper: Sleeper = { at: this.millis + ms, order: this.order++, wake: () => resume(Effect.void) }
      this.sleepers.push(sleeper)
      return Effect.sync(() => {
        this.sleepers = this.sleepers.filter((other) => other !== sleeper)
      })
    })
  }

  /** Waits until no fiber of this world can run at this moment. */
  readonly idle: Effect.Effect<void> = Effect.async<void>((resume) => {
    this.idlers.push(() => resume(Effect.void))
  })

  /** Lets time pass, stopping wherever somebody wanted to be woken. */
  advance(ms: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const until = this.millis + ms
      const step: Effect.Effect<void> = Effect.suspend(() => {
        const next = this.nextSleeper()
        if (next === undefined || next.at > until) {
          this.millis = Math.max(this.millis, until)
          return Effect.void
        }
        this.wake(next)
        return Effect.zipRight(this.idle, step)
      })
      return Effect.zipRight(this.idle, step)
    })
  }

  private nextSleeper(): Sleeper | undefined {
    let next: Sleeper | undefined
    for (const sleeper of this.sleepers) {
      if (next === undefined || sleeper.at < next.at || (sleeper.at === next.at && sleeper.order < next.order)) {
        next = sleeper
      }
    }
    return next
  }

  private wake(sleeper: Sleeper): void {
    this.sleepers = this.sleepers.filter((other) => other !== sleeper)
    this.millis = Math.max(this.millis, sleeper.at)
    sleeper.wake()
  }

  /** The next thing to do now, or `undefined` when this moment is over. */
  private next(): (() => void) | undefined {
    if (this.ready.length > 0) {
      if (!this.shuffle) return this.ready.shift()
      const index = Math.floor(this.random() * this.ready.length)
      const task = this.ready[index]
      const last = this.ready.pop()
      if (index < this.ready.length && last !== undefined) this.ready[index] = last
      return task
    }
    const sleeper = this.nextSleeper()
    if (sleeper !== undefined && sleeper.at <= this.millis) return () => this.wake(sleeper)
    return this.idlers.shift()
  }

  /**
   * Runs a program in this world to its end. `None`: it can not go on, or does not stop. What is left of it is dropped.
   */
  run<A, E>(program: Effect.Effect<A, E>): Effect.Effect<Option.Option<Exit.Exit<A, E>>> {
    return Effect.gen(this, function* () {
      const fiber = yield* Effect.forkDaemon(program).pipe(
        Effect.withScheduler(this),
        Effect.withClock(this),
        Effect.withRandom(Random.make(this.options.seed)),
        Effect.provideService(LockClock, this)
      )
      return yield* Effect.suspend(() => {
        while (this.done++ < this.maxTasks) {
          const task = this.next()
          if (task === undefined) break
          task()
          const exit = fiber.unsafePoll()
          if (exit !== null) return Effect.succeed(Option.some(exit))
        }
        return Effect.as(Fiber.interruptFork(fiber), Option.none<Exit.Exit<A, E>>())
      })
    })
  }
}
