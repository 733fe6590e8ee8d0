import * as Net from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { text } from "../http/FakeEngine.js"
import { start } from "../http/Server.js"
import { counts } from "./support/Reached.js"

/** What a server says to these bytes, sent one after the other, until it closes the connection or `until` stands there. */
const say = (
  port: number,
  pieces: ReadonlyArray<string>,
  options: { readonly everyMs?: number; readonly until?: RegExp } = {}
) =>
  Effect.async<string>((resume) => {
    const socket = Net.connect(port, "127.0.0.1")
    let text = ""
    let next = 0
    const timer = setInterval(() => {
      const piece = pieces[next++]
      if (piece !== undefined) socket.write(piece)
    }, options.everyMs ?? 1)
    const end = () => {
      clearInterval(timer)
      socket.destroy()
      resume(Effect.succeed(text))
    }
    socket.on("data", (chunk) => {
      text += chunk
      if (options.until?.test(text)) end()
    })
    socket.on("error", () => {})
    socket.on("close", end)
  })

/** How often a limit has refused something so far. */
const reached = (call: Effect.Effect.Success<ReturnType<typeof start>>["call"], limit: string) =>
  Effect.map(call({ path: "/metrics" }), ({ body }) =>
    Number(new RegExp(`^runlet_limits_reached_total\\{limit="${limit}"\\} (\\d+)$`, "m").exec(body)?.[1] ?? 0)
  )

const chat = (message: string) => ({ path: "/chat", json: { message, background: true } })

describe("maxBodyBytes", () => {
  it.scopedLive("bounds a body, with or without a length", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ limits: { maxBodyBytes: 1_000 } })
      const empty = JSON.stringify({ message: "", background: true }).length
      for (const [size, status] of [
        [999, 202],
        [1_000, 202],
        [1_001, 413],
        [100_000, 413]
      ] as const) {
        const body = JSON.stringify({ message: "x".repeat(size - empty), background: true })
        expect(body.length).toBe(size)
        const headers = { "transfer-encoding": "chunked" }
        for (const more of [{}, { headers }]) {
          const answer = yield* call({ path: "/chat", body, ...more })
          expect([size, answer.status]).toEqual([size, status])
          if (status === 413)
            expect(JSON.parse(answer.body)).toMatchObject({ _tag: "PayloadTooLarge", limit: "maxBodyBytes" })
        }
      }
    })
  )

  it.scopedLive("is small for those who have shown no credential", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ tokens: { "token-a": "alice" } })
      const body = (size: number) => ({ path: "/session", json: { token: "x".repeat(size) } })
      expect((yield* call(body(16_000))).status).toBe(401)
      expect((yield* call(body(17_000))).status).toBe(413)
      expect((yield* call(chat("x".repeat(100_000)))).status).toBe(401)
    })
  )
})

describe("maxMessages and maxMessageChars", () => {
  it.scopedLive("bound what a request brings", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ limits: { maxMessages: 3, maxMessageChars: 10 } })
      const messages = (n: number) => Array.from({ length: n }, () => ({ role: "user", content: "x" }))
      for (const [n, status] of [
        [2, 202],
        [3, 202],
        [4, 413]
      ] as const) {
        const answer = yield* call({ path: "/chat", json: { messages: messages(n), background: true } })
        expect([n, answer.status]).toEqual([n, status])
        if (status === 413) expect(JSON.parse(answer.body)).toMatchObject({ path: "messages", limit: "maxMessages" })
        const content = "x".repeat(n + 7)
        const inList = yield* call({ path: "/chat", json: { messages: [{ role: "user", content }], background: true } })
        const alone = yield* call(chat(content))
        expect([n, inList.status, alone.status]).toEqual([n, status, status])
        if (status === 413) {
          expect(JSON.parse(inList.body)).toMatchObject({ path: "messages[0].content", limit: "maxMessageChars" })
          expect(JSON.parse(alone.body)).toMatchObject({ path: "message", limit: "maxMessageChars" })
        }
      }
    })
  )
})

describe("maxStreamsPerUser", () => {
  it.scopedLive("bounds what one user watches at once, whatever it is", () =>
    Effect.gen(function* () {
      const tokens = { "token-a": "alice", "token-b": "bob" }
      const { call, fake, open } = yield* start({ tokens, limits: { maxStreamsPerUser: 2 } })
      const alice = { authorization: "Bearer token-a" }
      yield* call({ ...chat("hi"), headers: alice })
      const [runId = ""] = fake.runs()
      const path = `/runs/${runId}/events`
      const first = yield* open({ path, headers: alice })
      expect((yield* open({ path, headers: alice })).status).toBe(200)
      for (const more of [
        { path },
        { path: "/chat", json: { message: "hi" } },
        { path: `/runs/${runId}/resume`, json: {} },
        { path: `/runs/${runId}/regenerate`, json: {} },
        { path: `/runs/${runId}/trace` }
      ]) {
        const refused = yield* call({ ...more, headers: alice })
        expect([more.path, refused.status, refused.headers["retry-after"]]).toEqual([more.path, 429, "1"])
        expect(JSON.parse(refused.body)).toMatchObject({ _tag: "LimitReached", limit: "maxStreamsPerUser" })
      }
      expect((yield* call({ path: "/runs", headers: alice })).status).toBe(200)
      yield* first.close
      const again = yield* Effect.repeat(open({ path, headers: alice }), { until: ({ status }) => status === 200 })
      expect(again.status).toBe(200)
    })
  )

  it.scopedLive("bounds how much of long answers waits for one user to read it", () =>
    Effect.gen(function* () {
      const tokens = { "token-a": "alice", "token-b": "bob" }
      const { call, fake, open } = yield* start({ tokens, limits: { maxStreamsPerUser: 40 } })
      const alice = { authorization: "Bearer token-a" }
      yield* call({ ...chat("hi"), headers: alice })
      const [runId = ""] = fake.runs()
      // A smile is two units long: none is torn where pieces meet.
      const said = `.${"😀".repeat(6 * 1024 * 1024)}`
      yield* fake.push(runId, text(said))
      const path = `/runs/${runId}`
      const unread = yield* open({ path, headers: alice })
      yield* unread.pause
      const refused = yield* call({ path, headers: alice })
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"])
      // Small answers, streams that have a place, and others are not concerned.
      expect((yield* call({ path: "/runs", headers: alice })).status).toBe(200)
      expect((yield* open({ path: `${path}/events`, headers: alice })).status).toBe(200)
      expect((yield* call({ path, headers: { authorization: "Bearer token-b" } })).status).toBe(404)
      yield* unread.close
      const { body } = yield* Effect.repeat(call({ path, headers: alice }), { until: ({ status }) => status === 200 })
      expect(JSON.parse(body).text === said).toBe(true)
    })
  )

  it.scopedLive("does not bound the one user of a server without authentication", () =>
    Effect.gen(function* () {
      const { call, fake, open } = yield* start({ limits: { maxStreamsPerUser: 1 } })
      yield* call(chat("hi"))
      const path = `/runs/${fake.runs()[0]}/events`
      for (const _ of [1, 2, 3]) expect((yield* open({ path })).status).toBe(200)
    })
  )
})

describe("maxHeaderBytes", () => {
  it.scopedLive("bounds the headers", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ limits: { maxHeaderBytes: 2_000 } })
      const status = (size: number) =>
        Effect.map(call({ path: "/healthz", headers: { "x-long": "x".repeat(size) } }), (answer) => answer.status)
      const before = yield* reached(call, "maxHeaderBytes")
      expect(yield* status(1_500)).toBe(200)
      expect(yield* status(2_100)).toBe(431)
      expect(yield* status(50_000)).toBe(431)
      const path = yield* call({ path: `/runs/${"x".repeat(3_000)}` })
      expect(path.status).toBe(431)
      expect(yield* reached(call, "maxHeaderBytes")).toBe(before + 3)
      expect(yield* status(10)).toBe(200)
    })
  )
})

describe("requestTimeoutMs", () => {
  const head = "POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
  const body = JSON.stringify({ message: "hi", background: true })

  it.scopedLive("is enough for who comes to the point", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ limits: { requestTimeoutMs: 2_000 } })
      const pieces = [...`${head}Content-Length: ${body.length}\r\n\r\n${body}`].map((char) => char)
      expect(yield* say(port, pieces)).toMatch(/^HTTP\/1.1 202 /)
    })
  )

  for (const [what, pieces] of [
    ["says nothing", []],
    ["dribbles headers", [head, ...Array.from({ length: 1_000 }, (_, n) => `X-${n}: y\r\n`)]],
    ["dribbles a body", [`${head}Content-Length: 10000\r\n\r\n`, ..."x".repeat(1_000)]],
    ["begins a body of chunks", [`${head}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n"]]
  ] as const) {
    it.scopedLive(`ends a connection that ${what}`, () =>
      Effect.gen(function* () {
        const { call, fake, port } = yield* start({ limits: { requestTimeoutMs: 200 } })
        const before = yield* reached(call, "requestTimeoutMs")
        const [answer, others] = yield* Effect.all(
          [say(port, pieces, { everyMs: 20 }), Effect.forEach(Array(5), () => call({ path: "/healthz" }))],
          { concurrency: "unbounded" }
        )
        expect(answer).toMatch(/^(HTTP\/1.1 408 |$)/)
        expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
        expect(fake.started).toEqual([])
        // Who has said nothing at all was no request.
        expect(yield* reached(call, "requestTimeoutMs")).toBeGreaterThanOrEqual(before + (pieces.length === 0 ? 0 : 1))
      })
    )
  }

  it.scopedLive("does not end an answer that takes longer", () =>
    Effect.gen(function* () {
      const { call, fake, open } = yield* start({ limits: { requestTimeoutMs: 100 } })
      yield* call(chat("hi"))
      const stream = yield* open({ path: `/runs/${fake.runs()[0]}/events` })
      yield* Effect.sleep(600)
      yield* fake.push(fake.runs()[0] ?? "", { type: "run-status", status: "streaming" })
      yield* stream.until((text) => text.includes("streaming"))
      expect(stream.text()).toContain("streaming")
    })
  )
})

describe("maxConnections", () => {
  const connected = (port: number) =>
    Effect.acquireRelease(
      Effect.async<Net.Socket>((resume) => {
        const socket = Net.connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
        socket.on("error", () => {})
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )

  it.scopedLive("closes what comes beyond it, and serves those who are there", () =>
    Effect.gen(function* () {
      const { port } = yield* start({ limits: { maxConnections: 3 } })
      const ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
      const answerTo = (socket: Net.Socket) =>
        Effect.async<string>((resume) => {
          socket.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
          socket.write(ask)
        })
      const sockets = yield* Effect.all([connected(port), connected(port), connected(port)])
      for (const socket of sockets) expect(yield* answerTo(socket)).toMatch(/^HTTP\/1.1 200 /)
      expect(yield* say(port, [ask], { until: /ok/ })).toBe("")
      for (const socket of sockets) expect(yield* answerTo(socket)).toMatch(/^HTTP\/1.1 200 /)
      sockets[0]?.destroy()
      const place = say(port, [ask], { until: /ok/ })
      expect(yield* Effect.repeat(place, { until: (answer) => answer !== "" })).toMatch(/^HTTP\/1.1 200 /)
    })
  )
})

it.effect("whatever a limit has refused was counted", () =>
  Effect.gen(function* () {
    const all = yield* counts()
    for (const limit of [
      ...["maxBodyBytes", "maxMessages", "maxMessageChars", "maxStreamsPerUser"],
      ...["maxHeaderBytes", "requestTimeoutMs", "maxConnections"]
    ]) {
      expect([limit, (all[limit] ?? 0) > 0]).toEqual([limit, true])
    }
    expect(Object.keys(all)).not.toContain("size")
  })
)
