/**
 * What to do next, as a pure function of the folded state. First start, recovery, resume, approval and fork are the
 * same function on different states.
 *
 * It is asked only when nothing of the run is in flight in this process and everything is durable; so a call that
 * stands open has an unknown outcome, whether a crash, a drain or a time-out left it.
 *
 * @since 0.1.0
 */
import type { EventOf, ToolKind, ToolPhase } from "../domain/AgentEvent.js"
import type { RunLimits } from "../domain/RunInput.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Budget from "./Budget.js"

/**
 * What must be known of a tool to decide about a call with a certain input.
 *
 * - `kind`: for this input
 * - `dryRun`: whether a write can be previewed; if not, its exact input is the preview
 * - `keyed`: whether an unknown outcome can be settled without a person, by asking for the key or by trying again
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolFacts {
  readonly kind: ToolKind
  readonly dryRun: boolean
  readonly keyed: boolean
  readonly unattended: boolean
}

/**
 * A result that can stand for running a read-only call again.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reusable {
  readonly ok: boolean
  readonly result: unknown
  readonly source: "run" | "cache"
}

/**
 * What the decision depends on besides the state. `tool` knows the tools offered to this run by name, for an input.
 *
 * @since 0.1.0
 * @category models
 */
export interface Facts {
  readonly limits: RunLimits
  readonly maxAttempts: number
  readonly maxToolConcurrency: number
  readonly tool: (name: string, input: unknown) => ToolFacts | undefined
  readonly reuse: (state: RunState.RunState, call: RunState.Call) => Reusable | undefined
}

/**
 * A call that is settled without running anything.
 *
 * @since 0.1.0
 * @category models
 */
export type Settlement = Pick<EventOf<"tool-call-result">, "ok" | "state" | "source"> & {
  readonly call: RunState.Call
  readonly result: unknown
}

/**
 * Something to begin for a call: a phase of its tool under a key (`again`: it was begun before and may have happened),
 * or a question to a person.
 *
 * @since 0.1.0
 * @category models
 */
export type Act =
  | {
      readonly _tag: "Run"
      readonly call: RunState.Call
      readonly phase: ToolPhase
      readonly key: string
      readonly again: boolean
    }
  | { readonly _tag: "Ask"; readonly call: RunState.Call; readonly reason: EventOf<"approval-request">["reason"] }

/**
 * One step of a run.
 *
 * @since 0.1.0
 * @category models
 */
export type Step =
  | { readonly _tag: "Rest" }
  | { readonly _tag: "Fail"; readonly code: string; readonly message: string; readonly recoverable: boolean }
  | { readonly _tag: "CallModel"; readonly iteration: number; readonly continueDraft: boolean }
  | { readonly _tag: "Settle"; readonly settlements: ReadonlyArray<Settlement> }
  | { readonly _tag: "RunTools"; readonly acts: ReadonlyArray<Act> }
  | { readonly _tag: "AwaitApproval" }
  | { readonly _tag: "EndIteration"; readonly iteration: number }
  | { readonly _tag: "Finish"; readonly reason: EventOf<"finish">["finishReason"] }

/** How often an act whose outcome is unknown is tried or asked for by key before a person is asked. */
const maxStarts = 3

/**
 * The next step of a run in this state.
 *
 * @since 0.1.0
 * @category decisions
 */
export const nextStep = (state: RunState.RunState, facts: Facts): Step => {
  if (RunStatus.isEnded(state.status)) return { _tag: "Rest" }
  if (state.stale > facts.maxAttempts) {
    return {
      _tag: "Fail",
      code: "recovery_exhausted",
      message: `The run was interrupted ${state.stale} times without making any progress, so it was given up. Regenerate the answer to try again.`,
      recoverable: false
    }
  }
  const turn = state.open
  if (turn !== undefined) {
    if (turn.ended === undefined) return unfinished(turn)
    // What a turn asks for that has used the budget up is not begun; what was begun before is brought to its end.
    const fresh = turn.calls.length > 0 && turn.calls.every(isUntouched)
    return fresh && Budget.isSpent(state.usage, facts.limits)
      ? { _tag: "Finish", reason: "budget" }
      : completeTurn(state, turn, facts)
  }
  const last = state.closed.at(-1)
  if (last !== undefined && last.calls.length === 0) return finish(state, last, facts.limits)
  const spent = overLimit(state, facts.limits)
  if (spent !== undefined) return { _tag: "Finish", reason: spent }
  return { _tag: "CallModel", iteration: state.iteration + 1, continueDraft: false }
}

const isUntouched = (call: RunState.Call): boolean =>
  call.result === undefined && call.open === undefined && call.approval === undefined && call.starts === 0

const unfinished = (turn: RunState.Turn): Step => ({
  _tag: "CallModel",
  iteration: turn.n,
  continueDraft: RunState.turnText(turn) !== ""
})

const finish = (state: RunState.RunState, last: RunState.Turn, limits: RunLimits): Step => {
  const reason = last.ended?.finishReason ?? "stop"
  // A model is told how much is left, and stops there.
  if (reason === "length" && Budget.isSpent(state.usage, limits)) return { _tag: "Finish", reason: "budget" }
  if (state.textLength > 0) return { _tag: "Finish", reason: reason === "tool_calls" ? "stop" : reason }
  return {
    _tag: "Fail",
    code: reason === "content_filter" ? "content_filter" : "empty_answer",
    message:
      reason === "content_filter"
        ? "The model's provider withheld the answer. Rephrase the message, or choose another model."
        : reason === "length"
          ? "The model used up its output before it wrote any text. Regenerate the answer, or choose another model."
          : "The model ended its turn without writing any text. Regenerate the answer, or choose another model.",
    recoverable: false
  }
}

const overLimit = (state: RunState.RunState, limits: RunLimits): "max_iterations" | "budget" | undefined => {
  if (Budget.isSpent(state.usage, limits)) return "budget"
  return state.iteration >= limits.maxIterations ? "max_iterations" : undefined
}

type Verdict =
  | { readonly _tag: "Settled" }
  | { readonly _tag: "Settle"; readonly settlement: Settlement }
  | { readonly _tag: "Now" | "Gated"; readonly act: Act }
  | { readonly _tag: "Wait" }

const completeTurn = (state: RunState.RunState, turn: RunState.Turn, facts: Facts): Step => {
  const settlements: Array<Settlement> = []
  const now: Array<Act> = []
  const gated: Array<Act> = []
  let waiting = false
  for (let index = 0; index < turn.calls.length; index++) {
    const call = turn.calls[index]
    if (call === undefined) continue
    const verdict = judge(state, call, `${state.runId}.${turn.n}.${index}`, facts)
    switch (verdict._tag) {
      case "Settle":
        settlements.push(verdict.settlement)
        break
      case "Now":
        now.push(verdict.act)
        break
      case "Gated":
        gated.push(verdict.act)
        break
      case "Wait":
        waiting = true
        break
    }
  }
  if (settlements.length > 0) return { _tag: "Settle", settlements }
  if (now.length > 0) return { _tag: "RunTools", acts: now.slice(0, facts.maxToolConcurrency) }
  if (waiting) return { _tag: "AwaitApproval" }
  if (gated.length > 0) return { _tag: "RunTools", acts: gated.slice(0, facts.maxToolConcurrency) }
  return { _tag: "EndIteration", iteration: turn.n }
}

/** `slot` names the call within all runs; it is part of the keys of acts that need no approval. */
const judge = (state: RunState.RunState, call: RunState.Call, slot: string, facts: Facts): Verdict => {
  if (call.result !== undefined) return { _tag: "Settled" }
  const tool = call.input === undefined ? undefined : facts.tool(call.name, call.input.value)
  if (call.open !== undefined) return judgeOpen(call, call.open, tool)
  if (call.approval !== undefined && call.approval.decision === undefined) return { _tag: "Wait" }
  if (call.doubt !== undefined) {
    // The conflict may be the act's own first try, so only a person can tell what happened.
    const own = call.conflict === true && (call.approval?.decision?.decision === "retry" || !wasInDoubt(call))
    return own ? ask(call, "in_doubt") : judgeDoubt(call, call.doubt, tool)
  }
  if (tool === undefined) return settle(call, { ok: false, state: "invalid", source: "none", result: undefined })
  if (call.conflict === true) return propose(call, slot, tool)
  if (tool.kind === "readonly") {
    const reusable = facts.reuse(state, call)
    if (reusable !== undefined) return settle(call, { ...reusable, state: "done" })
    return { _tag: "Now", act: { _tag: "Run", call, phase: "execute", key: `${slot}.x`, again: false } }
  }
  const decision = call.approval?.decision
  switch (decision?.decision) {
    case undefined:
    case "edited":
      if (decision === undefined && tool.kind === "effectful" && tool.unattended) {
        return { _tag: "Now", act: { _tag: "Run", call, phase: "execute", key: `${slot}.x`, again: false } }
      }
      return propose(call, slot, tool)
    case "approved": {
      const phase = tool.kind === "write" ? "commit" : "execute"
      return {
        _tag: "Gated",
        act: { _tag: "Run", call, phase, key: call.approval?.request.approvalId ?? "", again: false }
      }
    }
    case "expired":
      return settle(call, { ok: false, state: "expired", source: "none", result: undefined })
    default:
      return settle(call, { ok: false, state: "rejected", source: "person", result: decisionReason(decision) })
  }
}

const judgeOpen = (call: RunState.Call, open: RunState.Started, tool: ToolFacts | undefined): Verdict => {
  const harmless =
    open.phase === "preview" ||
    (open.phase === "execute" && (tool?.kind ?? (call.approval === undefined ? call.kind : "effectful")) === "readonly")
  if (harmless) {
    return tool === undefined
      ? settle(call, { ok: false, state: "invalid", source: "none", result: undefined })
      : { _tag: "Now", act: { _tag: "Run", call, phase: open.phase, key: open.key, again: false } }
  }
  if (tool?.keyed === true && call.starts < maxStarts) {
    return { _tag: "Now", act: { _tag: "Run", call, phase: open.phase, key: open.key, again: true } }
  }
  return ask(call, "in_doubt")
}

const judgeDoubt = (call: RunState.Call, doubt: RunState.Started, tool: ToolFacts | undefined): Verdict => {
  const decision = call.approval?.decision
  switch (decision?.decision) {
    case "retry":
      return tool === undefined
        ? settle(call, { ok: false, state: "in_doubt", source: "none", result: undefined })
        : { _tag: "Gated", act: { _tag: "Run", call, phase: doubt.phase, key: doubt.key, again: true } }
    case "applied":
      return settle(call, { ok: true, state: "applied", source: "person", result: decisionReason(decision) })
    case "abandoned":
      return settle(call, { ok: false, state: "in_doubt", source: "person", result: decisionReason(decision) })
    default:
      return settle(call, { ok: false, state: "in_doubt", source: "none", result: undefined })
  }
}

const wasInDoubt = (call: RunState.Call): boolean => call.approval?.request.reason === "in_doubt"

/** A write is previewed, or shown as it is; an effect is shown as it is. */
const propose = (call: RunState.Call, slot: string, tool: ToolFacts): Verdict =>
  tool.kind === "write" && tool.dryRun
    ? {
        _tag: "Now",
        act: { _tag: "Run", call, phase: "preview", key: `${slot}.p${call.asked}`, again: false }
      }
    : ask(call, tool.kind === "write" ? "write" : "effectful")

const ask = (call: RunState.Call, reason: EventOf<"approval-request">["reason"]): Verdict => ({
  _tag: "Now",
  act: { _tag: "Ask", call, reason }
})

const settle = (call: RunState.Call, settlement: Omit<Settlement, "call">): Verdict => ({
  _tag: "Settle",
  settlement: { call, ...settlement }
})

const decisionReason = (decision: RunState.Approval["decision"]): unknown =>
  decision?.reason === undefined ? undefined : { reason: decision.reason }
