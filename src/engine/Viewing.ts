/**
 * Looking at a log: from a cursor to its end, from the live tail or from the store.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Envelope from "../domain/Envelope.js"
import * as Metrics from "../domain/Metrics.js"
import { CurrentUser } from "../domain/Owner.js"
import { Compacted, InvalidCursor, type NotFound, type Unavailable } from "../domain/RunError.js"
import * as RunStatus from "../domain/RunStatus.js"
import { type StoredEvent, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import { frameOf } from "./Frames.js"
import { available, noRun } from "./Refusals.js"
import type { Frame, Pull, View } from "./RunEngine.js"

/** What one look takes from the store at most, in events and in characters; one event is always taken. */
const maxPage = 1024
const firstPage = 16
const maxPageChars = 256 * 1024

interface Needs extends Pick<Environment, "tails"> {
  readonly store: Pick<Environment["store"], "events" | "find" | "row">
}

/** Where the log of a run is. */
interface Place {
  readonly key: number
  readonly runId: string
}

/** How many events the next look asks for: a reader of large ones must not have the store read what it will not get. */
interface Page {
  limit: number
}

const compacted = (runId: string): Compacted =>
  new Compacted({
    message: `The events behind this cursor are gone. Read /runs/${runId} for what they came to.`,
    snapshot: `/runs/${runId}`
  })

/**
 * Opens a window behind `after`.
 *
 * @since 0.1.0
 * @category viewing
 */
export const view = (
  env: Needs,
  runId: string,
  after: number
): Effect.Effect<View, NotFound | InvalidCursor | Compacted | Unavailable> =>
  available(
    Effect.gen(function* () {
      const user = yield* CurrentUser
      const found = yield* env.store.find({ runId, userId: user })
      if (Option.isNone(found)) return yield* noRun
      const row = found.value
      const lastSeq = Math.max(row.lastSeq, env.tails.last(row.key) ?? 0)
      if (after > lastSeq) {
        return yield* new InvalidCursor({
          message: `The cursor ${after} lies beyond the run's last event, ${lastSeq}.`
        })
      }
      if (after < row.compactedSeq) return yield* compacted(runId)
      // A log that can not be read is refused, instead of ending at once again and again.
      if (after < lastSeq && env.tails.behind(row.key, after) === undefined) {
        yield* stored(env, row.key, after, { limit: 1 })
      }
      return window(env, { runId, key: row.key }, lastSeq, RunStatus.isEnded(row.status))
    }),
    runId
  )

/** It lasts as long as somebody looks, so it keeps no more of the run than where its log is. */
const window = (env: Needs, place: Place, lastSeq: number, ended: boolean): View => {
  const page: Page = { limit: firstPage }
  return {
    runId: place.runId,
    lastSeq,
    ended,
    pull: (cursor) => pull(env, place, cursor, page),
    poll: (cursor, bell) => {
      const frames = env.tails.behind(place.key, cursor)
      if (frames !== undefined && frames.length > 0) return frames
      return env.tails.register(place.key, cursor, bell) ? "waiting" : undefined
    }
  }
}

const ended: Pull = { _tag: "end" }
const idle: Pull = { _tag: "idle" }

const framesOf = (frames: ReadonlyArray<Frame>): Pull => ({ _tag: "frames", frames })

const pull = (env: Needs, place: Place, after: number, page: Page): Effect.Effect<Pull, Unavailable | Compacted> =>
  Effect.suspend(() => {
    const { tails } = env
    const { key, runId } = place
    const ticks = tails.ticks
    const look = Effect.suspend(() => available(look1(env, place, after, page), runId))
    const again: Effect.Effect<Pull, Unavailable | Compacted> = Effect.suspend(() => {
      const frames = tails.behind(key, after)
      if (frames !== undefined && frames.length > 0) return Effect.succeed(framesOf(frames))
      // At the known end of a run there is nothing to look for in the store: by far the most frequent wait.
      if (tails.last(key) === after) {
        return Effect.flatMap(tails.next(key, after), () =>
          tails.ticks === ticks ? again : Effect.map(look, (last) => last ?? idle)
        )
      }
      return Effect.flatMap(tails.listen(place, after, look), (found) => {
        if (found !== undefined) return Effect.succeed(found)
        return tails.ticks === ticks ? again : Effect.map(look, (last) => last ?? idle)
      })
    })
    return again
  })

/** The first of these events that fit into a page, and with them the measure of the next one. */
const fitting = <A extends { readonly json: string }>(events: ReadonlyArray<A>, page: Page): ReadonlyArray<A> => {
  let chars = 0
  for (const [index, { json }] of events.entries()) {
    chars += json.length
    if (chars > maxPageChars) {
      page.limit = Math.max(1, index)
      return events.slice(0, page.limit)
    }
  }
  page.limit = Math.min(maxPage, page.limit * 2)
  return events
}

/** The next page of the log. Up to where it is damaged it is read in smaller ones, so that nobody waits at their edge. */
const stored = (
  env: Needs,
  key: number,
  after: number,
  page: Page
): Effect.Effect<ReadonlyArray<StoredEvent>, StoreError> =>
  Effect.tap(env.store.events({ key, after, limit: page.limit }), sound).pipe(
    Effect.catchIf(
      (error) => error.reason === "corrupt" && page.limit > 1,
      () => {
        page.limit = 1
        return stored(env, key, after, page)
      }
    )
  )

/** What is damaged would be a broken frame to who reads it. */
const sound = (events: ReadonlyArray<StoredEvent>): Effect.Effect<void, StoreError> =>
  Effect.try({
    try: () => {
      for (const { json } of events) JSON.parse(json)
    },
    catch: (cause) => new StoreError({ reason: "corrupt", method: "events", cause })
  })

/** What there is right now, or `undefined`. A run that is known to stand at the cursor has nothing in the store behind it. */
const look1 = (
  env: Needs,
  { key, runId }: Place,
  after: number,
  page: Page
): Effect.Effect<Pull | undefined, StoreError | Compacted> =>
  Effect.suspend(() => {
    const { store, tails } = env
    if (tails.last(key) === after) return Effect.succeed(undefined)
    const frames = tails.behind(key, after)
    if (frames !== undefined && frames.length > 0) return Effect.succeed(framesOf(frames))
    const last = tails.last(key)
    if (last !== undefined && last > after) Metrics.viewerBehind(last - after)
    return Effect.gen(function* () {
      const events = yield* stored(env, key, after, page)
      if (events.length > 0 && events[0]?.seq === after + 1) {
        return framesOf(fitting(events, page).map((event) => frameOf(runId, event)))
      }
      const now = Option.getOrUndefined(yield* store.row(key))
      if (now === undefined) return ended
      if (now.compactedSeq > after) return yield* compacted(runId)
      return RunStatus.isEnded(now.status) && now.lastSeq <= after ? ended : undefined
    })
  })

const decodeFrame = (frame: Frame): Envelope.Envelope => Envelope.decodeSync(JSON.parse(frame.json))

/**
 * The window as a stream of envelopes.
 *
 * @since 0.1.0
 * @category viewing
 */
export const events = (
  env: Needs,
  runId: string,
  after: number
): Stream.Stream<Envelope.Envelope, NotFound | InvalidCursor | Compacted | Unavailable> =>
  Stream.unwrap(
    Effect.map(view(env, runId, after), (window) =>
      Stream.unfoldChunkEffect(after, (cursor) =>
        Effect.map(window.pull(cursor), (pulled): Option.Option<[Chunk.Chunk<Envelope.Envelope>, number]> => {
          switch (pulled._tag) {
            case "end":
              return Option.none()
            case "idle":
              return Option.some([Chunk.empty(), cursor])
            case "frames":
              return Option.some([
                Chunk.unsafeFromArray(pulled.frames.map(decodeFrame)),
                pulled.frames.at(-1)?.seq ?? cursor
              ])
          }
        })
      )
    )
  )
