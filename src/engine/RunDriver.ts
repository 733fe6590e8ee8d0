/**
 * The life of one run in this process: fold, ask `nextStep`, carry it out, until it rests.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import * as AgentLoop from "../agent/AgentLoop.js"
import * as Closing from "../agent/Closing.js"
import type { Emission, Use } from "../agent/Emission.js"
import { type Facts, nextStep, type Step } from "../agent/NextStep.js"
import * as ToolCatalog from "../agent/ToolCatalog.js"
import type { EventOf } from "../domain/AgentEvent.js"
import { IdGenerator } from "../domain/Ids.js"
import * as Metrics from "../domain/Metrics.js"
import type { RunInput } from "../domain/RunInput.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Tracing from "../domain/Tracing.js"
import type { Model } from "../model/Model.js"
import type { RunRow, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import * as Faults from "./Faults.js"
import * as RunPrompt from "./RunPrompt.js"
import type { Decision, RunWriter, WriterClosed } from "./RunWriter.js"
import * as Spans from "./Spans.js"

/**
 * A run that this process executes. `span`: where it is recorded, if it is; `busy`: an effect is under way that should
 * not be cut off; `stopping`: the process wants to leave, the run stops before its next step.
 *
 * @since 0.1.0
 * @category models
 */
export interface ActiveRun {
  readonly row: RunRow
  readonly writer: RunWriter
  readonly span: Tracer.Span | undefined
  busy: boolean
  stopping: boolean
}

/**
 * Why the run is being driven: newly claimed from the queue (or resumed, with the event already written), or left
 * behind by a process that is gone.
 *
 * @since 0.1.0
 * @category models
 */
export type Mode = "claimed" | "abandoned"

/** The model of a run that can no longer be found in the configuration. */
const noModel = (name: string): Step => ({
  _tag: "Fail",
  code: "model_unavailable",
  message: `The model ${JSON.stringify(name)} is not configured any more. Regenerate the answer with another model.`,
  recoverable: false
})

/** What remains between a lease's end and an effect that begins under it. */
const leaseMarginMs = 1_000

/**
 * Drives a run until it ends, waits for a person, or is taken away. Never fails: what goes wrong becomes an `error`
 * event where this process may still write one.
 *
 * @since 0.1.0
 * @category driving
 */
export const drive = (env: Environment, active: ActiveRun, mode: Mode): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { row, writer } = active
    const input = yield* env.store.input(row.key)
    if (mode === "abandoned" && !(yield* recover(env, active))) return
    const state = yield* writer.settled
    const spent = Fold.activeMsAt(state, yield* Clock.currentTimeMillis)
    const left = Math.max(0, input.limits.runTimeoutMs - spent)
    yield* loop(env, active, input).pipe(
      Effect.timeoutTo({
        duration: Duration.millis(left),
        onSuccess: () => Effect.void,
        onTimeout: () =>
          Effect.asVoid(
            close(writer, (current) =>
              Closing.cancellation(current, "limit", `The run took longer than ${input.limits.runTimeoutMs} ms.`)
            )
          )
      }),
      Effect.flatten
    )
  }).pipe(
    Effect.provideService(IdGenerator, env.ids),
    Effect.catchAllCause((cause) => (Cause.isInterruptedOnly(cause) ? Effect.interrupt : afterFault(active, cause))),
    // Why it was interrupted may be about to be written.
    Effect.onInterrupt(() => Effect.ignore(active.writer.settled)),
    (work) => Spans.working(env.recorder, active.span, () => active.writer.state, work)
  )

const close = (
  writer: RunWriter,
  events: (state: Fold.RunState) => Decision["events"] | undefined
): Effect.Effect<boolean, WriterClosed> =>
  Effect.map(
    writer.transact((state) => {
      const all = events(state)
      return all === undefined ? undefined : { events: all, giveUp: true }
    }),
    (decided) => decided.written
  )

/** A fault of the engine itself, or of the store. The run may go on later; a lost lease leaves it to others. */
const afterFault = (active: ActiveRun, cause: Cause.Cause<WriterClosed | StoreError>): Effect.Effect<void> => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure?._tag === "WriterClosed") return Effect.void
  const code = failure === undefined ? "internal" : failure.reason === "corrupt" ? "store_corrupt" : "store_unavailable"
  const { runId } = active.row
  const told =
    failure === undefined
      ? Effect.annotateLogs(Effect.logError("A run stopped because of a fault", cause), { runId })
      : Faults.log("A run stopped because the store did not answer", failure, runId)
  return told.pipe(
    Effect.zipRight(
      close(active.writer, (state) =>
        RunStatus.isEnded(state.status)
          ? undefined
          : Closing.closing(state, {
              type: "error",
              code,
              message: "The server could not go on with this answer. Continue to try again.",
              recoverable: code !== "store_corrupt",
              usage: state.usage
            })
      )
    ),
    Effect.ignore
  )
}

/** Begins a new attempt of a run that was cut short; false when there is none. */
const recover = (env: Environment, { row, span, writer }: ActiveRun): Effect.Effect<boolean, WriterClosed> =>
  Effect.gen(function* () {
    const trace = Tracing.traceparent(span)
    const model = env.agent.models.get(row.model)
    const decided = yield* writer.transact((state) => {
      if (!RunStatus.isExecuting(state.status)) return undefined
      const broken = unrecoverable(env, state, model)
      if (broken !== undefined)
        return { events: Closing.closing(state, { ...broken, usage: state.usage }), giveUp: true }
      const decision = env.policy.decide({ state, reason: "recovery", continuesDraft: model?.continuesDraft === true })
      if (decision._tag === "Refuse") {
        const { reason, recoverable } = decision
        const end = { type: "error", code: "interrupted", message: reason, recoverable, usage: state.usage } as const
        return { events: Closing.closing(state, end), giveUp: true }
      }
      const { _tag: _, ...lengths } = decision
      return {
        events: [
          {
            type: "run-resumed",
            attempt: state.attempt + 1,
            reason: "recovery",
            ...lengths,
            ...(trace !== undefined && { trace })
          }
        ]
      }
    })
    return RunStatus.isExecuting(decided.state.status)
  })

/** Why a run can not go on at all. */
const unrecoverable = (
  env: Environment,
  state: Fold.RunState,
  model: Model | undefined
): Omit<EventOf<"error">, "usage"> | undefined => {
  if (model === undefined) {
    const failed = noModel(state.start?.model ?? "")
    return failed._tag === "Fail"
      ? { type: "error", code: failed.code, message: failed.message, recoverable: false }
      : undefined
  }
  if (state.stale >= env.agent.resume.maxAttempts) {
    return {
      type: "error",
      code: "recovery_exhausted",
      message: `The answer was interrupted ${state.stale + 1} times without any progress, so it was given up. Regenerate it to try again.`,
      recoverable: false
    }
  }
  // Tools that were removed are told to the model as results, one by one; nothing else of the input can be missing.
  return undefined
}

const loop = (
  env: Environment,
  active: ActiveRun,
  input: RunInput
): Effect.Effect<void, WriterClosed | StoreError, IdGenerator> =>
  Effect.gen(function* () {
    const { row, writer } = active
    const { agent, store } = env
    const model = agent.models.get(row.model)
    const catalog = ToolCatalog.make(agent.tools, input.tools)
    const facts: Facts = {
      limits: input.limits,
      maxAttempts: agent.resume.maxAttempts,
      maxToolConcurrency: agent.limits.maxToolConcurrency,
      tool: ToolCatalog.facts(catalog, row.mode),
      reuse: (state, call) => ToolCatalog.reuseFromRun(state, call) ?? cached(env, row, input, catalog, call)
    }
    const base = yield* RunPrompt.material(env, row, input, yield* writer.settled)
    const currentDocument = input.currentDocument
    const setting: Omit<AgentLoop.Setting, "model" | "state"> = {
      user: row.userId,
      input,
      catalog,
      currentDocument,
      toolTimeoutMs: agent.limits.toolTimeoutMs,
      maxResultBytes: agent.limits.maxToolResultBytes,
      approvalTtlMs: agent.limits.approvalTtlMs,
      secrets: env.secrets,
      now: env.now,
      guard: guard(env, active),
      remember: (tool, call, result) => {
        if (tool.cacheable !== true) return
        env.cache.set({ user: row.userId, tool: tool.name, input: call.input?.value, currentDocument }, result)
      },
      prompt: (at, draft) => Effect.orDie(RunPrompt.build(store, row, base, model, at, draft))
    }
    const look = Effect.map(writer.settled, (state): Sight => {
      if (active.stopping) return { state, step: { _tag: "Rest" } }
      const lost = model === undefined && !RunStatus.isEnded(state.status)
      return { state, step: lost ? noModel(row.model) : nextStep(state, facts) }
    })

    const act = (able: Model, state: Fold.RunState, step: AgentLoop.ActiveStep) => {
      active.busy =
        step._tag === "RunTools" &&
        step.acts.some((one) => one._tag === "Run" && one.phase !== "preview" && one.call.kind !== "readonly")
      const store = (emission: Emission) => carryOut(env, active, emission)
      const run = (use: Use<WriterClosed>) => AgentLoop.run({ ...setting, model: able, state }, step, use)
      return Effect.map(
        step._tag === "CallModel"
          ? Spans.calling(row, able, (seen) =>
              run((emission) => {
                seen(emission)
                return store(emission)
              })
            )
          : run(store),
        () => {
          active.busy = false
        }
      )
    }

    /** What can be done without a decision, up to the next one. */
    const acts = (able: Model, from: Sight) =>
      Effect.iterate(from, {
        while: ({ step }) => isActive(step),
        body: ({ state, step }) => (isActive(step) ? Effect.zipRight(act(able, state, step), look) : look)
      })

    while (true) {
      const seen = yield* look
      const { state, step } =
        model !== undefined && isActive(seen.step) ? yield* Spans.iteration(seen, acts(model, seen)) : seen
      if (step._tag === "Rest" || isActive(step)) return
      const decided = yield* writer.transact((current, now) =>
        current.seq === state.seq ? decisionOf(step, current, row, now) : undefined
      )
      if (decided.written && step._tag !== "EndIteration") return
    }
  })

/** A state and what comes next in it. */
interface Sight {
  readonly state: Fold.RunState
  readonly step: Step
}

const isActive = (step: Step): step is AgentLoop.ActiveStep =>
  step._tag === "CallModel" || step._tag === "RunTools" || step._tag === "Settle"

const decisionOf = (
  step: Extract<Step, { readonly _tag: "AwaitApproval" | "EndIteration" | "Finish" | "Fail" }>,
  state: Fold.RunState,
  row: RunRow,
  now: number
): Decision => {
  switch (step._tag) {
    case "AwaitApproval":
      return { events: [{ type: "run-status", status: "waiting_approval" }], giveUp: true }
    case "EndIteration":
      return { events: [{ type: "iteration-end", iteration: step.iteration }] }
    case "Fail":
      return {
        events: Closing.closing(state, {
          type: "error",
          code: step.code,
          message: step.message,
          recoverable: step.recoverable,
          usage: state.usage
        }),
        giveUp: true
      }
    case "Finish":
      return {
        events: Closing.closing(state, {
          type: "finish",
          finishReason: step.reason,
          model: row.model,
          usage: state.usage,
          timing: {
            queuedMs: Math.max(0, (state.startedAt ?? now) - state.createdAt),
            timeToFirstTokenMs: Math.max(0, (state.firstTokenAt ?? now) - state.createdAt),
            durationMs: Math.max(0, now - state.createdAt)
          }
        }),
        giveUp: true
      }
  }
}

const carryOut = (
  env: Environment,
  { row, writer }: ActiveRun,
  emission: Emission
): Effect.Effect<void, WriterClosed> => {
  if (emission._tag !== "Events") {
    return Effect.asVoid(
      writer.transact((state, now) =>
        RunStatus.isEnded(state.status) ? undefined : decisionOf(emission, state, row, now)
      )
    )
  }
  if (!emission.durable) return writer.offer(emission.events)
  // What is stored has its consequences, also when the run is stopped meanwhile.
  return Effect.uninterruptible(
    Effect.map(writer.commit(emission.events, emission), () => {
      Metrics.stored(emission.events)
      if (emission.events.some((event) => event.type === "tool-call-result" && event.state === "applied")) {
        env.cache.forget(row.userId)
      }
    })
  )
}

const cached = (
  env: Environment,
  row: RunRow,
  input: RunInput,
  catalog: ToolCatalog.ToolCatalog,
  call: Fold.Call
): { readonly ok: true; readonly result: unknown; readonly source: "cache" } | undefined => {
  if (catalog.get(call.name)?.cacheable !== true) return undefined
  const found = env.cache.get({
    user: row.userId,
    tool: call.name,
    input: call.input?.value,
    currentDocument: input.currentDocument
  })
  return found === undefined ? undefined : { ok: true, result: found.result, source: "cache" }
}

/**
 * Between the look at the lease and the effect no log can help, so it is looked at with a margin, just before. A process
 * that lost the run waits here until it is told to stop.
 */
const guard = (env: Environment, { row, writer }: ActiveRun): Effect.Effect<void> =>
  Effect.gen(function* () {
    const ttlMs = env.agent.resume.leaseTtlMs
    const margin = Math.min(leaseMarginMs, ttlMs / 4)
    while (true) {
      // What waits to be written comes first: it may be a cancel.
      yield* Effect.catchAll(writer.settled, () => Effect.never)
      const found = yield* Effect.option(env.store.row(row.key))
      if (writer.isClosed) return yield* Effect.never
      const current = Option.getOrUndefined(Option.flatten(found))
      if (current !== undefined && current.epoch !== row.epoch) {
        writer.close("Another process has taken over this run.")
        return yield* Effect.never
      }
      if (current?.leaseExpiresAt !== undefined && current.leaseExpiresAt - (yield* env.now) > margin) return
      yield* Effect.ignore(env.store.renew({ owner: env.process.owner, ttlMs }))
      yield* Effect.sleep(Duration.millis(50))
    }
  })
