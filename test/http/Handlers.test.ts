import * as Net from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fake from "./FakeEngine.js"
import { type Answer, type Call, start } from "./Server.js"

const envelopes = (body: string) =>
  body.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []))
const types = (body: string) => envelopes(body).map((_) => _.event?.type ?? _.type)

/** Every failure has a name and a message, and says nothing of how the server is made. */
const expectError = (answer: Answer, status: number, tag: string) => {
  expect([answer.status, answer.body]).toEqual([status, expect.stringContaining(`"${tag}"`)])
  const body = JSON.parse(answer.body)
  expect(body._tag).toBe(tag)
  expect(body.message.length).toBeGreaterThan(5)
  expect(answer.body).not.toMatch(/SELECT|passwd|node_modules|\.ts:|\.js:|\\n +at /)
  return body
}

describe("starting a run", () => {
  it.scopedLive("streams the log from its first event, headers first", () =>
    Effect.gen(function* () {
      const { fake, open } = yield* start()
      const stream = yield* open({ path: "/chat", json: { message: "hello" }, headers: { traceparent: "garbage" } })
      expect(stream.status).toBe(200)
      expect(stream.headers["content-type"]).toMatch(/^text\/event-stream/)
      expect(stream.headers["cache-control"]).toBe("no-cache, no-transform")
      expect(stream.headers["x-accel-buffering"]).toBe("no")
      const [runId = ""] = fake.runs()
      expect(stream.headers["x-run-id"]).toBe(runId)
      expect(stream.headers.location).toBe(`/runs/${runId}`)

      yield* stream.until((text) => text.includes("run-status"))
      yield* fake.push(runId, { type: "run-status", status: "streaming" }, Fake.text("a\n\nid: 99\ndata: x\n\n"))
      yield* stream.until((text) => text.includes("text-delta"))
      yield* fake.push(runId, Fake.finish)
      const body = yield* stream.ended
      expect(body.startsWith("retry: 1000\n:ok\n\nid: 1\ndata: {")).toBe(true)
      expect(types(body)).toEqual(["run-start", "run-status", "run-status", "text-delta", "finish"])
      expect(body.match(/^id: .*$/gm)).toEqual(["id: 1", "id: 2", "id: 3", "id: 4", "id: 5"])
      expect(fake.started[0]?.trace).toBeUndefined()
    })
  )

  it.scopedLive("has a second address, a background form, and lines instead of frames", () =>
    Effect.gen(function* () {
      const { call, fake, open } = yield* start()
      const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      const later = yield* call({
        path: "/api/agent/stream",
        json: { message: "hi", background: true },
        headers: { traceparent: trace }
      })
      expect(later.status).toBe(202)
      const accepted = JSON.parse(later.body)
      expect(Object.keys(accepted).sort()).toEqual(["assistantMessageId", "conversationId", "runId", "status"])
      expect(later.headers.location).toBe(`/runs/${accepted.runId}`)
      expect(fake.started[0]?.trace).toBe(trace)
      expect(fake.started[0]).not.toHaveProperty("background")

      const prefer = yield* call({
        path: "/chat",
        json: { message: "hi" },
        headers: { prefer: "wait=5, respond-async" }
      })
      expect(prefer.status).toBe(202)

      const lines = yield* open({
        path: "/chat",
        json: { messages: [{ role: "user", content: "hi" }] },
        headers: { accept: "application/x-ndjson" }
      })
      expect(lines.headers["content-type"]).toBe("application/x-ndjson")
      yield* fake.push(lines.headers["x-run-id"] as string, Fake.finish)
      const parsed = (yield* lines.ended)
        .split("\n")
        .filter((_) => _ !== "")
        .map((_) => JSON.parse(_))
      expect(parsed.map((_) => _.seq)).toEqual([1, 2, 3])
    })
  )

  it.scopedLive("a key that was used names the run it started", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      const once: Call = {
        path: "/chat",
        json: { message: "hi", background: true },
        headers: { "idempotency-key": "k-1" }
      }
      const first = yield* call(once)
      const second = yield* call(once)
      expect(second.body).toBe(first.body)
      expect(fake.runs()).toHaveLength(1)
      expectError(yield* call({ ...once, headers: { "idempotency-key": "" } }), 400, "BadRequest")
    })
  )

  it.scopedLive("a disconnect does not touch the run", () =>
    Effect.gen(function* () {
      const { call, fake, open } = yield* start()
      const stream = yield* open({ path: "/chat", json: { message: "hi" } })
      yield* stream.until((text) => text.includes("run-start"))
      yield* stream.close
      const [runId = ""] = fake.runs()
      yield* fake.push(runId, Fake.finish)
      expect(JSON.parse((yield* call({ path: `/runs/${runId}` })).body).status).toBe("completed")
    })
  )
})

describe("bodies", () => {
  it.scopedLive("what is wrong is named by its path, and nothing is started", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start({ limits: { maxMessages: 3, maxMessageChars: 20 } })
      const wrong: ReadonlyArray<readonly [unknown, string | undefined]> = [
        [{}, "messages"],
        [{ message: "a", messages: [{ role: "user", content: "a" }] }, "messages"],
        [{ message: "" }, "message"],
        [{ message: 1 }, "message"],
        [{ messages: [] }, "messages[0]"],
        [{ messages: [{ role: "system", content: "x" }] }, "messages[0].role"],
        [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
        [{ messages: [{ role: "user", content: [{ type: "text", text: "x" }] }] }, "messages[0].content"],
        [
          {
            messages: [
              { role: "user", content: "x" },
              { role: "assistant", content: "y" }
            ]
          },
          "messages[1]"
        ],
        [{ message: "a", mode: "god" }, "mode"],
        [{ message: "a", onBusy: "wait" }, "onBusy"],
        [{ message: "a", limits: { maxIterations: 0 } }, "limits.maxIterations"],
        [{ message: "a", limits: { maxIteration: 3 } }, "limits.maxIteration"],
        [{ message: "a", modelId: "x".repeat(257) }, "modelId"],
        [{ message: "a", currentDocument: { id: "x", title: "x".repeat(1001) } }, "currentDocument.title"],
        [{ message: "a", enableThinking: "yes" }, "enableThinking"],
        [{ message: "a", currentDocument: { title: "x" } }, "currentDocument.id"],
        [{ resume: {} }, "resume.runId"],
        [{ resume: "run_1" }, "resume"],
        [[], undefined],
        ["x", undefined],
        [null, undefined]
      ]
      for (const [json, path] of wrong) {
        const body = expectError(yield* call({ path: "/chat", json }), 400, "BadRequest")
        expect([json, body.path]).toEqual([json, path])
        if (path === undefined) expect(body.message).toMatch(/^Expected an object, /)
        else if (path !== "messages") expect(body.message).toContain(path)
      }
      const long = { messages: [{ role: "user", content: "x".repeat(21) }] }
      expect(expectError(yield* call({ path: "/chat", json: long }), 413, "PayloadTooLarge").path).toBe(
        "messages[0].content"
      )
      const many = { messages: Array.from({ length: 4 }, () => ({ role: "user", content: "x" })) }
      expectError(yield* call({ path: "/chat", json: many }), 413, "PayloadTooLarge")
      expect(fake.started).toEqual([])
    })
  )

  it.scopedLive("must be JSON in UTF-8, and say so", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      const body = JSON.stringify({ message: "a", background: true })
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "json"
      ]) {
        expectError(
          yield* call({ path: "/chat", body, headers: { "content-type": type } }),
          415,
          "UnsupportedMediaType"
        )
      }
      expectError(
        yield* call({ path: "/chat", body, headers: { "content-encoding": "gzip" } }),
        415,
        "UnsupportedMediaType"
      )
      for (const type of ["application/json", "Application/JSON; charset=UTF-8", "application/problem+json"]) {
        expect((yield* call({ path: "/chat", body, headers: { "content-type": type } })).status).toBe(202)
      }
      expectError(yield* call({ path: "/chat", body: "{" }), 400, "BadRequest")
      expectError(yield* call({ path: "/chat", body: Buffer.from('{"message":"\xff"}', "latin1") }), 400, "BadRequest")
      expectError(yield* call({ path: "/chat", method: "POST" }), 400, "BadRequest")

      yield* call({ path: "/chat", body: '{"message":"a\\ud83d b\\ude00 \\ud83d\\ude00","background":true}' })
      expect(fake.started.at(-1)?.message).toBe("a\ufffd b\ufffd 😀")
      yield* call({
        path: "/chat",
        body: '{"message":"a","background":true,"metadata":{"b\\ud83d":["\\ude00"],"__proto__":1}}'
      })
      expect(JSON.stringify(fake.started.at(-1)?.metadata)).toBe('{"b\ufffd":["\ufffd"],"__proto__":1}')
      yield* call({
        path: "/chat",
        body: '{"message":"a","__proto__":{"mode":"plan"},"background":true,"metadata":{"__proto__":1}}'
      })
      expect(fake.started.at(-1)?.mode).toBeUndefined()
      expect(({} as Record<string, unknown>).mode).toBeUndefined()
    })
  )

  it.scopedLive("may not be nested without end", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
      for (const levels of [128, 10_000, 400_000]) {
        for (const body of [
          deep(levels + 1),
          `{"message":${deep(levels)}}`,
          `{"messages":[{"role":"user","content":${deep(levels)}}]}`,
          `{"message":"a","background":true,"metadata":${deep(levels)}}`,
          `{"resume":{"runId":${deep(levels)}}}`
        ]) {
          expectError(yield* call({ path: "/chat", body }), 400, "BadRequest")
        }
      }
      expect(fake.started).toEqual([])
      const metadata = `{"text":${JSON.stringify('[{\\"'.repeat(500))},"list":${deep(126)}}`
      const body = `{"message":"a","background":true,"metadata":${metadata}}`
      expect((yield* call({ path: "/chat", body })).status).toBe(202)
    })
  )

  it.scopedLive("are not read beyond the limit", () =>
    Effect.gen(function* () {
      const { call, fake, port } = yield* start({ limits: { maxBodyBytes: 1000 } })
      expect((yield* call({ path: "/chat", json: { message: "x".repeat(900), background: true } })).status).toBe(202)
      const big = JSON.stringify({ message: "x".repeat(100_000) })
      expectError(yield* call({ path: "/chat", body: big }), 413, "PayloadTooLarge")
      expectError(
        yield* call({ path: "/chat", body: big, headers: { "transfer-encoding": "chunked" } }),
        413,
        "PayloadTooLarge"
      )
      // A sender that never stops is answered while it sends.
      const answer = yield* Effect.async<string>((resume) => {
        const socket = Net.connect(port, "127.0.0.1")
        let text = ""
        socket.on("error", () => {})
        socket.on("data", (chunk) => {
          text += chunk
          if (text.includes("PayloadTooLarge")) {
            socket.destroy()
            resume(Effect.succeed(text))
          }
        })
        socket.write("POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        socket.write(`Transfer-Encoding: chunked\r\n\r\n800\r\n${"x".repeat(0x800)}\r\n`)
      })
      expect(answer.startsWith("HTTP/1.1 413 ")).toBe(true)
      expect(fake.started).toHaveLength(1)
    })
  )
})

describe("watching", () => {
  const prepared = (options?: Parameters<typeof start>[0]) =>
    Effect.gen(function* () {
      const server = yield* start(options)
      yield* server.call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = server.fake.runs()
      return { ...server, runId, path: `/runs/${runId}/events` }
    })

  it.scopedLive("begins behind the cursor", () =>
    Effect.gen(function* () {
      const { call, fake, path, runId } = yield* prepared()
      yield* fake.push(runId, Fake.text("a"), Fake.text("b"), Fake.finish)
      const seqs = (call: Answer) => envelopes(call.body).map((_) => _.seq)
      expect(seqs(yield* call({ path }))).toEqual([1, 2, 3, 4, 5])
      expect(seqs(yield* call({ path: `${path}?after=` }))).toEqual([1, 2, 3, 4, 5])
      expect(seqs(yield* call({ path: `${path}?after=3` }))).toEqual([4, 5])
      expect(seqs(yield* call({ path: `${path}?after=1`, headers: { "last-event-id": "4" } }))).toEqual([5])
      const done = yield* call({ path: `${path}?after=5` })
      expect([done.status, done.body]).toEqual([204, ""])
    })
  )

  it.scopedLive("a cursor that is none is refused", () =>
    Effect.gen(function* () {
      const { call, fake, path, runId } = yield* prepared()
      for (const after of ["-1", "%2B1", "01", "1e0", "1.0", "x", "6", "99999999999999999999", "1&after=1"]) {
        expectError(yield* call({ path: `${path}?after=${after}` }), 400, "InvalidCursor")
      }
      expectError(yield* call({ path, headers: { "last-event-id": ["1", "2"] } }), 400, "InvalidCursor")
      yield* fake.compact(runId)
      expect(expectError(yield* call({ path: `${path}?after=1` }), 410, "Compacted").snapshot).toBe(`/runs/${runId}`)
      const durable = `/adapters/durable-streams/${runId}?offset=0000000000000001`
      for (const live of ["", "&live=long-poll", "&live=sse"]) {
        expect(expectError(yield* call({ path: durable + live }), 410, "Compacted").snapshot).toBe(`/runs/${runId}`)
      }
    })
  )

  it.scopedLive("a quiet stream has a heartbeat in both formats", () =>
    Effect.gen(function* () {
      const { fake, open, path, runId } = yield* prepared({ heartbeatMs: 20 })
      const frames = yield* open({ path })
      const lines = yield* open({ path, headers: { accept: "application/x-ndjson" } })
      yield* frames.until((text) => text.endsWith(": hb\n\n: hb\n\n"))
      yield* lines.until((text) => text.endsWith("}\n\n\n"))
      yield* fake.push(runId, Fake.finish)
      expect(types(yield* frames.ended)).toEqual(["run-start", "run-status", "finish"])
    })
  )

  it.scopedLive("one reader that stops reading stops nobody else", () =>
    Effect.gen(function* () {
      const { fake, open, path, runId } = yield* prepared()
      const stuck = yield* open({ path })
      yield* stuck.pause
      const reader = yield* open({ path })
      const megabyte = "x".repeat(1 << 20)
      for (let index = 0; index < 16; index++) yield* fake.push(runId, Fake.text(megabyte))
      yield* fake.push(runId, Fake.finish)
      expect(types(yield* reader.ended)).toHaveLength(19)
    })
  )

  it.scopedLive("a user may have so many streams open and no more", () =>
    Effect.gen(function* () {
      const tokens = { "token-a": "alice", "token-b": "bob" }
      const { call, fake, open } = yield* start({ tokens, limits: { maxStreamsPerUser: 2 } })
      const alice = { authorization: "Bearer token-a" }
      const chat: Call = { path: "/chat", json: { message: "hi" }, headers: alice }
      const first = yield* open(chat)
      yield* open(chat)
      const refused = yield* call(chat)
      expect(expectError(refused, 429, "LimitReached").limit).toBe("maxStreamsPerUser")
      expect(refused.headers["retry-after"]).toBe("1")
      expect(fake.started).toHaveLength(2)
      expect((yield* open({ ...chat, headers: { authorization: "Bearer token-b" } })).status).toBe(200)
      // What is not watched takes no stream.
      for (const more of [
        { json: { message: "hi", background: true }, headers: alice },
        { json: { message: "hi" }, headers: { ...alice, prefer: "respond-async" } }
      ]) {
        expect((yield* call({ path: "/chat", ...more })).status).toBe(202)
      }
      yield* fake.push(first.headers["x-run-id"] as string, Fake.finish)
      yield* first.ended
      expect((yield* open(chat)).status).toBe(200)
    })
  )
})

describe("going on", () => {
  it.scopedLive("says where it begins, then shows the log behind the cursor", () =>
    Effect.gen(function* () {
      const { call, fake, open } = yield* start()
      yield* call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = fake.runs()
      yield* fake.push(runId, Fake.text("a"), Fake.text("b"))
      const live = yield* open({
        path: "/chat",
        json: { resume: { runId, lastAppliedSeq: 3, assistantMessageId: "m" } }
      })
      expect(live.headers["x-run-id"]).toBe(runId)
      yield* live.until((text) => text.includes('"seq":4'))
      yield* fake.push(runId, Fake.finish)
      const [control, ...rest] = envelopes(yield* live.ended)
      expect(control).toEqual({ type: "resume-start", runId, fromSeq: 3, replayedCount: 1 })
      expect(rest.map((_) => _.seq)).toEqual([4, 5])

      const done = yield* call({ path: `/runs/${runId}/resume`, json: { lastAppliedSeq: 5 } })
      expect(done.status).toBe(200)
      expect(envelopes(done.body)).toEqual([{ type: "resume-start", runId, fromSeq: 5, replayedCount: 0 }])
      const whole = yield* call({ path: `/runs/${runId}/resume`, method: "POST" })
      expect(envelopes(whole.body)).toHaveLength(6)
    })
  )

  it.scopedLive("says so when it can not", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      yield* call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = fake.runs()
      yield* fake.answerResume({
        _tag: "unavailable",
        runId,
        reason: "superseded",
        recoverable: false,
        readable: false
      })
      const resume: Call = { path: "/chat", json: { resume: { runId, lastAppliedSeq: 0 } } }
      const stream = yield* call(resume)
      expect(stream.status).toBe(200)
      expect(envelopes(stream.body)).toEqual([
        { type: "resume-start", runId, fromSeq: 0, replayedCount: 0 },
        { type: "resume-unavailable", runId, reason: "superseded", recoverable: false }
      ])
      expectError(yield* call({ ...resume, headers: { prefer: "respond-async" } }), 409, "Conflict")
      yield* fake.answerResume(undefined)
      yield* fake.compact(runId)
      expect(types((yield* call(resume)).body)).toEqual(["resume-start", "resume-unavailable"])
      expectError(yield* call({ path: "/chat", json: { resume: { runId: "run_other" } } }), 404, "NotFound")
    })
  )

  it.scopedLive("takes only an integer for a cursor", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      yield* call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = fake.runs()
      for (const lastAppliedSeq of ["1", 1.5, -1, true, {}, [], 1e300, 99]) {
        expectError(yield* call({ path: "/chat", json: { resume: { runId, lastAppliedSeq } } }), 400, "InvalidCursor")
        expectError(yield* call({ path: `/runs/${runId}/resume`, json: { lastAppliedSeq } }), 400, "InvalidCursor")
      }
    })
  )
})

describe("the other calls", () => {
  it.scopedLive("answer what the contract says", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      yield* call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = fake.runs()
      const at = `/runs/${runId}`
      const list = JSON.parse((yield* call({ path: "/runs?limit=10&status=running" })).body)
      expect(list.items).toHaveLength(1)
      expect(list.items[0]).not.toHaveProperty("text")
      expect(JSON.parse((yield* call({ path: at })).body)).toMatchObject({ runId, text: "", status: "running" })
      for (const query of [
        "limit=0",
        "limit=x",
        "limit=201",
        "limit=1&limit=2",
        "status=dead",
        "cursor=",
        "cursor=x",
        "cursor=MS41"
      ]) {
        expectError(yield* call({ path: `/runs?${query}` }), 400, "BadRequest")
      }

      for (const cursor of ["x", "MQ", "WzEsMV0"]) {
        expectError(yield* call({ path: `/conversations?cursor=${cursor}` }), 400, "BadRequest")
      }
      for (const path of ["/runs?cursor=MTI", "/conversations?cursor=WzEsIngiXQ"]) {
        expect((yield* call({ path })).status).toBe(200)
      }

      expectError(yield* call({ path: at, method: "DELETE" }), 409, "Conflict")
      const decided = yield* call({ path: `${at}/approvals/apr_1`, json: { decision: "edit", input: null } })
      expect(JSON.parse(decided.body)).toEqual({ approvalId: "apr_1", decision: "edit", by: "local", seq: 7 })
      expect(fake.decided).toEqual([{ decision: "edit", input: null }])
      expectError(yield* call({ path: `${at}/approvals/apr_late`, json: { decision: "approve" } }), 409, "Conflict")
      expect(
        (yield* call({ path: `${at}/approvals/apr_1`, json: { decision: "reject", reason: "x".repeat(1000) } })).status
      ).toBe(200)
      for (const json of [
        {},
        { decision: "yes" },
        { decision: "edit" },
        { decision: "approve", input: {} },
        { decision: "reject", reason: "x".repeat(1001) }
      ]) {
        expectError(yield* call({ path: `${at}/approvals/apr_1`, json }), 400, "BadRequest")
      }

      expect(JSON.parse((yield* call({ path: `${at}/cancel`, method: "POST" })).body)).toEqual({
        runId,
        status: "cancelled",
        lastSeq: 3
      })
      expect((yield* call({ path: `${at}/cancel`, json: { reason: "late" } })).status).toBe(200)
      const again = yield* call({ path: `${at}/regenerate`, json: { modelId: "other", background: true } })
      expect(again.status).toBe(202)

      const trace = (yield* call({ path: `${at}/trace` })).body
        .trimEnd()
        .split("\n")
        .map((_) => JSON.parse(_))
      expect(trace[0]).toMatchObject({ format: "runlet-trace", version: 1, run: { runId, status: "cancelled" } })
      expect(trace.slice(1).map((_) => _.seq)).toEqual([1, 2, 3])
      expect(JSON.parse((yield* call({ path: `${at}/checkpoints` })).body).items[0].kind).toBe("run_started")
      for (const seq of ["9", "x", "-1"])
        expectError(yield* call({ path: `${at}/checkpoints/${seq}` }), 404, "NotFound")

      expect((yield* call({ path: at, method: "DELETE" })).status).toBe(204)
      expectError(yield* call({ path: at }), 404, "NotFound")
      expect(JSON.parse((yield* call({ path: "/models" })).body)).toEqual({
        items: [
          { modelId: "demo", isDefault: true },
          { modelId: "other", isDefault: false }
        ]
      })
      expect(JSON.parse((yield* call({ path: "/conversations" })).body)).toEqual({ items: [] })
      expect((yield* call({ path: "/conversations/c", method: "PATCH", json: { title: "t" } })).status).toBe(204)
      expectError(yield* call({ path: "/conversations/c", method: "PATCH", json: { title: "" } }), 400, "BadRequest")
      expectError(yield* call({ path: "/conversations/c" }), 404, "NotFound")
    })
  )

  it.scopedLive("the trace of a run that goes on does not wait for it", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start()
      yield* call({ path: "/chat", json: { message: "hi", background: true } })
      const [runId = ""] = fake.runs()
      expect((yield* call({ path: `/runs/${runId}/trace` })).body.trimEnd().split("\n")).toHaveLength(3)
    })
  )

  it.scopedLive("failures say what to do and nothing else", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      expect(
        expectError(yield* call({ path: "/chat", json: { message: "a", modelId: "unknown" } }), 422, "Unprocessable")
          .path
      ).toBe("modelId")
      expectError(yield* call({ path: "/chat", json: { message: "a", modelId: "broken" } }), 500, "InternalError")
      for (const path of [
        "/nothing",
        "/RUNS",
        "/runs/x/y",
        "/runs/x/y/",
        "/runs/%ff",
        `/runs/${"x".repeat(200)}`,
        "/%2e%2e/etc/passwd",
        "/assets/../bin.js",
        "//x"
      ]) {
        expectError(yield* call({ path }), 404, "NotFound")
      }
    })
  )

  it.scopedLive("methods that a resource does not know are told from paths that do not exist", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      for (const [method, path, allow] of [
        ["GET", "/chat", "OPTIONS, POST"],
        ["PUT", "/runs/run_1", "DELETE, GET, HEAD, OPTIONS"],
        ["POST", "/healthz", "GET, HEAD, OPTIONS"],
        ["DELETE", "/runs/", "GET, HEAD, OPTIONS"],
        ["TRACE", "/runs", "GET, HEAD, OPTIONS"]
      ] as const) {
        const answer = yield* call({ method, path })
        expectError(answer, 405, "MethodNotAllowed")
        expect(answer.headers.allow).toBe(allow)
      }
      const options = yield* call({ method: "OPTIONS", path: "/chat" })
      expect([options.status, options.headers.allow, options.body]).toEqual([204, "OPTIONS, POST", ""])
      expectError(yield* call({ method: "OPTIONS", path: "/nothing" }), 404, "NotFound")
      const head = yield* call({ method: "HEAD", path: "/healthz" })
      expect([head.status, head.body]).toEqual([200, ""])
      expect((yield* call({ method: "HEAD", path: "/nothing" })).status).toBe(404)
    })
  )

  it.scopedLive("the contract is served as a document", () =>
    Effect.gen(function* () {
      const { call } = yield* start()
      const document = JSON.parse((yield* call({ path: "/openapi.json" })).body)
      expect(document.paths["/runs/{runId}/events"].get.responses["200"].content).toHaveProperty("text/event-stream")
      expect(document.components.schemas).toHaveProperty("Envelope")
      expect(JSON.stringify(document)).not.toContain("HttpApiDecodeError")
      expect((yield* call({ path: "/healthz" })).body).toBe('{"status":"ok"}')
      expect((yield* call({ path: "/readyz" })).status).toBe(200)
    })
  )
})
