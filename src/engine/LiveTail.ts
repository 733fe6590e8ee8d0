/**
 * The newest events of the runs that this process executes, encoded once for all viewers, and the bell that wakes who
 * waits for more. Only a cache: whoever asks for more than it holds reads the store.
 *
 * A viewer looks, and registers when there is nothing, in one synchronous step; so nothing can fall between.
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
  waiters = new Set<() => void>()
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

  wake(): void {
    const waiters = this.waiters
    if (waiters.size === 0) return
    this.waiters = new Set()
    for (const waiter of waiters) waiter()
  }
}

/**
 * All tails of a process.
 *
 * @since 0.1.0
 * @category models
 */
export class LiveTails {
  private readonly tails = new Map<number, Tail>()

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
  wakeAll(): void {
    for (const tail of this.tails.values()) tail.wake()
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

  /**
   * Waits for the next bell of a run, unless `ready` says that there is something already. `ready` and the registration
   * are one step.
   */
  wait(key: number, ready: () => boolean): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      if (ready()) {
        resume(Effect.void)
        return undefined
      }
      const tail = this.tail(key)
      const waiter = () => resume(Effect.void)
      tail.waiters.add(waiter)
      return Effect.sync(() => {
        tail.waiters.delete(waiter)
        if (tail.waiters.size === 0 && tail.last === undefined) this.tails.delete(key)
      })
    })
  }
}
