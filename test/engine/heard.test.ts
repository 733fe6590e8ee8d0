import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Law from "./heardLaw.js"

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

it.live("viewers of a run elsewhere see its log once and in order, whatever becomes of the announcements", () =>
  Effect.promise(() =>
    FastCheck.assert(
      FastCheck.asyncProperty(Law.moves, Law.delays, Law.ending, async (moves, delays, ending) => {
        const { last, seen } = await Effect.runPromise(Law.play(moves, delays, ending))
        for (const one of seen) expect(one).toEqual(upTo(last))
      }),
      { numRuns: 300 }
    )
  )
)

it.live("who hears everything reads the store when it begins and when it ends, and not in between", () =>
  Effect.gen(function* () {
    const told: ReadonlyArray<Law.Move> = Array.from({ length: 200 }, (_, index) => ({
      does: "commit",
      again: 0,
      count: 1 + (index % 3),
      told: "now"
    }))
    const quiet = told.flatMap(
      (move, index): ReadonlyArray<Law.Move> =>
        index % 20 === 19 ? [move, { does: "turn" }, { does: "poll" }] : [move, { does: "turn" }]
    )
    const { last, reads, seen } = yield* Law.play([{ does: "turn" }, ...quiet], [0])
    expect(seen).toEqual([upTo(last)])
    expect(reads).toBeLessThan(6)
  })
)
