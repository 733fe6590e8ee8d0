/**
 * The one fiber that appends: it takes what all writers have, stores it in one transaction, and only then lets them
 * show it.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Metrics from "../domain/Metrics.js"
import * as Fold from "../domain/RunState.js"
import { type Append, type AppendOutcome, type RunStore, StoreError } from "../store/RunStore.js"
import * as Faults from "./Faults.js"
import { frameOf } from "./Frames.js"
import type { Frame } from "./RunEngine.js"
import type { RunWriter } from "./RunWriter.js"

/**
 * The committing fiber as writers see it.
 *
 * @since 0.1.0
 * @category models
 */
export interface GroupCommit {
  /** A writer has something to store. */
  readonly notify: (writer: RunWriter) => void
}

/** What a transaction may weigh, in events: beyond it the commit itself would hold up the event loop. */
const maxWeight = 5000
/** A change of a run's row weighs as much as some events; one that stores a turn or an answer whole as more of them. */
const rowWeight = 10
const wholeWeight = 50

const weightOf = ({ events, set, turn }: Append): number => {
  if (turn !== undefined || set?.assistantText !== undefined) return events.length + wholeWeight
  return set === undefined ? events.length : events.length + rowWeight
}

const pageSize = 500
/**
 * Where something new comes in every turn of the event loop, commits can only get along by being fewer: each one that
 * could not wait for a quiet turn lets the next one wait twice as long, up to so many times the window. What each run
 * produces meanwhile is stored, shown and sent as one.
 */
const maxStretch = 20

/** Milliseconds of a clock that nobody sets. */
const elapsed = Effect.map(Clock.currentTimeNanos, (nanos) => Number(nanos) / 1e6)

const unanswered = new StoreError({
  reason: "corrupt",
  method: "append",
  cause: new Error("The store told no outcome of an append")
})

/**
 * Starts the committing fiber in the scope. It commits as soon as a turn of the event loop, which `turn` waits for, brings
 * nothing more to store, and `windowMs` after the commit before at the earliest; with 0 it asks for neither. `now` is the
 * time that events get (epoch milliseconds). A store that does not answer is asked again for `patienceMs`, then the writers
 * of that batch are closed and their runs left to recovery.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  store: RunStore["Type"],
  options: {
    readonly windowMs: number
    readonly patienceMs: number
    readonly turn: Effect.Effect<void>
    readonly now: Effect.Effect<number>
  }
): Effect.Effect<GroupCommit, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { turn, windowMs } = options
    const dirty = new Set<RunWriter>()
    const latch = yield* Effect.makeLatch(false)
    let added = 0
    const notify = (writer: RunWriter): void => {
      added++
      dirty.add(writer)
      latch.unsafeOpen()
    }

    let endedAt = Number.NEGATIVE_INFINITY
    let patience = windowMs
    /** Waits for a turn that adds nothing, as long as there is patience. */
    const quiet = (until: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        const before = added
        return Effect.flatMap(Effect.zipRight(turn, elapsed), (now) => {
          if (added !== before && now < until) return quiet(until)
          patience = added === before ? windowMs : Math.min(patience * 2, maxStretch * windowMs)
          return Effect.void
        })
      })
    const window =
      windowMs === 0
        ? Effect.yieldNow()
        : Effect.flatMap(elapsed, (now) => {
            const from = Math.max(now, endedAt + windowMs)
            return Effect.zipRight(
              from > now ? Effect.sleep(Duration.millis(from - now)) : Effect.void,
              Effect.suspend(() => quiet(from + patience))
            )
          })

    const patiently = <A>(effect: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
      Effect.retry(effect, {
        while: (error) => error.reason === "unavailable",
        schedule: Schedule.exponential(Duration.millis(20)).pipe(
          Schedule.union(Schedule.spaced(Duration.seconds(1))),
          Schedule.upTo(Duration.millis(options.patienceMs))
        )
      })

    const absorb = (writer: RunWriter): Effect.Effect<void, StoreError> =>
      Effect.gen(function* () {
        let state = writer.state
        const frames: Array<Frame> = []
        while (true) {
          const page = yield* store.envelopes({
            key: writer.key,
            runId: writer.runId,
            after: state.seq,
            limit: pageSize
          })
          const raw = yield* store.events({ key: writer.key, after: state.seq, limit: page.length })
          for (const event of raw) frames.push(frameOf(writer.runId, event))
          state = Fold.reduceAll(state, page)
          if (page.length < pageSize) break
        }
        writer.absorb(state, frames)
      })

    // A defect of the store, of a tool's statements, or in what one run says must not end the one fiber that everybody
    // depends on.
    const defect = (method: string) => (cause: unknown) => new StoreError({ reason: "corrupt", method, cause })
    const contained = (method: string) => Effect.catchAllDefect((cause) => Effect.fail(defect(method)(cause)))
    // Twice for every run in a commit, so it is no effect.
    const own = <A>(method: string, work: () => A): Either.Either<A, StoreError> =>
      Either.try({ try: work, catch: defect(method) })

    const tried = (batch: ReadonlyArray<Append>): Effect.Effect<ReadonlyArray<AppendOutcome>, StoreError> =>
      contained("append")(store.append(batch))

    /** What became of each append: its outcome, or why the store did not do it. */
    const append = (
      batch: ReadonlyArray<Append>
    ): Effect.Effect<ReadonlyArray<Either.Either<AppendOutcome, StoreError>>> =>
      patiently(tried(batch)).pipe(
        Effect.map((outcomes) => outcomes.map((outcome) => Either.right(outcome))),
        Effect.catchAll((error) =>
          // One run whose pages are damaged must not stop the others. All have waited together, so each is tried once.
          batch.length === 1
            ? Effect.succeed([Either.left(error)])
            : Effect.forEach(batch, (one) =>
                Effect.either(
                  Effect.flatMap(tried([one]), ([outcome]) =>
                    outcome === undefined ? Effect.fail(unanswered) : Effect.succeed(outcome)
                  )
                )
              )
        )
      )

    const giveUp = (writer: RunWriter, error: StoreError): Effect.Effect<void> => {
      writer.close("What this run says could not be stored.")
      return Faults.log("A run was left to recovery because its events could not be stored", error, writer.runId)
    }

    const round = Effect.gen(function* () {
      let now = yield* options.now
      const writers: Array<RunWriter> = []
      const batch: Array<Append> = []
      let events = 0
      let weight = 0
      // A writer has one append under way: who has more to say while another's log is read waits for the next round.
      const waiting = [...dirty]
      dirty.clear()
      for (const [index, writer] of waiting.entries()) {
        if (weight >= maxWeight) {
          for (const later of waiting.slice(index)) dirty.add(later)
          break
        }
        if (writer.isClosed) continue
        if (writer.stale) {
          const absorbed = yield* Effect.either(patiently(contained("absorb")(absorb(writer))))
          if (absorbed._tag === "Left") {
            yield* giveUp(writer, absorbed.left)
            continue
          }
          // Reading may have taken long, and what is written now must not seem older than what was read.
          now = yield* options.now
        }
        if (writer.isClosed) continue
        const made = own("prepare", () => writer.prepare(now))
        if (Either.isLeft(made)) {
          yield* giveUp(writer, made.left)
          continue
        }
        const prepared = made.right
        if (prepared === undefined) {
          if (writer.hasWork) dirty.add(writer)
          continue
        }
        writers.push(writer)
        batch.push(prepared)
        events += prepared.events.length
        weight += weightOf(prepared)
      }
      if (batch.length > 0) {
        const begun = yield* elapsed
        const outcomes = yield* append(batch)
        Metrics.committed(events, ((yield* elapsed) - begun) / 1000)
        for (let i = 0; i < writers.length; i++) {
          const writer = writers[i]
          const outcome = outcomes[i] ?? Either.left(unanswered)
          if (writer === undefined) continue
          const settled = Either.isLeft(outcome) ? outcome : own("settle", () => writer.settle(outcome.right))
          if (Either.isLeft(settled)) yield* giveUp(writer, settled.left)
          if (writer.hasWork) dirty.add(writer)
        }
      }
      endedAt = yield* elapsed
      if (dirty.size === 0) latch.unsafeClose()
    })

    yield* Effect.zipRight(latch.await, Effect.zipRight(window, Effect.uninterruptible(round))).pipe(
      Effect.forever,
      Effect.forkScoped
    )
    return { notify }
  })
