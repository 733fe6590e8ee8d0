import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { ConsoleSpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Agent, Demo, RunEngine } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

// The program's telemetry, as it may have it already, with an exporter that sends to a collector.
const telemetry = NodeSdk.layer(() => ({
  resource: { serviceName: "orders" },
  spanProcessor: new SimpleSpanProcessor(new ConsoleSpanExporter())
}))

const runlet = Runlet.layer({ filename: "./traced/runs.db" }).pipe(
  Layer.provide(Agent.layer({ models: { demo: Demo.make() } }))
)

// What a run does hangs below the span of whoever has started it.
const program = Effect.flatMap(RunEngine.RunEngine, (engine) =>
  engine.stream({ message: "/long 3" }).pipe(Stream.runDrain, Effect.withSpan("handle order"))
)

NodeRuntime.runMain(program.pipe(Effect.provide(runlet), Effect.provide(telemetry)))
