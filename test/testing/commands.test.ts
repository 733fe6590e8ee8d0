import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Cases from "../../src/testing/Cases.js"
import * as Commands from "../../src/testing/Commands.js"
import * as Law from "../../src/testing/Law.js"
import type { Plan } from "../../src/testing/Plan.js"
import * as Stores from "../../src/testing/Stores.js"
import { breathe, holds } from "./support.js"

const seed = Number(process.env.RUNLET_SEED ?? 1)
const cases = Math.ceil(Number(process.env.RUNLET_CASES ?? 1800) / 15)
const partOf = 40

describe("any sequence of commands", { timeout: 3_600_000 }, () => {
  for (let part = 0; part * partOf < cases; part++) {
    const numRuns = Math.min(partOf, cases - part * partOf)
    it(`keeps every law, in ${numRuns} cases (part ${part + 1})`, () =>
      holds(Commands.sequence(), (sequence) => Commands.hold(sequence), { numRuns, seed: seed + part }))
  }

  it("keeps every law over SQLite", () =>
    holds(Commands.sequence(), (sequence) => Commands.hold(sequence, { store: Stores.sqlite }), {
      numRuns: Math.ceil(cases / 10),
      seed: seed + 1_000
    }))

  it("gives all kinds of commands, with all kinds of answers", async () => {
    const given = new Map<string, Set<string>>()
    for (const sequence of FastCheck.sample(Commands.sequence(), { numRuns: 60, seed: 2 })) {
      await breathe()
      const { observed, plan } = Effect.runSync(Commands.check(sequence))
      for (const command of plan.commands) given.set(command.do, given.get(command.do) ?? new Set())
      for (const { answer, name } of observed.commands) given.get(name)?.add(answer._tag)
    }
    expect([...given.keys()].sort()).toEqual(
      ["cancel", "crash", "decide", "regenerate", "restart", "resume", "start", "stop", "wait"].sort()
    )
    for (const name of ["cancel", "decide", "regenerate", "resume", "start"]) expect(given.get(name)).toContain("Ok")
  })

  it("gives the same commands when its plan is run again", async () => {
    for (const sequence of FastCheck.sample(Commands.sequence(), { numRuns: 8, seed: 5 })) {
      await breathe()
      const { observed, plan } = Effect.runSync(Commands.check(sequence))
      expect(Effect.runSync(Cases.check(plan)).observed).toEqual(observed)
    }
  })

  it("shrinks to the commands that it takes", async () => {
    const law = Law.forEvents("nobody resumes", ({ event }) =>
      event.type === "run-resumed" && event.reason === "resume" ? "somebody does" : undefined
    )
    // Counted, not timed: on a busy machine the same comes out.
    const tries = 100
    let tried = 0
    let least: Plan | undefined
    const { counterexample, failed } = await FastCheck.check(
      FastCheck.asyncProperty(Commands.sequence(), async (sequence) => {
        if (++tried > tries) return true
        await breathe()
        const { observed, plan } = Effect.runSync(Commands.check(sequence, { laws: [] }))
        if (law.check(observed).length === 0 || !plan.commands.some((one) => one.do === "resume")) return true
        least = plan
        return false
      }),
      { numRuns: 200, seed: 1 }
    )
    expect(failed).toBe(true)
    const given = least?.commands.map((command) => command.do).filter((name) => name !== "wait") ?? []
    expect(given).toContain("resume")
    expect(given.length).toBeLessThan(8)
    expect(String(counterexample?.[0].commands)).toMatch(/(^|,)start \d, \d+ ms/)
  })
})
