/**
 * Requests made of known ones by changing them at random. Whatever comes in, the answer is one that is documented, it
 * tells nothing of how the server is made, and the server goes on. A failing case says its seed.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/agent/Agent.js"
import * as Frames from "../../src/client/Frames.js"
import type { RunEngine } from "../../src/engine/RunEngine.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as ScriptedModel from "../../src/testing/ScriptedModel.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { bytesOf, cut, decode } from "../model/support.js"
import * as Endpoints from "./Endpoints.js"
import * as Server from "./Server.js"

const id = "run_01a22e82-0a3e-70d4-aad7-970e106e62bb"
const ids = { runId: id, conversationId: "conv_1", approvalId: "apr_1" }
/** Each endpoint that there is, and a client's own name for a conversation. */
const targets: ReadonlyArray<readonly [method: string, path: string]> = [
  ...Endpoints.all.map(({ method, path }) => [method, Endpoints.fill(path, ids)] as const),
  ["GET", "/adapters/ai-sdk/chat/mine"],
  ["GET", "/adapters/ag-ui/threads/mine/events"]
]

const bodies: ReadonlyArray<string> = [
  '{"message":"hi","background":true}',
  '{"messages":[{"role":"user","content":"hi"}],"mode":"plan","background":true,"limits":{"maxIterations":1}}',
  `{"resume":{"runId":"${id}","lastAppliedSeq":1},"background":true}`,
  '{"decision":"edit","input":{"a":[1,2,{"b":null}]}}',
  '{"__proto__":{"a":1},"constructor":{"prototype":{}},"message":"x"}',
  '{"message":"\\ud83d","message":"twice","n":12345678901234567890,"background":true}',
  `{"message":${"[".repeat(3000)}${"]".repeat(3000)}}`,
  '{"title":"a\\u0000b\\u2028"}',
  '{"token":"t"}',
  '{"id":"mine","message":{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]},"trigger":"regenerate-message"}',
  '{"id":"mine","messages":[{"role":"assistant","parts":[{"type":"x","approval":{"id":"apr_1","approved":true}}],"metadata":{"seq":3}}]}',
  `{"threadId":"mine","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}],"forwardedProps":{"mode":"plan"}}`,
  `{"threadId":"mine","runId":"r","messages":[],"resume":[{"interruptId":"apr_1","status":"resolved","payload":{"approved":true}}]}`,
  "\ufeff{}",
  "null",
  ""
]

const values = [
  "",
  "-1",
  "now",
  "sse",
  "long-poll",
  "0000000000000003",
  "0",
  "01",
  "1e3",
  "9007199254740993",
  "NaN",
  "a",
  "%00",
  "é",
  "../../etc/passwd",
  "' OR 1=1 --"
]
const headers = {
  "content-type": ["application/json", "text/plain", "application/json; charset=utf-16", "multipart/form-data", "é"],
  "content-encoding": ["gzip", "br", "identity"],
  accept: ["text/event-stream", "application/x-ndjson", "image/png", "*/*"],
  "last-event-id": values,
  "idempotency-key": ["k", "a b", "x".repeat(300)],
  prefer: ["respond-async", "wait=1"],
  traceparent: ["00-1-1-01", "x"],
  authorization: ["Bearer", "Bearer x y", "Basic eDp5"],
  cookie: ["runlet_session=x", ";;;=", "a=%E0%A4%A"],
  origin: ["http://evil.example", "null"]
}

const text = FastCheck.constantFrom(...bodies)
/** A known text with a piece taken away, put in twice, or replaced by bytes that are no text. */
const changed = FastCheck.tuple(
  text,
  FastCheck.nat(200),
  FastCheck.nat(20),
  FastCheck.constantFrom("cut", "repeat", "bytes", "none"),
  FastCheck.uint8Array({ maxLength: 8 })
).map(([body, at, length, how, bytes]) => {
  const whole = Buffer.from(body)
  const [before, middle, after] = [whole.subarray(0, at), whole.subarray(at, at + length), whole.subarray(at + length)]
  if (how === "none") return whole
  return Buffer.concat([
    before,
    how === "cut" ? Buffer.alloc(0) : how === "bytes" ? bytes : Buffer.concat([middle, middle]),
    after
  ])
})
const oneHeader = FastCheck.constantFrom(...Object.entries(headers)).chain(([name, known]) =>
  FastCheck.tuple(FastCheck.constant(name), FastCheck.constantFrom(...known))
)
const query = FastCheck.tuple(
  FastCheck.constantFrom(
    ...["after", "limit", "cursor", "status", "conversationId", "x"],
    ...["offset", "live", "version", "threadId", "clientRunId"]
  ),
  FastCheck.constantFrom(...values)
).map(([name, value]) => `${name}=${value.includes("%") ? value : encodeURIComponent(value)}`)
const request = FastCheck.record({
  target: FastCheck.constantFrom(...targets),
  method: FastCheck.option(FastCheck.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")),
  tail: FastCheck.constantFrom("", "", "", "/", "/x", "%2F", "%00", "/../..", "//"),
  query: FastCheck.array(query, { maxLength: 3 }),
  headers: FastCheck.array(oneHeader, { maxLength: 3 }),
  body: changed
})

const inside = /node_modules|\/src\/|\/dist\/|\.[jt]s:\d+|at \S+ \(|SELECT |SQLITE|ParseError|TypeError|process\.cwd/

const seed = Number(process.env.FUZZ_SEED ?? "20261130")
const numRuns = Number(process.env.FUZZ_RUNS ?? "400")

const directory = mkdtempSync(join(tmpdir(), "runlet-fuzz-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const real = Layer.fresh(Runlet.layer({ filename: join(directory, "runs.db") })).pipe(
  Layer.provide(
    Agent.layer({ models: { m: ScriptedModel.make(() => ScriptedModel.turn(ScriptedModel.text("Yes."))) } })
  ),
  Layer.orDie
)

/** What stands behind the server: something that looks like an engine, or the whole of it. */
const engines: ReadonlyArray<readonly [what: string, engine: Layer.Layer<RunEngine> | undefined, numRuns: number]> = [
  ["a fake engine", undefined, numRuns],
  ["the engine over SQLite", real, numRuns / 2]
]

it.scopedLive.each(engines)(
  `requests out of order are answered as documented (FUZZ_SEED=${seed}), over %s`,
  ([what, engine, numRuns]) =>
    Effect.gen(function* () {
      const { call, open } = yield* Server.start({ heartbeatMs: 1_000, ...(engine !== undefined && { engine }) })
      const begun = yield* call({ path: "/chat", json: { message: "hi", background: true } })
      /** The answer; of a run that goes on for ever, what there is of it. */
      const beginning = (asked: Server.Call) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { ended, headers, status, until } = yield* open(asked)
            const lasts = /event-stream|ndjson/.test(headers["content-type"] ?? "")
            return { status, headers, body: yield* lasts ? until((text) => text !== "") : ended }
          })
        )
      // Requests are about a run that is there.
      const { runId } = engine === undefined ? { runId: id } : JSON.parse(begun.body)
      const there = (text: string) => text.replaceAll(id, runId)
      const runs = FastCheck.sample(request, { seed, numRuns: Math.ceil(numRuns) })
      for (const one of runs) {
        const [known, given] = one.target
        const path = there(given)
        const sent = Buffer.from(there(one.body.toString("latin1")), "latin1")
        const method = one.method ?? known
        const withBody = method !== "GET" && method !== "OPTIONS"
        const asked = {
          method,
          path: `${path}${one.tail}${one.query.length === 0 ? "" : `?${one.query.join("&")}`}`,
          headers: {
            ...Object.fromEntries(one.headers),
            // Node's client sends the body of a DELETE without any sign of where it ends.
            ...(withBody && { "content-length": String(sent.length) })
          },
          ...(withBody && { body: sent })
        }
        const about = `${what}, FUZZ_SEED=${seed}: ${JSON.stringify({ ...asked, body: sent.toString("latin1").slice(0, 300) })}`
        const answer = yield* Effect.timeoutFailCause(beginning(asked), {
          duration: "5 seconds",
          onTimeout: () => Cause.die(`no answer: ${about}`)
        })
        const told = `${about} -> ${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`
        expect(answer.status, told).not.toBe(500)
        expect(answer.body, told).not.toMatch(inside)
        if (answer.status >= 400) {
          const error: unknown = answer.body === "" ? {} : JSON.parse(answer.body)
          if (method !== "HEAD")
            expect(error, told).toMatchObject({ _tag: expect.any(String), message: expect.any(String) })
        }
      }
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
    }),
  60_000
)

const streams = [
  bytesOf([Script.text("one "), Script.text("春 🐼"), Script.finish("stop"), Script.done]),
  bytesOf([
    Script.reasoning("hm"),
    Script.toolCall({ index: 0, id: "a", name: "f", args: '{"q":"x"}' }),
    Script.finish("tool_calls"),
    Script.done
  ]),
  Buffer.from(
    `: hi\r\nid: 3\r\ndata: {"runId":"${id}","seq":3,"event":{"type":"text-delta","id":"1","delta":"a"},"createdAt":1}\r\n\r\n`
  ),
  Buffer.from(
    'data: {"choices":[{"delta":{"tool_calls":[{"index":1e99,"function":null},{}]}}],"usage":{"prompt_tokens":"x"}}\n\n'
  )
]

const broken = FastCheck.tuple(
  FastCheck.constantFrom(...streams),
  FastCheck.array(FastCheck.tuple(FastCheck.nat(400), FastCheck.nat(12), FastCheck.uint8Array({ maxLength: 6 })), {
    maxLength: 4
  }),
  FastCheck.integer({ min: 1, max: 40 })
).map(([bytes, changes, size]) => {
  const all = changes.reduce<Buffer>(
    (rest, [at, length, instead]) => Buffer.concat([rest.subarray(0, at), instead, rest.subarray(at + length)]),
    bytes
  )
  return { all, pieces: cut(all, size) }
})

it.prop(
  "a broken stream of a model is read the same however it is cut, and never throws",
  [broken],
  ([{ all, pieces }]) => {
    const whole = decode([all])
    const parts = decode(pieces)
    const said = ({ parts: list }: typeof whole) =>
      list
        .map((part) => ("delta" in part ? part.delta : part.type === "finish" ? part.reason : part.toolName))
        .join("|")
    expect([parts.error?.code, said(parts)]).toEqual([whole.error?.code, said(whole)])
  }
)

it.prop("a broken stream of a run gives the client envelopes or a SyntaxError", [broken], ([{ pieces }]) => {
  const read = Frames.makeReader()
  try {
    for (const piece of pieces) for (const { seq } of read(piece)) expect(seq).toBeTruthy()
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError)
  }
})

it("a frame that is JSON and no envelope is no envelope", () => {
  for (const data of ["null", "1", '"a"', "[]", "{}"]) {
    expect(Frames.makeReader()(Buffer.from(`data: ${data}\n\n`)), data).toEqual([])
  }
})
