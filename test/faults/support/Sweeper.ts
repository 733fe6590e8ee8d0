/** A process that does nothing but look after retention in the database that it is given, until it is ended. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../../src/agent/Agent.js"
import * as Runlet from "../../../src/node/Runlet.js"
import * as Script from "../../../src/testing/ScriptedModel.js"

const [filename = ""] = process.argv.slice(2)

const silent = Script.make(() => Script.turn(Script.text("half"), Script.hang))

const stack = Runlet.layer({ filename, sweepMs: 20, retention: { eventsMs: 1, runsMs: 3_600_000 } }).pipe(
  Layer.provide(Agent.layer({ models: { m: silent } }))
)

void Effect.runPromise(Layer.launch(stack))
