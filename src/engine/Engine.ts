/**
 * The engine: the layer that makes a `RunEngine` out of a store, an agent and a resume policy.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Agent } from "../agent/Agent.js"
import * as Closing from "../agent/Closing.js"
import { OpenDocuments } from "../agent/Documents.js"
import { IdGenerator } from "../domain/Ids.js"
import { CurrentUser } from "../domain/Owner.js"
import { Conflict } from "../domain/RunError.js"
import * as RunStatus from "../domain/RunStatus.js"
import { Secrets } from "../domain/Secrets.js"
import { ResumePolicy } from "../resume/ResumePolicy.js"
import { RunStore } from "../store/RunStore.js"
import * as Deciding from "./Deciding.js"
import type { Environment } from "./Environment.js"
import { LiveTails } from "./LiveTail.js"
import { Process } from "./Process.js"
import * as Reading from "./Reading.js"
import { available, noConversation, noRun } from "./Refusals.js"
import { ResultCache } from "./ResultCache.js"
import * as Resuming from "./Resuming.js"
import * as Retention from "./Retention.js"
import { RunEngine } from "./RunEngine.js"
import * as Spans from "./Spans.js"
import * as Starting from "./Starting.js"
import * as Supervisor from "./Supervisor.js"
import * as Viewing from "./Viewing.js"

/**
 * - `commitWindowMs`: the least time between two transactions of events; what comes meanwhile shares the next (default 5)
 * - `pollMs`: how often the queue and expiries are looked at without being told (default 1000)
 * - `retention`: how long events and runs are kept after the end
 * - `sweepMs`: how often retention is looked after (default five minutes)
 * - `limitUsers`: whether the limits per user apply (default true); a program with one user has no use for them
 *
 * @since 0.1.0
 * @category models
 */
export interface EngineOptions {
  readonly commitWindowMs?: number | undefined
  readonly pollMs?: number | undefined
  readonly sweepMs?: number | undefined
  readonly limitUsers?: boolean | undefined
  readonly retention?: { readonly eventsMs: number; readonly runsMs: number } | undefined
}

const day = 86_400_000

const make = (
  options: EngineOptions
): Effect.Effect<RunEngine["Type"], never, Agent | IdGenerator | Process | ResumePolicy | RunStore | Scope.Scope> =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const env: Environment = {
      store,
      agent: yield* Agent,
      policy: yield* ResumePolicy,
      ids: yield* IdGenerator,
      process: yield* Process,
      tails: new LiveTails(),
      cache: new ResultCache(),
      documents: yield* OpenDocuments,
      secrets: yield* Secrets,
      recorder: yield* Spans.recorder,
      limitUsers: options.limitUsers ?? true,
      // A store that can not tell the time can not store anything either; that is found out soon enough.
      now: Effect.catchAll(store.now, () => Clock.currentTimeMillis),
      // Who begins many runs at once does not have the store measured for each.
      size: yield* Effect.cachedWithTTL(store.census, "1 second"),
      retention: options.retention ?? { eventsMs: day, runsMs: 30 * day }
    }
    // What people write is stored like everything else.
    const clean = env.secrets.said.json
    const supervisor = yield* Supervisor.make(env, {
      windowMs: options.commitWindowMs ?? 5,
      pollMs: options.pollMs ?? 1000
    })

    yield* Retention.make(env, options.sweepMs ?? 300_000)

    const start: RunEngine["Type"]["start"] = (request) => available(Starting.start(env, supervisor, request))

    const cancel: RunEngine["Type"]["cancel"] = (runId, how) =>
      available(
        Effect.gen(function* () {
          const row = yield* Reading.owned(env, runId)
          const { state } = yield* supervisor.end(row, (current) =>
            Closing.cancellation(current, "user", clean(how?.reason))
          )
          return { runId, status: state.status, lastSeq: state.seq }
        }),
        runId
      )

    /** Nobody wants the rest of this run; one that has ended, for now or for good, is left as it is. */
    const abandon = (runId: string) =>
      Effect.flatMap(Reading.owned(env, runId), (row) =>
        supervisor.end(row, (state) =>
          RunStatus.isEnded(state.status) ? undefined : Closing.cancellation(state, "user")
        )
      )

    return RunEngine.of({
      models: [...env.agent.models.keys()].map((modelId) => ({
        modelId,
        isDefault: modelId === env.agent.defaultModel
      })),
      start,
      stream: (request) =>
        Stream.unwrapScoped(
          Effect.gen(function* () {
            const user = yield* CurrentUser
            const run = yield* Effect.acquireRelease(start(request), (accepted) =>
              Effect.ignore(Effect.provideService(abandon(accepted.runId), CurrentUser, user))
            )
            return Viewing.events(env, run.runId, 0)
          })
        ),
      events: (runId, from) => Viewing.events(env, runId, from?.after ?? 0),
      view: (runId, after) => Viewing.view(env, runId, after),
      snapshot: (runId) => available(Reading.snapshot(env, supervisor, runId), runId),
      cancel,
      decide: (runId, approvalId, request) =>
        available(Deciding.decide(env, supervisor, runId, approvalId, clean(request)), runId),
      regenerate: (runId, how) => available(Starting.regenerate(env, supervisor, runId, how ?? {}), runId),
      resume: (runId, how) => available(Resuming.resume(env, supervisor, runId, how ?? {}), runId),
      list: (query) => available(Reading.list(env, query)),
      checkpoints: (runId) => available(Reading.checkpoints(env, runId), runId),
      checkpoint: (runId, seq) => available(Reading.checkpoint(env, runId, seq), runId),
      remove: (runId) =>
        available(
          Effect.gen(function* () {
            const outcome = yield* store.remove({ runId, userId: yield* CurrentUser })
            if (outcome === "unknown") return yield* noRun
            if (outcome === "active") {
              return yield* new Conflict({ message: "The run has not ended. Cancel it first.", runId })
            }
          }),
          runId
        ),
      conversations: (query) =>
        available(
          Effect.flatMap(CurrentUser, (userId) =>
            store.conversations({
              userId,
              limit: query.limit ?? 50,
              ...(query.cursor !== undefined && { cursor: query.cursor })
            })
          )
        ),
      conversation: (conversationId) => available(Reading.conversation(env, supervisor, conversationId)),
      questions: (conversationId) =>
        available(
          Effect.flatMap(CurrentUser, (userId) =>
            Effect.flatMap(
              store.questions({ conversationId, userId }),
              Option.match({ onNone: () => noConversation, onSome: Effect.succeed })
            )
          )
        ),
      renameConversation: (conversationId, title) =>
        available(
          Effect.gen(function* () {
            const done = yield* store.renameConversation({
              conversationId,
              userId: yield* CurrentUser,
              title: clean(title)
            })
            if (!done) return yield* noConversation
          })
        ),
      removeConversation: (conversationId) =>
        available(
          Effect.gen(function* () {
            const outcome = yield* store.removeConversation({ conversationId, userId: yield* CurrentUser })
            if (outcome === "unknown") return yield* noConversation
            if (outcome === "active") {
              return yield* new Conflict({ message: "A run of this conversation has not ended. Cancel it first." })
            }
          })
        ),
      census: available(Effect.map(store.census, (census) => ({ ...census, executing: supervisor.size() }))),
      ready: Effect.map(store.ready, (up) => up && !supervisor.draining()),
      drain: supervisor.drain
    })
  })

/**
 * The engine with options. When the layer closes, its runs stop where they are, to be taken on by the next process that
 * opens the store.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWith = (
  options: EngineOptions
): Layer.Layer<RunEngine, never, Agent | IdGenerator | Process | ResumePolicy | RunStore> =>
  Layer.scoped(RunEngine, make(options))

/**
 * The engine with every option at its default.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<RunEngine, never, Agent | IdGenerator | Process | ResumePolicy | RunStore> = layerWith(
  {}
)
