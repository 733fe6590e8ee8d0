import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import * as Agent from "../../src/agent/Agent.js"
import * as Ids from "../../src/domain/Ids.js"
import * as Engine from "../../src/engine/Engine.js"
import { Process } from "../../src/engine/Process.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import type { Model } from "../../src/model/Model.js"
import * as ResumePolicy from "../../src/resume/ResumePolicy.js"
import type { RunStore } from "../../src/store/RunStore.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import * as EffectTool from "../../src/tool/EffectTool.js"
import type { Tool } from "../../src/tool/Tool.js"

type Running = RunEngine["Type"]

/** A story that ends with a run, whose log is compared. */
export interface Scenario {
  readonly name: string
  readonly title: string
  /** Runs an effect with an engine of its own on the store; afterwards that engine is gone. */
  readonly play: (
    process: <A, E>(use: (engine: Running) => Effect.Effect<A, E>) => Effect.Effect<A>
  ) => Effect.Effect<unknown>
  readonly model: Model
}

const lookup = EffectTool.make({
  name: "lookup",
  title: "Looking up…",
  description: "Looks a word up",
  kind: "readonly",
  parameters: Schema.Struct({ word: Schema.String }),
  execute: ({ word }, { progress }) =>
    progress(`looking for ${word}`).pipe(
      Effect.zipRight(Effect.sleep(10 * word.length)),
      Effect.as({ word, meaning: `what ${word} means` })
    )
})

const save = EffectTool.make({
  name: "save",
  description: "Saves a text",
  kind: "write",
  parameters: Schema.Struct({ text: Schema.String }),
  preview: ({ text }) => Effect.succeed({ before: null, after: text }),
  commit: ({ text }, { idempotencyKey }) => Effect.succeed({ result: { saved: text, key: idempotencyKey } })
})

const tools: ReadonlyArray<Tool> = [lookup, save]

/** Ends when nothing is under way any more. A store whose answers take their time has to be waited for. */
export class Settled extends Context.Reference<Settled>()("test/golden/Settled", {
  defaultValue: (): Effect.Effect<void> => Effect.void
}) {}

/** Lets time pass when everything of the time before is done, and waits for what it brings. */
const pass = (time: Duration.DurationInput) =>
  Effect.flatMap(Settled, (settled) => settled.pipe(Effect.zipRight(TestClock.adjust(time)), Effect.zipRight(settled)))

/** A turn whose pieces come one at a time, so that each is stored before the next one is said. */
const slowly = (...moves: ReadonlyArray<Script.Move>) =>
  Script.turn(...moves.flatMap((move) => [Script.sleep(20), move]))

const text = (...pieces: ReadonlyArray<string>) => pieces.map((piece) => Script.text(piece))

/** Lets time pass until the run is as wanted. */
const until = (engine: Running, runId: string, status: string, longText = 0) =>
  pass("10 millis").pipe(
    Effect.zipRight(engine.snapshot(runId)),
    Effect.repeat({
      until: (snapshot) => snapshot.status === status && snapshot.text.length >= longText,
      times: 500
    }),
    Effect.filterOrDieMessage(({ text }) => text.length >= longText, "the run has not said enough"),
    Effect.filterOrDieMessage((snapshot) => snapshot.status === status, `the run is not ${status}`)
  )

const plain = slowly(
  Script.reasoning("The user "),
  Script.reasoning("greets me."),
  ...text("Hello", ", ", "world. 世界")
)

export const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "plain-answer",
    title: "a plain answer",
    model: Script.make([plain]),
    play: (process) =>
      process((engine) =>
        Effect.flatMap(engine.start({ message: "Hello!" }), ({ runId }) => until(engine, runId, "completed"))
      )
  },
  {
    name: "tool-answer",
    title: "an answer from two tools at once",
    model: Script.make([
      slowly(
        ...text("Let me see. "),
        Script.call("lookup", { word: "run" }, "call_1"),
        Script.call("lookup", { word: "checkpoint" }, "call_2")
      ),
      slowly(...text("A run ", "has checkpoints."))
    ]),
    play: (process) =>
      process((engine) =>
        Effect.flatMap(engine.start({ message: "What is a run?" }), ({ runId }) => until(engine, runId, "completed"))
      )
  },
  {
    name: "approved-write",
    title: "a write that a person approves",
    model: Script.make([slowly(Script.call("save", { text: "buy milk" }, "call_1")), slowly(...text("Saved."))]),
    play: (process) =>
      process((engine) =>
        Effect.gen(function* () {
          const { runId } = yield* engine.start({ message: "Remember the milk." })
          const { pendingApprovals } = yield* until(engine, runId, "waiting_approval")
          yield* pass("500 millis")
          for (const { approvalId, previewHash } of pendingApprovals) {
            yield* engine.decide(runId, approvalId, { decision: "approve", previewHash })
          }
          yield* until(engine, runId, "completed")
        })
      )
  },
  {
    name: "cancelled-run",
    title: "a run that is cancelled while it speaks",
    model: Script.make([slowly(...text("This will ", "take "), Script.hang)]),
    play: (process) =>
      process((engine) =>
        Effect.gen(function* () {
          const { runId } = yield* engine.start({ message: "Tell me everything." })
          yield* until(engine, runId, "streaming", "This will take ".length)
          yield* engine.cancel(runId, { reason: "That is enough." })
        })
      )
  },
  {
    name: "recovered-run",
    title: "a run whose process ends in the middle of a sentence, and that another one brings to its end",
    model: Script.make((request) =>
      request.iteration === 1
        ? slowly(...text("Let me see. "), Script.call("lookup", { word: "run" }, "call_1"))
        : request.attempt === 1
          ? slowly(...text("A run is "), Script.hang)
          : slowly(...text("A run ", "goes on."))
    ),
    play: (process) =>
      Effect.gen(function* () {
        const runId = yield* process((engine) =>
          Effect.gen(function* () {
            const run = yield* engine.start({ message: "What is a run?" })
            yield* until(engine, run.runId, "streaming", "Let me see. A run is ".length)
            return run.runId
          })
        )
        yield* pass("1 second")
        yield* process((engine) => until(engine, runId, "completed"))
      })
  }
]

/** One engine after the other on the store of the surroundings. All times, ids and orders are the same each time. */
const processes = (model: Model) => {
  let started = 0
  const layer = Effect.sync(() => `process-${++started}`).pipe(
    Effect.map((owner) =>
      Layer.fresh(
        Engine.layerWith({ commitWindowMs: 0 }).pipe(
          Layer.provide([
            Layer.succeed(Process, {
              owner,
              isGone: (other) => Effect.succeed(other !== owner),
              turn: Effect.yieldNow()
            }),
            Ids.layerSeeded,
            ResumePolicy.layerRestartIteration,
            Agent.layer({ models: { scripted: model }, instructions: "Be brief.", tools })
          ])
        )
      )
    ),
    Layer.unwrapEffect
  )
  return <A, E>(use: (engine: Running) => Effect.Effect<A, E>) => Effect.provide(Effect.flatMap(RunEngine, use), layer)
}

/** The frames of the one run in the store, byte for byte as clients get them. */
const recorded = (engine: Running) =>
  Effect.gen(function* () {
    const { items } = yield* engine.list({})
    const [run] = items
    if (run === undefined || items.length > 1) return yield* Effect.dieMessage(`there are ${items.length} runs`)
    const view = yield* engine.view(run.runId, 0)
    const lines: Array<string> = []
    while (true) {
      const pull = yield* view.pull(lines.length)
      if (pull._tag === "end") return lines
      if (pull._tag === "frames") lines.push(...pull.frames.map(({ json }) => json))
    }
  })

/** Plays a scenario from a fixed moment on, and answers the log. */
export const logOf = (scenario: Scenario) =>
  Effect.gen(function* () {
    const store = yield* Effect.context<RunStore>()
    yield* TestClock.setTime(Date.UTC(2026, 0, 1))
    const process = processes(scenario.model)
    const here = <A, E>(use: (engine: Running) => Effect.Effect<A, E>) =>
      Effect.orDie(Effect.provide(process(use), store))
    yield* scenario.play(here)
    return yield* here(recorded)
  }).pipe(Effect.withRandom(Random.make(scenario.name)))
