/**
 * The newest events of the runs that this process executes, encoded once for all viewers, and the bell that wakes who
 * waits for more. Only a cache: whoever asks for more than it holds reads the store.
 *
 * A viewer registers before it looks, so nothing can fall between.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Frame } from "./RunEngine.js"

/** What is kept of a run: enough for viewers that are a moment behind. */
const maxFrames = 512
const maxChars = 256 * 1024

class Tail {
  frames: Array<Frame> = []
  chars = 0
  waiters = new Set<Waiter>()
  /** Set while this process executes the run and feeds the tail. */
  last: number | undefined

  add(frames: ReadonlyArray<Frame>): void {
    for (const frame of frames) {
      this.frames.push(frame)
      this.chars += frame.json.length
      this.last = frame.seq
    }
    let drop = Math.max(0, this.frames.length - maxFrames)
    for (let i = 0; i < drop; i++) this.chars -= this.frames[i]?.json.length ?? 0
    while (this.chars > maxChars && drop < this.frames.length - 1) this.chars -= this.frames[drop++]?.json.length ?? 0
    if (drop > 0) this.frames.splice(0, drop)
  }

  behind(after: number): ReadonlyArray<Frame> | undefined {
    const first = this.frames[0]?.seq
    if (first === undefined || after + 1 < first) return undefined
    return this.frames.slice(after + 1 - first)
  }

  wake(pulse = false): void {
    const waiters = this.waiters
    if (waiters.size === 0) return
    this.waiters = new Set()
    for (const waiter of waiters) waiter(pulse)
  }
}

/** Called once, with whether it was only the pulse. */
type Waiter = (pulse: boolean) => void

/**
 * All tails of a process.
 *
 * @since 0.1.0
 * @category models
 */
export class LiveTails {
  private readonly tails = new Map<number, Tail>()
  /** How often `tick` has rung. */
  ticks = 0

  private tail(key: number): Tail {
    let tail = this.tails.get(key)
    if (tail === undefined) {
      tail = new Tail()
      this.tails.set(key, tail)
    }
    return tail
  }

  /** This process begins to feed the tail of a run that stands at `seq`. */
  open(key: number, seq: number): void {
    const tail = this.tail(key)
    tail.frames = []
    tail.chars = 0
    tail.last = seq
  }

  /** Adds stored events and wakes the viewers. */
  publish(key: number, frames: ReadonlyArray<Frame>): void {
    const tail = this.tail(key)
    tail.add(frames)
    tail.wake()
  }

  /** This process feeds the tail no more. */
  close(key: number): void {
    const tail = this.tails.get(key)
    if (tail === undefined) return
    tail.last = undefined
    tail.frames = []
    tail.chars = 0
    tail.wake()
    if (tail.waiters.size === 0) this.tails.delete(key)
  }

  /** Wakes the viewers of a run: its log in the store may have grown. */
  wake(key: number): void {
    this.tails.get(key)?.wake()
  }

  /** Wakes every viewer. */
  wakeAll(pulse = false): void {
    for (const tail of this.tails.values()) tail.wake(pulse)
  }

  /** Wakes the viewers of runs that other processes execute. */
  wakeForeign(): void {
    for (const tail of this.tails.values()) if (tail.last === undefined) tail.wake()
  }

  /** The frames behind a seq, or `undefined` where the tail does not reach back to it. */
  behind(key: number, after: number): ReadonlyArray<Frame> | undefined {
    return this.tails.get(key)?.behind(after)
  }

  /** The last seq of a run that this process executes. */
  last(key: number): number | undefined {
    return this.tails.get(key)?.last
  }

  /** How many viewers wait. */
  get waiting(): number {
    let count = 0
    for (const tail of this.tails.values()) count += tail.waiters.size
    return count
  }

  /** Rings for everybody, whether or not there is something new: the pulse of heartbeats. */
  tick(): void {
    this.ticks++
    this.wakeAll(true)
  }

  /**
   * Waits for the next bell of a run that this process executes and that stands at `after`. Anything else is answered at
   * once. Looking and registering are one synchronous step, so nothing can fall between. A viewer that leaves meanwhile
   * is forgotten at the next bell, which the pulse rings at the latest: to have it cleaned up would cost every delta of
   * every viewer as much as the rest of its way.
   */
  next(key: number, after: number): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      if (!this.register(key, after, () => resume(Effect.void))) resume(Effect.void)
    })
  }

  /** The same for a callback; false, and nothing is registered, where `next` would answer at once. */
  register(key: number, after: number, waiter: (pulse: boolean) => void): boolean {
    const tail = this.tails.get(key)
    if (tail?.last !== after) return false
    tail.waiters.add(waiter)
    return true
  }

  /**
   * Looks with `look`, and waits for the next bell of the run when it finds nothing. The listener is registered before
   * it looks, so nothing can fall between. The answer is what was found, or `undefined` after a bell.
   */
  listen<A, E>(key: number, look: Effect.Effect<A | undefined, E>): Effect.Effect<A | undefined, E> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        const tail = this.tail(key)
        const bell = { rung: false, ring: (): void => undefined, listener: (): void => undefined, tail }
        bell.listener = () => {
          bell.rung = true
          bell.ring()
        }
        tail.waiters.add(bell.listener)
        return bell
      }),
      (bell) =>
        Effect.flatMap(look, (found) =>
          found !== undefined
            ? Effect.succeed<A | undefined>(found)
            : Effect.async<A | undefined>((resume) => {
                if (bell.rung) resume(Effect.succeed(undefined))
                else bell.ring = () => resume(Effect.succeed(undefined))
              })
        ),
      (bell) =>
        Effect.sync(() => {
          bell.tail.waiters.delete(bell.listener)
          if (bell.tail.waiters.size === 0 && bell.tail.last === undefined && this.tails.get(key) === bell.tail) {
            this.tails.delete(key)
          }
        })
    )
  }
}
