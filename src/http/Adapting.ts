/**
 * What the handlers of other protocols have in common: finding the run that is meant, and how it stood.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as RunState from "../domain/RunState.js"
import { RunEngine, type RunSummary } from "../engine/RunEngine.js"

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
