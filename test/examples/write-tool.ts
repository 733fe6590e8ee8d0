import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, Demo, EffectTool, RunEngine, SqlClients, Tool } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

const Shown = Schema.Struct({ version: Schema.Int })

// A note with a version, in the same database as the runs.
const setNote = Effect.gen(function* () {
  const read = yield* SqlClients.ReadClient
  const write = yield* SqlClients.WriteClient
  yield* write`CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY CHECK (id = 1), text TEXT, version INTEGER)`
  yield* write`INSERT INTO note VALUES (1, 'nothing yet', 1) ON CONFLICT DO NOTHING`
  const current = Effect.map(
    Effect.orDie(read<{ readonly text: string; readonly version: number }>`SELECT text, version FROM note`),
    ([note]) => note ?? { text: "", version: 0 }
  )
  return EffectTool.make({
    name: "set_note",
    description: "Replaces the note",
    kind: "write",
    parameters: Schema.Struct({ text: Schema.String }),
    // A dry run: what the person is shown, and what the commit relies on.
    preview: ({ text }) => Effect.map(current, ({ text: before, version }) => ({ before, after: text, version })),
    // Runs only after the person has said yes to this very preview.
    commit: ({ text }, { preview }) =>
      Effect.map(Effect.orDie(Schema.decodeUnknown(Shown)(preview)), ({ version }) => ({
        result: { version: version + 1 },
        // Part of the transaction that records the result: the change and its record happen together or not at all.
        within:
          write`UPDATE note SET text = ${text}, version = version + 1 WHERE version = ${version} RETURNING version`.pipe(
            Effect.orDie,
            Effect.filterOrFail(
              (rows) => rows.length === 1,
              () => new Tool.ToolConflict({ message: "Somebody else has changed the note." })
            ),
            Effect.asVoid
          )
      }))
  })
})

const agent = Layer.effect(
  Agent.Agent,
  Effect.map(setNote, (tool) => Agent.make({ models: { demo: Demo.make({ pace: "1 millis" }) }, tools: [tool] }))
)
const layer = Runlet.layerEngine({}).pipe(
  Layer.provide(agent),
  Layer.provideMerge(Runlet.layerStore({ filename: "./write-tool/runs.db" }))
)

const program = Effect.gen(function* () {
  const engine = yield* RunEngine.RunEngine
  const run = yield* engine.start({ message: '/call set_note {"text":"buy milk"}' })
  // The run is parked while it waits: it holds no fiber and no memory, and survives a restart of the process.
  const [request] = yield* engine.events(run.runId).pipe(
    Stream.filterMap(({ event }) => (event.type === "approval-request" ? Option.some(event) : Option.none())),
    Stream.take(1),
    Stream.runCollect
  )
  if (request === undefined) return yield* Effect.dieMessage("nothing was asked")
  yield* Console.log(`asked: ${JSON.stringify(request.preview)}`)
  const { approvalId, previewHash } = request
  yield* engine.decide(run.runId, approvalId, { decision: "approve", previewHash })
  yield* Stream.runDrain(engine.events(run.runId))
  const { toolCalls } = yield* engine.snapshot(run.runId)
  yield* Console.log(`${toolCalls.map(({ state }) => state)}: ${JSON.stringify(toolCalls[0]?.result)}`)
  const read = yield* SqlClients.ReadClient
  yield* Console.log(JSON.stringify(yield* read`SELECT text, version FROM note`))
})

NodeRuntime.runMain(Effect.provide(program, layer))
