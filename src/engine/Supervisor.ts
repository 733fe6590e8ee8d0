/**
 * Which runs this process executes: takes them from the queue, takes over what dead processes left, keeps its leases,
 * notices when it lost one, and stops everything on a drain.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FiberMap from "effect/FiberMap"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Tracer from "effect/Tracer"
import * as Closing from "../agent/Closing.js"
import type { AgentEvent } from "../domain/AgentEvent.js"
import { encodeEvent } from "../domain/Envelope.js"
import * as Metrics from "../domain/Metrics.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import { type RunRow, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import * as Faults from "./Faults.js"
import * as GroupCommit from "./GroupCommit.js"
import { type ActiveRun, drive, type Mode } from "./RunDriver.js"
import * as RunLog from "./RunLog.js"
import { type Decide, type Decided, RunWriter } from "./RunWriter.js"
import * as Spans from "./Spans.js"

/**
 * The runs of this process, and what may be done to runs of any process.
 *
 * @since 0.1.0
 * @category models
 */
export interface Supervisor {
  /** There may be something to take from the queue. */
  readonly poke: () => void
  /** Executes a run that this process has just acquired, in `span` if it was begun already. */
  readonly launch: (row: RunRow, mode: Mode, span?: Tracer.Span) => Effect.Effect<void, StoreError>
  /** The run, if this process executes it. */
  readonly active: (key: number) => ActiveRun | undefined
  /** How many runs this process executes. */
  readonly size: () => number
  /**
   * Writes a decision about a run, whoever executes it. `take` fences its owner off. The answer holds the state behind it.
   */
  readonly transact: (
    run: { readonly key: number; readonly runId: string },
    decide: Decide,
    options?: { readonly take?: boolean }
  ) => Effect.Effect<Decided, StoreError>
  /** Ends a run, and stops its fiber if it is this process's. */
  readonly end: (
    run: { readonly key: number; readonly runId: string; readonly conversationId: string },
    events: (state: Fold.RunState) => ReadonlyArray<AgentEvent> | undefined
  ) => Effect.Effect<Decided, StoreError>
  readonly draining: () => boolean
  readonly drain: Effect.Effect<void>
}

const started = {
  type: "run-status",
  json: encodeEvent({ type: "run-status", status: "running" })
} as const

/** Up to which part of its time a lease that was renewed is not looked at. Leases are renewed more often than that. */
const fresh = 0.5

/** After which part of its time a lease that was not renewed is in doubt, and for which part the last try may last. */
const doubt = 0.7
const lastTry = 0.25

/** How many runs that were left behind are taken at once, and how many of them are read at a time. */
const portion = 50
const abreast = 8

/** How long another process has to begin what it has made ready. */
const courtesy = "15 millis"

const silent = new StoreError({ reason: "unavailable", method: "renew", cause: new Error("The store does not answer") })

const expired = (request: { readonly approvalId: string; readonly toolCallId: string }): AgentEvent => ({
  type: "approval-decision",
  approvalId: request.approvalId,
  toolCallId: request.toolCallId,
  decision: "expired",
  by: "system"
})

/**
 * Writes down which of the pending requests have run out at `now`; a run that waited for nothing else is queued again.
 *
 * @since 0.1.0
 * @category decisions
 */
export const expire = (state: Fold.RunState, now: number): ReadonlyArray<AgentEvent> | undefined => {
  const pending = Fold.pendingApprovals(state)
  const over = pending.filter((request) => request.expiresAt <= now)
  if (over.length === 0) return undefined
  return [...over.map(expired), ...(over.length === pending.length ? requeued(state) : [])]
}

/**
 * What sends a waiting run back to the queue.
 *
 * @since 0.1.0
 * @category decisions
 */
export const requeued = (state: Fold.RunState): ReadonlyArray<AgentEvent> =>
  state.status === "waiting_approval" ? [{ type: "run-status", status: "queued", reason: "approval" }] : []

/** What is known of a run without its log. */
const unreadable = (runId: string, row: Option.Option<RunRow>): Fold.RunState => ({
  ...Fold.empty(runId),
  ...Option.match(row, {
    onNone: () => ({ status: "failed" as const }),
    onSome: ({ lastSeq, recoverable, status }) => ({ seq: lastSeq, status, recoverable })
  })
})

/**
 * A supervisor that takes runs from the queue and from dead processes for as long as its scope is open.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  env: Environment,
  options: { readonly windowMs: number; readonly pollMs: number }
): Effect.Effect<Supervisor, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { agent, process, store, tails } = env
    const { leaseTtlMs } = agent.resume
    const claim = { owner: process.owner, ttlMs: leaseTtlMs }
    const commit = yield* GroupCommit.make(store, {
      windowMs: options.windowMs,
      turn: process.turn,
      now: env.now,
      patienceMs: Math.max(5_000, leaseTtlMs)
    })
    const fibers = yield* FiberMap.make<number, void, never>()
    const runs = new Map<number, ActiveRun>()
    /** Runs that were taken with others and wait to be read, with their epochs. */
    const beginning = new Map<number, number>()
    const bell = yield* Effect.makeLatch(true)
    const hurry = yield* Effect.makeLatch(false)
    const later = yield* Effect.makeLatch(false)
    let draining = false
    const poke = (): void => {
      bell.unsafeOpen()
    }

    const stop = (key: number): Effect.Effect<void> => Effect.asVoid(Effect.fork(FiberMap.remove(fibers, key)))

    const launch = (row: RunRow, mode: Mode, begun?: Tracer.Span): Effect.Effect<void, StoreError> =>
      Effect.gen(function* () {
        const state = yield* RunLog.load(store, row)
        const writer = new RunWriter(row.key, row.runId, row.epoch, state, {
          tails,
          checkpointEvery: agent.resume.checkpointEvery,
          secrets: env.secrets,
          lease: claim,
          notify: commit.notify,
          onClose: (closed) => {
            if (runs.get(row.key)?.writer === closed) runs.delete(row.key)
            poke()
          }
        })
        const occasion: Spans.Occasion =
          mode === "abandoned" ? { _tag: "again", attempt: state.attempt + 1 } : { _tag: "goOn" }
        const span = begun ?? Spans.begin(env.recorder, row, agent.models.get(row.model), state, occasion)
        // What was read during a drain begins with what a drain ends with.
        const active: ActiveRun = { row, writer, span, busy: false, stopping: draining }
        runs.set(row.key, active)
        const life = drive(env, active, mode).pipe(
          Effect.ensuring(
            Effect.suspend(() => {
              if (writer.isClosed) return Effect.void
              // Left without an end: a drain, or a fault that could not be written. What was produced is stored, and
              // somebody else goes on from there.
              return Effect.ignore(writer.settled).pipe(
                Effect.tap(() => Effect.sync(() => writer.close("This process stopped working on the run."))),
                Effect.zipRight(
                  Effect.suspend(() =>
                    RunStatus.isExecuting(writer.state.status)
                      ? Effect.ignore(store.release({ key: row.key, epoch: row.epoch }))
                      : Effect.void
                  )
                )
              )
            })
          )
        )
        yield* FiberMap.run(fibers, row.key, life)
      })

    /** A run whose log is damaged ends here; the others go on. */
    const condemn = (
      run: { readonly key: number; readonly runId: string },
      error: StoreError
    ): Effect.Effect<boolean, StoreError> =>
      Faults.log("A run was ended because what is stored of it can not be read", error, run.runId).pipe(
        Effect.zipRight(env.now),
        Effect.flatMap((now) => RunLog.condemn(store, run, now)),
        Effect.tap(() =>
          Effect.sync(() => {
            tails.wake(run.key)
            poke()
          })
        )
      )

    const owned = (row: RunRow, mode: Mode, begun?: Tracer.Span): Effect.Effect<void, StoreError> =>
      Effect.zipRight(supersede(row), launch(row, mode, begun)).pipe(
        Effect.catchIf(
          (error) => error.reason === "corrupt",
          (error) => Effect.asVoid(condemn(row, error))
        ),
        Effect.tapError((error) => Faults.log("A run could not be begun", error, row.runId))
      )

    const transact: Supervisor["transact"] = (run, decide, how) =>
      Effect.suspend(() => {
        const active = runs.get(run.key)
        const elsewhere = RunLog.transact(
          store,
          run,
          { now: env.now, checkpointEvery: agent.resume.checkpointEvery, owner: process.owner, ttlMs: leaseTtlMs },
          (state, now) => {
            const decision = decide(state, now)
            return decision === undefined || how?.take !== true ? decision : { ...decision, raiseEpoch: true }
          }
        ).pipe(
          Effect.tap((decided) =>
            Effect.sync(() => {
              if (!decided.written) return
              tails.wake(run.key)
              const here = runs.get(run.key)
              if (here !== undefined) {
                here.writer.stale = true
                commit.notify(here.writer)
              }
              poke()
            })
          )
        )
        return active === undefined
          ? elsewhere
          : Effect.catchTag(active.writer.transact(decide), "WriterClosed", () => elsewhere)
      })

    // What produces is stopped while the end is being stored: nobody pays for what is cut off. Should storing fail for
    // good, the writer is closed and the run is left to recovery in any case.
    const end: Supervisor["end"] = (run, events) =>
      stop(run.key).pipe(
        Effect.zipRight(
          transact(
            run,
            (state) => {
              const all = events(state)
              return all === undefined ? undefined : { events: all, giveUp: true }
            },
            { take: true }
          )
        ),
        Effect.catchIf(
          (error) => error.reason === "corrupt",
          (error) =>
            Effect.zipRight(
              condemn(run, error),
              Effect.map(store.row(run.key), (row): Decided => ({ written: true, state: unreadable(run.runId, row) }))
            )
        ),
        // Also what began meanwhile.
        Effect.tap(({ written }) => (written ? stop(run.key) : Effect.void)),
        Effect.tap(() => Effect.sync(poke))
      )

    /**
     * A conversation that goes on leaves its recoverable failures behind for good. Also when it goes on elsewhere: who
     * accepted or claimed the run may have been gone before it came to this.
     */
    const supersede = (row: RunRow): Effect.Effect<void, StoreError> =>
      Effect.flatMap(store.supersedable({ conversationId: row.conversationId, before: row }), (left) =>
        Effect.forEach(left, (old) => end(old, (state) => Closing.cancellation(state, "superseded")), { discard: true })
      )

    const take = Effect.gen(function* () {
      while (!draining && runs.size < agent.limits.maxConcurrentRuns) {
        const row = yield* store.claimQueued({
          ...claim,
          maxConcurrent: agent.limits.maxConcurrentRuns,
          maxPerUser: env.limitUsers ? agent.limits.maxRunsPerUser : null,
          started
        })
        if (Option.isNone(row)) return
        tails.wake(row.value.key)
        yield* owned(row.value, "claimed")
      }
    })

    /** When the leases that we have were last known to hold. */
    let renewedAt = yield* Clock.currentTimeNanos
    const renew = Effect.flatMap(Clock.currentTimeNanos, (at) =>
      Effect.map(runs.size + beginning.size === 0 ? Effect.void : store.renew(claim), () => {
        renewedAt = at
      })
    )

    /**
     * Where the store can not be reached our leases run out, and another process may go on with our runs. They are
     * stopped before that. What was interrupted for as long itself, and reaches the store, goes on.
     */
    const guard = Effect.gen(function* () {
      const since = Duration.nanos((yield* Clock.currentTimeNanos) - renewedAt)
      if (runs.size === 0 || Duration.lessThan(since, Duration.millis(leaseTtlMs * doubt))) return
      const held = yield* renew.pipe(
        Effect.disconnect,
        Effect.timeoutFail({ duration: Duration.millis(leaseTtlMs * lastTry), onTimeout: () => silent }),
        Effect.either
      )
      if (Either.isRight(held)) return
      for (const active of [...runs.values()]) {
        active.writer.close("The store can not be reached, and the lease of this run runs out.")
        yield* stop(active.row.key)
        yield* Faults.log("A run was stopped because its lease could not be renewed", held.left, active.row.runId)
      }
    })

    const takeOver = Effect.gen(function* () {
      // Our own leases come first: after a long sleep they may have run out without anybody having noticed.
      const since = Duration.nanos((yield* Clock.currentTimeNanos) - renewedAt)
      if (Duration.greaterThan(since, Duration.millis(leaseTtlMs * fresh))) yield* renew
      const owners = (yield* store.owners).filter((owner) => owner !== process.owner)
      const dead = yield* Effect.filter(owners, process.isGone)
      while (!draining && runs.size < agent.limits.maxConcurrentRuns) {
        const free = agent.limits.maxConcurrentRuns - runs.size
        const rows = yield* store.claimAbandoned({ ...claim, dead, limit: Math.min(free, portion) })
        if (rows.length === 0) return
        for (const { epoch, key } of rows) {
          beginning.set(key, epoch)
          // A lease of our own that ran out while we were asleep: its fiber is still here and knows nothing of it.
          runs.get(key)?.writer.close("The lease of this run ran out.")
        }
        const [failed] = yield* Effect.partition(rows, goOn, { concurrency: abreast }).pipe(
          Effect.onInterrupt(() =>
            Effect.forEach(rows, (row) => (isBegun(row) ? Effect.void : Effect.ignore(store.release(row))), {
              discard: true
            })
          ),
          Effect.ensuring(Effect.sync(() => beginning.clear()))
        )
        // One that could not be begun is no reason to leave the others of its portion, but to look again later.
        if (failed[0] !== undefined) return yield* failed[0]
      }
    })

    const goOn = (row: RunRow): Effect.Effect<void, StoreError> =>
      Effect.suspend(() => {
        if (draining) return store.release(row)
        return Effect.zipRight(FiberMap.remove(fibers, row.key), owned(row, "abandoned"))
      }).pipe(
        // A defect of one would interrupt the others of its portion.
        Effect.catchAllDefect((cause) => {
          const error = new StoreError({ reason: "corrupt", method: "launch", cause })
          return Effect.zipRight(Faults.log("A run could not be begun", error, row.runId), Effect.fail(error))
        })
      )

    const keep = Effect.zipRight(renew, Effect.zipRight(watch(), Effect.suspend(letGo)))

    /** Runs that were ours and not executed here when we last looked, with their epochs. */
    let strays = new Map<number, number>()

    const isBegun = ({ epoch, key }: { readonly epoch: number; readonly key: number }): boolean =>
      runs.get(key)?.row.epoch === epoch
    const isHere = (run: { readonly epoch: number; readonly key: number }): boolean =>
      isBegun(run) || beginning.get(run.key) === run.epoch

    /**
     * A claim whose answer was lost, or a run that could not be read when it was to begin, is ours and nobody executes
     * it; renewing our leases would keep it so. What is still like that at the second look is given up.
     */
    function letGo(): Effect.Effect<void, StoreError> {
      if (runs.size + beginning.size === 0) return Effect.void
      return Effect.flatMap(store.owned(process.owner), (mine) => {
        const before = strays
        const lost = mine.filter((one) => !isHere(one))
        strays = new Map(lost.map((one) => [one.key, one.epoch]))
        return Effect.forEach(
          lost.filter((one) => before.get(one.key) === one.epoch),
          (one) => store.release(one),
          { discard: true }
        )
      })
    }

    /** Notices runs that were taken away, and logs that others wrote to. */
    function watch(): Effect.Effect<void, StoreError> {
      return Effect.suspend(() => {
        if (runs.size === 0) return Effect.void
        return Effect.map(store.owned(process.owner), (mine) => {
          const byKey = new Map(mine.map((one) => [one.key, one]))
          for (const [key, active] of runs) {
            const one = byKey.get(key)
            if (one !== undefined && one.epoch === active.row.epoch && one.lastSeq > active.writer.state.seq) {
              active.writer.stale = true
              commit.notify(active.writer)
            }
          }
          return [...runs.values()].filter((active) => byKey.get(active.row.key)?.epoch !== active.row.epoch)
        }).pipe(Effect.flatMap((suspects) => Effect.forEach(suspects, checkFenced, { discard: true })))
      })
    }

    /** The list of what we own may be older than a run that began since, so each suspect is looked at again. */
    const checkFenced = (active: ActiveRun): Effect.Effect<void, StoreError> =>
      Effect.flatMap(store.row(active.row.key), (found) => {
        const row = Option.getOrUndefined(found)
        if (row?.epoch === active.row.epoch && row.owner === process.owner) return Effect.void
        if (active.writer.isClosed) return Effect.void
        active.writer.close("Another process has taken over this run, or it has ended.")
        return stop(active.row.key)
      })

    const sweepExpired = Effect.flatMap(store.due(100), (keys) =>
      Effect.forEach(
        keys,
        (key) =>
          Effect.gen(function* () {
            const row = yield* store.row(key)
            if (Option.isNone(row)) return
            const decided = yield* Effect.catchIf(
              transact(row.value, (state, now) => {
                const events = expire(state, now)
                return events === undefined ? undefined : { events }
              }),
              (error) => error.reason === "corrupt",
              (error) => Effect.as(condemn(row.value, error), undefined)
            )
            if (decided?.written === true) Metrics.limitReached("approvalTtlMs")
          }),
        { discard: true }
      )
    )

    const guarded = <E>(name: string, effect: Effect.Effect<void, E>): Effect.Effect<void> =>
      effect.pipe(
        Effect.catchAllCause((cause) => Faults.logCause("A background task failed and will be tried again", cause)),
        Effect.annotateLogs({ task: name }),
        Effect.withTracerEnabled(false)
      )
    const background = <E>(name: string, effect: Effect.Effect<void, E>, every: Duration.DurationInput) =>
      guarded(name, effect).pipe(Effect.repeat(Schedule.spaced(every)), Effect.forkScoped)

    const poll = Duration.millis(options.pollMs)
    // From the first one on: to read all that was left behind may take longer than a lease lasts.
    yield* background("keep leases", keep, Duration.millis(Math.max(50, leaseTtlMs / 4)))
    yield* background("guard leases", guard, Duration.millis(Math.max(20, leaseTtlMs / 20)))
    // What was left behind comes before what is new, so that a start finds its slots.
    yield* Effect.catchAllCause(takeOver, (cause) =>
      Faults.logCause("What was left behind could not be taken up yet", cause)
    )
    // The lease of a process that is gone is void at once, however long it would last; to ask is cheap.
    const takeOverEvery = Duration.millis(Math.min(500, Math.max(250, leaseTtlMs / 4)))
    yield* guarded("take over", takeOver).pipe(
      // What somebody lets go on purpose is not left lying until the next look.
      Effect.zipRight(Effect.timeoutOption(hurry.await, takeOverEvery)),
      Effect.zipRight(Effect.sync(() => hurry.unsafeClose())),
      Effect.forever,
      Effect.forkScoped
    )
    yield* background("expire approvals", sweepExpired, poll)
    yield* background("poll queue", Effect.sync(poke), poll)
    yield* bell.await.pipe(
      Effect.zipRight(Effect.sync(() => bell.unsafeClose())),
      Effect.zipRight(take),
      Effect.catchAllCause((cause) => Faults.logCause("The queue could not be read", cause)),
      Effect.forever,
      Effect.forkScoped
    )
    // Whoever accepted a run begins it if it can: its viewers are there.
    yield* Effect.zipRight(later.await, Effect.sleep(courtesy)).pipe(
      Effect.zipRight(Effect.sync(() => later.unsafeClose())),
      Effect.zipRight(Effect.sync(poke)),
      Effect.forever,
      Effect.forkScoped
    )
    yield* Stream.runForEach(store.changes, ({ appended = [], keys, left, lost = false, work }) => {
      for (const run of appended) tails.feed(run)
      if (keys === undefined) tails.wakeForeign(lost)
      else for (const key of keys) tails.wake(key)
      if (work && keys === undefined) poke()
      else if (work) later.unsafeOpen()
      if (left) hurry.unsafeOpen()
      // Of runs that are not ours there is nothing to notice.
      const isOurs =
        keys === undefined || keys.some((key) => runs.has(key)) || appended.some(({ key }) => runs.has(key))
      return isOurs ? Effect.ignore(watch()) : Effect.void
    }).pipe(Effect.forkScoped)
    yield* Effect.sync(() => tails.tick()).pipe(
      Effect.delay(Duration.millis((agent.limits.heartbeatMs * 2) / 3)),
      Effect.forever,
      Effect.forkScoped
    )

    const drain = Effect.gen(function* () {
      draining = true
      for (const active of runs.values()) active.stopping = true
      const idle = [...runs.values()].filter((active) => !active.busy)
      yield* Effect.forEach(idle, (active) => FiberMap.remove(fibers, active.row.key), {
        concurrency: "unbounded",
        discard: true
      })
      // An effect that is under way is let finish, so that a deploy does not leave questions behind.
      yield* FiberMap.awaitEmpty(fibers).pipe(
        Effect.timeoutOption(Duration.millis(agent.limits.shutdownGraceMs * 0.7)),
        Effect.zipRight(FiberMap.clear(fibers))
      )
      tails.wakeAll()
    })

    return {
      poke,
      launch: owned,
      active: (key) => runs.get(key),
      size: () => runs.size,
      transact,
      end,
      draining: () => draining,
      drain
    }
  })
