import { afterEach, describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { ResumePolicy, Tool } from "runlet"
import { Arbitraries, Cases, type Plan, PolicyContract, Stores } from "runlet/testing"
import { bookRoom } from "./bookRoom.js"
import { Calendar, type Weather } from "./Calendar.js"
import { lawsOf } from "./laws.js"
import { mostAttempts, patience } from "./patience.js"

// A simulation holds up the event loop; between two tests the runner hears from its worker.
afterEach(() => new Promise((resume) => setTimeout(resume, 50)))

const from = FastCheck.constantFrom

/** Few rooms and few days, so that guests meet. */
const call = FastCheck.record({
  call: FastCheck.constant("book_room"),
  input: FastCheck.record({ room: from("red", "blue"), day: FastCheck.nat(1), guest: from("Ada", "Bo") })
})

const plan = Arbitraries.planOf(call)

/** Nothing breaks but the tool, and whatever is asked is approved. */
const easy = plan.map((plan): Plan.Plan => ({ ...plan, faults: [], hasty: { at: 0, how: "yes", doubt: "applied" } }))

/** What each request to the calendar meets. */
const weather = FastCheck.array(from<Weather>("fine", "answer lost", "request lost", "closed"), { maxLength: 5 })

/** What a plan is run with: each time a calendar of its own, which all processes share. */
const options = (calendar: Calendar, change = (tool: Tool.Tool) => tool) =>
  ({
    tools: [change(bookRoom(calendar))],
    policy: patience,
    laws: lawsOf(calendar),
    edit: () => ({ room: "blue", day: 1, guest: "Cy" })
  }) satisfies Cases.Options

const dice = { fastCheck: { numRuns: 25, seed: 1 } }

describe("booking a room", () => {
  it.prop(
    "keeps every law, whatever breaks",
    [plan, weather],
    ([plan, weather]) => Cases.hold(plan, options(new Calendar(weather))),
    dice
  )

  it.prop(
    "keeps every law over SQLite",
    [plan, weather],
    ([plan, weather]) => Cases.hold(plan, { ...options(new Calendar(weather)), store: Stores.sqlite }),
    { fastCheck: { numRuns: 10, seed: 2 } }
  )

  it("is done at all", () => {
    const booked = FastCheck.sample(easy, { numRuns: 10, seed: 3 }).map((plan) => {
      const calendar = new Calendar()
      Cases.hold(plan, options(calendar))
      return calendar.bookings.length
    })
    expect(Math.max(...booked)).toBeGreaterThan(1)
  })
})

/** A case in which a changed tool breaks a law: what is told of it. */
const broken = ({
  calendar = Calendar,
  change
}: {
  calendar?: typeof Calendar
  change?: (tool: Tool.Tool) => Tool.Tool
}) => {
  const { errorInstance } = FastCheck.check(
    FastCheck.property(easy, weather, (plan, weather) => Cases.hold(plan, options(new calendar(weather), change))),
    { numRuns: 100, seed: 4, endOnFailure: true }
  )
  return errorInstance instanceof Cases.LawsBroken ? errorInstance.message : "no law is broken"
}

describe("a mistake in the tool is found", () => {
  it("when it does not look whether the room is free", () => {
    class Blind extends Calendar {
      override at() {
        return undefined
      }
    }
    expect(broken({ calendar: Blind })).toMatch(/^a room has one guest a day: \w+ on day \d is booked again/)
  })

  it("when it calls a lost answer a failure", () => {
    const change = ({ commit, ...tool }: Tool.Tool): Tool.Tool => ({
      ...tool,
      commit:
        commit &&
        ((input, context) =>
          Effect.catchTag(commit(input, context), "ToolInDoubt", ({ message }) => new Tool.ToolFailure({ message })))
    })
    expect(broken({ change })).toMatch(/^what stands in the calendar is not denied: \S+ tool-call-result at \d+: /)
  })

  it("when it says of everything that it has happened", () => {
    const change = (tool: Tool.Tool): Tool.Tool => ({ ...tool, probe: () => Effect.succeed({ state: "applied" }) })
    expect(broken({ change })).toMatch(/^what the calendar is said to have done, it has done: /)
  })
})

describe("the policy", () => {
  for (const { name, run } of PolicyContract.cases) {
    it.effect(name, () => Effect.provide(run, patience))
  }

  it("would be found out if it went on for ever", () => {
    const { errorInstance } = FastCheck.check(
      FastCheck.property(plan, (plan) =>
        Cases.hold(plan, { ...options(new Calendar()), policy: ResumePolicy.layerContinueDraft })
      ),
      { numRuns: 1000, seed: 5, endOnFailure: true }
    )
    expect(String(errorInstance)).toContain(`nothing goes on by itself for ever: `)
    expect(String(errorInstance)).toContain(`attempt ${mostAttempts + 1}`)
  })
})
