/**
 * What the handlers of other protocols have in common: finding the run that is meant, how it stood, and saying what
 * happens to it in other words.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import { RunEngine, type RunSummary } from "../engine/RunEngine.js"
import { bytesOf, type Writer } from "./LogWriter.js"

/**
 * A view behind a cursor that comes out of the log itself, so that it is one.
 *
 * @since 0.1.0
 * @category reading
 */
export const viewOf = (runId: string, after: number) =>
  Effect.flatMap(RunEngine, (engine) => Effect.catchTag(engine.view(runId, after), "InvalidCursor", Effect.die))

/**
 * The newest run of a conversation of the caller, if there is one.
 *
 * @since 0.1.0
 * @category reading
 */
export const latest = (conversationId: string) =>
  Effect.flatMap(RunEngine, (engine) =>
    Effect.map(engine.list({ conversationId, limit: 1 }), ({ items }): RunSummary | undefined => items[0])
  )

/**
 * The run as it stood at `seq`, which is not behind it.
 *
 * @since 0.1.0
 * @category reading
 */
export const stateAt = (run: RunState.RunState, seq: number) =>
  Effect.gen(function* () {
    if (run.seq === seq) return run
    const engine = yield* RunEngine
    return yield* engine.events(run.runId).pipe(
      Stream.takeUntil((envelope) => envelope.seq >= seq),
      Stream.runFold(RunState.empty(run.runId), RunState.reduce),
      Effect.catchTag("InvalidCursor", Effect.die)
    )
  })

/**
 * A protocol as a fold of the log.
 *
 * - `state`: where the stream begins; `settled`: the last seq that was stored when the view was opened
 * - `isBroken`: whether what was said does not hold any more, and can not be taken back
 * - `isOver`: whether nothing comes behind this state; a state that the log has left behind already is none
 *
 * @since 0.1.0
 * @category models
 */
export interface Folding<State, Said> {
  readonly state: State
  readonly settled: number
  readonly step: (state: State, envelope: Envelope) => readonly [state: State, said: ReadonlyArray<Said>]
  readonly encode: (said: ReadonlyArray<Said>, seq: number) => string
  readonly isBroken?: (state: State) => boolean
  readonly isOver: (state: State) => boolean
  readonly last: (state: State) => string
  readonly heartbeat: string
}

/**
 * Writes a log in the words of another protocol.
 *
 * @since 0.1.0
 * @category constructors
 */
export const writer = <State, Said>(fold: Folding<State, Said>): Writer => {
  const isBroken = fold.isBroken ?? (() => false)
  let { state } = fold
  return {
    write: (frames) => {
      let text = ""
      for (const { json, seq } of frames) {
        // What this process has stored itself is an envelope.
        const [next, said] = fold.step(state, JSON.parse(json) as Envelope)
        state = next
        if (isBroken(state)) break
        text += fold.encode(said, seq)
      }
      return bytesOf(text)
    },
    heartbeat: fold.heartbeat,
    verdict: (cursor) => {
      if (isBroken(state)) return "cut"
      return cursor >= fold.settled && fold.isOver(state) ? "over" : "on"
    },
    last: () => fold.last(state),
    whole: true
  }
}
