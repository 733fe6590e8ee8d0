import * as Net from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Fake from "./FakeEngine.js"
import { start } from "./Server.js"

const idleSocket = (port: number) =>
  Effect.acquireRelease(
    Effect.async<Net.Socket>((resume) => {
      const socket = Net.connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
      socket.on("error", () => {})
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

describe("stopping", () => {
  it.scopedLive("open streams end cleanly and nobody is waited for", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { fake, open, port } = yield* Scope.extend(start({ limits: { shutdownGraceMs: 10_000 } }), scope)
      const streams = yield* Effect.all(
        Array.from({ length: 10 }, () => open({ path: "/chat", json: { message: "hi" } }))
      )
      yield* idleSocket(port)
      yield* Effect.forEach(streams, (stream) => stream.until((text) => text.includes("run-status")))
      const began = yield* Clock.currentTimeMillis
      const stopping = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Deferred.await(fake.drained)
      for (const stream of streams) {
        const body = yield* stream.ended
        expect(body.endsWith("\n\n")).toBe(true)
        expect(stream.complete()).toBe(true)
      }
      yield* Fiber.join(stopping)
      expect((yield* Clock.currentTimeMillis) - began).toBeLessThan(5000)
    })
  )

  it.scopedLive("a reader that is stuck is cut off when the time is over, and new work is refused until then", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { call, fake, open } = yield* Scope.extend(start({ limits: { shutdownGraceMs: 2000 } }), scope)
      const stuck = yield* open({ path: "/chat", json: { message: "hi" } })
      yield* stuck.pause
      const [runId = ""] = fake.runs()
      const megabyte = "x".repeat(1 << 20)
      for (let index = 0; index < 16; index++) yield* fake.push(runId, Fake.text(megabyte))
      const began = yield* Clock.currentTimeMillis
      const stopping = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* Deferred.await(fake.drained)
      const refused = yield* call({ path: "/chat", json: { message: "late" } })
      expect(refused.status).toBe(503)
      expect(refused.headers["retry-after"]).toBe("1")
      expect(refused.headers.connection).toBe("close")
      expect(JSON.parse(refused.body)._tag).toBe("Unavailable")
      expect((yield* call({ path: "/readyz" })).status).toBe(503)
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
      expect((yield* call({ path: `/runs/${runId}` })).status).toBe(200)
      yield* Fiber.join(stopping)
      const took = (yield* Clock.currentTimeMillis) - began
      expect(took).toBeGreaterThan(1500)
      expect(took).toBeLessThan(10_000)
      expect(fake.started).toHaveLength(1)
    })
  )
})
