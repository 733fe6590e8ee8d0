/**
 * Continuing a run that failed recoverably, when a person asks for it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import { CurrentUser } from "../domain/Owner.js"
import { InvalidCursor, type NotFound } from "../domain/RunError.js"
import type * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Tracing from "../domain/Tracing.js"
import type { RunRow, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import { noRun } from "./Refusals.js"
import type { Accepted, Resumed } from "./RunEngine.js"
import * as RunLog from "./RunLog.js"
import type { Decision } from "./RunWriter.js"
import * as Spans from "./Spans.js"
import type { Supervisor } from "./Supervisor.js"

/**
 * What a client says about the run that it wants to go on with. The ids are checked when given.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumeOptions {
  readonly lastAppliedSeq?: number | undefined
  readonly assistantMessageId?: string | undefined
  readonly conversationId?: string | undefined
  readonly trace?: string | undefined
}

const accepted = (row: RunRow, status: RunStatus.RunStatus): Accepted => ({
  runId: row.runId,
  conversationId: row.conversationId,
  userMessageId: row.userMessageId,
  assistantMessageId: row.assistantMessageId,
  status,
  created: false
})

const unavailable = (
  row: RunRow,
  reason: string,
  { readable = true, recoverable = false }: { readonly readable?: boolean; readonly recoverable?: boolean } = {}
): Resumed => ({ _tag: "unavailable", runId: row.runId, reason, recoverable, readable })

/**
 * Attaches to a run, and begins a new attempt when it failed recoverably. However many ask at once, one attempt begins:
 * its event is written only if nothing was written since the state it was decided from.
 *
 * @since 0.1.0
 * @category resuming
 */
export const resume = (
  env: Environment,
  supervisor: Supervisor,
  runId: string,
  options: ResumeOptions
): Effect.Effect<Resumed, NotFound | InvalidCursor | StoreError> =>
  Effect.gen(function* () {
    const user = yield* CurrentUser
    const found = yield* env.store.find({ runId, userId: user })
    if (Option.isNone(found)) return yield* noRun
    const row = found.value
    if (
      (options.assistantMessageId !== undefined && options.assistantMessageId !== row.assistantMessageId) ||
      (options.conversationId !== undefined && options.conversationId !== row.conversationId)
    ) {
      return unavailable(row, "The ids do not belong together. Reload the conversation.", { readable: false })
    }
    const after = options.lastAppliedSeq ?? 0
    if (after > row.lastSeq) {
      const current = Option.getOrElse(yield* env.store.row(row.key), () => row)
      if (after > current.lastSeq) {
        return yield* new InvalidCursor({
          message: `The cursor ${after} lies beyond the run's last event, ${current.lastSeq}.`
        })
      }
    }
    if (row.compactedSeq > after) {
      return unavailable(
        row,
        "The events behind this cursor are gone. Read the run's snapshot, or regenerate the answer.",
        { readable: false }
      )
    }
    if (row.status === "failed" && row.recoverable === true && row.compactedSeq > 0) {
      return unavailable(row, "This answer is too old to be continued. Regenerate it.")
    }
    if (row.status !== "failed" || row.recoverable !== true) return { _tag: "attached", run: accepted(row, row.status) }
    if (supervisor.draining()) {
      return unavailable(row, "The server is shutting down. Try again in a moment.", { recoverable: true })
    }
    return yield* attempt(env, supervisor, row, options)
  })

const attempt = (
  env: Environment,
  supervisor: Supervisor,
  row: RunRow,
  options: ResumeOptions
): Effect.Effect<Resumed, StoreError> =>
  Effect.gen(function* () {
    const model = env.agent.models.get(row.model)
    if (model === undefined) {
      return unavailable(
        row,
        `The model ${JSON.stringify(row.model)} is not configured any more. Regenerate the answer.`
      )
    }
    let refused: Resumed | undefined
    let span: Tracer.Span | undefined
    const decide = (state: Fold.RunState): Decision | undefined => {
      refused = undefined
      if (state.status !== "failed" || state.recoverable !== true) return undefined
      const decision = env.policy.decide({ state, reason: "resume", continuesDraft: model.continuesDraft === true })
      if (decision._tag === "Refuse") {
        refused = unavailable(row, decision.reason, { recoverable: decision.recoverable })
        return undefined
      }
      const { _tag: _, ...lengths } = decision
      // One that was begun in vain is never ended, and so never seen.
      span = Spans.begin(env.recorder, row, model, state, {
        _tag: "again",
        attempt: state.attempt + 1,
        caller: options.trace
      })
      const trace = Tracing.traceparent(env.recorder === undefined ? Tracing.parse(options.trace) : span)
      return {
        events: [
          {
            type: "run-resumed",
            attempt: state.attempt + 1,
            reason: "resume",
            ...lengths,
            ...(trace !== undefined && { trace })
          }
        ],
        raiseEpoch: true
      }
    }
    const decided = yield* Effect.uninterruptible(
      RunLog.transact(
        env.store,
        row,
        {
          now: env.now,
          checkpointEvery: env.agent.resume.checkpointEvery,
          owner: env.process.owner,
          ttlMs: env.agent.resume.leaseTtlMs,
          onlyIfLatest: true,
          acquire: true
        },
        decide
      ).pipe(
        Effect.tap(({ row: acquired, written }) =>
          written && acquired !== undefined ? supervisor.launch(acquired, "claimed", span) : Effect.void
        )
      )
    )
    if (decided.written) {
      env.tails.wake(row.key)
      return { _tag: "resumed", run: accepted(row, "running") }
    }
    if (refused !== undefined) return refused
    // Somebody else was faster, or the conversation has gone on.
    return RunStatus.isEnded(decided.state.status) && decided.state.recoverable === true
      ? unavailable(row, "The conversation has gone on since. Regenerate the answer instead.")
      : { _tag: "attached", run: accepted(row, decided.state.status) }
  })
