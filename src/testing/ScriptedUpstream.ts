/**
 * A model server for tests that says exactly what a script tells it, on a real socket of the loopback interface, and
 * remembers what it was asked. It runs on the real clock, whatever clock the test uses.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ScriptedUpstream } from "runlet/testing"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const upstream = yield* ScriptedUpstream.make({ strict: true })
 *     return upstream.url
 *   })
 * )
 * ```
 *
 * @since 0.1.0
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberSet from "effect/FiberSet"
import * as Scope from "effect/Scope"
import { byDirective } from "./UpstreamBehaviours.js"
import type { Reply, Script, Step, UpstreamRequest } from "./UpstreamScript.js"
import * as UpstreamScript from "./UpstreamScript.js"

/**
 * - `script`: the answers; by directives in the last user message if absent
 * - `strict`: requests with an unsound history are refused with status 400, see `UpstreamScript.objection`
 * - `port`: 0, a free one, by default
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly script?: Script | undefined
  readonly strict?: boolean | undefined
  readonly port?: number | undefined
}

/**
 * - `url`: the base URL for clients, with `/v1`
 * - `requests`: all of them so far, in order
 * - `received`, `closed`: wait until the `n`-th request (from 0) has arrived, or its answer is over
 * - `release`: opens a gate, for good
 * - `use`: another script from the next request on; numbers go on
 *
 * @since 0.1.0
 * @category models
 */
export interface ScriptedUpstream {
  readonly url: string
  readonly requests: ReadonlyArray<UpstreamRequest>
  readonly received: (n: number) => Effect.Effect<UpstreamRequest>
  readonly closed: (n: number) => Effect.Effect<UpstreamRequest>
  readonly release: (gate: string) => Effect.Effect<void>
  readonly use: (script: Script) => Effect.Effect<void>
}

type Recorded = { -readonly [K in keyof UpstreamRequest]: UpstreamRequest[K] }

/** Deferreds by name, made when somebody asks first. */
const waiters = <A>() => {
  const all = new Map<string, Deferred.Deferred<A>>()
  return (name: string | number): Deferred.Deferred<A> => {
    const key = String(name)
    const known = all.get(key) ?? Deferred.unsafeMake<A>(FiberId.none)
    all.set(key, known)
    return known
  }
}

/**
 * Starts a server that lives as long as the scope.
 *
 * @example
 * import * as Effect from "effect/Effect"
 * import * as ScriptedUpstream from "runlet/testing/ScriptedUpstream"
 * import * as Script from "runlet/testing/UpstreamScript"
 *
 * Effect.gen(function* () {
 *   const upstream = yield* ScriptedUpstream.make({
 *     strict: true,
 *     script: [
 *       Script.calls({ id: "call_a", name: "lookup", args: '{"q":"tide"}' }),
 *       Script.reply([Script.text("The tide "), Script.gate("on"), Script.text("turns."), Script.finish("stop"), Script.done])
 *     ]
 *   })
 *   // … point a model at upstream.url, and start a run
 *   yield* upstream.received(1)
 *   yield* upstream.release("on")
 *   const { aborted, closedAt } = yield* upstream.closed(1)
 * })
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<ScriptedUpstream, never, Scope.Scope> =>
  Effect.gen(function* () {
    const run = yield* FiberSet.makeRuntime<never, void, never>()
    const clock = Clock.make()
    const requests: Array<Recorded> = []
    const received = waiters<UpstreamRequest>()
    const closed = waiters<UpstreamRequest>()
    const gates = waiters<void>()
    const connections = new WeakMap<Socket, number>()
    let connectionCount = 0
    let script: Script = options.script ?? byDirective

    const replyTo = (request: Recorded): Reply => {
      if (options.strict === true) request.refused = UpstreamScript.objection(UpstreamScript.messagesOf(request))
      if (request.refused !== undefined) {
        const error = { message: request.refused, type: "invalid_request_error" }
        return UpstreamScript.body(400, "application/json", JSON.stringify({ error }))
      }
      if (typeof script === "function") return script(request)
      return script[request.n] ?? script.at(-1) ?? UpstreamScript.answer("Done.")
    }

    const server = createServer((incoming, response) => {
      const pieces: Array<Buffer> = []
      incoming.on("data", (piece: Buffer) => pieces.push(piece))
      incoming.on("end", () => {
        const request = record(incoming, Buffer.concat(pieces).toString("utf8"))
        const fiber = run(play(response, replyTo(request), gates))
        response.on("error", () => undefined)
        response.on("close", () => {
          request.closedAt = clock.unsafeCurrentTimeMillis()
          request.aborted = fiber.unsafePoll() === null
          run(Fiber.interruptFork(fiber))
          Deferred.unsafeDone(closed(request.n), Effect.succeed(request))
        })
        Deferred.unsafeDone(received(request.n), Effect.succeed(request))
      })
    })
    server.on("connection", (socket) => {
      socket.setNoDelay(true)
      connections.set(socket, connectionCount++)
    })

    const record = (incoming: IncomingMessage, text: string): Recorded => {
      const request: Recorded = {
        n: requests.length,
        method: incoming.method ?? "",
        path: incoming.url ?? "",
        headers: incoming.headers,
        text,
        body: parse(text),
        at: clock.unsafeCurrentTimeMillis(),
        connection: connections.get(incoming.socket) ?? -1,
        closedAt: undefined,
        aborted: false,
        refused: undefined
      }
      requests.push(request)
      return request
    }

    yield* Effect.acquireRelease(listen(server, options.port ?? 0), () => close(server))
    const { port } = server.address() as AddressInfo
    return {
      url: `http://127.0.0.1:${port}/v1`,
      requests,
      received: (n) => Deferred.await(received(n)),
      closed: (n) => Deferred.await(closed(n)),
      release: (gate) => Effect.asVoid(Deferred.succeed(gates(gate), undefined)),
      use: (next) =>
        Effect.sync(() => {
          script = next
        })
    }
  })

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const listen = (server: Server, port: number): Effect.Effect<void> =>
  Effect.async((resume) => {
    server.once("error", (error) => resume(Effect.die(error)))
    server.listen(port, "127.0.0.1", () => resume(Effect.void))
  })

const close = (server: Server): Effect.Effect<void> =>
  Effect.async((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

const play = (
  response: ServerResponse,
  reply: Reply,
  gates: (name: string) => Deferred.Deferred<void>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (reply.head === "never") return yield* Effect.never
    if (reply.headAfterMs !== undefined) yield* Effect.sleep(reply.headAfterMs)
    if (reply.framing === "close") response.useChunkedEncodingByDefault = false
    response.writeHead(reply.status ?? 200, {
      "content-type": "text/event-stream",
      ...(reply.framing === "close" && { connection: "close" }),
      ...reply.headers
    })
    response.flushHeaders()
    for (const step of reply.steps) yield* take(response, step, reply.pieceBytes, gates)
    switch (reply.end ?? "end") {
      case "end":
        response.end()
        return
      case "fin":
        response.socket?.end()
        return
      case "reset":
        response.socket?.resetAndDestroy()
        return
      case "open":
        return yield* Effect.never
    }
  }).pipe(Effect.withClock(Clock.make()))

const take = (
  response: ServerResponse,
  step: Step,
  pieceBytes: number | undefined,
  gates: (name: string) => Deferred.Deferred<void>
): Effect.Effect<void> => {
  if ("waitMs" in step) return Effect.sleep(step.waitMs)
  if ("gate" in step) return Deferred.await(gates(step.gate))
  const bytes = "text" in step ? Buffer.from(step.text, "utf8") : Buffer.from(step.base64, "base64")
  if (pieceBytes === undefined) return write(response, bytes)
  const pieces: Array<Buffer> = []
  for (let i = 0; i < bytes.length; i += pieceBytes) pieces.push(bytes.subarray(i, i + pieceBytes))
  // One turn of the event loop for each piece keeps the kernel from being handed them together.
  return Effect.forEach(pieces, (piece) => Effect.zipRight(write(response, piece), turn), { discard: true })
}

const write = (response: ServerResponse, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.async((resume) => {
    response.write(bytes, () => resume(Effect.void))
  })

const turn: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})

/**
 * The same server without Effect, for a process of its own: `start({ port: 9000 })` answers by the directives of
 * `UpstreamBehaviours`, or by a script that was read from JSON.
 *
 * @since 0.1.0
 * @category constructors
 */
export const start = async (
  options: Options = {}
): Promise<{
  readonly url: string
  readonly requests: ReadonlyArray<UpstreamRequest>
  readonly stop: () => Promise<void>
}> => {
  const scope = Effect.runSync(Scope.make())
  const upstream = await Effect.runPromise(Scope.extend(make(options), scope))
  return {
    url: upstream.url,
    requests: upstream.requests,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
