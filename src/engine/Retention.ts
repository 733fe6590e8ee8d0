/**
 * What is not kept for ever: some time after the end of a run its log becomes the state that it came to, its final
 * checkpoint and its end; later still the run goes. A sweep does a little of it and says whether there is more, so that
 * it disturbs nobody however much there is to do.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Metrics from "../domain/Metrics.js"
import type { OutlivedQuery, RunRow, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import * as Faults from "./Faults.js"
import * as RunLog from "./RunLog.js"

/** What one sweep does at most: runs of each kind that it looks at, and transactions that remove something. */
const maxRuns = 50
const maxSteps = 100

/** Events of one such transaction, and bytes that are given back in one: some milliseconds each. */
const maxEvents = 250
const maxBytes = 1024 * 1024

/** Between two steps others have their turn. */
const pause = Effect.sleep(Duration.millis(10))

/** How soon a sweep that did not come to an end goes on. */
const eagerMs = 1_000

/** Terminal events, and the checkpoint that was stored with the first of them. */
const maxTail = 3

type Needs = Pick<Environment, "now" | "retention" | "store">

/** Where the last sweep of each kind stopped, and which runs could not be read. */
interface Place {
  log: OutlivedQuery["behind"]
  run: OutlivedQuery["behind"]
  readonly unreadable: Set<number>
}

/** The seq up to which a state can stand for the log. */
const compactable = (env: Needs, row: RunRow): Effect.Effect<number, StoreError> =>
  Effect.map(
    env.store.events({ key: row.key, after: Math.max(0, row.lastSeq - maxTail), limit: maxTail }),
    (tail) => (tail.findLast(({ type }) => type === "checkpoint")?.seq ?? row.lastSeq) - 1
  )

/**
 * Compacts the log of an ended run. What is shown of the run stays the same. Answers false when it has moved on, and
 * fails as corrupt when its log can not be folded: such a log is left as it is.
 *
 * @since 0.1.0
 * @category retention
 */
export const compact = (env: Needs, row: RunRow): Effect.Effect<boolean, StoreError> =>
  Effect.gen(function* () {
    const seq = yield* compactable(env, row)
    if (seq < 1) return false
    const { closed, ...state } = yield* RunLog.load(env.store, row, seq)
    if (state.seq !== seq) return false
    const base = { seq, turns: closed.length, state }
    const done = yield* env.store.compact({ key: row.key, lastSeq: row.lastSeq, base })
    if (done) Metrics.compacted()
    return done
  })

const sweepLogs = (env: Needs, place: Place, now: number): Effect.Effect<boolean, StoreError> =>
  Effect.gen(function* () {
    const rows = yield* env.store.outlived({
      what: "log",
      endedBefore: now - env.retention.eventsMs,
      limit: maxRuns,
      behind: place.log
    })
    for (const row of rows) {
      yield* Effect.catchIf(
        compact(env, row),
        (error) => error.reason === "corrupt",
        () => (place.unreadable.has(row.key) ? Effect.void : unreadable(place, row))
      )
      yield* pause
    }
    place.log = next(rows)
    return rows.length === maxRuns
  })

const unreadable = (place: Place, row: RunRow) =>
  Effect.zipRight(
    Effect.sync(() => place.unreadable.add(row.key)),
    Effect.annotateLogs(
      Effect.logWarning("A log can not be read, so it was not compacted. It goes with its run"),
      "runId",
      row.runId
    )
  )

/** A page that is not full was the last one: the next sweep begins from the beginning. */
const next = (rows: ReadonlyArray<RunRow>): OutlivedQuery["behind"] => {
  const last = rows.length === maxRuns ? rows.at(-1) : undefined
  return last?.endedAt === undefined ? undefined : { endedAt: last.endedAt, key: last.key }
}

/** Repeats a step until there is nothing more to do, or enough was done; answers whether there may be more. */
const steps = <E>(step: Effect.Effect<boolean, E>): Effect.Effect<boolean, E> =>
  Effect.gen(function* () {
    for (let count = 0; count < maxSteps; count++) {
      if (!(yield* step)) return false
      yield* pause
    }
    return true
  })

const sweepRuns = (env: Needs, place: Place, now: number): Effect.Effect<boolean, StoreError> =>
  Effect.gen(function* () {
    const endedBefore = now - env.retention.runsMs
    const rows = yield* env.store.outlived({ what: "run", endedBefore, limit: maxRuns, behind: place.run })
    for (const { key } of rows) {
      const more = yield* steps(
        Effect.map(env.store.expire({ key, endedBefore, limit: maxEvents }), (outcome) => {
          if (outcome === "removed") Metrics.expired()
          return outcome === "more"
        })
      )
      if (more) return true
      place.unreadable.delete(key)
      yield* pause
    }
    place.run = next(rows)
    return rows.length === maxRuns
  })

/**
 * One sweep. Answers whether there is more to do.
 *
 * @since 0.1.0
 * @category retention
 */
export const sweep = (env: Needs, place: Place): Effect.Effect<boolean, StoreError> =>
  Effect.gen(function* () {
    const now = yield* env.now
    const logs = yield* sweepLogs(env, place, now)
    const events = yield* steps(env.store.trim(maxEvents))
    const runs = yield* sweepRuns(env, place, now)
    const space = yield* steps(Effect.map(env.store.reclaim(maxBytes), (bytes) => bytes >= maxBytes))
    return logs || events || runs || space
  })

/**
 * Sweeps every `everyMs`, and sooner while there is more to do, for as long as the scope is open.
 *
 * @since 0.1.0
 * @category retention
 */
export const make = (env: Needs, everyMs: number): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    const place: Place = { log: undefined, run: undefined, unreadable: new Set() }
    const once = sweep(env, place).pipe(
      Effect.catchAllCause((cause) =>
        Effect.as(Faults.logCause("A sweep failed and will be tried again", cause), false)
      ),
      Effect.withTracerEnabled(false)
    )
    const wait = (ms: number) => Effect.sleep(Duration.millis(ms))
    // Not at once: a process that is started again and again should do other things first.
    return wait(Math.min(everyMs, 30_000)).pipe(
      Effect.zipRight(
        Effect.forever(Effect.flatMap(once, (more) => wait(more ? Math.min(eagerMs, everyMs) : everyMs)))
      ),
      Effect.forkScoped,
      Effect.asVoid
    )
  })
