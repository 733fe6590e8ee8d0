/**
 * What a run looks like in a trace: a span for each stretch in which a process works on it, in it one for each
 * iteration, and in those one for each call of the model and of a tool. Their number does not depend on how much is
 * said.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { Emission } from "../agent/Emission.js"
import type { Step } from "../agent/NextStep.js"
import type { AgentEvent, Usage } from "../domain/AgentEvent.js"
import type { RunState } from "../domain/RunState.js"
import * as Tracing from "../domain/Tracing.js"
import type { Model } from "../model/Model.js"
import type { RunRow } from "../store/RunStore.js"

/**
 * Who records the spans of an engine, and the clock of their times.
 *
 * @since 0.1.0
 * @category models
 */
export interface Recorder {
  readonly tracer: Tracer.Tracer
  readonly clock: Clock.Clock
}

const unrecorded = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/**
 * The recorder of the present fiber; `undefined` where nobody has provided a tracer.
 *
 * @since 0.1.0
 * @category constructors
 */
export const recorder: Effect.Effect<Recorder | undefined> = Effect.map(
  Effect.all([Effect.tracer, Effect.clock]),
  ([tracer, clock]) => (tracer === unrecorded ? undefined : { tracer, clock })
)

const identity = (row: Pick<RunRow, "runId" | "conversationId" | "model">, model: Model | undefined) => ({
  "gen_ai.provider.name": model?.provider,
  "gen_ai.request.model": model?.name ?? row.model,
  "gen_ai.conversation.id": row.conversationId,
  "runlet.run.id": row.runId
})

/**
 * The span of the acceptance of a run. It hangs below the caller's; what the run does hangs below it, whenever and in
 * whichever process that is. A caller who does not record does not want to be recorded.
 *
 * @since 0.1.0
 * @category spans
 */
export const accepting = <A, E, R>(
  recorder: Recorder | undefined,
  run: { readonly row: Pick<RunRow, "runId" | "conversationId" | "model">; readonly model: Model | undefined },
  caller: string | undefined,
  use: (trace: string | undefined) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const parent = Tracing.parse(caller)
  if (recorder === undefined || parent?.sampled === false) return use(Tracing.traceparent(parent))
  return Tracing.spanned(
    "runlet.start",
    { kind: "producer", attributes: identity(run.row, run.model), ...(parent !== undefined && { parent }) },
    (span) => use(Tracing.traceparent(span))
  ).pipe(Effect.withTracer(recorder.tracer))
}

/**
 * - `goOn`: the run was queued; its span hangs where the log says
 * - `again`: a new attempt, which is linked to the one before. `caller`: the `traceparent` of who asked for it
 *
 * @since 0.1.0
 * @category models
 */
export type Occasion =
  | { readonly _tag: "goOn" }
  | { readonly _tag: "again"; readonly attempt: number; readonly caller?: string | undefined }

/**
 * Begins the span of a stretch of work on a run; `undefined` when it is not to be recorded.
 *
 * @since 0.1.0
 * @category spans
 */
export const begin = (
  recorder: Recorder | undefined,
  row: RunRow,
  model: Model | undefined,
  state: RunState,
  occasion: Occasion
): Tracer.Span | undefined => {
  const former = Tracing.parse(state.trace)
  const caller = occasion._tag === "again" ? Tracing.parse(occasion.caller) : undefined
  const parent = occasion._tag === "goOn" ? former : (caller ?? Tracing.parse(state.start?.trace))
  // Whether a run is recorded was decided when it was accepted.
  if (recorder === undefined || parent?.sampled === false || (parent === undefined && occasion._tag === "goOn")) {
    return undefined
  }
  const links: ReadonlyArray<Tracer.SpanLink> =
    occasion._tag === "again" && former !== undefined ? [{ _tag: "SpanLink", span: former, attributes: {} }] : []
  const span = recorder.tracer.span(
    "invoke_agent",
    Option.fromNullable(parent),
    Context.empty(),
    links,
    recorder.clock.unsafeCurrentTimeNanos(),
    "internal",
    { captureStackTrace: false, root: parent === undefined }
  )
  Tracing.annotate(span, {
    "gen_ai.operation.name": "invoke_agent",
    ...identity(row, model),
    "runlet.run.mode": row.mode,
    "runlet.run.attempt": occasion._tag === "again" ? occasion.attempt : state.attempt
  })
  return span
}

const tokens = (usage: Usage): Tracing.Attributes => ({
  "gen_ai.usage.input_tokens": usage.inputTokens,
  "gen_ai.usage.output_tokens": usage.outputTokens,
  "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
  "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens
})

/**
 * Runs a stretch of work in its span, and ends it with what has become of the run. `state` is the state of the run
 * at the moment of the question.
 *
 * @since 0.1.0
 * @category spans
 */
export const working = (
  recorder: Recorder | undefined,
  span: Tracer.Span | undefined,
  state: () => RunState,
  work: Effect.Effect<void>
): Effect.Effect<void> => {
  if (recorder === undefined) return work
  if (span === undefined) return Effect.withTracerEnabled(work, false)
  const before = state().usage
  return work.pipe(
    Effect.onExit((exit) => {
      const { end, status, usage } = state()
      Tracing.annotate(span, {
        "runlet.run.status": status,
        ...(end?.type === "finish" && { "gen_ai.response.finish_reasons": [end.finishReason] }),
        "gen_ai.usage.input_tokens": usage.inputTokens - before.inputTokens,
        "gen_ai.usage.output_tokens": usage.outputTokens - before.outputTokens
      })
      return Tracing.end(span, exit, end?.type === "error" ? end.code : undefined)
    }),
    Effect.withParentSpan(span),
    Effect.withTracer(recorder.tracer),
    // Who begins the work may be a background task, which is not recorded.
    Effect.withTracerEnabled(true)
  )
}

/**
 * Does the work of one iteration, up to a decision, in a span.
 *
 * @since 0.1.0
 * @category spans
 */
export const iteration = <A, E, R>(
  from: { readonly state: RunState; readonly step: Step },
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Tracing.spanned(
    "runlet.iteration",
    {
      attributes: { "runlet.iteration": from.step._tag === "CallModel" ? from.step.iteration : from.state.iteration }
    },
    () => work
  )

/**
 * Runs a call of a model in a span, its retries included. What `call` is given looks at every emission of the call.
 *
 * @since 0.1.0
 * @category spans
 */
export const calling = <E, R>(
  row: RunRow,
  model: Model,
  call: (look: (emission: Emission) => void) => Effect.Effect<void, E, R>
): Effect.Effect<void, E, R> =>
  Effect.clockWith((clock) => {
    let failure: string | undefined
    let silent = true
    const began = clock.unsafeCurrentTimeMillis()
    const event = (span: Tracer.Span, event: AgentEvent): void => {
      if (event.type === "model-retry") span.attribute("runlet.model.retries", event.retry)
      if (event.type !== "model-end") return
      Tracing.annotate(span, { "gen_ai.response.finish_reasons": [event.finishReason], ...tokens(event.usage) })
    }
    return Tracing.spanned(
      `chat ${model.name ?? row.model}`,
      {
        kind: "client",
        attributes: { "gen_ai.operation.name": "chat", ...identity(row, model), "gen_ai.request.stream": true }
      },
      (span) =>
        call((emission) => {
          if (emission._tag === "Fail") failure = emission.code
          if (emission._tag !== "Events") return
          if (emission.durable) for (const one of emission.events) event(span, one)
          else if (silent) {
            silent = false
            const took = (clock.unsafeCurrentTimeMillis() - began) / 1000
            span.attribute("gen_ai.response.time_to_first_chunk", took)
          }
        }),
      () => failure
    )
  })
