/**
 * The server: the contract on a socket, and how it stops. When its layer is released it refuses new work, lets runs
 * come to a boundary, ends every stream cleanly and closes connections, all within the grace time.
 *
 * @since 0.1.0
 */
import * as Http from "node:http"
import * as Etag from "@effect/platform/Etag"
import { FileSystem } from "@effect/platform/FileSystem"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import { HttpPlatform } from "@effect/platform/HttpPlatform"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as PlatformServer from "@effect/platform/HttpServer"
import type { ServeError } from "@effect/platform/HttpServerError"
import { Path } from "@effect/platform/Path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Limits from "../domain/Limits.js"
import * as Metrics from "../domain/Metrics.js"
import { RunEngine } from "../engine/RunEngine.js"
import * as Assets from "./Assets.js"
import { Authentication, layerAuthorization } from "./Auth.js"
import * as Connections from "./Connections.js"
import * as Errors from "./Errors.js"
import * as HandlersAgUi from "./HandlersAgUi.js"
import * as HandlersAiSdk from "./HandlersAiSdk.js"
import * as HandlersChat from "./HandlersChat.js"
import * as HandlersConversations from "./HandlersConversations.js"
import * as HandlersDurableStreams from "./HandlersDurableStreams.js"
import * as HandlersMetrics from "./HandlersMetrics.js"
import * as HandlersRuns from "./HandlersRuns.js"
import * as HandlersServer from "./HandlersServer.js"
import * as LogBody from "./LogBody.js"
import { RunsApi } from "./RunsApi.js"
import * as Serving from "./Serving.js"

/**
 * - `port`: 0 takes any free one; the address is in the layer's `HttpServer`
 * - `traceUrl`: where a person looks at traces, with `{traceId}` in it, for the replay page to link to
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly limits?: Partial<Limits.Limits> | undefined
  readonly traceUrl?: string | undefined
}

/** How often connections that became idle are closed while the server stops. */
const sweepMs = 25

/** The part of the grace time that runs may take to come to a boundary; the rest is for their viewers. */
const shareOfRuns = 0.6

const drain = (connections: Connections.Connections, engine: RunEngine["Type"], serving: Serving.Serving["Type"]) =>
  Effect.gen(function* () {
    const graceMs = serving.limits.shutdownGraceMs
    const began = yield* Clock.currentTimeMillis
    yield* connections.retire
    yield* serving.refuse
    yield* engine.drain.pipe(Effect.interruptible, Effect.disconnect, Effect.timeoutOption(graceMs * shareOfRuns))
    // One sweep's time for viewers to read what the runs wrote last; a view that can tell ends by itself.
    yield* Effect.sleep(sweepMs)
    const left = Math.max(0, began + graceMs - (yield* Clock.currentTimeMillis)) * 0.9
    yield* serving.endStreams.pipe(
      Effect.zipRight(connections.sweep),
      Effect.repeat({ schedule: Schedule.spaced(sweepMs), until: (open) => open === 0 }),
      Effect.interruptible,
      Effect.timeoutOption(left)
    )
    yield* connections.close
  })

const serve = (options: Options) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const serving = yield* Serving.Serving
    const { maxConnections, maxHeaderBytes, requestTimeoutMs } = serving.limits
    const node = Http.createServer({
      maxHeaderSize: maxHeaderBytes,
      // Who does not come to the point is not waited for.
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.max(50, Math.min(5_000, requestTimeoutMs / 4)),
      // Finds out about readers that vanished without a word.
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      // Longer than the idle time of common proxies, which otherwise send a request into a closing connection.
      keepAliveTimeout: 65_000
    })
    node.maxConnections = Math.min(maxConnections, yield* Connections.bearable)
    node.on("drop", () => Metrics.limitReached("maxConnections"))
    const connections = Connections.watch(node)
    const server = yield* NodeHttpServer.make(() => node, {
      host: options.host ?? "127.0.0.1",
      port: options.port ?? 4747
    })
    // A client's name for a conversation may have 256 characters, of which each may be nine in an address.
    const app = yield* HttpRouter.withRouterConfig(HttpApiBuilder.httpApp, {
      caseSensitive: true,
      maxParamLength: 2304
    })
    const written = yield* LogBody.make(serving)
    const handler = yield* NodeHttpServer.makeHandler(Effect.flatMap(app, written)).pipe(
      // A span of a request would last as long as somebody watches, would be made for every probe, and would hold every
      // header. What a request starts has a span of its own.
      HttpMiddleware.withTracerDisabledWhenEffect(() => true),
      // Every request copies what it is given, several times. Handlers have their own services.
      Effect.mapInputContext((all: Context.Context<HttpRouter.HttpRouter.DefaultServices>) =>
        Context.pick(HttpPlatform, Etag.Generator, FileSystem, Path)(all)
      )
    )
    node.on("request", connections.inTurn(handler))
    yield* Effect.addFinalizer(() => drain(connections, engine, serving))
    return server
  })

/**
 * Serves the contract, the pages and the reference. Fails when the address can not be taken.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<PlatformServer.HttpServer, ServeError, RunEngine | Authentication> => {
  const serving = Layer.scoped(
    Serving.Serving,
    Effect.flatMap(Authentication, ({ limited }) =>
      Serving.make({ limits: { ...Limits.defaults, ...options.limits }, limited })
    )
  )
  const groups = Layer.mergeAll(
    HandlersChat.layer,
    HandlersRuns.layer,
    HandlersConversations.layer,
    HandlersServer.layer,
    HandlersMetrics.layer,
    HandlersAiSdk.layer,
    HandlersAgUi.layer,
    HandlersDurableStreams.layer
  )
  const api = HttpApiBuilder.api(RunsApi).pipe(Layer.provide(groups), Layer.provide(layerAuthorization))
  return Layer.scoped(PlatformServer.HttpServer, serve(options)).pipe(
    Layer.provide([api, Assets.layer(options), Errors.layer]),
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(NodeHttpServer.layerContext),
    Layer.provide(serving)
  )
}
