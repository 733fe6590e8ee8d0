/**
 * An agent in a terminal, in one process with its engine: `node cli-agent.mjs "What is in notes.txt?"`. Words appear as they
 * come; before a file is written the agent shows the change and asks. Ctrl-C stops the run and what it costs.
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import { FileSystem } from "@effect/platform/FileSystem"
import { Terminal } from "@effect/platform/Terminal"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, Demo, EffectTool, type Envelope, RunEngine, Tool } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

// A model's word is no path: it may name files of the working directory and nothing else.
const file = Schema.String.pipe(Schema.pattern(/^\w[\w.-]*$/))

const contentOf = (file: string) =>
  Effect.flatMap(FileSystem, (files) => Effect.orElseSucceed(files.readFileString(file), () => null))

const readFile = EffectTool.makeWith({
  name: "read_file",
  description: "Reads a file",
  kind: "readonly",
  parameters: Schema.Struct({ file }),
  execute: ({ file }) =>
    Effect.flatMap(contentOf(file), (text) =>
      text === null ? new Tool.ToolFailure({ message: `There is no file ${file}.` }) : Effect.succeed({ text })
    )
})

const Shown = Schema.Struct({ before: Schema.NullOr(Schema.String) })

const writeFile = EffectTool.makeWith({
  name: "write_file",
  description: "Replaces the text of a file",
  kind: "write",
  parameters: Schema.Struct({ file, text: Schema.String }),
  preview: ({ file, text }) => Effect.map(contentOf(file), (before) => ({ file, before, after: text })),
  commit: ({ file, text }, { preview }) =>
    Effect.gen(function* () {
      const shown = yield* Effect.orDie(Schema.decodeUnknown(Shown)(preview))
      if ((yield* contentOf(file)) !== shown.before) return yield* new Tool.ToolConflict({})
      yield* Effect.orDie(Effect.flatMap(FileSystem, (files) => files.writeFileString(file, text)))
      return { result: { written: text.length } }
    })
})

const agent = Layer.effect(
  Agent.Agent,
  Effect.map(Effect.all([readFile, writeFile]), (tools) =>
    Agent.make({ models: { demo: Demo.make({ pace: "2 millis" }) }, tools })
  )
)

const yes = (question: string) =>
  Effect.gen(function* () {
    const terminal = yield* Terminal
    yield* terminal.display(`${question} [y/N] `)
    return /^y(es)?$/i.test((yield* terminal.readLine).trim())
  })

/** What a person sees of an event. The answer is the program's output, all else is beside it. */
const show = ({ event, runId }: Envelope.Envelope) =>
  Effect.gen(function* () {
    const terminal = yield* Terminal
    const engine = yield* RunEngine.RunEngine
    switch (event.type) {
      case "text-delta":
        return yield* terminal.display(event.delta)
      case "tool-call-ready":
        return yield* Console.error(`· ${event.toolName} ${JSON.stringify(event.input)}`)
      case "approval-request": {
        yield* Console.error(JSON.stringify(event.preview, null, 2))
        const decision = (yield* yes(`${event.toolName}?`)) ? "approve" : "reject"
        return yield* engine.decide(runId, event.approvalId, { decision, previewHash: event.previewHash })
      }
      case "finish":
        return yield* terminal.display("\n")
      case "error":
        return yield* Effect.dieMessage(event.message)
    }
  })

const ask = Command.make(
  "agent",
  {
    question: Args.text({ name: "question" }),
    data: Options.text("data").pipe(Options.withDefault("./.agent/runs.db"))
  },
  ({ question }) =>
    Effect.flatMap(RunEngine.RunEngine, (engine) =>
      // Interrupting this stream, as Ctrl-C does, cancels the run.
      Stream.runForEach(engine.stream({ message: question }), show)
    )
).pipe(Command.provide(({ data }) => Layer.provide(Runlet.layer({ filename: data }), agent)))

const program = Command.run(ask, { name: "An agent in a terminal", version: "0.1.0" })(process.argv)

NodeRuntime.runMain(Effect.provide(program, NodeContext.layer))
