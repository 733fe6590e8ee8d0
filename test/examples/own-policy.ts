import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Agent, Demo, ResumePolicy, RunEngine } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

// A policy is one pure function of the folded log. This one goes on with a long draft, writes a short one anew, and
// gives up after three attempts until a person asks.
const policy = ResumePolicy.of((facts) => {
  if (facts.reason === "recovery" && facts.state.attempt >= 3)
    return ResumePolicy.refuse("Three attempts were cut short.")
  return facts.state.textLength >= 200 ? ResumePolicy.keepDraft(facts) : ResumePolicy.restart(facts)
})

const agent = Agent.layer({ models: { demo: Demo.make({ pace: "2 millis" }) } })
const layer = Runlet.layer({ filename: "./own-policy/runs.db", policy }).pipe(Layer.provide(agent))

const cutAndResume = (message: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine.RunEngine
    // The demo model breaks off in the middle of its first attempt, as a lost connection would.
    const run = yield* engine.start({ message })
    yield* Stream.runDrain(engine.events(run.runId))
    const { lastSeq, text } = yield* engine.snapshot(run.runId)
    yield* engine.resume(run.runId)
    yield* engine
      .events(run.runId, { after: lastSeq })
      .pipe(
        Stream.runForEach(({ event }) =>
          event.type === "run-resumed"
            ? Console.log(
                `attempt ${event.attempt} keeps ${event.textLength === text.length ? "everything" : "nothing"}`
              )
            : Effect.void
        )
      )
    yield* Console.log((yield* engine.snapshot(run.runId)).status)
  })

const program = Effect.zipRight(cutAndResume("/cut /long 20"), cutAndResume("/cut /long 200"))

NodeRuntime.runMain(Effect.provide(program, layer))
