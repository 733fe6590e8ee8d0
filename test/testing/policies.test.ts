import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ResumePolicy from "../../src/resume/ResumePolicy.js"
import * as PolicyContract from "../../src/testing/PolicyContract.js"

const policies = {
  "restart-iteration": ResumePolicy.layerRestartIteration,
  "continue-draft": ResumePolicy.layerContinueDraft,
  manual: ResumePolicy.layerManual
}

for (const [name, layer] of Object.entries(policies)) {
  describe(`the policy ${name}`, () => {
    for (const one of PolicyContract.cases) it.effect(one.name, () => Effect.provide(one.run, layer))
  })
}

const { keepDraft, refuse, restart } = ResumePolicy
type Facts = ResumePolicy.ResumeFacts

const changed = (
  facts: Facts,
  change: (decision: Extract<ResumePolicy.ResumeDecision, { _tag: "Resume" }>) => object
) => {
  const decision = keepDraft(facts)
  return decision._tag === "Resume" ? { ...decision, ...change(decision) } : decision
}

let asked = 0

/** A mistake, and the case that notices. */
const mistakes: Record<string, (facts: Facts) => ResumePolicy.ResumeDecision> = {
  "a decision follows from the facts alone": (facts) =>
    asked++ % 2 === 0 ? restart(facts) : refuse("Not this time, sorry."),
  "a refusal says why": () => refuse("no"),
  "nothing is kept that is not there": (facts) => changed(facts, ({ textLength }) => ({ textLength: textLength + 1 })),
  "of turns that are complete nothing is dropped": (facts) =>
    changed(facts, ({ textLength }) => ({ textLength: Math.max(0, textLength - 1) })),
  "the calls of a turn that was cut short are dropped": (facts) => changed(facts, () => ({ droppedToolCallIds: [] })),
  "of a turn that was cut short, nothing behind its first call": (facts) =>
    changed(facts, () => ({ textLength: facts.state.textLength, reasoningLength: facts.state.reasoningLength })),
  "a draft is kept only for a model that can": (facts) => keepDraft({ ...facts, continuesDraft: true }),
  "no character is cut in two": (facts) =>
    changed(facts, ({ textLength }) => ({ textLength: textLength > 3 ? textLength - 1 : textLength }))
}

describe("the contract of resume policies", () => {
  for (const [noticed, decide] of Object.entries(mistakes)) {
    it.effect(`notices what breaks: ${noticed}`, () =>
      Effect.gen(function* () {
        const one = PolicyContract.cases.find(({ name }) => name.startsWith(noticed))
        if (one === undefined) return yield* Effect.dieMessage("there is no such case")
        const failure = yield* Effect.flip(Effect.provide(one.run, ResumePolicy.of(decide)))
        expect(failure.message).toMatch(/^.+\nasked for a (recovery|resume)/)
      })
    )
  }

  it.effect("shows the smallest run that it found", () =>
    Effect.gen(function* () {
      const one = PolicyContract.cases.find(({ name }) => name.startsWith("the calls of a turn"))
      if (one === undefined) return yield* Effect.dieMessage("there is no such case")
      const policy = ResumePolicy.of((facts) => changed(facts, () => ({ droppedToolCallIds: [] })))
      const { message } = yield* Effect.flip(Effect.provide(one.run, policy))
      expect(message.split("\n").length).toBeLessThan(16)
      expect(message).toContain("tool-call-start")
    })
  )
})
