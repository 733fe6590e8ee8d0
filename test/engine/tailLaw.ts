/**
 * The law of the bell, over random orders of what happens at a tail: whoever waits has seen everything, so nobody waits
 * for the next pulse to hear of an event that is there.
 */
import * as FastCheck from "effect/FastCheck"
import { LiveTails } from "../../src/engine/LiveTail.js"

/** One move: events are stored, or a viewer looks, or it waits from where it last looked. */
export interface Move {
  readonly viewer: number
  readonly does: "store" | "look" | "wait"
}

export const name = "whoever waits at a tail has seen all that is there"

export const moves = FastCheck.array(
  FastCheck.record({
    viewer: FastCheck.nat(2),
    does: FastCheck.constantFrom<Move["does"]>("store", "look", "wait")
  }),
  { minLength: 1, maxLength: 30 }
)

/** The first violation, as a sentence. */
export const violation = (all: ReadonlyArray<Move>): string | undefined => {
  const tails = new LiveTails()
  const viewers = new Map<number, { cursor: number; waiting: boolean }>()
  let last = 0
  tails.open(1, 0)
  for (const { does, viewer: id } of all) {
    const viewer = viewers.get(id) ?? { cursor: 0, waiting: false }
    viewers.set(id, viewer)
    if (does === "store") {
      last++
      tails.publish(1, [{ seq: last, json: "{}", chars: 2, terminal: false }])
    } else if (does === "look" && !viewer.waiting) {
      viewer.cursor += tails.behind(1, viewer.cursor)?.length ?? 0
    } else if (does === "wait" && !viewer.waiting) {
      viewer.waiting = tails.register(1, viewer.cursor, () => {
        viewer.waiting = false
      })
    }
    for (const { cursor, waiting } of viewers.values()) {
      if (waiting && cursor < last) return `a viewer waits at ${cursor} although ${last} is there`
    }
  }
  return undefined
}
