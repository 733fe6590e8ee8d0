/**
 * How a run goes on after it was cut short: one function from the folded state to where the new attempt begins.
 *
 * A policy of one's own is `ResumePolicy.of((facts) => ...)`, usually built from `restart`, `keepDraft` and `refuse`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { RunState, Turn } from "../domain/RunState.js"

/**
 * What a policy may look at. `reason` is `recovery` when a process died or stopped, `resume` when a person asked.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumeFacts {
  readonly state: RunState
  readonly reason: "recovery" | "resume"
  readonly continuesDraft: boolean
}

/**
 * - `Resume`: a new attempt that keeps this much of the draft (UTF-16 code units) and drops these calls. A call that
 *   was started is never dropped
 * - `Refuse`: no attempt now; `recoverable` says whether a person may resume later
 *
 * @since 0.1.0
 * @category models
 */
export type ResumeDecision =
  | {
      readonly _tag: "Resume"
      readonly checkpointSeq: number
      readonly textLength: number
      readonly reasoningLength: number
      readonly droppedToolCallIds: ReadonlyArray<string>
    }
  | { readonly _tag: "Refuse"; readonly reason: string; readonly recoverable: boolean }

/**
 * The policy in force.
 *
 * @since 0.1.0
 * @category services
 */
export class ResumePolicy extends Context.Tag("runlet/ResumePolicy")<
  ResumePolicy,
  { readonly decide: (facts: ResumeFacts) => ResumeDecision }
>() {}

/** The turn that was cut short: open and without `model-end`. In a complete turn nothing is dropped. */
const cutTurn = (state: RunState): Turn | undefined =>
  state.open !== undefined && state.open.ended === undefined ? state.open : undefined

const keepAll = (state: RunState): ResumeDecision => ({
  _tag: "Resume",
  checkpointSeq: state.seq,
  textLength: state.textLength,
  reasoningLength: state.reasoningLength,
  droppedToolCallIds: []
})

/**
 * Begins the iteration that was cut short anew.
 *
 * @since 0.1.0
 * @category decisions
 */
export const restart = ({ state }: ResumeFacts): ResumeDecision => {
  const turn = cutTurn(state)
  if (turn === undefined) return keepAll(state)
  return {
    _tag: "Resume",
    checkpointSeq: turn.seq0,
    textLength: turn.text0,
    reasoningLength: turn.reasoning0,
    droppedToolCallIds: turn.calls.map((call) => call.id)
  }
}

/**
 * Keeps the text up to the turn's first tool call and goes on behind it. Where there is none, or where the model does
 * not continue drafts, the iteration begins anew.
 *
 * @since 0.1.0
 * @category decisions
 */
export const keepDraft = (facts: ResumeFacts): ResumeDecision => {
  const turn = cutTurn(facts.state)
  if (turn === undefined) return keepAll(facts.state)
  const end = turn.parts.findIndex((part) => part.type === "tool-call")
  const before = end === -1 ? turn.parts : turn.parts.slice(0, end)
  const last = before.findLastIndex((part) => part.type === "text")
  if (last === -1 || !facts.continuesDraft) return restart(facts)
  let textLength = turn.text0
  let reasoningLength = turn.reasoning0
  for (const part of before.slice(0, last + 1)) {
    if (part.type === "text") textLength += part.text.length
    else if (part.type === "reasoning") reasoningLength += part.text.length
  }
  return {
    _tag: "Resume",
    checkpointSeq: last === turn.parts.length - 1 ? facts.state.seq : turn.seq0,
    textLength,
    reasoningLength,
    droppedToolCallIds: turn.calls.map((call) => call.id)
  }
}

/**
 * Does not go on by itself: a person must ask.
 *
 * @since 0.1.0
 * @category decisions
 */
export const refuse = (reason: string): ResumeDecision => ({ _tag: "Refuse", reason, recoverable: true })

/**
 * A policy from one function.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = (decide: (facts: ResumeFacts) => ResumeDecision): Layer.Layer<ResumePolicy> =>
  Layer.succeed(ResumePolicy, { decide })

/**
 * The default: the iteration that was cut short begins anew.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRestartIteration: Layer.Layer<ResumePolicy> = of(restart)

/**
 * Goes on in the middle of the sentence, with models that can.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerContinueDraft: Layer.Layer<ResumePolicy> = of(keepDraft)

/**
 * Recovery fails recoverably, an explicit resume restarts the iteration.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerManual: Layer.Layer<ResumePolicy> = of((facts) =>
  facts.reason === "resume"
    ? restart(facts)
    : refuse("The server stopped while it was working on this answer. Continue it, or regenerate it.")
)
