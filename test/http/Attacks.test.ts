/** What somebody might try at the endpoints that speak other protocols, and at every endpoint that there is. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Agent from "../../src/agent/Agent.js"
import * as Secrets from "../../src/domain/Secrets.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"
import * as Endpoints from "./Endpoints.js"
import { type Answer, type Call, start } from "./Server.js"

const canary = "canary-4f2b81c07d5e"
const wellKnown = "sk-proj-Zt4f0Nq2vXy7KcRb9mWd1sLpA6hEj3gU8oTi5"
const said = `a ${canary} b ${wellKnown} c`

const tool = { parameters: { type: "object" }, check: Effect.succeed } as const
const tools: ReadonlyArray<Tool> = [
  {
    ...tool,
    name: "lookup",
    description: "Looks a word up",
    kind: "readonly",
    execute: (_, { progress }) => Effect.as(progress(said), { found: said, device_code: canary })
  },
  {
    ...tool,
    name: "save",
    description: "Saves",
    kind: "write",
    preview: () => Effect.succeed({ will: said }),
    commit: () => Effect.succeed({ result: said })
  }
]

/** Says secrets in every way that it can, piece by piece; asks to write where a message wants it. */
const model = Script.make((request) => {
  const asked = JSON.stringify(request.messages)
  const pieces = (make: (piece: string) => Script.Move) => (said.match(/.{1,5}/g) ?? []).map((piece) => make(piece))
  if (asked.includes("tell") && request.iteration === 1) {
    return Script.turn(...pieces(Script.reasoning), ...pieces(Script.text), Script.call("lookup", { q: said }))
  }
  if (asked.includes("write") && request.iteration === 1) return Script.turn(Script.call("save", { text: said }))
  return Script.turn(...pieces(Script.text), Script.text("Done."))
})

const users = { "token-a": "alice", "token-b": "bob" }
const as = (token: string) => ({ authorization: `Bearer ${token}` })
const alice = as("token-a")
const bob = as("token-b")

const world = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-attacks-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const engine = Layer.fresh(Runlet.layer({ filename: join(directory, "runs.db") })).pipe(
    Layer.provide([Agent.layer({ models: { m: model }, tools }), Secrets.layer([Redacted.make(canary)])]),
    Layer.orDie
  )
  const server = yield* start({ engine, tokens: users, heartbeatMs: 300, limits: { maxBodyBytes: 20_000 } })
  const json = (call: Call) => Effect.map(server.call(call), ({ body }) => JSON.parse(body))
  const snapshot = (runId: string, headers: Record<string, string> = alice) => json({ path: `/runs/${runId}`, headers })
  const begin = (message: string, headers: Record<string, string> = alice) =>
    Effect.gen(function* () {
      const run = yield* json({ path: "/chat", json: { message, background: true }, headers })
      yield* Effect.repeat(snapshot(run.runId, headers), {
        until: ({ status }) => status === "completed" || status === "waiting_approval"
      })
      return { runId: String(run.runId), conversationId: String(run.conversationId) }
    })
  return { ...server, json, snapshot, begin }
})

const uiMessage = (text: string) => ({ id: "m", role: "user", parts: [{ type: "text", text }] })
const ask = {
  aiSdk: (id: string, text: string) => ({
    path: "/adapters/ai-sdk/chat",
    json: { id, message: uiMessage(text) }
  }),
  agUi: (threadId: string, text: string) => ({
    path: "/adapters/ag-ui",
    json: { threadId, runId: "r", messages: [{ id: "m", role: "user", content: text }] }
  })
}

describe("secrets", () => {
  it.scopedLive(
    "are in no answer of any adapter, live or later",
    () =>
      Effect.gen(function* () {
        const { call, json } = yield* world
        const seen: Array<readonly [string, string]> = []
        const look = (what: string, request: Call) =>
          Effect.map(call({ ...request, headers: { ...alice, ...request.headers } }), ({ body, status }) => {
            expect([what, status]).toEqual([what, 200])
            seen.push([what, body])
          })
        for (const word of ["tell", "write"]) {
          yield* look(`AI SDK 6, ${word}`, ask.aiSdk(`chat 6 ${word}`, `${word} ${said}`))
          yield* look(`AI SDK 7, ${word}`, {
            ...ask.aiSdk(`chat 7 ${word}`, word),
            path: "/adapters/ai-sdk/chat?version=7"
          })
          yield* look(`AG-UI, ${word}`, ask.agUi(`thread ${word}`, `${word} ${said}`))
          for (const version of ["6", "7"]) {
            const chat = `/adapters/ai-sdk/chat/${encodeURIComponent(`chat ${version} ${word}`)}`
            yield* look(`messages, ${word}`, { path: chat })
            yield* look(`stream, ${word}`, { path: `${chat}/stream?version=${version}` })
          }
          yield* look(`thread, ${word}`, { path: `/adapters/ag-ui/threads/thread%20${word}/events` })
        }
        const { items } = yield* json({ path: "/runs", headers: alice })
        expect(items.length).toBe(6)
        for (const { runId, status } of items) {
          yield* look("AG-UI events", { path: `/adapters/ag-ui/${runId}/events` })
          yield* look("AG-UI, behind a cursor", { path: `/adapters/ag-ui/${runId}/events?after=2` })
          yield* look("Durable Streams", { path: `/adapters/durable-streams/${runId}` })
          if (status === "completed") {
            yield* look("Durable Streams, live", { path: `/adapters/durable-streams/${runId}?offset=-1&live=sse` })
          }
        }
        expect(seen.filter(([, text]) => text.includes("[redacted]")).length).toBeGreaterThan(25)
        expect(seen.filter(([, text]) => text.includes(canary) || text.includes(wellKnown))).toEqual([])
      }),
    60_000
  )
})

describe("names of others", () => {
  it.scopedLive("are one's own names, which mean something else", () =>
    Effect.gen(function* () {
      const { call, json } = yield* world
      yield* call({ ...ask.aiSdk("notes", "hers"), headers: alice })
      yield* call({ ...ask.agUi("notes", "hers too"), headers: alice })
      const chat = { path: "/adapters/ai-sdk/chat/notes" }
      const hers = yield* json({ ...chat, headers: alice })
      // Both protocols mean the same conversation by a name.
      expect(hers.messages).toHaveLength(4)
      expect((yield* json({ ...chat, headers: bob })).messages).toEqual([])
      for (const path of ["/adapters/ai-sdk/chat/notes/stream", "/adapters/ag-ui/threads/notes/events"]) {
        expect((yield* call({ path, headers: bob })).status).toBe(204)
      }
      expect((yield* call({ path: "/adapters/ai-sdk/chat/notes/cancel", method: "POST", headers: bob })).status).toBe(
        204
      )
      yield* call({ ...ask.aiSdk("notes", "his"), headers: bob })
      expect((yield* json({ ...chat, headers: bob })).messages).toHaveLength(2)
      expect(yield* json({ ...chat, headers: alice })).toEqual(hers)
    })
  )
})

describe("cursors", () => {
  it.scopedLive("of another run, or of another user, show nothing that is not asked for", () =>
    Effect.gen(function* () {
      const { begin, call, snapshot } = yield* world
      const long = yield* begin("tell")
      const short = yield* begin("hello")
      const { lastSeq } = yield* snapshot(short.runId)
      const beyond = (yield* snapshot(long.runId)).lastSeq
      expect(beyond).toBeGreaterThan(lastSeq)
      const offset = String(beyond).padStart(16, "0")
      for (const request of [
        { path: `/adapters/ag-ui/${short.runId}/events?after=${beyond}` },
        { path: `/adapters/ag-ui/${short.runId}/events`, headers: { "last-event-id": `${beyond}` } },
        { path: `/adapters/durable-streams/${short.runId}?offset=${offset}` },
        { path: `/adapters/durable-streams/${short.runId}?offset=${offset}&live=long-poll` },
        { path: `/adapters/durable-streams/${short.runId}?offset=${offset}&live=sse` }
      ]) {
        const mine = yield* call({ ...request, headers: { ...alice, ...request.headers } })
        expect([request.path, mine.status, JSON.parse(mine.body)._tag]).toEqual([request.path, 400, "InvalidCursor"])
        const foreign = yield* call({ ...request, headers: { ...bob, ...request.headers } })
        expect([request.path, foreign.status]).toEqual([request.path, 404])
      }
    })
  )

  it.scopedLive("of another run in a message count for nothing, and decide nothing", () =>
    Effect.gen(function* () {
      const { begin, call, snapshot } = yield* world
      const other = yield* begin("write")
      const mine = yield* begin("write")
      const pending = (yield* snapshot(other.runId)).pendingApprovals[0]
      const body = (metadata: unknown) => ({
        id: mine.conversationId,
        messages: [
          {
            role: "assistant",
            metadata,
            parts: [
              { type: "tool-save", state: "approval-responded", approval: { id: pending.approvalId, approved: true } }
            ]
          }
        ]
      })
      const path = "/adapters/ai-sdk/chat"
      for (const seq of [1, -1, 1e9, "3", null, Number.MAX_SAFE_INTEGER]) {
        const answer = yield* call({ path, json: body({ runId: other.runId, seq }), headers: alice })
        expect([seq, answer.status]).toEqual([seq, 200])
      }
      const agUi = yield* call({
        path: "/adapters/ag-ui",
        headers: alice,
        json: {
          threadId: mine.conversationId,
          runId: "r",
          messages: [],
          resume: [{ interruptId: pending.approvalId, status: "resolved", payload: { approved: true } }]
        }
      })
      expect(agUi.status).toBe(404)
      for (const { runId } of [mine, other]) {
        expect(yield* snapshot(runId)).toMatchObject({ status: "waiting_approval", pendingApprovals: [{}] })
      }
    })
  )
})

describe("odd texts", () => {
  const odd = `a\u0000b \ud83d c\u2028d \u{1F43C} {"__proto__":{"polluted":1}}`
  const kept = odd.replace("\ud83d", "\ufffd")
  const names = [
    "__proto__",
    "constructor",
    "toString",
    "a\u0000b",
    "\ud800",
    "../../runs",
    "💥".repeat(128),
    "語".repeat(256),
    "'; DROP TABLE runs; --"
  ]

  it.scopedLive("are names and messages as others, in both protocols", () =>
    Effect.gen(function* () {
      const { call, json } = yield* world
      const props = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"mode":"plan"}')
      for (const name of names) {
        const body = { ...ask.agUi(name, odd).json, forwardedProps: props }
        const agUi = yield* call({ path: "/adapters/ag-ui", json: body, headers: alice })
        expect([name, agUi.status]).toEqual([name, 200])
        // No line of a stream begins with something else than a field.
        for (const line of agUi.body.split("\n")) expect(line).toMatch(/^$|^(id|data|retry): ?|^:/)
        const read = yield* call({
          path: `/adapters/ai-sdk/chat/${encodeURIComponent(name.replace("\ud800", "\ufffd"))}`,
          headers: alice
        })
        expect([name, read.status, read.body]).toEqual([name, 200, read.body])
        const { messages } = JSON.parse(read.body)
        expect([name, messages[0]?.parts]).toEqual([name, [expect.objectContaining({ type: "text", text: kept })]])
      }
      expect({}).not.toHaveProperty("polluted")
      expect(Object.prototype).not.toHaveProperty("polluted")
      const { items } = yield* json({ path: "/conversations", headers: alice })
      expect(items).toHaveLength(names.length)
    })
  )
})

/** A cookie as the page of this user has it. */
const cookieOf = (call: (request: Call) => Effect.Effect<Answer, Error>) =>
  Effect.map(
    call({ path: "/session", json: { token: "token-a" } }),
    ({ headers }) => headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? ""
  )

describe("every endpoint", () => {
  /** Those that know nobody's data and change nothing. */
  const open = new Set(["server.health", "server.ready"])

  it.scopedLive(
    "refuses what another site's page sends with the cookie of this one's, and does nothing",
    () =>
      Effect.gen(function* () {
        const { begin, call, json, snapshot } = yield* world
        const run = yield* begin("write")
        const before = yield* snapshot(run.runId)
        const ids = { ...run, approvalId: before.pendingApprovals[0].approvalId }
        const cookie = yield* cookieOf(call)
        const foreign: ReadonlyArray<Record<string, string>> = [
          { origin: "http://evil.example" },
          { origin: "null" },
          { "sec-fetch-site": "cross-site", origin: "http://evil.example" },
          { "sec-fetch-site": "same-site" },
          { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }
        ]
        // What a form of another page can send without asking first.
        const bodies = [
          {},
          { body: "decision=approve", type: "application/x-www-form-urlencoded" },
          { body: "{}", type: "text/plain" }
        ]
        for (const { method, name, path } of Endpoints.all) {
          for (const headers of foreign) {
            for (const { body, type } of method === "GET" ? [{}] : bodies) {
              const answer = yield* call({
                method,
                path: Endpoints.fill(path, ids),
                headers: {
                  cookie,
                  ...headers,
                  ...(body !== undefined && { "content-type": type, "content-length": `${body.length}` })
                },
                body
              })
              expect([name, headers, answer.status]).toEqual([name, headers, 403])
            }
          }
        }
        expect(yield* snapshot(run.runId)).toEqual(before)
        expect((yield* json({ path: "/runs", headers: alice })).items).toHaveLength(1)
        // The cookie is good, where it comes from.
        expect((yield* call({ path: "/runs", headers: { cookie } })).status).toBe(200)
      }),
    60_000
  )

  it.scopedLive(
    "wants a credential",
    () =>
      Effect.gen(function* () {
        const { begin, call } = yield* world
        const ids = { ...(yield* begin("hello")), approvalId: "apr_1" }
        for (const { method, name, path } of Endpoints.all) {
          for (const headers of [{}, as("token-c"), { cookie: "runlet_session=x" }]) {
            const { status } = yield* call({ method, path: Endpoints.fill(path, ids), headers })
            const expected = open.has(name)
              ? [200]
              : name === "server.signIn"
                ? [400]
                : name === "server.signOut"
                  ? [204, 401]
                  : [401]
            expect(expected, `${name} ${JSON.stringify(headers)}`).toContain(status)
          }
        }
      }),
    60_000
  )

  const gzipped = Buffer.from("H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA==", "base64")
  /** Bodies that are none, and what each is answered. */
  const malformed: ReadonlyArray<
    readonly [what: string, status: number, body: string | Buffer, headers?: Record<string, string>]
  > = [
    ["no JSON", 400, "{"],
    ["two values", 400, "{}{}"],
    ["null", 400, "null"],
    ["a list", 400, "[]"],
    ["a text", 400, '"a"'],
    ["a name twice", 400, '{"a":1,"a":2}'],
    ["a large integer", 400, '{"a":12345678901234567890}'],
    ["deep nesting", 400, `{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`],
    ["no UTF-8", 400, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["too large", 413, `{"a":"${"x".repeat(20_001)}"}`],
    ["another type", 415, "{}", { "content-type": "text/plain" }],
    ["another charset", 415, "{}", { "content-type": "application/json; charset=utf-16" }],
    ["compressed", 415, gzipped, { "content-encoding": "gzip" }]
  ]

  it.scopedLive.each(Endpoints.all.filter(({ hasBody }) => hasBody))(
    "that reads a body refuses what is none: $name",
    ({ method, name, path }) =>
      Effect.gen(function* () {
        const { begin, call, json, snapshot } = yield* world
        const run = yield* begin("write")
        const before = yield* snapshot(run.runId)
        const ids = { ...run, approvalId: before.pendingApprovals[0].approvalId }
        for (const [what, status, body, headers] of malformed) {
          for (const more of [{}, { "transfer-encoding": "chunked" }]) {
            const answer = yield* call({
              method,
              path: Endpoints.fill(path, ids),
              body,
              headers: { ...alice, "content-type": "application/json", ...headers, ...more }
            })
            expect([name, what, answer.status]).toEqual([name, what, status])
            expect(JSON.parse(answer.body)).toMatchObject({ _tag: expect.any(String), message: expect.any(String) })
          }
        }
        expect(yield* snapshot(run.runId)).toEqual(before)
        expect((yield* json({ path: "/runs", headers: alice })).items).toHaveLength(1)
      })
  )
})
