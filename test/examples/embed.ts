import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, Demo, EffectTool, RunEngine } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

// A tool: its input and its result are schemas, its handler is an Effect.
const countWords = EffectTool.make({
  name: "count_words",
  description: "Counts the words of a text",
  kind: "readonly",
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({ words: Schema.Int }),
  execute: ({ text }) => Effect.succeed({ words: text.split(/\s+/).filter((word) => word !== "").length })
})

const agent = Agent.layer({ models: { demo: Demo.make() }, tools: [countWords] })

// Everything but a server: an SQLite file, the engine, and the agent.
const layer = Runlet.layer({ filename: "./embedded/runs.db" }).pipe(Layer.provide(agent))

const program = Effect.gen(function* () {
  const engine = yield* RunEngine.RunEngine

  // A run as a stream of its events. Interrupting the stream cancels the run.
  yield* engine
    .stream({ message: '/call count_words {"text":"one two three"}' })
    .pipe(
      Stream.runForEach(({ event }) =>
        event.type === "tool-call-result" ? Console.log(event.toolName, JSON.stringify(event.result)) : Effect.void
      )
    )
  const [last] = (yield* engine.list({ limit: 1 })).items
  yield* Console.log(last?.status, last?.lastSeq)

  // A run of its own, detached from whoever started it.
  const run = yield* engine.start({ message: "/long 5000" })
  const firstWord = engine.events(run.runId).pipe(Stream.takeUntil(({ event }) => event.type === "text-delta"))

  // A view of its log: when a viewer leaves, the run goes on, and the next one begins behind any seq.
  const seen = yield* Stream.runCount(firstWord)
  const next = yield* Stream.runHead(engine.events(run.runId, { after: seen }))
  yield* Console.log((yield* engine.snapshot(run.runId)).status, Option.getOrThrow(next).seq - seen)

  const end = yield* engine.cancel(run.runId, { reason: "enough" })
  const { text } = yield* engine.snapshot(run.runId)
  yield* Console.log(end.status, text.length > 0 ? "keeping its text" : "without text")
})

NodeRuntime.runMain(Effect.provide(program, layer))
