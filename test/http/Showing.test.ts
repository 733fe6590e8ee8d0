/**
 * The law of a response that shows a log, over random orders of what happens to it: it is read or not, the log grows,
 * leaves the live tail and comes back to it, bells ring, the server stops, the reader goes. What its reader has got is
 * always the log from its beginning, nothing lost, doubled or out of order, and nothing piles up for a reader who does
 * not read. The server is node's own, over a connection that takes a write only when the test lets it.
 */
import * as Http from "node:http"
import { Duplex } from "node:stream"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import { frameOf } from "../../src/engine/Frames.js"
import { LiveTails } from "../../src/engine/LiveTail.js"
import * as Viewing from "../../src/engine/Viewing.js"
import * as LogBody from "../../src/http/LogBody.js"
import { bytesOf, type Writer } from "../../src/http/LogWriter.js"
import type { RunRow, StoredEvent } from "../../src/store/RunStore.js"
import { row } from "../engine/row.js"
import { knowing } from "./readers.js"

type Move =
  | { readonly does: "store"; readonly sizes: ReadonlyArray<number> }
  | { readonly does: "read" | "pass"; readonly count: number }
  | { readonly does: "pulse" | "bell" | "leave" | "own" }

const move: FastCheck.Arbitrary<Move> = FastCheck.oneof(
  {
    weight: 4,
    arbitrary: FastCheck.record({
      does: FastCheck.constant("store" as const),
      sizes: FastCheck.array(FastCheck.constantFrom(1, 500, 100_000), { minLength: 1, maxLength: 4 })
    })
  },
  {
    weight: 6,
    arbitrary: FastCheck.record({
      does: FastCheck.constantFrom("read" as const, "pass" as const),
      count: FastCheck.integer({ min: 1, max: 4 })
    })
  },
  {
    weight: 3,
    arbitrary: FastCheck.record({
      does: FastCheck.constantFrom("pulse" as const, "bell" as const, "leave" as const, "own" as const)
    })
  }
)

const endings = FastCheck.constantFrom("finish" as const, "stop" as const, "go" as const)

/** A connection that finishes a write when it is told to. */
class Held extends Duplex {
  readonly taken: Array<Buffer> = []
  private done: (() => void) | undefined
  free = false

  override _read(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.taken.push(chunk)
    if (this.free) done()
    else this.done = done
  }

  accept(): void {
    const { done } = this
    this.done = undefined
    done?.()
  }

  acceptAll(): void {
    this.free = true
    this.accept()
  }
}

const key = 1
const runId = "run_1"
const rowOf = (lastSeq: number, ended: boolean): RunRow => ({
  ...row,
  key,
  runId,
  status: ended ? "completed" : "running",
  lastSeq
})

const turn = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

/** A log with a live tail, of which the store answers a little later. */
const makeLog = () => {
  const tails = new LiveTails()
  const events: Array<StoredEvent> = []
  let ended = false
  tails.open(key, 0)
  const row = Effect.sync(() => rowOf(events.length, ended))
  const found = Effect.map(turn, () => Option.some(rowOf(events.length, ended)))
  const store = {
    find: () => found,
    row: () => found,
    events: ({ after, limit }: { readonly after: number; readonly limit: number }) =>
      Effect.map(turn, () => events.slice(after, after + limit))
  }
  const add = (size: number, last: boolean): StoredEvent => {
    const seq = events.length + 1
    const event: StoredEvent = {
      seq,
      type: last ? "finish" : "text-delta",
      json: JSON.stringify({ n: seq, text: "x".repeat(size) }),
      createdAt: seq
    }
    events.push(event)
    return event
  }
  return {
    tails,
    row,
    env: { tails, store },
    events,
    store: (sizes: ReadonlyArray<number>, last = false) => {
      ended = last
      const frames = sizes.map((size) => frameOf(runId, add(size, last)))
      if (tails.last(key) !== undefined) tails.publish(key, frames)
      else tails.wake(key)
    }
  }
}

const lineOf = (json: string) => `${json}\n`
const heartbeat = "\n"

const writerOf = (whole: boolean): Writer => {
  let over = false
  return {
    write: (frames) => {
      over ||= frames.some(({ terminal }) => terminal)
      return bytesOf(frames.map(({ json }) => lineOf(json)).join(""))
    },
    heartbeat,
    verdict: () => (over ? "over" : "on"),
    last: () => undefined,
    whole
  }
}

/** The body of a response in chunks, and whether it came to its end. */
const parse = (all: string) => {
  let rest = all.slice(all.indexOf("\r\n\r\n") + 4)
  let body = ""
  while (true) {
    const at = rest.indexOf("\r\n")
    if (at === -1) return { body, complete: false }
    const length = Number.parseInt(rest.slice(0, at), 16)
    if (length === 0) return { body, complete: true }
    body += rest.slice(at + 2, at + 2 + length)
    rest = rest.slice(at + 2 + length + 2)
  }
}

const seqs = (body: string): ReadonlyArray<number> =>
  body
    .split("\n")
    .slice(0, -1)
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).seq)

/** What a response may hold at most: what node keeps before it says so, and one look into the log. */
const bound = 16 * 1024 + 256 * 1024 + 100_000

const play = (moves: ReadonlyArray<Move>, ending: "finish" | "stop" | "go", whole: boolean) =>
  Effect.gen(function* () {
    const log = makeLog()
    const readers = new Set<() => void>()
    const write = yield* LogBody.make(knowing(readers))
    const view = yield* Viewing.view(log.env, runId, 0)
    const content = { writer: writerOf(whole), first: heartbeat, view, after: 0 }
    const app = Effect.sync(() => HttpServerResponse.raw(new LogBody.LogBody(content)))
    const handler = yield* NodeHttpServer.makeHandler(Effect.flatMap(app, write))
    const server = Http.createServer()
    const responses: Array<Http.ServerResponse> = []
    server.on("request", (_, response) => void responses.push(response))
    server.on("request", handler)
    const socket = new Held()
    socket.on("error", () => {})
    server.emit("connection", socket)
    socket.push("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    const settled = (turns: number) => Effect.repeatN(turn, turns)
    const check = () => {
      expect(log.tails.waiting).toBeLessThanOrEqual(1)
      expect(responses[0]?.listenerCount("drain") ?? 0).toBeLessThanOrEqual(1)
      expect(responses[0]?.writableLength ?? 0).toBeLessThan(bound)
    }
    yield* settled(3)
    for (const one of moves) {
      switch (one.does) {
        case "store":
          log.store(one.sizes)
          break
        case "read":
          for (let i = 0; i < one.count; i++) {
            socket.accept()
            yield* settled(1)
          }
          break
        case "pass":
          yield* settled(one.count)
          break
        case "pulse":
          log.tails.tick()
          break
        case "bell":
          log.tails.wakeAll()
          break
        case "leave":
          log.tails.close(key)
          break
        case "own":
          log.tails.open(key, log.events.length)
          break
      }
      check()
    }
    if (ending === "finish") log.store([1], true)
    if (ending === "stop") for (const end of readers) end()
    if (ending === "go") socket.destroy()
    else socket.acceptAll()
    let turns = 0
    while (turns++ < 2000 && (readers.size > 0 || !socket.destroyed)) yield* settled(1)
    const { body, complete } = parse(Buffer.concat(socket.taken).toString())
    const shown = seqs(body.slice(0, body.lastIndexOf("\n") + 1))
    expect(shown).toEqual(Array.from({ length: shown.length }, (_, i) => i + 1))
    if (ending === "finish") {
      expect(shown.length).toBe(log.events.length)
      expect(complete).toBe(true)
    }
    if (ending === "stop") expect(complete).toBe(!whole)
    expect(readers.size).toBe(0)
    log.tails.wakeAll()
    yield* settled(5)
    expect(log.tails.waiting).toBe(0)
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

it.live("whatever happens to a response that shows a log, its reader gets the log and nothing else", () =>
  Effect.promise(() =>
    FastCheck.assert(
      FastCheck.asyncProperty(
        FastCheck.array(move, { minLength: 5, maxLength: 40 }),
        endings,
        FastCheck.boolean(),
        (moves, ending, whole) => Effect.runPromise(play(moves, ending, whole))
      ),
      { numRuns: 100 }
    )
  )
)
