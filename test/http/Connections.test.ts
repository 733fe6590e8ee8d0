import * as Net from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { start } from "./Server.js"

/** A bare connection, and what came over it so far. */
const connect = (port: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<Net.Socket>((resume) => {
        const socket = Net.connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
        socket.on("error", () => {})
      }),
      (socket) => Effect.sync(() => socket.destroy())
    ),
    (socket) => {
      let text = ""
      socket.on("data", (data) => {
        text += data.toString("latin1")
      })
      const until = (predicate: (text: string) => boolean) =>
        Effect.suspend(() => (predicate(text) ? Effect.succeed(text) : Effect.fail(text))).pipe(
          Effect.retry(Schedule.spaced("5 millis").pipe(Schedule.upTo("10 seconds"))),
          Effect.orDie
        )
      return { socket, until }
    }
  )

const request = (line: string, body = "") =>
  `${line} HTTP/1.1\r\nHost: localhost\r\n${
    body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  }\r\n${body}`

const chat = request("POST /chat", JSON.stringify({ message: "hi" }))

describe("requests that come at once over one connection", () => {
  it.scopedLive("are answered in their order", () =>
    Effect.gen(function* () {
      const { port } = yield* start()
      const { socket, until } = yield* connect(port)
      const paths = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? "/healthz" : `/nowhere/${n}`))
      socket.write(paths.map((path) => request(`GET ${path}`)).join(""))
      const statuses = (text: string) => text.match(/HTTP\/1\.1 \d+/g) ?? []
      const text = yield* until((text) => statuses(text).length === paths.length)
      expect(statuses(text)).toEqual(paths.map((path) => `HTTP/1.1 ${path === "/healthz" ? 200 : 404}`))
    })
  )

  it.scopedLive("are begun when the one before is answered, and never when the connection breaks before that", () =>
    Effect.gen(function* () {
      const { call, fake, port } = yield* start()
      const { socket, until } = yield* connect(port)
      socket.write(chat + chat + chat)
      yield* until((text) => text.includes("run-status"))
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
      expect(fake.runs()).toHaveLength(1)
      socket.destroy()
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
      expect(fake.runs()).toHaveLength(1)
    })
  )

  it.scopedLive("are not waited for when they are very many", () =>
    Effect.gen(function* () {
      const { call, port } = yield* start()
      const { socket, until } = yield* connect(port)
      const closed = Effect.async<void>((resume) => {
        socket.once("close", () => resume(Effect.void))
      })
      socket.write(chat)
      yield* until((text) => text.includes("run-status"))
      socket.write(request("GET /healthz").repeat(33))
      yield* closed
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
    })
  )
})

describe("a body", () => {
  const inPieces = (text: string) =>
    `POST /chat HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${[
      ...text
    ]
      .map((char) => `1\r\n${char}\r\n`)
      .join("")}0\r\n\r\n`
  const body = (length: number) => JSON.stringify({ message: "x".repeat(length - '{"message":""}'.length) })

  it.scopedLive("may come byte by byte, but not very many of them", () =>
    Effect.gen(function* () {
      const { fake, port } = yield* start()
      const few = yield* connect(port)
      few.socket.write(inPieces(body(4_096)))
      yield* few.until((text) => text.includes("run-status"))
      const many = yield* connect(port)
      many.socket.write(inPieces(body(4_097)))
      expect(yield* many.until((text) => text.includes("\r\n\r\n{"))).toContain("HTTP/1.1 413")
      expect(fake.runs()).toHaveLength(1)
    })
  )
})
