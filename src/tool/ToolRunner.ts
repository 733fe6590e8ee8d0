/**
 * Runs one phase of one tool so that it always ends, in time, with an outcome that can be stored. Whatever a handler
 * throws or returns becomes data here, and an effect whose outcome is not known is never called a failure.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ToolKind, ToolPhase } from "../domain/AgentEvent.js"
import * as Metrics from "../domain/Metrics.js"
import * as Silence from "../model/Silence.js"
import * as Json from "./Json.js"
import {
  type Committed,
  type Probed,
  type Tool,
  ToolConflict,
  type ToolContext,
  ToolFailure,
  ToolInDoubt
} from "./Tool.js"

/**
 * How a phase ended.
 *
 * - `Settled`: the tool answered (`ok`) or failed for certain. `result` is plain JSON; a failure's is `{ error }`, with
 *   `details` where the tool gave some. `within` belongs into the transaction that stores a commit's result
 * - `Conflict`: a commit found its target changed; nothing was applied
 * - `InDoubt`: an effect may or may not have happened
 *
 * @since 0.1.0
 * @category models
 */
export type ToolOutcome =
  | {
      readonly _tag: "Settled"
      readonly ok: boolean
      readonly result: Json.Json
      readonly within?: Effect.Effect<void, ToolConflict> | undefined
    }
  | { readonly _tag: "Conflict"; readonly message?: string | undefined }
  | { readonly _tag: "InDoubt"; readonly message: string }

/**
 * One phase to run. `input` is what the tool's `check` returned. The tool's own `timeoutMs` stands above `timeoutMs`.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunOptions {
  readonly tool: Tool
  readonly phase: ToolPhase
  readonly input: unknown
  readonly context: ToolContext
  readonly timeoutMs: number
  readonly maxResultBytes: number
}

const maxMessageBytes = 4_000

/** What a line of progress counts for besides its length: an event that is stored and sent has more than its text. */
const lineCost = 128

const kinds: ReadonlyArray<unknown> = ["readonly", "write", "effectful"]

/**
 * The kind of a call with this input. A `kindOf` that throws or answers nonsense means the kind that asks a person:
 * `write` for a tool that can commit, else `effectful`.
 *
 * @since 0.1.0
 * @category kinds
 */
export const kindOf = (tool: Tool, input: unknown): ToolKind => {
  if (tool.kindOf === undefined) {
    return tool.kind
  }
  const cautious = tool.commit === undefined ? "effectful" : "write"
  try {
    const kind = tool.kindOf(input)
    return kinds.includes(kind) ? kind : cautious
  } catch {
    return cautious
  }
}

/** Text out of a value that was thrown. */
const describe = (thrown: unknown): string => {
  if (Cause.isUnknownException(thrown)) {
    return describe(thrown.error)
  }
  if (thrown instanceof Error && thrown.message !== "") {
    return String(thrown.message)
  }
  const json = Json.fit(thrown, maxMessageBytes)
  if (json === null || json === "") {
    return "The tool failed without a message."
  }
  return typeof json === "string" ? json : JSON.stringify(json)
}

const shorten = (thrown: unknown): string => {
  const text = Json.wellFormed(describe(thrown))
  const kept = Json.cut(text, maxMessageBytes)
  return kept.length < text.length ? `${kept}… (cut)` : kept
}

const failed = (message: string, details: unknown, maxBytes: number): ToolOutcome => ({
  _tag: "Settled",
  ok: false,
  result: details === undefined ? { error: message } : { error: message, details: Json.fit(details, maxBytes) }
})

type Failure = ToolFailure | ToolConflict | ToolInDoubt

/** Handlers written without types may throw, return a promise, or return a plain value. */
const call = (
  handler: () => Effect.Effect<unknown, Failure>
): Effect.Effect<unknown, Failure | Cause.UnknownException> =>
  Effect.suspend(() => {
    try {
      const returned = handler()
      const effect: Effect.Effect<unknown, Failure> = Effect.isEffect(returned) ? returned : Effect.succeed(returned)
      return Effect.flatMap(effect, (value) =>
        value instanceof Promise ? Effect.tryPromise(() => value) : Effect.succeed(value)
      )
    } catch (thrown) {
      return Effect.failCause(Cause.die(thrown))
    }
  })

const handlerOf = (options: RunOptions, context: ToolContext): (() => Effect.Effect<unknown, Failure>) | undefined => {
  const { input, phase, tool } = options
  const handler: ((input: unknown, context: ToolContext) => Effect.Effect<unknown, Failure>) | undefined = tool[phase]
  if (handler !== undefined) {
    return () => handler.call(tool, input, context)
  }
  return phase === "preview" ? () => Effect.succeed({ toolName: tool.name, input }) : undefined
}

const isCommitted = (value: unknown): value is Committed =>
  typeof value === "object" && value !== null && Object.hasOwn(value, "result")

/**
 * Runs one phase. It never fails. Interrupting it interrupts the handler and returns at once, also when the handler
 * does not listen; so does the time limit. What such a handler does later is ignored.
 *
 * A `commit`, and an `execute` of a tool that is not `readonly`, ends `InDoubt` when the time is up, when the handler
 * dies, and when it says so itself. Everywhere else the same ends as `ok: false`.
 *
 * @since 0.1.0
 * @category running
 */
export const run = (options: RunOptions): Effect.Effect<ToolOutcome> =>
  Effect.suspend(() => {
    const { maxResultBytes, phase, tool } = options
    const effectful = phase === "commit" || (phase === "execute" && kindOf(tool, options.input) !== "readonly")
    const timeoutMs = tool.timeoutMs ?? options.timeoutMs
    let over = false
    let left = maxResultBytes
    const context: ToolContext = {
      ...options.context,
      progress: (delta) =>
        Effect.suspend(() => {
          if (over || left <= 0) return Effect.void
          const line = Json.wellFormed(Json.cut(String(delta), left))
          left -= line.length + lineCost
          if (left > 0) return options.context.progress(line)
          Metrics.limitReached("maxToolResultBytes")
          return options.context.progress(`${line}… (no more progress is shown)`)
        })
    }
    const handler = handlerOf(options, context)
    if (handler === undefined) {
      return Effect.succeed(failed(`The tool ${tool.name} has no ${phase} step.`, undefined, maxResultBytes))
    }
    const unknown = (message: string): ToolOutcome =>
      effectful ? { _tag: "InDoubt", message } : failed(message, undefined, maxResultBytes)

    const fitting = (value: unknown): Json.Json => {
      const result = Json.fit(value, maxResultBytes)
      if (Json.isTruncated(result)) Metrics.limitReached("maxToolResultBytes")
      return result
    }

    const succeeded = (value: unknown): ToolOutcome => {
      if (phase !== "commit" || !isCommitted(value)) return { _tag: "Settled", ok: true, result: fitting(value) }
      const result = fitting(value.result)
      return Effect.isEffect(value.within)
        ? { _tag: "Settled", ok: true, result, within: value.within }
        : { _tag: "Settled", ok: true, result }
    }

    const ended = (cause: Cause.Cause<Failure | Cause.UnknownException>): ToolOutcome => {
      const failure = Cause.failureOption(cause)
      const error = failure._tag === "Some" && Cause.defects(cause).length === 0 ? failure.value : undefined
      if (error instanceof ToolConflict && phase === "commit") {
        return !error.message ? { _tag: "Conflict" } : { _tag: "Conflict", message: shorten(error.message) }
      }
      if (error instanceof ToolFailure) {
        return failed(shorten(error.message), error.result, maxResultBytes)
      }
      if (error instanceof ToolInDoubt) {
        return unknown(shorten(error.message))
      }
      if (Cause.isInterruptedOnly(cause)) {
        return unknown("The tool was interrupted.")
      }
      return unknown(shorten(Cause.squash(cause)))
    }

    return call(handler).pipe(
      Effect.map(succeeded),
      Effect.catchAllCause((cause) => Effect.sync(() => ended(cause))),
      // Even looking at what was thrown may throw.
      Effect.catchAllCause(() => Effect.succeed(unknown("The tool failed in a way that can not be described."))),
      Effect.disconnect,
      // A tool is not late for what came while this process stood still.
      Silence.within(
        timeoutMs,
        Effect.sync(() => {
          Metrics.limitReached("toolTimeoutMs")
          return unknown(`The tool did not answer within ${timeoutMs} ms.`)
        })
      ),
      Effect.ensuring(
        Effect.sync(() => {
          over = true
        })
      )
    )
  })

const unknownProbe: Probed = { state: "unknown" }

/**
 * Asks the tool whether the act with this key has happened. A tool that can not be asked, fails, answers nonsense or
 * takes longer than `timeoutMs` does not know.
 *
 * @since 0.1.0
 * @category running
 */
export const probe = (
  tool: Tool,
  context: Omit<ToolContext, "progress">,
  options: { readonly timeoutMs: number; readonly maxResultBytes: number }
): Effect.Effect<Probed> =>
  tool.probe === undefined
    ? Effect.succeed(unknownProbe)
    : call(() => tool.probe?.(context) ?? Effect.succeed(unknownProbe)).pipe(
        Effect.map((answer): Probed => {
          if (typeof answer !== "object" || answer === null || !("state" in answer)) {
            return unknownProbe
          }
          if (answer.state === "applied") {
            return "result" in answer && answer.result !== undefined
              ? { state: "applied", result: Json.fit(answer.result, options.maxResultBytes) }
              : { state: "applied" }
          }
          return answer.state === "absent" ? { state: "absent" } : unknownProbe
        }),
        Effect.catchAllCause(() => Effect.succeed(unknownProbe)),
        Effect.disconnect,
        Silence.within(options.timeoutMs, Effect.succeed(unknownProbe))
      )
