/**
 * A toolkit of one's own: tools of `@effect/ai` with the layer of their handlers, which other programs may use as well, and
 * a write tool beside them, which shows what it would do before a person lets it.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { AiTool } from "../../src/ai.js"
import { Agent, Demo, EffectTool, RunEngine, Tool as RunletTool } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

// What the tools work on. They get it from their surroundings, as everything in Effect does.
class Shelf extends Context.Tag("Shelf")<Shelf, Ref.Ref<{ readonly jars: number; readonly version: number }>>() {}

const shelf = Layer.effect(Shelf, Ref.make({ jars: 3, version: 1 }))

// `Readonly` is read: such a tool runs unasked. Without it a person would be asked before every call.
const Count = Tool.make("count_jars", { description: "How many jars are left", success: Schema.Int }).annotate(
  Tool.Readonly,
  true
)

const Kitchen = Toolkit.make(Count)

const handlers = Kitchen.toLayer(
  Effect.map(Shelf, (jars) => ({ count_jars: () => Effect.map(Ref.get(jars), ({ jars }) => jars) }))
)

const Shown = Schema.Struct({ version: Schema.Int })

const take = EffectTool.makeWith({
  name: "take_jars",
  description: "Takes jars from the shelf",
  kind: "write",
  parameters: Schema.Struct({ jars: Schema.Int.pipe(Schema.positive()) }),
  // A dry run. The person sees it, and the commit gets it back.
  preview: ({ jars }) =>
    Effect.gen(function* () {
      const now = yield* Ref.get(yield* Shelf)
      if (jars > now.jars) return yield* new RunletTool.ToolFailure({ message: `There are only ${now.jars} jars.` })
      return { before: now.jars, after: now.jars - jars, version: now.version }
    }),
  // Somebody else may have been at the shelf since: then nothing is done, and the person is shown the new state.
  commit: ({ jars }, { preview }) =>
    Effect.gen(function* () {
      const { version } = yield* Effect.orDie(Schema.decodeUnknown(Shown)(preview))
      const left = yield* Ref.modify(yield* Shelf, (now) =>
        now.version === version ? [now.jars - jars, { jars: now.jars - jars, version: version + 1 }] : [undefined, now]
      )
      if (left === undefined) return yield* new RunletTool.ToolConflict({ message: "The shelf has changed." })
      return { result: { left } }
    })
})

const agent = Layer.effect(
  Agent.Agent,
  Effect.gen(function* () {
    const tools = [...(yield* AiTool.fromToolkit(Kitchen)), yield* take]
    return Agent.make({ models: { demo: Demo.make({ pace: "1 millis" }) }, tools })
  })
).pipe(Layer.provide(handlers), Layer.provide(shelf))

const layer = Runlet.layer({ filename: "./toolkit/runs.db" }).pipe(Layer.provide(agent))

/** A run to its end, with everything approved that it asks. */
const run = (message: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine.RunEngine
    yield* engine.stream({ message }).pipe(
      Stream.runForEach(({ event, runId }) => {
        switch (event.type) {
          case "approval-request":
            return Effect.zipRight(
              Console.log(`${event.toolName} asks: ${JSON.stringify(event.preview)}`),
              engine.decide(runId, event.approvalId, { decision: "approve", previewHash: event.previewHash })
            )
          case "tool-call-result":
            return Console.log(`${event.toolName}, ${event.state}: ${JSON.stringify(event.result)}`)
          default:
            return Effect.void
        }
      })
    )
  })

const program = run("/call count_jars {}").pipe(
  Effect.zipRight(run('/call take_jars {"jars":2}')),
  Effect.zipRight(run('/call take_jars {"jars":2}'))
)

NodeRuntime.runMain(Effect.provide(program, layer))
