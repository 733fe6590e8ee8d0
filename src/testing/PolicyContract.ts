/**
 * What every resume policy must do, as data: run each case with the policy in question. The states that it is asked
 * about are those of arbitrary runs, cut short anywhere.
 *
 * ```ts
 * import { describe, it } from "@effect/vitest"
 * import { Effect } from "effect"
 * import { ResumePolicy } from "runlet"
 * import { PolicyContract } from "runlet/testing"
 *
 * describe("my policy", () => {
 *   for (const { name, run } of PolicyContract.cases) {
 *     it.effect(name, () => Effect.provide(run, ResumePolicy.layerRestartIteration))
 *   }
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import type { EventOf } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import { type ResumeDecision, type ResumeFacts, ResumePolicy } from "../resume/ResumePolicy.js"
import * as Json from "../tool/Json.js"
import * as EventArbitraries from "./EventArbitraries.js"

/**
 * The policy does not keep the rule of a case. The message holds the smallest log that was found to show it.
 *
 * @since 0.1.0
 * @category errors
 */
export class PolicyBroken extends Schema.TaggedError<PolicyBroken>()("PolicyBroken", { message: Schema.String }) {}

/**
 * A case: `run` fails when the policy does not keep the rule that `name` states.
 *
 * @since 0.1.0
 * @category models
 */
export interface PolicyCase {
  readonly name: string
  readonly run: Effect.Effect<void, PolicyBroken, ResumePolicy>
}

type Resume = Extract<ResumeDecision, { readonly _tag: "Resume" }>
type Decide = ResumePolicy["Type"]["decide"]

interface Situation extends ResumeFacts {
  readonly log: ReadonlyArray<Envelope>
}

/** A run that may be resumed: one that was executing when its process died, or one that failed recoverably. */
const situation: FastCheck.Arbitrary<Situation | undefined> = FastCheck.record({
  log: EventArbitraries.log,
  cut: FastCheck.nat(400),
  continuesDraft: FastCheck.boolean()
}).map(({ continuesDraft, cut, log }) => {
  const kept = log.slice(0, 1 + (cut % log.length))
  const state = RunState.reduceAll(RunState.empty(kept[0]?.runId ?? ""), kept)
  const failed = state.status === "failed" && state.recoverable === true
  if (!failed && !RunStatus.isExecuting(state.status)) return undefined
  return { log: kept, state, reason: failed ? "resume" : "recovery", continuesDraft }
})

const samples = 500

/** The same dice each time. */
const seed = 20_240_101

const told = ({ continuesDraft, log, reason }: Situation): string =>
  [
    `asked for a ${reason}${continuesDraft ? " with a model that continues drafts" : ""}, behind`,
    ...log.map(({ event, seq }) => `  ${seq} ${JSON.stringify(event)}`)
  ].join("\n")

/** A rule about one decision: what is wrong with it, if anything. */
const rule = (name: string, check: (situation: Situation, decide: Decide) => string | undefined): PolicyCase => ({
  name,
  run: Effect.flatMap(ResumePolicy, ({ decide }) =>
    Effect.suspend(() => {
      let problem: string | undefined
      const found = FastCheck.check(
        FastCheck.property(situation, (one) => {
          if (one === undefined) return true
          const wrong = check(one, decide)
          if (wrong !== undefined) problem = `${wrong}\n${told(one)}`
          return wrong === undefined
        }),
        { numRuns: samples, seed }
      )
      if (!found.failed) return Effect.void
      const thrown = found.errorInstance instanceof Error ? `it throws ${found.errorInstance.message}` : undefined
      return new PolicyBroken({ message: problem ?? thrown ?? `it fails for ${JSON.stringify(found.counterexample)}` })
    })
  )
})

const ofResume = (name: string, check: (decision: Resume, situation: Situation) => string | undefined): PolicyCase =>
  rule(name, (one, decide) => {
    const decision = decide(one)
    return decision._tag === "Resume" ? check(decision, one) : undefined
  })

const cutTurn = ({ open }: RunState.RunState): RunState.Turn | undefined =>
  open !== undefined && open.ended === undefined ? open : undefined

const eventOf = (decision: Resume, { reason, state }: Situation): EventOf<"run-resumed"> => {
  const { _tag: _, ...lengths } = decision
  return { type: "run-resumed", attempt: state.attempt + 1, reason, ...lengths }
}

/** The run behind the decision. */
const resumed = (decision: Resume, one: Situation): RunState.RunState => {
  const { log, state } = one
  const last = log.at(-1)
  return last === undefined
    ? state
    : RunState.reduce(state, { ...last, seq: state.seq + 1, event: eventOf(decision, one) })
}

/**
 * The contract of `ResumePolicy`.
 *
 * @since 0.1.0
 * @category contracts
 */
export const cases: ReadonlyArray<PolicyCase> = [
  rule("a decision follows from the facts alone, and changes none of them", (one, decide) => {
    const before = Json.canonical(one.state)
    const first = Json.canonical(decide(one))
    if (Json.canonical(decide(one)) !== first) return "the same facts have two decisions"
    return Json.canonical(one.state) === before ? undefined : "the state is another one afterwards"
  }),
  rule("a refusal says why, in words for a person", (one, decide) => {
    const decision = decide(one)
    if (decision._tag === "Resume") return undefined
    return decision.reason.trim().split(/\s+/).length >= 3 ? undefined : `it says ${JSON.stringify(decision.reason)}`
  }),
  ofResume("nothing is kept that is not there", ({ checkpointSeq, reasoningLength, textLength }, { state }) => {
    const within = (value: number, most: number) => Number.isInteger(value) && value >= 0 && value <= most
    if (!within(textLength, state.textLength)) return `textLength is ${textLength} of ${state.textLength}`
    if (!within(reasoningLength, state.reasoningLength)) {
      return `reasoningLength is ${reasoningLength} of ${state.reasoningLength}`
    }
    return within(checkpointSeq, state.seq) ? undefined : `checkpointSeq is ${checkpointSeq} of ${state.seq}`
  }),
  ofResume("of turns that are complete nothing is dropped", ({ reasoningLength, textLength }, { state }) => {
    const turn = cutTurn(state)
    const text = turn?.text0 ?? state.textLength
    const reasoning = turn?.reasoning0 ?? state.reasoningLength
    if (textLength < text) return `textLength is ${textLength}, less than ${text}`
    return reasoningLength < reasoning ? `reasoningLength is ${reasoningLength}, less than ${reasoning}` : undefined
  }),
  ofResume("the calls of a turn that was cut short are dropped, and no other ones", (decision, { state }) => {
    const calls = (cutTurn(state)?.calls ?? []).map((call) => call.id).sort()
    const dropped = [...decision.droppedToolCallIds].sort()
    return dropped.join() === calls.join() ? undefined : `it drops [${dropped.join()}], the turn has [${calls.join()}]`
  }),
  ofResume("of a turn that was cut short, nothing behind its first call is kept", ({ textLength }, { state }) => {
    const turn = cutTurn(state)
    if (turn === undefined) return undefined
    const end = turn.parts.findIndex((part) => part.type === "tool-call")
    const parts = end === -1 ? turn.parts : turn.parts.slice(0, end)
    const most = turn.text0 + RunState.turnText({ ...turn, parts }).length
    return textLength <= most ? undefined : `textLength is ${textLength}, the first call comes at ${most}`
  }),
  ofResume("a draft is kept only for a model that can go on with it", ({ textLength }, { continuesDraft, state }) => {
    const start = cutTurn(state)?.text0 ?? state.textLength
    return continuesDraft || textLength === start ? undefined : `${textLength - start} of the draft are kept`
  }),
  ofResume("no character is cut in two", (decision, one) => {
    const text = RunState.text(one.state).slice(0, decision.textLength)
    return Json.wellFormed(text) === text ? undefined : `${JSON.stringify(text)} is kept`
  }),
  ofResume("the run goes on from what was kept", (decision, one) => {
    if (RunStatus.next(one.state, eventOf(decision, one)) === undefined) return "the run may not go on like that"
    const state = resumed(decision, one)
    if (state.textLength !== decision.textLength || RunState.text(state).length !== decision.textLength) {
      return `the text is ${RunState.text(state).length} long afterwards, not ${decision.textLength}`
    }
    const left = RunState.turns(state).flatMap((turn) => turn.calls)
    const kept = left.find((call) => decision.droppedToolCallIds.includes(call.id))
    return kept === undefined ? undefined : `${kept.id} is still there`
  })
]
