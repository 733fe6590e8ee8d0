/** Nobody learns whether an id is somebody else's or nobody's: not from an answer, and not from the work it makes. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PlatformServer from "@effect/platform/HttpServer"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Agent from "../../src/agent/Agent.js"
import * as Auth from "../../src/http/Auth.js"
import * as HttpServer from "../../src/http/HttpServer.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import * as Endpoints from "./Endpoints.js"

interface Ids extends Endpoints.Ids {
  readonly messageId: string
}

const nobodys: Ids = {
  runId: "run_00000000-0000-7000-8000-000000000000",
  conversationId: "conv_00000000-0000-7000-8000-000000000000",
  approvalId: "apr_00000000-0000-7000-8000-000000000000",
  messageId: "msg_00000000-0000-7000-8000-000000000000"
}

interface Ask {
  readonly query?: string
  readonly body?: unknown
}

const starting = (ids: Ids): ReadonlyArray<Ask> => [
  { body: { message: "hi", conversationId: ids.conversationId, background: true } },
  { body: { message: "hi", conversationId: ids.conversationId, background: true, onBusy: "reject" } },
  { body: { message: "hi", conversationId: ids.conversationId, background: true, onBusy: "interrupt" } },
  { body: { resume: { runId: ids.runId, lastAppliedSeq: 0, assistantMessageId: ids.messageId } } },
  { body: { resume: { runId: ids.runId, lastAppliedSeq: 0 }, background: true } }
]

const uiMessage = { id: "m", role: "user", parts: [{ type: "text", text: "hi" }] }

/** How each endpoint can be asked for something by its id. An endpoint that is missing here fails the test. */
const asks: Record<string, (ids: Ids) => ReadonlyArray<Ask>> = {
  "chat.chat": starting,
  "chat.stream": starting,
  "chat.models": () => [],
  "runs.list": ({ conversationId }) => [{ query: `?conversationId=${conversationId}` }],
  "runs.get": () => [{}],
  "runs.remove": () => [{}],
  "runs.events": () => [{}, { query: "?after=1" }, { query: "?after=99999" }],
  "runs.cancel": () => [{}, { body: { reason: "no" } }],
  "runs.decide": () => ["approve", "reject", "retry"].map((decision) => ({ body: { decision } })),
  "runs.regenerate": () => [{ body: {} }, { body: { background: true } }],
  "runs.resume": ({ messageId }) => [{ body: { lastAppliedSeq: 0 } }, { body: { assistantMessageId: messageId } }],
  "runs.checkpoints": () => [{}],
  "runs.checkpoint": () => [{}],
  "runs.trace": () => [{}],
  "conversations.list": () => [],
  "conversations.get": () => [{}],
  "conversations.rename": () => [{ body: { title: "mine" } }],
  "conversations.remove": () => [{}],
  "server.health": () => [],
  "server.ready": () => [],
  "server.signIn": () => [],
  "server.signOut": () => [],
  "metrics.metrics": () => [],
  "aiSdk.chat": ({ conversationId }) => [
    { body: { id: conversationId, message: uiMessage } },
    { body: { id: conversationId, message: uiMessage, trigger: "regenerate-message" } }
  ],
  "aiSdk.messages": () => [{}],
  "aiSdk.stream": () => [{}],
  "aiSdk.cancel": () => [{}],
  "agUi.run": ({ approvalId, conversationId, runId }) => [
    {
      body: { threadId: conversationId, runId, messages: [{ id: "m", role: "user", content: "hi" }] }
    },
    {
      body: {
        threadId: conversationId,
        runId,
        messages: [],
        resume: [{ interruptId: approvalId, status: "cancelled" }]
      }
    }
  ],
  "agUi.events": () => [{}, { query: "?after=1" }, { query: "?after=99999" }],
  "agUi.thread": () => [{}, { query: "?clientRunId=r" }],
  "agUi.cancel": () => [{}],
  "durableStreams.read": () =>
    ["", "?offset=-1", "?offset=now", "?offset=0000000000000001&live=long-poll", "?offset=now&live=sse"].map(
      (query) => ({
        query
      })
    )
}

/** Where what is somebody else's is nothing, and nothing is an answer. */
const empty: Record<string, number> = {
  "runs.list": 200,
  "aiSdk.messages": 200,
  "aiSdk.stream": 204,
  "aiSdk.cancel": 204,
  "agUi.thread": 204
}

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

/** Writes down the text of every statement that SQLite executes in this process. */
const recording = Effect.acquireRelease(
  Effect.sync(() => {
    const probe = new Database(":memory:")
    const prototype = Object.getPrototypeOf(probe.prepare("SELECT 1"))
    probe.close()
    const texts: Array<string> = []
    const plain = (["all", "get", "run", "iterate"] as const).map((name) => [name, prototype[name]] as const)
    for (const [name, execute] of plain) {
      prototype[name] = function (this: Database.Statement, ...parameters: ReadonlyArray<unknown>) {
        texts.push(this.source)
        return execute.apply(this, parameters)
      }
    }
    return { texts, undo: () => Object.assign(prototype, Object.fromEntries(plain)) }
  }),
  ({ undo }) => Effect.sync(undo)
)

const world = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-ownership-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const { texts } = yield* recording
  const model = Script.make(() => Script.turn(Script.call("save", { text: "a" })))
  const tool = {
    name: "save",
    description: "Saves",
    kind: "write",
    parameters: { type: "object" },
    check: Effect.succeed,
    commit: () => Effect.succeed({ result: "saved" })
  } as const
  const tokens = ["owner", "other"].map((user) => ({ user, token: Redacted.make(`token-of-${user}`) }))
  const context = yield* Layer.build(
    HttpServer.layer({ port: 0 }).pipe(
      Layer.provide([
        Layer.fresh(Runlet.layer({ filename: join(directory, "runs.db"), pollMs: 60_000 })).pipe(
          Layer.provide(Agent.layer({ models: { m: model }, tools: [tool] }))
        ),
        Auth.layerTokens(tokens)
      ])
    )
  )
  const { address } = Context.get(context, PlatformServer.HttpServer)
  const port = address._tag === "TcpAddress" ? address.port : 0
  // What the engine asks again and again by itself is no work of a request.
  const idle = new Set<string>()
  const call = (user: string, method: string, path: string, body?: unknown) =>
    Effect.promise(async () => {
      texts.length = 0
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: {
          authorization: `Bearer token-of-${user}`,
          ...(body !== undefined && { "content-type": "application/json" })
        },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
      const text = await response.text()
      const headers = [...response.headers].filter(([name]) => name !== "date")
      return { status: response.status, headers, text, statements: texts.filter((text) => !idle.has(text)) }
    })
  const settle = Effect.gen(function* () {
    yield* Effect.sleep("500 millis")
    texts.length = 0
    yield* Effect.sleep("2 seconds")
    for (const text of texts) idle.add(text)
  })
  return { call, settle }
})

it.scopedLive(
  "what belongs to somebody else is refused as what does not exist, by every endpoint and method, for the same work",
  () =>
    Effect.gen(function* () {
      expect(Endpoints.all.map(({ name }) => name).sort()).toEqual(Object.keys(asks).sort())
      const { call, settle } = yield* world
      const begun = yield* call("owner", "POST", "/chat", { message: "hi", background: true })
      const { assistantMessageId, conversationId, runId } = JSON.parse(begun.text)
      const read = Effect.map(call("owner", "GET", `/runs/${runId}`), (answer) => ({
        ...answer,
        run: JSON.parse(answer.text)
      }))
      const waiting = yield* Effect.repeat(read, { until: ({ run }) => run.status === "waiting_approval" })
      yield* settle
      const looked = yield* read
      // Without statements nothing would be compared.
      expect(looked.statements.length).toBeGreaterThan(0)
      const theirs: Ids = {
        runId,
        conversationId,
        messageId: assistantMessageId,
        approvalId: waiting.run.pendingApprovals[0].approvalId
      }
      const anonymous = (text: string, ids: Ids) =>
        Object.entries(ids).reduce((rest, [name, id]) => rest.replaceAll(id, name), text)
      const compare = (method: string, path: string, ask: (ids: Ids) => Ask) =>
        Effect.gen(function* () {
          const answers: Array<unknown> = []
          let status = 0
          let statements = 0
          for (const ids of [theirs, nobodys]) {
            const { body, query = "" } = ask(ids)
            const answer = yield* call("other", method, `${Endpoints.fill(path, ids)}${query}`, body)
            status = answer.status
            statements = answer.statements.length
            answers.push({
              ...answer,
              text: anonymous(answer.text, ids),
              headers: answer.headers.map(([name, value]) => [name, anonymous(value ?? "", ids)])
            })
          }
          expect(answers[0], `${method} ${path}`).toEqual(answers[1])
          return { status, statements }
        })
      for (const { method, name, path } of Endpoints.all) {
        const variants = asks[name]?.(theirs).length ?? 0
        for (let i = 0; i < variants; i++) {
          const { statements, status } = yield* compare(method, path, (ids) => asks[name]?.(ids)[i] ?? {})
          expect([name, status, statements > 0]).toEqual([name, empty[name] ?? 404, true])
        }
        if (!path.includes(":")) continue
        for (const other of methods) yield* compare(other, path, () => ({}))
      }
      // And nothing has happened to what was asked for.
      const after = yield* read
      expect([after.run.status, after.run.lastSeq]).toEqual(["waiting_approval", waiting.run.lastSeq])
    }),
  30_000
)
