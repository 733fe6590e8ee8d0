import * as Net from "node:net"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import packageJson from "../../package.json" with { type: "json" }
import * as Cli from "../../src/cli/Cli.js"
import { Failure } from "../../src/cli/Failure.js"
import type { Wiring } from "../../src/cli/Serve.js"
import { StoreError } from "../../src/store/RunStore.js"
import * as Fake from "../http/FakeEngine.js"

const wiring: Wiring = () =>
  Layer.unwrapEffect(Effect.map(Fake.make({ heartbeatMs: 60_000 }), (fake) => Fake.layer(fake)))

/** Runs a command line until it fails, or until it is ready and somebody interrupts it. */
const runlet = (args: ReadonlyArray<string>, stack = wiring) =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const ready = yield* Deferred.make<string>()
    const console = yield* Console.consoleWith(Effect.succeed)
    const recording: Console.Console = {
      ...console,
      log: (line: string) =>
        Effect.zipRight(
          Effect.sync(() => said.push(line)),
          Deferred.succeed(ready, line)
        ),
      error: () => Effect.void
    }
    const fiber = yield* Cli.run(stack)(["node", "runlet", ...args]).pipe(
      Console.withConsole(recording),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
      Effect.provide(NodeContext.layer),
      Effect.forkScoped
    )
    return { fiber, ready: Deferred.await(ready), said }
  })

const failure = (args: ReadonlyArray<string>, stack?: Wiring) =>
  Effect.gen(function* () {
    const { fiber } = yield* runlet(args, stack)
    const error = yield* Effect.flip(Fiber.join(fiber))
    if (!(error instanceof Failure)) return yield* Effect.dieMessage(`unexpected failure: ${String(error)}`)
    return [error.exitCode, error.message] as const
  })

describe("serve", () => {
  it.scopedLive("says where it is, serves, and stops when it is told to", () =>
    Effect.gen(function* () {
      const { fiber, ready, said } = yield* runlet(["serve", "--port", "0"])
      const [, url = ""] = /^Runlet is ready at (http:\/\/127\.0\.0\.1:\d+)$/.exec(yield* ready) ?? []
      const response = yield* Effect.promise(() => fetch(`${url}/healthz`))
      expect(response.status).toBe(200)
      yield* Effect.promise(() => response.text())
      yield* Fiber.interrupt(fiber)
      expect(said).toHaveLength(1)
      expect(yield* Effect.either(Effect.tryPromise(() => fetch(`${url}/healthz`)))).toHaveProperty("_tag", "Left")
    })
  )

  it.scopedLive("does not open itself to the network without authentication", () =>
    Effect.gen(function* () {
      for (const host of ["0.0.0.0", "::", "192.168.1.1", "example.org"]) {
        const [exitCode, message] = yield* failure(["serve", "--host", host])
        expect(exitCode).toBe(2)
        expect(message).toContain(host)
        expect(message).toContain("auth.tokens")
      }
    })
  )

  it.scopedLive("an address that is taken is the world's fault", () =>
    Effect.gen(function* () {
      const taken = yield* Effect.acquireRelease(
        Effect.async<Net.Server>((resume) => {
          const server = Net.createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const address = taken.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const [exitCode, message] = yield* failure(["serve", "--port", String(port)])
      expect(exitCode).toBe(1)
      expect(message).toBe(
        `Can not listen on 127.0.0.1:${port}: port ${port} is in use. Stop what uses it, or choose another with --port`
      )
    })
  )

  it.scopedLive("a store that does not open is told in one line", () =>
    Effect.gen(function* () {
      const broken =
        (reason: StoreError["reason"]): Wiring =>
        () =>
          Layer.fail(new StoreError({ reason, method: "open", cause: new Error("SQLITE_CANTOPEN") }))
      for (const reason of ["unavailable", "corrupt", "newer"] as const) {
        const [exitCode, message] = yield* failure(["serve", "--port", "0", "--data", "x.db"], broken(reason))
        expect(exitCode).toBe(1)
        expect(message).toMatch(/^The database x\.db .*--data$/)
      }
    })
  )

  it.scopedLive("what is wrong with the command line or the configuration is the caller's fault", () =>
    Effect.gen(function* () {
      expect(yield* failure(["serve", "--config", "missing.json"])).toEqual([
        2,
        "missing.json: the file can not be read"
      ])
      expect((yield* failure(["serve", "--port", "70000"]))[0]).toBe(2)
      expect((yield* failure(["serve", "--port", "x"]))[0]).toBe(2)
      expect((yield* failure(["serve", "--prot", "1"]))[0]).toBe(2)
      expect((yield* failure(["server"]))[0]).toBe(2)
    })
  )

  it("knows its version", () => {
    expect(Cli.version).toBe(packageJson.version)
  })
})
