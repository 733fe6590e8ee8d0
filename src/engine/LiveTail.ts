/**
 * The newest events of the runs that this process executes, encoded once for all viewers, and the bell that wakes who
 * waits for more. Only a cache: whoever asks for more than it holds reads the store.
 *
 * A viewer registers before it looks, so nothing can fall between.
 *
 * Where another process tells what it adds to a run that somebody here follows, the run has a tail here too. It begins
 * when a viewer has found nothing more in the store; what is told from then on joins on to it, or begins it anew where
 * something is missing in between. It is known up to its last seq only as long as nothing may have been missed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Appended } from "../store/RunStore.js"
import { frameOf } from "./Frames.js"
import type { Frame } from "./RunEngine.js"

/** What is kept of a run: enough for viewers that are a moment behind. */
const maxFrames = 512
const maxChars = 256 * 1024

class Tail {
  frames: Array<Frame> = []
  chars = 0
  waiters = new Set<Waiter>()
  /** Up to where all is known: while this process executes the run, or hears what is added to it. */
  last: number | undefined
  /** Whether this process executes the run. */
  own = false
  /** The run's public id, of a run that somebody here follows. */
  runId: string | undefined
  /** Whether something was heard of it, and whether somebody has looked, since it was last asked. */
  heard = false
  looked = true

  forget(): void {
    this.last = undefined
    this.frames = []
    this.chars = 0
  }

  add(frames: ReadonlyArray<Frame>): void {
    for (const frame of frames) {
      this.frames.push(frame)
      this.chars += frame.chars
      this.last = frame.seq
    }
    let drop = Math.max(0, this.frames.length - maxFrames)
    for (let i = 0; i < drop; i++) this.chars -= this.frames[i]?.chars ?? 0
    while (this.chars > maxChars && drop < this.frames.length - 1) this.chars -= this.frames[drop++]?.chars ?? 0
    if (drop > 0) this.frames.splice(0, drop)
  }

  /** A viewer has seen all that there is, and nothing was heard since. */
  standsAt(seq: number): void {
    if (this.own || (this.last ?? 0) >= seq) return
    this.forget()
    this.last = seq
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
    tail.forget()
    tail.last = seq
    tail.own = true
    tail.wake()
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
    tail.forget()
    tail.own = false
    tail.wake()
    if (tail.waiters.size === 0) this.tails.delete(key)
  }

  /**
   * Adds what another process has stored to the tail of a run that somebody here follows, and wakes the viewers. What is
   * there already is left out.
   */
  feed({ count, events, first, key }: Appended): void {
    const tail = this.tails.get(key)
    if (tail?.runId === undefined || tail.own) return
    const { last, runId } = tail
    tail.heard = true
    if (last !== undefined && first + count - 1 <= last) return
    if (last !== undefined && first > last + 1) tail.forget()
    const frames: Array<Frame> = []
    for (const event of events()) {
      if (event.seq > (tail.last ?? 0)) frames.push(frameOf(runId, event))
    }
    tail.add(frames)
    tail.wake()
    // Whether it goes on only the store can tell.
    if (frames.at(-1)?.terminal === true) this.close(key)
  }

  /** Wakes the viewers of a run: its log in the store may have changed. */
  wake(key: number): void {
    const tail = this.tails.get(key)
    if (tail?.own === false) tail.forget()
    tail?.wake()
  }

  /** Wakes every viewer. */
  wakeAll(pulse = false): void {
    for (const tail of this.tails.values()) tail.wake(pulse)
  }

  /**
   * Wakes the viewers of runs that other processes execute: their logs may have grown unheard. Unless what was told is
   * `lost`, this can not be so where something was heard since the last time. Tails that nobody follows any more go.
   */
  wakeForeign(lost: boolean): void {
    for (const [key, tail] of this.tails) {
      if (tail.own) continue
      const { heard, looked, waiters } = tail
      tail.heard = tail.looked = false
      if (waiters.size === 0 && !looked) {
        this.tails.delete(key)
      } else if (lost || !heard) {
        tail.forget()
        tail.wake()
      }
    }
  }

  /** The frames behind a seq, or `undefined` where the tail does not reach back to it. */
  behind(key: number, after: number): ReadonlyArray<Frame> | undefined {
    const tail = this.tails.get(key)
    if (tail === undefined) return undefined
    tail.looked = true
    return tail.behind(after)
  }

  /** The last seq of a run that this process executes, or of which it has heard everything. */
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
   * Waits for the next bell of a run that is known to stand at `after`. Anything else is answered at
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
    tail.looked = true
    tail.waiters.add(waiter)
    return true
  }

  /**
   * Looks with `look` for what lies behind `after`, and waits for the next bell of the run when it finds nothing. The
   * listener is registered before it looks, so nothing can fall between. The answer is what was found, or `undefined`
   * after a bell. When none has rung meanwhile, the run is known to stand at `after`.
   */
  listen<A, E>(
    { key, runId }: { readonly key: number; readonly runId: string },
    after: number,
    look: Effect.Effect<A | undefined, E>
  ): Effect.Effect<A | undefined, E> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        const tail = this.tail(key)
        tail.runId = runId
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
                if (bell.rung) return resume(Effect.succeed(undefined))
                bell.tail.standsAt(after)
                bell.ring = () => resume(Effect.succeed(undefined))
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
