/** A store behind PgBouncer, where it is installed. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Postgres from "../../src/store/Postgres.js"
import { RunStore } from "../../src/store/RunStore.js"
import { begin } from "../../src/testing/store/fixtures.js"
import { database, describePooled } from "./support/Database.js"
import * as Server from "./support/Server.js"

/** The address of a database through a pooler of its own. */
const pooled = (program: string, url: string, mode: "session" | "transaction") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const directory = mkdtempSync(join(tmpdir(), "runlet-pooler-"))
      const target = new URL(url)
      const port = await Server.freePort()
      const file = join(directory, "config.ini")
      writeFileSync(
        file,
        `[databases]
* = host=${target.hostname} port=${target.port || "5432"} user=${target.username} password=${target.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`
      )
      Server.readable(file)
      const pooler = spawn(program, [file], { ...Server.surroundings(), stdio: "ignore" })
      const address = new URL(url)
      address.host = `127.0.0.1:${port}`
      await Server.answers(address.href, pooler.pid ?? -1)
      return { address: address.href, directory, pooler }
    }),
    ({ directory, pooler }) =>
      Effect.promise(async () => {
        const gone = new Promise((done) => pooler.once("exit", done))
        pooler.kill("SIGKILL")
        await gone
        rmSync(directory, { recursive: true, force: true })
      })
  ).pipe(Effect.map(({ address }) => address))

const opened = (url: string) => Layer.build(Layer.fresh(Postgres.layer({ url: Redacted.make(url) })))

describePooled("behind a pooler", (program) => {
  it.scopedLive("that keeps sessions, stores hear each other", () =>
    Effect.gen(function* () {
      const url = yield* pooled(program, yield* database, "session")
      const [one, other] = [yield* opened(url), yield* opened(url)]
      const heard = new Set<number>()
      yield* Context.get(other, RunStore).changes.pipe(
        Stream.runForEach(({ appended = [], keys = [] }) =>
          Effect.sync(() => {
            for (const key of [...keys, ...appended.map((run) => run.key)]) heard.add(key)
          })
        ),
        Effect.forkScoped
      )
      yield* Effect.repeat(Effect.provide(begin(), one), {
        schedule: Schedule.spaced("20 millis"),
        until: () => heard.size > 0
      })
    })
  )

  it.scopedLive("that does not, a store is refused, and told why", () =>
    Effect.gen(function* () {
      const url = yield* pooled(program, yield* database, "transaction")
      const error = yield* Effect.flip(opened(url))
      expect(Postgres.reasonOf(error)).toContain("does not keep sessions")
    })
  )
})
