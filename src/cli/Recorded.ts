/**
 * A run out of a file as the only one of an engine that executes nothing, so that the server's own pages can show it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Envelope, encodeEvent } from "../domain/Envelope.js"
import { Conflict, InvalidCursor, NotFound, Unavailable } from "../domain/RunError.js"
import type * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import { frameOf } from "../engine/Frames.js"
import { type Frame, type Pull, RunEngine, type View } from "../engine/RunEngine.js"

const nothingRuns = new Unavailable({
  message: "This server shows a recording, nothing can be run or changed here.",
  retryAfterMs: 86_400_000
})
const unchangeable = new Conflict({ message: "This is a recording, it can not be changed." })
const unknown = new NotFound({ message: "There is only the recorded run here." })

/** What the pages expect of a stream in which nothing happens. */
const heartbeatMs = 15_000

/** How many events are shown at once. */
const pageSize = 256

/**
 * The engine of one recorded run: `state` is the fold of `log`, which begins with event 1. Everything that would change
 * something is refused. A recording that ends before its run did just stops.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (state: RunState.RunState, log: ReadonlyArray<Envelope>): RunEngine["Type"] => {
  const { runId } = state
  const snapshot = Snapshot.of(state)
  const { cancelled: _1, finishReason: _2, timing: _3, ...summary } = Snapshot.header(snapshot)
  const mine = (id: string): Effect.Effect<void, NotFound> => (id === runId ? Effect.void : Effect.fail(unknown))
  const frame = ({ createdAt, event, seq }: Envelope): Frame =>
    frameOf(runId, { seq, type: event.type, json: encodeEvent(event), createdAt })
  const page = (after: number) => log.slice(after, after + pageSize).map(frame)
  const ended = RunStatus.isEnded(state.status)
  const rest: Effect.Effect<Pull> = ended
    ? Effect.succeed({ _tag: "end" })
    : Effect.delay(Effect.succeed({ _tag: "idle" }), heartbeatMs)
  const pull = (after: number): Effect.Effect<Pull> => {
    const frames = page(after)
    return frames.length === 0 ? rest : Effect.succeed({ _tag: "frames", frames })
  }
  const checkpoints = log.flatMap(({ createdAt, event, seq }) =>
    event.type === "checkpoint" ? [{ runId, seq, kind: event.checkpointKind, createdAt }] : []
  )
  const view = (id: string, after: number): Effect.Effect<View, NotFound | InvalidCursor> =>
    Effect.zipRight(
      mine(id),
      after > state.seq
        ? Effect.fail(new InvalidCursor({ message: `The cursor ${after} lies beyond the last event, ${state.seq}.` }))
        : Effect.succeed({ runId, lastSeq: state.seq, ended, pull, poll: () => undefined })
    )
  return RunEngine.of({
    models: [],
    start: () => nothingRuns,
    stream: () => Stream.fail(nothingRuns),
    events: (id, from) =>
      Stream.unwrap(Effect.as(view(id, from?.after ?? 0), Stream.fromIterable(log.slice(from?.after ?? 0)))),
    view,
    snapshot: (id) => Effect.as(mine(id), snapshot),
    cancel: () => nothingRuns,
    decide: () => unchangeable,
    regenerate: () => unchangeable,
    resume: () => nothingRuns,
    list: () => Effect.succeed({ items: [summary] }),
    checkpoints: (id) => Effect.as(mine(id), checkpoints),
    // What a model was sent is not in a recording.
    checkpoint: () => unknown,
    remove: () => unchangeable,
    conversations: () => Effect.succeed({ items: [] }),
    conversation: () => unknown,
    questions: () => unknown,
    renameConversation: () => unknown,
    removeConversation: () => unchangeable,
    census: Effect.succeed({ queued: 0, running: 0, streaming: 0, waiting_approval: 0, executing: 0 }),
    ready: Effect.succeed(true),
    drain: Effect.void
  })
}
