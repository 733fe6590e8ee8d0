/**
 * Two services that share a database, and know nothing of each other. `node two-services.mjs desk` takes customers' requests
 * over HTTP. `node two-services.mjs office` decides about refunds: small ones by a rule, all others are left to people.
 * Either of them executes runs; when one dies, the other one goes on with what it did.
 */

import * as PlatformServer from "@effect/platform/HttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { Agent, Demo, EffectTool, RunEngine } from "../../src/index.js"
import { Auth, HttpServer, Runlet } from "../../src/node/index.js"

const Refund = Schema.Struct({ order: Schema.String, euros: Schema.Number.pipe(Schema.positive()) })

// Both services have the same agent: whichever executes a run must be able to go on with it.
const refund = EffectTool.make({
  name: "refund",
  description: "Gives money back",
  // It can not be taken back, so somebody is asked before each. With the key, a second try is not a second refund.
  kind: "effectful",
  idempotent: true,
  parameters: Refund,
  execute: ({ euros, order }, { idempotencyKey }) => Effect.succeed({ order, refunded: euros, receipt: idempotencyKey })
})

const agent = Agent.layer({ models: { demo: Demo.make({ pace: "10 millis" }) }, tools: [refund] })
const engine = Runlet.layer({ filename: process.env.DATABASE ?? "./refunds/runs.db" }).pipe(Layer.provide(agent))

const desk = HttpServer.layer({ port: Number(process.env.PORT ?? 8080) }).pipe(
  Layer.tap((services) => Effect.provide(PlatformServer.addressFormattedWith(Console.log), services)),
  Layer.provide([engine, Auth.layerNone])
)

/** Approves what is small. A request is answered once, whoever is quicker; what was shown is what is approved. */
const decide = Effect.gen(function* () {
  const engine = yield* RunEngine.RunEngine
  const { items } = yield* engine.list({ status: "waiting_approval" })
  for (const { runId } of items) {
    const { pendingApprovals } = yield* engine.snapshot(runId)
    for (const { approvalId, input, previewHash, reason } of pendingApprovals) {
      if (reason !== "effectful" || !Schema.is(Refund)(input) || input.euros > 50) continue
      yield* engine.decide(runId, approvalId, { decision: "approve", previewHash, reason: "a small refund" })
      yield* Console.log(`approved ${input.euros} euros for order ${input.order}`)
    }
  }
}).pipe(Effect.catchTags({ Conflict: () => Effect.void, NotFound: () => Effect.void }))

const office = Layer.scopedDiscard(Effect.forkScoped(Effect.repeat(decide, Schedule.spaced("200 millis")))).pipe(
  Layer.provide(engine)
)

NodeRuntime.runMain(Layer.launch(process.argv[2] === "office" ? office : Layer.discard(desk)))
