import { mkdtempSync, rmSync } from "node:fs"
import * as Http from "node:http"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { LiveTails } from "../../src/engine/LiveTail.js"
import type { Frame, Pull, View } from "../../src/engine/RunEngine.js"
import * as LogBody from "../../src/http/LogBody.js"
import { bytesOf, type Writer } from "../../src/http/LogWriter.js"
import { knowing } from "./readers.js"

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

const eventually = (holds: () => boolean) =>
  Effect.sync(holds).pipe(
    Effect.repeat({ until: (held) => held, schedule: Schedule.spaced("10 millis").pipe(Schedule.upTo("10 seconds")) }),
    Effect.map(() => holds())
  )

/** A log of one page that is read from the store, at whose end a bell is waited for. */
const log = (page: string) => {
  const bells: Array<(pulse: boolean) => void> = []
  const held: { frames?: WeakRef<ReadonlyArray<Frame>> } = {}
  const view: View = {
    runId: "r",
    lastSeq: 1,
    ended: false,
    pull: () =>
      Effect.sync((): Pull => {
        const frames = [{ seq: 1, json: page, chars: page.length, terminal: false }]
        held.frames = new WeakRef(frames)
        return { _tag: "frames", frames }
      }),
    poll: (cursor, bell) => {
      if (cursor === 0) return undefined
      bells.push(bell)
      return "waiting"
    }
  }
  return { bells, held, view }
}

const writer = (more: Partial<Writer> = {}): Writer => ({
  write: (frames) => bytesOf(frames.map(({ json }) => json).join("")),
  heartbeat: ":",
  verdict: () => "on",
  last: () => undefined,
  whole: false,
  ...more
})

/** A server that answers everything with this content, and how many of its readers it knows. */
const serve = (content: () => LogBody.Content, path?: string) =>
  Effect.gen(function* () {
    const open = new Set<() => void>()
    const write = yield* LogBody.make(knowing(open))
    const app = Effect.sync(() => HttpServerResponse.raw(new LogBody.LogBody(content())))
    const server = yield* Effect.acquireRelease(Effect.sync(Http.createServer), (server) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
    )
    server.on("request", yield* NodeHttpServer.makeHandler(Effect.flatMap(app, write)))
    yield* Effect.async<void>((resume) => {
      const where = path === undefined ? { port: 0, host: "127.0.0.1" } : { path }
      server.listen(where, () => resume(Effect.void))
    })
    const address = server.address()
    return { open, port: typeof address === "object" && address !== null ? address.port : 0 }
  }).pipe(Effect.provide(NodeContext.layer))

const read = (port: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<Http.IncomingMessage>((resume) => {
        Http.get({ port, host: "127.0.0.1", agent: false }, (response) => resume(Effect.succeed(response)))
      }),
      (response) => Effect.sync(() => response.destroy())
    ),
    (response) => {
      response.on("error", () => {})
      return response
    }
  )

describe("a response that shows a log", () => {
  it.scopedLive("holds nothing of what it has shown while its reader waits for more", () =>
    Effect.gen(function* () {
      const { bells, held, view } = log("x".repeat(1000))
      const { port } = yield* serve(() => ({ writer: writer(), first: "", view, after: 0 }))
      yield* Effect.map(read(port), (response) => response.resume())
      expect(yield* eventually(() => bells.length > 0)).toBe(true)
      expect(
        yield* eventually(() => {
          gc()
          return held.frames !== undefined && held.frames.deref() === undefined
        })
      ).toBe(true)
    })
  )

  it.scopedLive("is not held by the bell that its reader did not wait for", () =>
    Effect.gen(function* () {
      const { bells, view } = log("x")
      const held: { writer?: WeakRef<Writer> } = {}
      const { open, port } = yield* serve(() => {
        const one = writer()
        held.writer = new WeakRef(one)
        return { writer: one, first: "", view, after: 0 }
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* read(port)
          expect(yield* eventually(() => bells.length > 0 && open.size === 1)).toBe(true)
        })
      )
      expect(yield* eventually(() => open.size === 0)).toBe(true)
      expect(
        yield* eventually(() => {
          gc()
          return held.writer?.deref() === undefined
        })
      ).toBe(true)
      for (const bell of bells) bell(true)
    })
  )

  it.scopedLive("is over when it has ended and its reader goes without having read it", () =>
    Effect.gen(function* () {
      const { view } = log("x")
      const last = "x".repeat(64 * 1024 * 1024)
      const over = writer({ verdict: (cursor) => (cursor === 1 ? "over" : "on"), last: () => last })
      const { open, port } = yield* serve(() => ({ writer: over, first: "", view, after: 0 }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.map(read(port), (response) => response.pause())
          expect(open.size).toBe(1)
        })
      )
      expect(yield* eventually(() => open.size === 0)).toBe(true)
    })
  )

  for (const [when, at] of [
    ["when the store has answered", 1],
    ["behind a bell", 2],
    ["when its reader reads on", 3]
  ] as const) {
    it.scopedLive(`that can not be written ${when} is cut, and nobody else notices`, () =>
      Effect.gen(function* () {
        const tails = new LiveTails()
        tails.open(1, 0)
        const size = 16 * 1024 * 1024
        let seq = 0
        const add = (chars: number) => {
          seq++
          tails.publish(1, [{ seq, json: "x".repeat(chars), chars, terminal: false }])
        }
        const view: View = {
          runId: "r",
          lastSeq: 0,
          ended: false,
          pull: () =>
            Effect.delay(Effect.succeed<Pull>({ _tag: "frames", frames: tails.behind(1, 0) ?? [] }), "50 millis"),
          poll: (cursor, bell) => {
            if (at === 1 && cursor === 0) return undefined
            const frames = tails.behind(1, cursor)
            if (frames !== undefined && frames.length > 0) return frames.slice(0, 1)
            return tails.register(1, cursor, bell) ? "waiting" : undefined
          }
        }
        let broken = true
        const { open, port } = yield* serve(() => {
          const breaks = broken
          broken = false
          return {
            writer: writer({
              write: (frames) => {
                if (breaks && frames[0]?.seq === at) throw new Error("broken")
                return bytesOf(frames.map(({ json }) => json).join(""))
              }
            }),
            first: ".",
            view,
            after: 0
          }
        })
        if (at === 1) add(1)
        const bad = yield* read(port)
        const good = yield* read(port)
        bad.pause()
        let received = 0
        good.on("data", (chunk: Buffer) => {
          received += chunk.length
        })
        if (at !== 1) add(1)
        yield* eventually(() => received === 2)
        add(at === 3 ? size : 1)
        add(1)
        bad.resume()
        expect(yield* eventually(() => bad.destroyed && open.size === 1)).toBe(true)
        expect(bad.complete).toBe(false)
        expect(yield* eventually(() => received === 1 + (at === 3 ? size : 1) + 2)).toBe(true)
      })
    )
  }

  it.scopedLive("is no longer looked for in the store when its reader has gone", () =>
    Effect.gen(function* () {
      let waiting = 0
      const view: View = {
        runId: "r",
        lastSeq: 0,
        ended: false,
        pull: () =>
          Effect.acquireUseRelease(
            Effect.sync(() => waiting++),
            () => Effect.never,
            () => Effect.sync(() => waiting--)
          ),
        poll: () => undefined
      }
      const { open, port } = yield* serve(() => ({ writer: writer(), first: ".", view, after: 0 }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* read(port)
          expect(yield* eventually(() => waiting === 1)).toBe(true)
        })
      )
      expect(yield* eventually(() => waiting === 0 && open.size === 0)).toBe(true)
    })
  )

  for (const version of ["1.0", "1.1"]) {
    it.scopedLive(`that is cut does not look like one that has ended, to a reader of HTTP ${version}`, () =>
      Effect.gen(function* () {
        const { bells, view } = log("x")
        const { open, port } = yield* serve(() => ({ writer: writer({ whole: true }), first: ".", view, after: 0 }))
        const seen = { text: "", ended: false, broken: false }
        const socket = yield* Effect.acquireRelease(
          Effect.sync(() => Net.connect(port, "127.0.0.1")),
          (socket) => Effect.sync(() => socket.destroy())
        )
        socket.on("data", (data) => {
          seen.text += data.toString()
        })
        socket.on("end", () => {
          seen.ended = true
        })
        socket.on("error", () => {
          seen.broken = true
        })
        socket.write(`GET / HTTP/${version}\r\nHost: a\r\n\r\n`)
        expect(yield* eventually(() => bells.length > 0 && seen.text.includes("x"))).toBe(true)
        for (const end of open) end()
        expect(yield* eventually(() => seen.ended || seen.broken)).toBe(true)
        expect(seen.broken || (/chunked/i.test(seen.text) && !seen.text.includes("0\r\n\r\n"))).toBe(true)
        expect(yield* eventually(() => open.size === 0)).toBe(true)
      })
    )
  }

  it.scopedLive("that is cut ends as well where the connection can not be reset", () =>
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-pipe-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const path = join(directory, "server")
      const { bells, view } = log("x")
      const { open } = yield* serve(() => ({ writer: writer({ whole: true }), first: ".", view, after: 0 }), path)
      let over = false
      const socket = yield* Effect.acquireRelease(
        Effect.sync(() => Net.connect(path)),
        (socket) => Effect.sync(() => socket.destroy())
      )
      socket.on("error", () => {})
      socket.on("close", () => {
        over = true
      })
      socket.resume()
      socket.write("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
      expect(yield* eventually(() => bells.length > 0)).toBe(true)
      for (const end of open) end()
      expect(yield* eventually(() => over && open.size === 0)).toBe(true)
    })
  )
})
