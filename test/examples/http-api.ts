/**
 * Runs inside an `HttpApi` of one's own: a shop whose customers ask about their orders. Its endpoints, names and errors are
 * the shop's; what is behind them is the engine. Runlet's own server is not used.
 */
import { createServer } from "node:http"
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as HttpServer from "@effect/platform/HttpServer"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Agent, Demo, EffectTool, Owner, RunEngine, RunError } from "../../src/index.js"
import { Runlet } from "../../src/node/index.js"

const orders = new Map([["17", { customer: "ada", state: "on its way" }]])

const orderState = EffectTool.make({
  name: "order_state",
  description: "Where an order is",
  kind: "readonly",
  parameters: Schema.Struct({ order: Schema.String }),
  execute: ({ order }) => Effect.succeed({ state: orders.get(order)?.state ?? "unknown" })
})

const customer = Schema.Struct({ customer: Schema.String })
const answer = Schema.Struct({ answer: Schema.String })
const watching = Schema.Struct({ ...customer.fields, "last-event-id": Schema.optional(Schema.NumberFromString) })

// The contract. What can go wrong in the engine are schemas, so it can be part of it.
const shop = HttpApi.make("shop").add(
  HttpApiGroup.make("answers")
    .add(
      HttpApiEndpoint.post("ask", "/orders/:order/questions")
        .setPath(Schema.Struct({ order: Schema.String }))
        .setHeaders(customer)
        .addSuccess(answer, { status: 202 })
    )
    .add(
      HttpApiEndpoint.get("watch", "/answers/:answer")
        .setPath(answer)
        .setHeaders(watching)
        .addSuccess(HttpApiSchema.Text({ contentType: "text/event-stream" }))
    )
    .add(
      HttpApiEndpoint.post("stop", "/answers/:answer/stop")
        .setPath(answer)
        .setHeaders(customer)
        .addSuccess(Schema.Struct({ status: Schema.String }))
    )
    .addError(RunError.InvalidCursor, { status: 400 })
    .addError(RunError.NotFound, { status: 404 })
    .addError(RunError.Conflict, { status: 409 })
    .addError(RunError.Compacted, { status: 410 })
    .addError(RunError.Unprocessable, { status: 422 })
    .addError(RunError.LimitReached, { status: 429 })
    .addError(RunError.Unavailable, { status: 503 })
)

const answers = HttpApiBuilder.group(shop, "answers", (handlers) =>
  Effect.map(RunEngine.RunEngine, (engine) =>
    handlers
      .handle("ask", ({ headers, path }) =>
        Effect.gen(function* () {
          if (orders.get(path.order)?.customer !== headers.customer) {
            return yield* new RunError.NotFound({ message: "There is no such order." })
          }
          // The answer is made whether or not somebody watches. It belongs to the customer, and for others there is none.
          // A real shop knows its customers by their sessions.
          const { runId } = yield* engine.start({ message: `/call order_state {"order":"${path.order}"}` })
          return { answer: runId }
        }).pipe(Effect.provideService(Owner.CurrentUser, headers.customer))
      )
      .handle("watch", ({ headers, path }) =>
        Effect.gen(function* () {
          const after = headers["last-event-id"]
          // Fails while there is still a status to say it with.
          yield* engine.view(path.answer, after ?? 0)
          const events = engine.events(path.answer, { after }).pipe(
            // The id is the place in the log: an EventSource that lost its connection comes back to it by itself.
            Stream.map(({ event, seq }) => `id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`),
            Stream.encodeText,
            Stream.provideService(Owner.CurrentUser, headers.customer)
          )
          return HttpServerResponse.stream(events, { contentType: "text/event-stream" })
        }).pipe(Effect.provideService(Owner.CurrentUser, headers.customer))
      )
      .handle("stop", ({ headers, path }) =>
        Effect.provideService(engine.cancel(path.answer), Owner.CurrentUser, headers.customer)
      )
  )
)

const agent = Agent.layer({ models: { demo: Demo.make({ pace: "5 millis" }) }, tools: [orderState] })
const engine = Runlet.layer({ filename: "./shop/runs.db" }).pipe(Layer.provide(agent))

const server = HttpApiBuilder.serve().pipe(
  HttpServer.withLogAddress,
  Layer.provide(Layer.provide(HttpApiBuilder.api(shop), answers)),
  Layer.provide(engine),
  Layer.provide(NodeHttpServer.layer(createServer, { port: Number(process.env.PORT ?? 8080) }))
)

NodeRuntime.runMain(Layer.launch(server))
