import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import type { HttpClient } from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { ToolPhase } from "../../src/domain/AgentEvent.js"
import * as HttpTool from "../../src/tool/HttpTool.js"
import type { Tool, ToolContext } from "../../src/tool/Tool.js"
import * as ToolRunner from "../../src/tool/ToolRunner.js"

interface Seen {
  readonly url: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

type Script = (request: Seen, response: Http.ServerResponse) => void

/** A server on a free port that answers as told and remembers what it was asked. */
const serve = (script: Script) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly seen: Array<Seen>; readonly server: Http.Server }>((resume) => {
      const seen: Array<Seen> = []
      const server = Http.createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8")
        request.on("data", (piece: string) => {
          body += piece
        })
        request.on("end", () => {
          const one = { url: request.url ?? "", headers: request.headers, body }
          seen.push(one)
          script(one, response)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, seen, server }))
      })
    }),
    ({ server }) =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )

const json =
  (status: number, body: unknown): Script =>
  (_, response) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(typeof body === "string" ? body : JSON.stringify(body))
  }

const configured = (config: Record<string, unknown>, options?: HttpTool.Options) =>
  Effect.flatMap(
    Schema.decodeUnknown(HttpTool.HttpToolConfig)({
      name: "lookup",
      description: "Looks a word up",
      kind: "readonly",
      ...config
    }),
    (decoded) => HttpTool.make(decoded, options)
  )

const context = (phase: ToolPhase): ToolContext => ({
  user: "alice",
  runId: "run_1",
  conversationId: "conv_1",
  toolCallId: "call_1",
  phase,
  idempotencyKey: "key-1",
  currentDocument: { id: "d1", title: "Notes" },
  progress: () => Effect.void
})

const run = (tool: Tool, phase: ToolPhase, timeoutMs = 5_000, input: unknown = { q: "x" }) =>
  ToolRunner.run({ tool, phase, input, context: context(phase), timeoutMs, maxResultBytes: 10_000 })

const test = <A, E>(title: string, body: () => Effect.Effect<A, E, HttpClient | Scope.Scope>) =>
  it.scopedLive(title, () => Effect.provide(body(), NodeHttpClient.layerUndici))

describe("a call", () => {
  test("says everything about itself and takes JSON for its result", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* serve(json(200, '{"found":[1,null,{"__proto__":{"x":1}}]}'))
      const tool = yield* configured({ url: `${url}/lookup?a=b`, headers: { "X-Key": "secret-value" } })
      const outcome = yield* run(tool, "execute")
      expect(JSON.stringify(outcome)).toBe(
        '{"_tag":"Settled","ok":true,"result":{"found":[1,null,{"__proto__":{"x":1}}]}}'
      )
      expect(seen[0]?.url).toBe("/lookup?a=b")
      expect(seen[0]?.headers).toMatchObject({
        "idempotency-key": "key-1",
        "content-type": "application/json",
        "x-key": "secret-value"
      })
      expect(JSON.parse(seen[0]?.body ?? "")).toEqual({
        phase: "execute",
        input: { q: "x" },
        toolCallId: "call_1",
        runId: "run_1",
        conversationId: "conv_1",
        idempotencyKey: "key-1",
        currentDocument: { id: "d1", title: "Notes" }
      })
    }))

  for (const value of [false, 0, "", null, [], {}]) {
    test(`${JSON.stringify(value)} is a result`, () =>
      Effect.gen(function* () {
        const { url } = yield* serve(json(200, JSON.stringify(value)))
        expect(yield* run(yield* configured({ url }), "execute")).toEqual({ _tag: "Settled", ok: true, result: value })
      }))
  }

  test("text is a result, and an empty answer is null", () =>
    Effect.gen(function* () {
      const text = yield* serve(json(200, "plain {text"))
      expect(yield* run(yield* configured({ url: text.url }), "execute")).toMatchObject({
        ok: true,
        result: "plain {text"
      })
      const empty = yield* serve((_, response) => response.writeHead(204).end())
      expect(yield* run(yield* configured({ url: empty.url }), "execute")).toMatchObject({ ok: true, result: null })
    }))

  test("a write has its phases and their answers", () =>
    Effect.gen(function* () {
      const { url } = yield* serve((request, response) =>
        json(200, { did: JSON.parse(request.body).phase })(request, response)
      )
      const tool = yield* configured({ url, kind: "write" })
      expect(tool.execute).toBe(undefined)
      expect(yield* run(tool, "preview")).toMatchObject({ ok: true, result: { did: "preview" } })
      expect(yield* run(tool, "commit")).toMatchObject({ ok: true, result: { did: "commit" } })
    }))

  test("an answer without end stops at the bound", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const { url } = yield* serve((_, response) => {
        response.on("close", () => Deferred.unsafeDone(closed, Effect.void))
        const more = () => {
          while (!response.destroyed && response.write("0123456789".repeat(1000))) {
            // until the buffer is full
          }
        }
        response.on("drain", more)
        more()
      })
      const tool = yield* configured({ url }, { maxResponseBytes: 50_000 })
      const outcome = yield* run(tool, "execute")
      expect(outcome).toMatchObject({ ok: true, result: { truncated: true, text: expect.stringMatching(/^0123/) } })
      expect(JSON.stringify(outcome).length).toBeLessThan(11_000)
      yield* Deferred.await(closed)
    }))
})

describe("a refusal", () => {
  for (const status of [400, 401, 403, 404, 422, 500, 503]) {
    for (const phase of ["execute", "preview", "commit"] as const) {
      test(`${status} to ${phase} is a failure`, () =>
        Effect.gen(function* () {
          const { url } = yield* serve(json(status, { error: "canary sk-123456789" }))
          const tool = yield* configured({
            url,
            kind: phase === "execute" ? "effectful" : "write",
            headers: { authorization: "Bearer sk-123456789" }
          })
          const outcome = yield* run(tool, phase)
          expect(outcome).toMatchObject({ _tag: "Settled", ok: false })
          expect(JSON.stringify(outcome)).toContain(String(status))
          expect(JSON.stringify(outcome)).not.toContain("sk-123456789")
          expect(JSON.stringify(outcome).includes("canary")).toBe([400, 404, 422].includes(status))
        }))
    }
  }

  test("409 is a conflict for a commit alone", () =>
    Effect.gen(function* () {
      const { url } = yield* serve(json(409, { message: "version 2 is there" }))
      const tool = yield* configured({ url, kind: "write" })
      expect(yield* run(tool, "commit")).toEqual({ _tag: "Conflict", message: "version 2 is there" })
      expect(yield* run(tool, "preview")).toMatchObject({ _tag: "Settled", ok: false })
      expect(yield* run(yield* configured({ url }), "execute")).toMatchObject({ _tag: "Settled", ok: false })
    }))

  test("a gateway that lost its server leaves an act in doubt", () =>
    Effect.gen(function* () {
      const { url } = yield* serve(json(504, ""))
      expect(yield* run(yield* configured({ url, kind: "write" }), "commit")).toMatchObject({ _tag: "InDoubt" })
      expect(yield* run(yield* configured({ url }), "execute")).toMatchObject({ _tag: "Settled", ok: false })
    }))

  test("a redirect to another host is not followed, one within the host is", () =>
    Effect.gen(function* () {
      const other = yield* serve(json(200, "stolen"))
      const { url } = yield* serve((request, response) => {
        if (request.url === "/away") {
          response.writeHead(307, { location: `${other.url}/` }).end()
        } else if (request.url === "/home") {
          response.writeHead(308, { location: "/there" }).end()
        } else if (request.url === "/round") {
          response.writeHead(307, { location: "/round" }).end()
        } else {
          json(200, { at: request.url, phase: JSON.parse(request.body).phase })(request, response)
        }
      })
      const away = yield* run(yield* configured({ url: `${url}/away` }), "execute")
      expect(away).toMatchObject({ _tag: "Settled", ok: false })
      expect(other.seen).toEqual([])
      expect(yield* run(yield* configured({ url: `${url}/home` }), "execute")).toMatchObject({
        ok: true,
        result: { at: "/there", phase: "execute" }
      })
      expect(yield* run(yield* configured({ url: `${url}/round` }), "execute")).toMatchObject({ ok: false })
    }))
})

describe("an unknown outcome", () => {
  const hang: Script = () => undefined
  const drip: Script = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.write("[")
    const timer = setInterval(() => response.write(" "), 20)
    response.on("close", () => clearInterval(timer))
  }
  const reset: Script = (_, response) => {
    response.socket?.destroy()
  }
  const half: Script = (_, response) => {
    response.writeHead(200, { "content-length": "100" })
    response.write("{", () => response.socket?.destroy())
  }
  for (const [name, script] of [
    ["no answer", hang],
    ["an answer that drips", drip],
    ["a connection cut before the answer", reset],
    ["a connection cut in the answer", half]
  ] as const) {
    test(`${name}: an act is in doubt, a reading fails`, () =>
      Effect.gen(function* () {
        const { url } = yield* serve(script)
        const reading = yield* configured({ url })
        const write = yield* configured({ url, kind: "write" })
        const act = yield* configured({ url, kind: "effectful" })
        expect(yield* run(reading, "execute", 300)).toMatchObject({ _tag: "Settled", ok: false })
        expect(yield* run(write, "preview", 300)).toMatchObject({ _tag: "Settled", ok: false })
        expect(yield* run(write, "commit", 300)).toMatchObject({ _tag: "InDoubt" })
        expect(yield* run(act, "execute", 300)).toMatchObject({ _tag: "InDoubt" })
      }))
  }

  test("a server that is not there was sent nothing", () =>
    Effect.gen(function* () {
      const { server, url } = yield* serve(hang)
      yield* Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
      })
      const outcome = yield* run(yield* configured({ url, kind: "write" }), "commit")
      expect(outcome).toMatchObject({ _tag: "Settled", ok: false })
    }))

  test("interruption closes the connection at once", () =>
    Effect.forEach([hang, drip], (script) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const closed = yield* Deferred.make<void>()
        const { url } = yield* serve((request, response) => {
          response.on("close", () => Deferred.unsafeDone(closed, Effect.void))
          script(request, response)
          Deferred.unsafeDone(begun, Effect.void)
        })
        const fiber = yield* Effect.fork(run(yield* configured({ url, kind: "write" }), "commit"))
        yield* Deferred.await(begun)
        const before = yield* Clock.currentTimeMillis
        yield* Fiber.interrupt(fiber)
        yield* Deferred.await(closed)
        expect((yield* Clock.currentTimeMillis) - before).toBeLessThan(5000)
      })
    ))

  test("the status address says what happened", () =>
    Effect.gen(function* () {
      const answers = new Map<string, Script>([
        ["applied", json(200, { state: "applied", result: { id: 7 } })],
        ["bare", json(200, { state: "applied" })],
        ["absent", json(200, { state: "absent" })],
        ["nonsense", json(200, { state: "perhaps" })],
        ["broken", json(200, "{")],
        ["error", json(500, { state: "absent" })],
        ["gone", json(404, { state: "absent" })],
        ["cut", reset]
      ])
      const { seen, url } = yield* serve((request, response) => {
        answers.get(request.url.split("/")[1] ?? "")?.(request, response)
      })
      const ask = (name: string) =>
        Effect.flatMap(configured({ url, kind: "write", statusUrl: `${url}/${name}/status?x=1` }), (tool) =>
          ToolRunner.probe(tool, context("commit"), { timeoutMs: 2000, maxResultBytes: 1000 })
        )
      expect(yield* ask("applied")).toEqual({ state: "applied", result: { id: 7 } })
      expect(seen[0]?.url).toBe("/applied/status?x=1&key=key-1")
      expect(yield* ask("bare")).toEqual({ state: "applied" })
      expect(yield* ask("absent")).toEqual({ state: "absent" })
      for (const name of ["nonsense", "broken", "error", "gone", "cut"]) {
        expect(yield* ask(name)).toEqual({ state: "unknown" })
      }
      expect((yield* configured({ url, kind: "write" })).probe).toBe(undefined)
    }))
})

describe("configuration", () => {
  test("parameters are checked, each problem with its path", () =>
    Effect.gen(function* () {
      const tool = yield* configured({
        url: "http://127.0.0.1:1",
        parameters: {
          type: "object",
          properties: { q: { type: "string" }, list: { type: "array", items: { type: "integer" } } },
          required: ["q"],
          additionalProperties: false
        }
      })
      const check = (input: unknown) => Effect.either(tool.check(input))
      expect(yield* check({ q: "a", list: [1] })).toMatchObject({ _tag: "Right", right: { q: "a", list: [1] } })
      expect(yield* check({ q: 1 })).toMatchObject({ _tag: "Left", left: "q: must be string" })
      expect(yield* check({ q: "a", list: [1, "x"] })).toMatchObject({ left: "list.1: must be integer" })
      expect(yield* check({ q: "a", confirmed: true })).toMatchObject({ left: expect.stringContaining("confirmed") })
      for (const wrong of [null, [], "text", 42, undefined, JSON.parse('{"__proto__":{"q":"a"}}')]) {
        expect(yield* check(wrong)).toMatchObject({ _tag: "Left" })
      }
      const inherited = Object.create({ q: "a" }) as unknown
      expect(yield* check(inherited)).toMatchObject({ _tag: "Left" })
    }))

  test("draft 7 and formats are read, nonsense is refused when it is configured", () =>
    Effect.gen(function* () {
      const url = "http://127.0.0.1:1"
      yield* configured({
        url,
        parameters: {
          $schema: "http://json-schema.org/draft-07/schema#",
          type: "object",
          properties: { when: { type: "string", format: "date-time" }, tuple: { items: [{ type: "string" }] } }
        }
      })
      yield* configured({ url, parameters: { $schema: "https://json-schema.org/draft/2020-12/schema", $defs: {} } })
      for (const parameters of [{ type: "nonsense" }, { $ref: "http://other.host/x.json" }, "text", null, []]) {
        const exit = yield* Effect.exit(configured({ url, parameters }))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(String(exit)).toContain("lookup")
      }
      for (const wrong of [{ url: "ftp://x" }, { url: "nonsense" }, { url, kind: "other" }, { url, name: "a b" }]) {
        expect(Exit.isFailure(yield* Effect.exit(configured(wrong)))).toBe(true)
      }
    }))
})
