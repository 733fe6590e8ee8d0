/**
 * One turn of the model, from its parts to events of the log.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import type * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { AgentEvent } from "../domain/AgentEvent.js"
import * as Fold from "../domain/RunState.js"
import type { Secrets } from "../domain/Secrets.js"
import { type Model, ModelError, type ModelFinish, type ModelPart, type ModelRequest } from "../model/Model.js"
import * as ModelPrice from "../model/ModelPrice.js"
import * as ModelPull from "../model/ModelPull.js"
import { retryDelayMs } from "../model/ModelRetry.js"
import * as Json from "../tool/Json.js"
import * as Emission from "./Emission.js"
import * as ToolCatalog from "./ToolCatalog.js"

interface OpenCall {
  readonly toolCallId: string
  readonly toolName: string
  args: string
}

/** Names longer than this help nobody and would be repeated in every event of the call. */
const maxNameLength = 128

/**
 * What one turn may consist of: calls, and stretches of text or reasoning. Every event of a run is as much work as its
 * turn has of them.
 */
const maxCalls = 256
const maxStretches = 1_000

/** A longer delta becomes several events: who reads a log takes one at a time, however slowly. */
const maxDelta = 65_536

const pieces = (delta: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let from = 0; from < delta.length; ) {
    const end = from + maxDelta
    const inPair = isHigh(delta.charCodeAt(end - 1)) && end < delta.length
    out.push(delta.slice(from, inPair ? end - 1 : end))
    from = inPair ? end - 1 : end
  }
  return out
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/**
 * Turns parts into events: gives text parts and calls ids that are unique in the run, and keeps the arguments of the
 * calls until the turn is complete. Mutable, one a try.
 */
class Translator {
  published = false
  finish: ModelFinish | undefined
  failure: ModelError | undefined
  private stretches = 0
  private stretch: string | undefined
  private stretchId = ""
  readonly calls = new Map<string, OpenCall>()
  private readonly taken: Set<string>
  private readonly prefix: string

  constructor(
    readonly state: Fold.RunState,
    readonly iteration: number,
    readonly catalog: ToolCatalog.ToolCatalog,
    readonly secrets: Secrets["Type"]
  ) {
    this.taken = new Set(state.dropped)
    for (const turn of Fold.turns(state)) for (const call of turn.calls) this.taken.add(call.id)
    this.prefix = state.attempt === 1 ? `${iteration}` : `${iteration}.${state.attempt}`
  }

  chunk(parts: Chunk.Chunk<ModelPart>): ReadonlyArray<AgentEvent> {
    const events: Array<AgentEvent> = []
    for (const part of parts) this.part(part, events)
    if (events.length > 0 && !this.published) {
      this.published = true
      events.unshift({ type: "run-status", status: "streaming" })
    }
    return events
  }

  /** How the try has ended, once it has. */
  get outcome(): Outcome | undefined {
    if (this.failure !== undefined) return { _tag: "Failed", error: this.failure }
    return this.finish && { _tag: "Finished", finish: this.finish }
  }

  private part(part: ModelPart, events: Array<AgentEvent>): void {
    if (this.finish !== undefined || this.failure !== undefined) return
    switch (part.type) {
      case "text-delta":
      case "reasoning-delta":
        if (this.isTooMany(part.id)) return
        for (const delta of pieces(part.delta)) events.push({ type: part.type, id: this.stretchId, delta })
        return
      case "tool-call-start": {
        if (this.calls.has(part.call)) return
        if (this.calls.size >= maxCalls) {
          this.failure = tooMany(`asked for more than ${maxCalls} tool calls at once`)
          return
        }
        this.stretch = undefined
        const toolCallId = this.idFor(part.toolCallId)
        const toolName = Json.cut(this.secrets.said.text(part.toolName), maxNameLength)
        const title = this.catalog.get(toolName)?.title
        this.calls.set(part.call, { toolCallId, toolName, args: "" })
        events.push({
          type: "tool-call-start",
          toolCallId,
          toolName,
          kind: ToolCatalog.shownKind(this.catalog, toolName),
          ...(title !== undefined && { title })
        })
        return
      }
      case "tool-call-delta": {
        const call = this.calls.get(part.call)
        if (call === undefined) return
        call.args += part.delta
        const { toolCallId } = call
        for (const delta of pieces(part.delta)) events.push({ type: "tool-call-delta", toolCallId, delta })
        return
      }
      case "finish":
        this.finish = part
    }
  }

  /** Whether another part would be one too many. */
  private isTooMany(id: string): boolean {
    if (id === this.stretch) return false
    this.stretch = id
    this.stretchId = `${this.prefix}.${id}`
    this.stretches++
    if (this.stretches <= maxStretches) return false
    this.failure = tooMany(`changed between text and reasoning more than ${maxStretches} times`)
    return true
  }

  /** The provider's id where it is new in the run; otherwise one of our own. */
  private idFor(given: string | undefined): string {
    const usable = given !== undefined && given !== "" && given.length <= 256 && this.secrets.said.text(given) === given
    let id = usable ? given : `call_${this.prefix}_${this.calls.size}`
    for (let n = 0; this.taken.has(id); n++) id = `call_${this.prefix}_${this.calls.size}${n === 0 ? "" : `_${n}`}`
    this.taken.add(id)
    return id
  }
}

const completeTurn = (translator: Translator, finish: ModelFinish, model: Model): Effect.Effect<Emission.Emission> =>
  Effect.gen(function* () {
    const events: Array<AgentEvent> = []
    for (const call of translator.calls.values()) {
      const read = yield* Effect.option(ToolCatalog.readArguments(translator.catalog, call.toolName, call.args))
      if (read._tag === "Some") {
        const { toolCallId, toolName } = call
        events.push({ type: "tool-call-ready", toolCallId, toolName, input: read.value.input })
      }
    }
    events.push({
      type: "model-end",
      iteration: translator.iteration,
      finishReason: finish.reason,
      usage: Fold.countable(ModelPrice.priced(Fold.countable(finish.usage), model.price))
    })
    if (translator.calls.size > 0) events.push({ type: "run-status", status: "running" })
    const side = finish.side === undefined ? undefined : { iteration: translator.iteration, data: finish.side }
    return Emission.durable(events, { side })
  })

/** A provider that throws is a fault of ours, not of the person's. */
const internal = new ModelError({
  code: "internal",
  message: "The model's provider failed in an unexpected way. Continue to try again.",
  retryable: false,
  recoverable: true
})

const tooMany = (what: string): ModelError =>
  new ModelError({
    code: "invalid_response",
    message: `The model ${what} and was stopped. Continue to try again.`,
    retryable: false,
    recoverable: true
  })

const truncated = new ModelError({
  code: "truncated",
  message: "The model's answer broke off before its end. Continue to try again.",
  retryable: true,
  recoverable: true
})

/** How a try of the turn ended. */
type Outcome =
  | { readonly _tag: "Finished"; readonly finish: ModelFinish }
  | { readonly _tag: "Failed"; readonly error: ModelError }
  | { readonly _tag: "Interrupted" }

const outcomeOf = (cause: Cause.Cause<ModelError>): Outcome => {
  if (Cause.isInterruptedOnly(cause)) return { _tag: "Interrupted" }
  return { _tag: "Failed", error: Option.getOrElse(Cause.failureOption(cause), () => internal) }
}

/**
 * Carries out what one try says; its value is how it ended, and the provider is let go by then, if it lets go. One loop
 * that pulls: each operator of a stream would cost as much for every delta as all that is done with it.
 */
const tryOnce = <E>(
  { model, request }: Options,
  translator: Translator,
  use: Emission.Use<E>
): Effect.Effect<Outcome, E> =>
  Effect.acquireUseRelease(
    Scope.make(),
    (scope) =>
      Effect.matchCauseEffect(
        Scope.extend(
          Effect.suspend(() => ModelPull.of(model.stream(request))),
          scope
        ),
        {
          onFailure: (cause) => Effect.succeed(outcomeOf(cause)),
          onSuccess: (pull) => {
            const loop: Effect.Effect<Outcome, E> = Effect.matchCauseEffect(pull, {
              onFailure: (cause) => Effect.succeed(outcomeOf(cause)),
              onSuccess: (parts) => {
                if (parts === undefined) return Effect.succeed({ _tag: "Failed", error: truncated })
                const events = translator.chunk(parts)
                const ended = translator.outcome
                const then = ended === undefined ? loop : Effect.succeed(ended)
                return events.length === 0 ? then : Effect.zipRight(use(Emission.events(events)), then)
              }
            })
            return loop
          }
        }
      ),
    (scope, exit) => Effect.annotateLogs(letGo(scope, exit), "runId", request.runId)
  )

/** How long a provider is waited for when it is let go, in milliseconds. */
const patienceMs = 1_000

/** What was said stands, and a run ends, whatever becomes of the provider that is let go. */
const letGo = (scope: Scope.CloseableScope, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const closing = yield* Effect.forkDaemon(Scope.close(scope, exit))
    const closed = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(closing)), Duration.millis(patienceMs))
    if (Option.isNone(closed)) yield* Effect.logWarning("A model's provider does not let go")
    else if (Exit.isFailure(closed.value))
      yield* Effect.logWarning("A model's provider failed to let go", closed.value.cause)
  })

/**
 * What the events of one model turn need to know.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly state: Fold.RunState
  readonly model: Model
  readonly request: ModelRequest
  readonly catalog: ToolCatalog.ToolCatalog
  readonly secrets: Secrets["Type"]
}

/**
 * Carries out the events of one model turn, up to its durable `model-end`, or a `Fail`. A failure that may pass is tried
 * again, with a `model-retry` event, as long as nothing of the turn was published.
 *
 * @since 0.1.0
 * @category running
 */
export const modelTurn = <E>(options: Options, use: Emission.Use<E>): Effect.Effect<void, E> => attempt(options, use, 0)

const attempt = <E>(options: Options, use: Emission.Use<E>, retry: number): Effect.Effect<void, E> =>
  Effect.gen(function* () {
    const { catalog, model, request, secrets, state } = options
    const { iteration } = request
    const translator = new Translator(state, iteration, catalog, secrets)
    const outcome = yield* tryOnce(options, translator, use)
    switch (outcome._tag) {
      case "Finished":
        return yield* use(yield* completeTurn(translator, outcome.finish, model))
      case "Interrupted":
        return yield* Effect.interrupt
      case "Failed": {
        const { error } = outcome
        const random = yield* Random.next
        const delayMs = translator.published ? undefined : retryDelayMs(error, retry + 1, random)
        if (delayMs === undefined) return yield* use(failure(error))
        const { code } = error
        yield* use(Emission.durable([{ type: "model-retry", iteration, retry: retry + 1, delayMs, code }]))
        yield* Effect.sleep(Duration.millis(delayMs))
        return yield* attempt(options, use, retry + 1)
      }
    }
  })

const failure = ({ code, message, recoverable }: ModelError): Emission.Emission => ({
  _tag: "Fail",
  code,
  message,
  recoverable
})
