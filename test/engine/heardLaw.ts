/**
 * The law of what is heard: whatever is lost, late, told twice or not told at all of a run that another process executes,
 * its viewers see the log, each event once and in order, and all of it when they hear of its end or the next look at
 * everything is over.
 */
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { CurrentUser } from "../../src/domain/Owner.js"
import type { Compacted, Unavailable } from "../../src/domain/RunError.js"
import { LiveTails } from "../../src/engine/LiveTail.js"
import * as Viewing from "../../src/engine/Viewing.js"
import type { Appended, RunRow, StoredEvent } from "../../src/store/RunStore.js"
import { row } from "./row.js"

/**
 * One move: a commit of so many events, and what becomes of its announcement, which may tell some events before them
 * again; or the slow look at everything.
 */
export type Move =
  | {
      readonly does: "commit"
      readonly count: number
      readonly again: number
      readonly told: "now" | "later" | "twice" | "silently" | "never"
    }
  | { readonly does: "deliver" | "poll" | "reconnect" | "turn" }

export const moves = FastCheck.array(
  FastCheck.oneof(
    { weight: 4, arbitrary: commits() },
    {
      weight: 3,
      arbitrary: FastCheck.record({
        does: FastCheck.constantFrom<"deliver" | "poll" | "reconnect" | "turn">("deliver", "poll", "reconnect", "turn")
      })
    }
  ),
  { minLength: 1, maxLength: 30 }
)

function commits(): FastCheck.Arbitrary<Move> {
  return FastCheck.record({
    does: FastCheck.constant("commit" as const),
    count: FastCheck.integer({ min: 1, max: 5 }),
    again: FastCheck.constantFrom(0, 0, 0, 2, 7),
    told: FastCheck.constantFrom("now" as const, "now", "now", "later", "twice", "silently", "never")
  })
}

/** How many turns of the others a read of the store takes, for each viewer. */
export const delays = FastCheck.array(FastCheck.nat(3), { minLength: 1, maxLength: 3 })

/** How viewers come to know of the end. */
export const ending = FastCheck.constantFrom("told" as const, "silently" as const, "polled" as const)

const { key } = row

const turns = (count: number): Effect.Effect<void> => Effect.repeatN(Effect.yieldNow(), count)

/** What each viewer has seen of how many events, and how often the store was read. */
export const play = (
  all: ReadonlyArray<Move>,
  waits: ReadonlyArray<number>,
  end: "told" | "silently" | "polled" = "polled"
): Effect.Effect<{
  readonly seen: ReadonlyArray<ReadonlyArray<number>>
  readonly last: number
  readonly reads: number
}> =>
  Effect.gen(function* () {
    const tails = new LiveTails()
    const log: Array<StoredEvent> = []
    const late: Array<Appended> = []
    let status: RunRow["status"] = "running"
    let reads = 0
    const envOf = (wait: number) => ({
      tails,
      store: {
        find: () => Effect.succeed(Option.some(row)),
        row: () =>
          Effect.zipRight(
            turns(wait),
            Effect.sync(() => Option.some({ ...row, status, lastSeq: log.length }))
          ),
        // A read sees what is there when it begins, and is answered later.
        events: ({ after, limit }: { readonly after: number; readonly limit: number }) =>
          Effect.suspend(() => {
            reads++
            const page = log.slice(after, after + limit)
            return Effect.as(turns(wait), page)
          })
      }
    })
    const feed = (told: Appended) => Effect.sync(() => tails.feed(told))
    const commit = (type: StoredEvent["type"], count: number, again = 0): Appended => {
      const first = Math.max(1, log.length + 1 - again)
      for (let i = 0; i < count; i++) {
        log.push({ seq: log.length + 1, type, json: JSON.stringify({ type }), createdAt: 1 })
      }
      const events = log.slice(first - 1)
      return { key, first, count: events.length, events: () => events }
    }
    const views = yield* Effect.forEach(waits, (wait) =>
      Effect.gen(function* () {
        const seen: Array<number> = []
        const view = yield* Viewing.view(envOf(wait), row.runId, 0)
        const follow = (cursor: number): Effect.Effect<void, Unavailable | Compacted> =>
          Effect.suspend(() => {
            const polled = view.poll(cursor, () => undefined)
            // Some viewers ask for themselves; the others wait to be answered.
            const pull =
              wait % 2 === 0 && polled !== undefined && polled !== "waiting"
                ? Effect.succeed({ _tag: "frames" as const, frames: polled })
                : view.pull(cursor)
            return Effect.flatMap(pull, (found) => {
              if (found._tag === "end") return Effect.void
              if (found._tag === "idle") return follow(cursor)
              for (const { json, seq } of found.frames) {
                const said: { readonly seq: number } = JSON.parse(json)
                seen.push(said.seq === seq ? seq : Number.NaN)
              }
              return follow(found.frames.at(-1)?.seq ?? cursor)
            })
          })
        return { seen, fiber: yield* Effect.fork(follow(0)) }
      })
    )
    for (const move of all) {
      if (move.does === "commit") {
        const told = commit("text-delta", move.count, move.again)
        if (move.told === "now" || move.told === "twice") yield* feed(told)
        if (move.told === "later" || move.told === "twice") late.push(told)
        if (move.told === "silently") tails.wake(key)
      } else if (move.does === "deliver") {
        const told = late.shift()
        if (told !== undefined) yield* feed(told)
      } else if (move.does === "poll") tails.wakeForeign(false)
      else if (move.does === "reconnect") tails.wakeForeign(true)
      else yield* turns(2)
    }
    status = "completed"
    const told = commit("finish", 1)
    if (end === "told") yield* feed(told)
    else if (end === "silently") tails.wake(key)
    else {
      // What was heard last counts as heard for one look, and no longer.
      tails.wakeForeign(false)
      yield* turns(20)
      tails.wakeForeign(false)
    }
    yield* Effect.forEach(views, ({ fiber }) => Effect.timeout(Fiber.join(fiber), "10 seconds"))
    return { seen: views.map(({ seen }) => seen), last: log.length, reads }
  }).pipe(Effect.provideService(CurrentUser, "local"), Effect.orDie)
