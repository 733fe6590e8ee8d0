/** The Effect form against the built server, through a network that cuts and swallows. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll } from "vitest"
import { calls, watch } from "../../src/client/effect.js"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import * as Proxy from "./support/Proxy.js"

let world: World.World
let proxy: Proxy.Proxy
beforeAll(async () => {
  world = await World.start({ limits: { heartbeatMs: 1000 }, users: { alice: "token-of-alice" } })
  proxy = await Proxy.start(world.url())
})
afterAll(async () => {
  await proxy.stop()
  await world.stop()
})

const as = (token: string) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, HttpClient.mapRequest(HttpClientRequest.bearerToken(token)))
  ).pipe(Layer.provide(FetchHttpClient.layer))
const alice = as("token-of-alice")

const options = () => ({ baseUrl: proxy.url, heartbeat: "1 second", maxDelay: "100 millis" }) as const
const pieces = (count: number, waitMs: number) =>
  Array.from({ length: count }, (_, i) => [Script.text(`${i} `), Script.wait(waitMs)]).flat()
const whole = (count: number, waitMs = 5) =>
  Script.reply([...pieces(count, waitMs), Script.finish("stop"), Script.done])
const told = (count: number) => Array.from({ length: count }, (_, i) => `${i} `).join("")
const textOf = (log: Iterable<Envelope>) => RunState.text(RunState.reduceAll(RunState.empty(""), log))
const seqs = (log: Iterable<Envelope>) => Array.from(log, ({ seq }) => seq)
const countTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)
const start = (message: string) => Effect.promise(() => world.as("token-of-alice").start({ message }))
const collecting = (runId: string) => {
  const seen: Array<Envelope> = []
  return {
    seen,
    all: Stream.runForEachChunk(watch(runId, options()), (chunk) => Effect.sync(() => void seen.push(...chunk)))
  }
}
const untilSeen = (seen: ReadonlyArray<Envelope>, count: number) =>
  Effect.promise(() => eventually(`${count} events`, () => (seen.length >= count ? true : undefined)))

describe("watching as a stream", () => {
  it.live("gives each event once, through cuts and silence, and asks for exactly the rest", () =>
    Effect.gen(function* () {
      const cuts = [1, 2, 3, 4]
      const held = cuts.flatMap((cut) => [...pieces(30, 5), Script.gate(`cut ${cut}`)])
      world.upstream.script("Streamed", [Script.reply([...held, ...pieces(30, 5), Script.finish("stop"), Script.done])])
      const { runId } = yield* start("Streamed")
      const from = proxy.requests.length
      const { all, seen } = collecting(runId)
      const fiber = yield* Effect.fork(all)
      const expected: Array<number> = [0]
      for (const cut of cuts) {
        // The run waits too: it can not come to its end while nobody hears it.
        yield* Effect.promise(() =>
          eventually("the words before the cut", () => (textOf(seen) === told(30).repeat(cut) ? true : undefined))
        )
        const { length } = proxy.requests
        if (cut === 2) proxy.blackHole()
        else proxy.cut()
        expected.push(seen.length)
        yield* Effect.promise(() =>
          eventually("another request", () => (proxy.requests.length > length ? true : undefined))
        )
        yield* Effect.promise(() => world.upstream.release(`cut ${cut}`))
      }
      yield* Fiber.join(fiber)
      expect(seqs(seen)).toEqual(countTo(seen.length))
      expect(textOf(seen)).toBe(told(30).repeat(5))
      expect(seen.at(-1)?.event.type).toBe("finish")
      const cursors = proxy.requests.slice(from).map(({ url }) => Number(url.split("after=")[1]))
      // A swallowed connection that was kept open for later may be tried once more, and what was on its way at a cut may
      // still arrive: never less than was seen is asked for, and more would leave a hole.
      expect(cursors.toSorted((a, b) => a - b)).toEqual(cursors)
      expect(new Set(cursors).size).toBeGreaterThan(4)
      expect(expected.every((least) => cursors.some((cursor) => cursor >= least))).toBe(true)
      expect(yield* Stream.runCollect(watch(runId, { ...options(), after: seen.length }))).toEqual(Chunk.empty())
    }).pipe(Effect.provide(alice))
  )

  it.live("goes on when the server was killed and started again", () =>
    Effect.gen(function* () {
      world.upstream.script("Streamed and killed", [Script.reply([...pieces(40, 5), Script.gate("never")]), whole(80)])
      const { runId } = yield* start("Streamed and killed")
      const { all, seen } = collecting(runId)
      const fiber = yield* Effect.fork(all)
      yield* untilSeen(seen, 10)
      yield* Effect.promise(() => world.restart())
      proxy.retarget(world.url())
      proxy.cut()
      yield* Fiber.join(fiber)
      expect(seqs(seen)).toEqual(countTo(seen.length))
      expect(textOf(seen)).toBe(told(80))
      expect(seen.some(({ event }) => event.type === "run-resumed")).toBe(true)
    }).pipe(Effect.provide(alice))
  )

  it.live("fails with what the server says, and does not ask again", () =>
    Effect.gen(function* () {
      const from = proxy.requests.length
      const missing = yield* Effect.flip(Stream.runDrain(watch("run_01890000-0000-7000-8000-000000000001", options())))
      expect(missing._tag).toBe("NotFound")
      const { runId } = yield* start("[rounds 0] Short")
      const beyond = yield* Effect.flip(Stream.runDrain(watch(runId, { ...options(), after: 1_000_000 })))
      expect(beyond._tag).toBe("InvalidCursor")
      const stranger = yield* Effect.flip(Effect.provide(Stream.runDrain(watch(runId, options())), as("wrong")))
      expect(stranger._tag).toBe("Unauthorized")
      expect(proxy.requests.slice(from)).toHaveLength(3)
    }).pipe(Effect.provide(alice))
  )

  it.live("interrupting it stops the watching and nothing else", () =>
    Effect.gen(function* () {
      world.upstream.script("Left alone", [whole(100, 10)])
      const { runId } = yield* start("Left alone")
      const some = yield* Stream.runCollect(Stream.take(watch(runId, options()), 20))
      expect(seqs(some)).toEqual(countTo(20))
      const api = yield* calls({ baseUrl: proxy.url })
      yield* Stream.runDrain(watch(runId, { ...options(), after: 20 }))
      const snapshot = yield* api.runs.get({ path: { runId } })
      expect([snapshot.status, snapshot.text]).toEqual(["completed", told(100)])
    }).pipe(Effect.provide(alice))
  )
})
