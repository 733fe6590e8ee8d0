import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Arbitraries from "../../src/testing/Arbitraries.js"
import * as Cases from "../../src/testing/Cases.js"
import * as Commands from "../../src/testing/Commands.js"
import * as Law from "../../src/testing/Law.js"
import type { Plan } from "../../src/testing/Plan.js"

/** Broken soon, and not by every plan. */
const nobodyIsAsked = Law.forEvents("nobody is asked", ({ event }) =>
  event.type === "approval-request" ? `${event.toolName} asks` : undefined
)
const options: Cases.Options = { laws: [nobodyIsAsked] }

const messageOf = (failing: () => void): string => {
  try {
    failing()
  } catch (error) {
    if (error instanceof Error) return error.message
  }
  return "nothing failed"
}

/** The line of the report that runs the case again. */
const againOf = (report: string): Plan => {
  const [, line = ""] = /^Run it again.*\nCases\.hold\((.*)\)$/m.exec(report) ?? []
  return JSON.parse(line)
}

const property = FastCheck.property(Arbitraries.plan, (plan) => Cases.hold(plan, options))

describe("what a failing case prints", () => {
  const first: Array<Plan> = []
  const failed = FastCheck.check(
    FastCheck.property(Arbitraries.plan, (plan) => {
      first.push(plan)
      Cases.hold(plan, options)
    }),
    { numRuns: 50, seed: 1 }
  )
  const report = failed.errorInstance instanceof Error ? failed.errorInstance.message : ""

  it("begins with the laws that were broken, and where", () => {
    expect(report).toMatch(/^nobody is asked: run_\S+: approval-request at \d+: \w+ asks\n/)
  })

  it("says what was planned, shrunken, with its seed", () => {
    const plan = againOf(report)
    expect(plan).toEqual(failed.counterexample?.[0])
    expect(report).toContain(`\nPlanned, with the seed ${plan.seed}:\n  world: {"seed":${plan.seed},`)
    expect(report).toContain("\n  script 0: ")
    expect(report).toContain('\n  after 0 ms, by process 0: start {"script":')
    expect(failed.numShrinks).toBeGreaterThan(3)
    expect(JSON.stringify(plan).length).toBeLessThan(JSON.stringify(first[failed.numRuns - 1]).length / 2)
    expect(plan.shuffle).toBe(false)
  })

  it("holds the log as a timeline that a person can read", () => {
    const [, timeline = ""] = report.split("\nWhat happened:\n")
    const lines = timeline.split("\n")
    expect(lines[0]).toMatch(/^ +0 ms {2}run 0 #1 run-start runId=/)
    for (const line of lines) expect(line).toMatch(/^ *\d+ ms {2}(run \d+ #\d+ | {2}> p\d| {4}p\d)/)
    const times = lines.map((line) => Number.parseInt(line, 10))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(timeline).toMatch(/run 0 #\d+ approval-request approvalId="apr_/)
    expect(timeline).toMatch(/ {2}> p\d\.\d decide run 0 → Ok/)
    expect(timeline).toMatch(/ {4}p\d\.\d \w+ (preview|commit|execute) begin \S+ key \S+ \(run 0 behind #\d+\)/)
  })

  it("has one line that runs the case again, to the very same report", () => {
    expect(messageOf(() => Cases.hold(againOf(report), options))).toBe(report)
  })

  it("is what a test runner shows, with the dice that find the case at once", () => {
    const { counterexamplePath: path, seed } = failed
    const shown = messageOf(() =>
      FastCheck.assert(property, { seed, ...(path !== null && { path }), endOnFailure: true })
    )
    expect(shown).toContain(`{ seed: ${seed}, path: "${path}", endOnFailure: true }`)
    expect(shown).toContain("Property failed after 1 tests")
    expect(shown).toContain(report.split("\n\n")[0])
    expect(shown).toContain(`Cases.hold(${JSON.stringify(againOf(report))})`)
  })
})

describe("what a failing sequence of commands prints", () => {
  it("is the plan of the commands that were given, which runs again to the same report", () => {
    const { errorInstance } = FastCheck.check(
      FastCheck.property(Commands.sequence(), (sequence) => Commands.hold(sequence, options)),
      { numRuns: 50, seed: 1, endOnFailure: true }
    )
    const report = errorInstance instanceof Error ? errorInstance.message : ""
    expect(report).toMatch(/^nobody is asked: /)
    expect(againOf(report).commands.length).toBeGreaterThan(0)
    expect(messageOf(() => Cases.hold(againOf(report), options))).toBe(report)
  })

  it("is a plan also when the simulation itself breaks", () => {
    const [plan] = FastCheck.sample(
      Arbitraries.plan.map((plan): Plan => ({ ...plan, commands: [] })),
      { numRuns: 1, seed: 1 }
    )
    if (plan === undefined) throw new Error("there is no sample")
    const next = () => {
      throw new Error("nobody knows what comes next")
    }
    const report = messageOf(() => Cases.hold(plan, { next }))
    expect(report).toMatch(/^the simulation broke: .*nobody knows what comes next/)
    expect(againOf(report)).toEqual(plan)
    expect(report).toMatch(/\(nothing was observed\)$/)
  })
})
