/**
 * What may be done to the runs of a store without executing any: each is one transaction, which whoever executes the
 * run finds out by itself.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Closing from "../agent/Closing.js"
import { CurrentUser } from "../domain/Owner.js"
import { type Conflict, type NotFound, Unprocessable } from "../domain/RunError.js"
import { Secrets } from "../domain/Secrets.js"
import { RunStore, type StoreError } from "../store/RunStore.js"
import * as Deciding from "./Deciding.js"
import { Process } from "./Process.js"
import { noRun } from "./Refusals.js"
import type { DecideRequest, RunEngine } from "./RunEngine.js"
import * as RunLog from "./RunLog.js"
import type { Supervisor } from "./Supervisor.js"

/**
 * - `cancel`: ends the run as cancelled, unless it has ended; its owner is fenced off
 * - `decide`: answers an approval request; the next process that takes runs goes on from there
 *
 * @since 0.1.0
 * @category models
 */
export interface Offline {
  readonly cancel: (
    runId: string,
    reason?: string
  ) => Effect.Effect<Effect.Effect.Success<ReturnType<RunEngine["Type"]["cancel"]>>, NotFound | StoreError>
  readonly decide: (
    runId: string,
    approvalId: string,
    request: DecideRequest
  ) => Effect.Effect<Deciding.DecisionAnswer, NotFound | Conflict | Unprocessable | StoreError>
}

/** A log that nobody continues needs no boundaries between its deltas. */
const checkpointEvery = Number.MAX_SAFE_INTEGER

/** For how long a run is taken when its owner has to be fenced off before it can be ended. */
const ttlMs = 10_000

const noTools = new Unprocessable({
  message: "An edited input is checked by its tool, which only a server has. Edit it through the server.",
  path: "decision"
})

/**
 * The transactions on the store of the context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Offline, never, RunStore | Process> = Effect.gen(function* () {
  const store = yield* RunStore
  const { owner } = yield* Process
  const clean = (yield* Secrets).said.json

  const transact: Supervisor["transact"] = (run, decide, how) =>
    Effect.flatMap(store.now, (now) =>
      RunLog.transact(store, run, { now: Effect.succeed(now), checkpointEvery, owner, ttlMs }, (state, at) => {
        const decision = decide(state, at)
        return decision === undefined || how?.take !== true ? decision : { ...decision, raiseEpoch: true }
      })
    )

  return {
    cancel: (runId, reason) =>
      Effect.gen(function* () {
        const found = yield* store.find({ runId, userId: yield* CurrentUser })
        if (Option.isNone(found)) return yield* noRun
        const { state } = yield* transact(
          found.value,
          (current) => {
            const events = Closing.cancellation(current, "user", clean(reason))
            return events === undefined ? undefined : { events, giveUp: true }
          },
          { take: true }
        )
        return { runId, status: state.status, lastSeq: state.seq }
      }),
    decide: (runId, approvalId, request) =>
      request.decision === "edit"
        ? noTools
        : Deciding.decide(
            { store, agent: { tools: [] } },
            { active: () => undefined, transact },
            runId,
            approvalId,
            clean(request)
          )
  }
})
