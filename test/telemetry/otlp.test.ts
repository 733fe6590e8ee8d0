import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as Cli from "../../src/cli/Cli.js"
import * as Telemetry from "../../src/node/Telemetry.js"
import * as Wiring from "../../src/node/Wiring.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Script from "../../src/testing/UpstreamScript.js"

interface Delivery {
  readonly url: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

/** A server that keeps what it is sent, such as a collector; a silent one never answers. */
const collector = ({ answer = "", silent = false } = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{
        readonly server: Http.Server
        readonly got: Array<Delivery>
        readonly waiting: Set<() => void>
      }>((resume) => {
        const got: Array<Delivery> = []
        const waiting = new Set<() => void>()
        const server = Http.createServer((request, response) => {
          const pieces: Array<Buffer> = []
          request.on("data", (piece: Buffer) => pieces.push(piece))
          request.on("end", () => {
            got.push({ url: request.url ?? "", headers: request.headers, body: Buffer.concat(pieces).toString("utf8") })
            if (!silent) response.end(answer)
            for (const look of waiting) look()
          })
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, got, waiting })))
      }),
      ({ server }) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    ({ got, server, waiting }) => ({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      got,
      until: (done: (got: ReadonlyArray<Delivery>) => boolean) =>
        Effect.async<void>((resume) => {
          const look = () => {
            if (done(got)) resume(Effect.void)
          }
          waiting.add(look)
          look()
        }).pipe(Effect.timeoutFail({ duration: "20 seconds", onTimeout: () => "Nothing came" }), Effect.orDie)
    })
  )

/** `runlet serve` with this environment and configuration; its address. */
const serve = (environment: Readonly<Record<string, string>>, config: unknown = {}) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-otlp-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const file = join(directory, "config.json")
    yield* Effect.sync(() => writeFileSync(file, JSON.stringify(config)))
    const ready = yield* Deferred.make<string>()
    const console = yield* Console.consoleWith(Effect.succeed)
    const listening: Console.Console = {
      ...console,
      log: (line: string) => Effect.asVoid(Deferred.succeed(ready, line))
    }
    const flags = ["--config", file, "--port", "0", "--data", join(directory, "a.db")]
    yield* Cli.run(Wiring.layer)(["node", "runlet", "serve", ...flags]).pipe(
      Console.withConsole(listening),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(environment)))),
      Effect.provide(NodeContext.layer),
      Effect.forkScoped
    )
    return /http:\S+/.exec(yield* Deferred.await(ready))?.[0] ?? ""
  })

const ask = (url: string) =>
  Effect.promise(async () => {
    const answer = await fetch(`${url}/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ message: "hello canary-71c3" })
    })
    return answer.text()
  })

describe("OTLP", () => {
  it.scopedLive("spans of the server's runs reach the collector, without secrets or content", () =>
    Effect.gen(function* () {
      const { got, until, url } = yield* collector()
      const server = yield* serve({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20secret-8d41f0,x-team=blue",
        OTEL_SERVICE_NAME: "assistant"
      })
      const log = yield* ask(server)
      expect(log).toContain('"type":"finish"')
      const [, traceId = ""] = /"trace":"00-([0-9a-f]{32})-/.exec(log) ?? []
      yield* until((all) => all.some(({ body }) => body.includes("invoke_agent")))
      const all = got.map(({ body }) => body).join("\n")
      expect(got[0]?.url).toBe("/v1/traces")
      expect(got[0]?.headers).toMatchObject({ authorization: "Bearer secret-8d41f0", "x-team": "blue" })
      expect(all).toContain(`"traceId":"${traceId}"`)
      expect(all).toContain('"assistant"')
      for (const name of ["runlet.start", "runlet.iteration", "chat demo"]) expect(all).toContain(`"name":"${name}"`)
      expect(all).toContain('{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":')
      expect(all).not.toMatch(/secret-8d41f0|canary-71c3|GET |POST |sql/)
    })
  )

  it.scopedLive("the models and tools that are named, and no others, are told in which span they are called", () =>
    Effect.gen(function* () {
      const { got, until, url } = yield* collector()
      const mine = yield* collector({ answer: "{}" })
      const strange = yield* collector({ answer: "{}" })
      const hostOf = (address: string) => new URL(address).host
      const upstream = yield* ScriptedUpstream.make({
        script: ({ n }) =>
          n % 2 === 0
            ? Script.calls({ id: "a", name: "mine", args: "{}" }, { id: "b", name: "strange", args: "{}" })
            : Script.answer("Done.")
      })
      const tool = (name: string, { url }: { readonly url: string }) => ({
        ...{ name, url, description: name, kind: "readonly" }
      })
      const config = {
        models: { scripted: { provider: "openai-compatible", baseUrl: upstream.url } },
        tools: [tool("mine", mine), tool("strange", strange)]
      }
      const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }
      const propagateTo = [hostOf(upstream.url), hostOf(mine.url)]
      expect(yield* ask(yield* serve(environment, { ...config, telemetry: { propagateTo } }))).toContain('"finish"')
      yield* until((all) => all.some(({ body }) => body.includes("invoke_agent")))
      const spans: ReadonlyArray<Record<string, string>> = got.flatMap(({ body }) =>
        JSON.parse(body).resourceSpans[0].scopeSpans.flatMap((scope: { spans: unknown }) => scope.spans)
      )
      const named = (name: string) =>
        spans.filter((span) => span.name === name).map(({ spanId, traceId }) => `00-${traceId}-${spanId}-01`)
      expect(named("chat scripted").length).toBe(2)
      expect(upstream.requests.map(({ headers }) => headers.traceparent)).toEqual(named("chat scripted"))
      expect(mine.got.map(({ headers }) => headers.traceparent)).toEqual(named("execute_tool mine"))
      expect(strange.got.length).toBe(1)

      expect(yield* ask(yield* serve(environment, config))).toContain('"finish"')
      const untold = [...strange.got, ...mine.got.slice(1), ...upstream.requests.slice(2)]
      expect(untold.length).toBe(5)
      for (const { headers } of untold) {
        for (const name of ["traceparent", "tracestate", "b3", "baggage"]) expect(headers).not.toHaveProperty(name)
      }
    })
  )

  it.scopedLive("a collector that is not there changes nothing for runs", () =>
    Effect.gen(function* () {
      const server = yield* serve({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" })
      expect(yield* ask(server)).toContain('"type":"finish"')
    })
  )

  it.scopedLive("a silent collector is sent a few batches, and the rest is dropped", () =>
    Effect.gen(function* () {
      const { got, until, url } = yield* collector({ silent: true })
      const span = Effect.withSpan(Effect.void, "one")
      yield* Effect.gen(function* () {
        for (let batch = 0; batch < 10; batch++) {
          yield* Effect.repeatN(span, 1_000)
          yield* Effect.sleep("20 millis")
        }
        yield* until((all) => all.length >= 2)
      }).pipe(
        Effect.provide(
          Telemetry.layer({
            url: `${url}/v1/traces`,
            headers: {},
            protocol: "http/protobuf",
            serviceName: "a",
            timeoutMs: 60_000
          })
        )
      )
      expect(got.length).toBe(2)
      expect(got[0]?.headers["content-type"]).toBe("application/x-protobuf")
    })
  )

  it.effect("the environment is read as OpenTelemetry says, and what is wrong in it is named", () => {
    const read = (environment: Readonly<Record<string, string>>) =>
      Effect.either(Telemetry.fromEnvironment).pipe(
        Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(environment))))
      )
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" }
    return Effect.gen(function* () {
      expect(yield* read({})).toEqual(Either.right(undefined))
      expect(yield* read({ ...endpoint, OTEL_SDK_DISABLED: "true" })).toEqual(Either.right(undefined))
      expect(yield* read({ ...endpoint, OTEL_TRACES_EXPORTER: "none" })).toEqual(Either.right(undefined))
      const plain = yield* Effect.flatten(read({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "a=b%3D,c=d=e" }))
      expect(plain).toMatchObject({
        url: "http://collector:4318/v1/traces",
        protocol: "http/protobuf",
        serviceName: "runlet",
        timeoutMs: 10_000
      })
      expect(Object.entries(plain?.headers ?? {}).map(([name, value]) => [name, Redacted.value(value)])).toEqual([
        ["a", "b="],
        ["c", "d=e"]
      ])
      expect(String(plain?.headers.a)).toBe("<redacted>")
      for (const [name, value] of [
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector"],
        ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
        ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon"],
        ["OTEL_EXPORTER_OTLP_HEADERS", "secret"]
      ] as const) {
        const refused = yield* Effect.flip(Effect.flatten(read({ ...endpoint, [name]: value })))
        expect(refused.message).toMatch(new RegExp(`^${name}: must be `))
        expect(refused.message).not.toContain("secret")
      }
    })
  })
})
