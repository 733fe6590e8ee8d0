/**
 * Reading a run back: its state from turn rows and the events behind them, and changing a run that no fiber of this
 * process executes.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AgentEvent } from "../domain/AgentEvent.js"
import { encodeEvent } from "../domain/Envelope.js"
import * as Metrics from "../domain/Metrics.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import { type BaseRow, type RunRow, type RunStore, StoreError, type TurnRow } from "../store/RunStore.js"
import * as Numbering from "./Numbering.js"
import { appendOf, type Decide, type Decided } from "./RunWriter.js"

const pageSize = 1000

/** Folds what lies behind a state, up to a seq; `undefined` where an event is missing in between. */
const foldOn = (
  store: RunStore["Type"],
  run: { readonly key: number; readonly runId: string },
  from: Fold.RunState,
  upTo: number
): Effect.Effect<Fold.RunState | undefined, StoreError> =>
  Effect.gen(function* () {
    let state = from
    while (true) {
      const page = yield* store.envelopes({ key: run.key, runId: run.runId, after: state.seq, limit: pageSize })
      for (const envelope of page) {
        if (envelope.seq > upTo) return state
        if (!Fold.follows(state, envelope)) return undefined
        state = Fold.reduce(state, envelope)
      }
      if (page.length < pageSize) return state
      // Whoever else has something to do comes in between.
      yield* Effect.sleep(0)
    }
  })

const missing = new StoreError({
  reason: "corrupt",
  method: "load",
  cause: new Error("A part of the log is missing, and nothing stands for it")
})

/**
 * The state of a run, up to `upTo` (a seq, default: the end of its log). Fails as corrupt where a part of the log is
 * missing and was not compacted.
 *
 * @since 0.1.0
 * @category reading
 */
export const load = (
  store: RunStore["Type"],
  run: { readonly key: number; readonly runId: string },
  upTo: number = Number.MAX_SAFE_INTEGER
): Effect.Effect<Fold.RunState, StoreError> =>
  Effect.gen(function* () {
    const turns = yield* store.turns({ key: run.key, upTo })
    const state = yield* foldOn(store, run, fromTurns(run.runId, turns), upTo)
    if (state !== undefined) return state
    // The log was compacted, perhaps just now.
    const base = yield* store.base(run.key)
    if (Option.isNone(base) || base.value.seq > upTo) return yield* missing
    const closed = yield* store.turns({ key: run.key, upTo: base.value.seq })
    if (closed.length !== base.value.turns) return yield* missing
    return (yield* foldOn(store, run, fromBase(base.value, closed), upTo)) ?? (yield* missing)
  })

/**
 * The state of a run as of its row: from memory where this process executes it and nobody else has written to it since,
 * and from the store otherwise.
 *
 * @since 0.1.0
 * @category reading
 */
export const current = (
  store: RunStore["Type"],
  row: RunRow,
  active: { readonly writer: { readonly state: Fold.RunState } } | undefined
): Effect.Effect<Fold.RunState, StoreError> =>
  active !== undefined && active.writer.state.seq >= row.lastSeq
    ? Effect.succeed(active.writer.state)
    : load(store, row)

/**
 * The state that the events of a run alone come to; `undefined` where one of them is missing.
 *
 * @since 0.1.0
 * @category reading
 */
export const replay = (
  store: RunStore["Type"],
  run: { readonly key: number; readonly runId: string }
): Effect.Effect<Fold.RunState | undefined, StoreError> =>
  foldOn(store, run, Fold.empty(run.runId), Number.MAX_SAFE_INTEGER)

/**
 * The state that closed turns come to, right behind the last one.
 *
 * @since 0.1.0
 * @category reading
 */
export const fromTurns = (runId: string, turns: ReadonlyArray<TurnRow>): Fold.RunState => {
  const last = turns.at(-1)
  return last === undefined ? Fold.empty(runId) : { ...last.header, closed: turns.map((row) => row.turn) }
}

/**
 * The state that a base and the closed turns up to it are.
 *
 * @since 0.1.0
 * @category reading
 */
export const fromBase = (base: BaseRow, turns: ReadonlyArray<TurnRow>): Fold.RunState => ({
  ...base.state,
  closed: turns.map((row) => row.turn)
})

/** How often a decision is made anew on a log that keeps growing before its owner is fenced off. */
const optimisticTries = 3

/**
 * Writes what `decide` makes of the state of a run that this process does not execute. With `raiseEpoch` the run is taken
 * from whoever executes it.
 *
 * @since 0.1.0
 * @category writing
 */
export const transact = (
  store: RunStore["Type"],
  run: { readonly key: number; readonly runId: string },
  options: {
    readonly now: Effect.Effect<number>
    readonly checkpointEvery: number
    readonly owner: string
    readonly ttlMs: number
    readonly onlyIfLatest?: boolean | undefined
    /** Takes the run for this process together with the events. */
    readonly acquire?: boolean | undefined
  },
  decide: Decide
): Effect.Effect<Decided & { readonly row: RunRow | undefined }, StoreError> =>
  Effect.gen(function* () {
    const lease = { owner: options.owner, ttlMs: options.ttlMs }
    for (let attempt = 0; ; attempt++) {
      const row = Option.getOrUndefined(yield* store.row(run.key))
      const state = yield* load(store, run)
      const now = yield* options.now
      const decision = row === undefined ? undefined : decide(state, now)
      if (row === undefined || decision === undefined) return { written: false, state, row }
      const numbered = Numbering.number(state, decision.events, now, 0, options.checkpointEvery)
      const { set, ...append } = appendOf(numbered)
      const ended = RunStatus.isEnded(numbered.state.status)
      const [outcome] = yield* store.append([
        {
          key: run.key,
          expectedSeq: state.seq,
          ...append,
          ...(decision.raiseEpoch === true && { raiseEpoch: true }),
          ...(options.onlyIfLatest === true && { onlyIfLatest: true }),
          set: {
            ...set,
            ...(options.acquire === true ? { lease } : ended || decision.giveUp === true ? { lease: null } : {})
          }
        }
      ])
      if (outcome?._tag === "Appended") {
        Metrics.transition(state, numbered.state)
        return { written: true, state: numbered.state, row: { ...row, epoch: outcome.epoch, lastSeq: outcome.lastSeq } }
      }
      if (outcome?._tag === "Moved" && options.onlyIfLatest === true && outcome.lastSeq === state.seq) {
        return { written: false, state, row }
      }
      if (attempt >= optimisticTries && decision.raiseEpoch === true) {
        // Its owner is faster than we are: fence it first, then the log stands still.
        const latest = Option.getOrElse(yield* store.row(run.key), () => row)
        yield* store.append([
          {
            key: run.key,
            expectedSeq: latest.lastSeq,
            raiseEpoch: true,
            events: [],
            set: { status: latest.status, lease }
          }
        ])
      }
      if (attempt > 50) return { written: false, state, row }
    }
  })

/**
 * Ends a run whose log can not be read, from its row alone: it can never go on, and its conversation must not wait for
 * it. Answers whether it was written.
 *
 * @since 0.1.0
 * @category writing
 */
export const condemn = (
  store: RunStore["Type"],
  run: { readonly key: number; readonly runId: string },
  now: number
): Effect.Effect<boolean, StoreError> =>
  Effect.gen(function* () {
    const row = Option.getOrUndefined(yield* store.row(run.key))
    if (row === undefined || RunStatus.isFinal(row)) return false
    const error = {
      code: "store_corrupt",
      message: "What is stored of this answer can not be read any more. Regenerate it, or send the message again."
    }
    const { runId, usage } = row
    const events: ReadonlyArray<AgentEvent> = [
      { type: "checkpoint", runId, seq: row.lastSeq + 1, checkpointKind: "run_failed" },
      { type: "error", ...error, recoverable: false, usage }
    ]
    const [outcome] = yield* store.append([
      {
        key: row.key,
        expectedSeq: row.lastSeq,
        raiseEpoch: true,
        events: events.map((event) => ({ type: event.type, json: encodeEvent(event), createdAt: now })),
        set: { status: "failed", recoverable: false, error, lease: null, nextExpiry: null }
      }
    ])
    return outcome?._tag === "Appended"
  })
