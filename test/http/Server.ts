/** A real server over a fake engine, on a free port, with a bare HTTP client that hides nothing. */
import * as Http from "node:http"
import * as PlatformServer from "@effect/platform/HttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Limits } from "../../src/domain/Limits.js"
import type { RunEngine } from "../../src/engine/RunEngine.js"
import * as Auth from "../../src/http/Auth.js"
import * as HttpServer from "../../src/http/HttpServer.js"
import * as Fake from "./FakeEngine.js"

export interface Answer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

export interface Open {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  /** Everything that came so far. */
  readonly text: () => string
  /** Waits until what came so far satisfies the predicate. */
  readonly until: (predicate: (text: string) => boolean) => Effect.Effect<string>
  readonly ended: Effect.Effect<string>
  /** Whether the response came to its proper end, instead of being cut off. */
  readonly complete: () => boolean
  readonly close: Effect.Effect<void>
  readonly pause: Effect.Effect<void>
}

export interface Call {
  readonly method?: string
  readonly path: string
  readonly headers?: Record<string, string | Array<string>>
  readonly body?: string | Buffer | undefined
  readonly json?: unknown
}

export const start = (
  options: {
    readonly heartbeatMs?: number
    readonly limits?: Partial<Limits>
    readonly tokens?: Record<string, string>
    readonly authentication?: Layer.Layer<Auth.Authentication>
    /** Another engine than the one that only looks like one. */
    readonly engine?: Layer.Layer<RunEngine>
  } = {}
) =>
  Effect.gen(function* () {
    const heartbeatMs = options.heartbeatMs ?? 60_000
    const fake = yield* Fake.make({ heartbeatMs })
    const tokens = Object.entries(options.tokens ?? {}).map(([token, user]) => ({ token: Redacted.make(token), user }))
    const authentication = options.authentication ?? (tokens.length === 0 ? Auth.layerNone : Auth.layerTokens(tokens))
    const context = yield* Layer.build(
      HttpServer.layer({ port: 0, limits: { heartbeatMs, ...options.limits } }).pipe(
        Layer.provide([options.engine ?? Fake.layer(fake), authentication])
      )
    )
    const { address } = Context.get(context, PlatformServer.HttpServer)
    if (address._tag !== "TcpAddress") return yield* Effect.die("no port")
    const port = address.port

    const open = ({ body, headers = {}, json, method, path }: Call): Effect.Effect<Open, Error, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.async<Open, Error>((resume) => {
          const text = json === undefined ? body : JSON.stringify(json)
          const request = Http.request({
            port,
            host: "127.0.0.1",
            agent: false,
            path,
            method: method ?? (text === undefined ? "GET" : "POST"),
            headers: { ...(text !== undefined && { "content-type": "application/json" }), ...headers }
          })
          request.on("error", (error) => resume(Effect.fail(error)))
          request.on("response", (response) => {
            let received = ""
            let done = false
            const waiting = new Set<() => void>()
            const settle = () => {
              for (const check of waiting) check()
            }
            response.setEncoding("utf8")
            response.on("data", (chunk: string) => {
              received += chunk
              settle()
            })
            response.on("close", () => {
              done = true
              settle()
            })
            response.on("error", () => {})
            const when = (ready: () => boolean) =>
              Effect.async<string>((resume) => {
                const check = () => {
                  if (!ready() && !done) return
                  waiting.delete(check)
                  resume(Effect.succeed(received))
                }
                waiting.add(check)
                check()
                return Effect.sync(() => void waiting.delete(check))
              })
            resume(
              Effect.succeed({
                status: response.statusCode ?? 0,
                headers: response.headers,
                text: () => received,
                until: (predicate) => when(() => predicate(received)),
                ended: when(() => done),
                complete: () => response.complete,
                close: Effect.sync(() => void request.destroy()),
                pause: Effect.sync(() => void response.pause())
              })
            )
          })
          request.end(text)
        }),
        (opened) => opened.close
      )

    const call = (options: Call): Effect.Effect<Answer, Error> =>
      Effect.scoped(
        Effect.flatMap(open(options), (response) =>
          Effect.map(response.ended, (body) => ({ status: response.status, headers: response.headers, body }))
        )
      )

    return { fake, port, open, call }
  })
