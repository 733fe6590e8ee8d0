/**
 * The database's server dies, and its standby takes its place. Every commit waits for the standby, so nothing that was
 * answered, or shown, is lost.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { afterEach, expect, it, vi } from "vitest"
import * as Postgres from "../../src/store/Postgres.js"
import { RunStore } from "../../src/store/RunStore.js"
import { append, begin, text } from "../../src/testing/store/fixtures.js"
import * as Proxy from "../client/support/Proxy.js"
import { Viewer } from "../kill/support/Viewer.js"
import { until } from "../kill/support/Waiting.js"
import { sleep } from "../kill/support/World.js"
import * as Cluster from "../postgres/support/Cluster.js"
import { describePostgres } from "../postgres/support/Database.js"
import * as Server from "../postgres/support/Server.js"
import type { Data } from "./support/Data.js"
import * as Fleet from "./support/Fleet.js"

vi.setConfig({ testTimeout: 180_000 })

const binaries = Server.binaries()

describePostgres("a database whose server dies", () => {
  const cleanup: Array<() => Promise<unknown>> = []
  afterEach(async () => {
    for (const one of cleanup.splice(0).reverse()) await one()
  })

  const cluster = async () => {
    if (binaries === undefined) throw new Error("The programs of PostgreSQL are not installed")
    const both = await Cluster.start(binaries)
    cleanup.push(both.stop)
    return both
  }

  it.skipIf(binaries === undefined)(
    "answers no commit before its standby has it, however long that takes",
    async () => {
      const { primary, waitFor } = await cluster()
      const url = new URL(primary)
      // As long as this a statement may take, but not the wait for the standby.
      url.searchParams.set("statement_timeout", "200")
      await Effect.gen(function* () {
        const context = yield* Layer.build(Postgres.layer({ url: Redacted.make(primary) }))
        const run = yield* Effect.provide(begin(), context)
        yield* Effect.promise(() => waitFor("nobody"))
        const added = yield* Effect.fork(
          Effect.provide(append({ key: run.key, epoch: run.epoch, events: [text("a")] }), context)
        )
        const stored = Context.get(context, RunStore).events({ key: run.key, after: run.lastSeq, limit: 9 })
        yield* Effect.sleep("1 second")
        expect(yield* Fiber.poll(added)).toEqual(Option.none())
        expect(yield* stored).toEqual([])
        yield* Effect.promise(() => waitFor("*"))
        expect((yield* Fiber.join(added))._tag).toBe("Appended")
        expect((yield* stored).length).toBe(1)
      }).pipe(Effect.scoped, Effect.runPromise)
    }
  )

  it.skipIf(binaries === undefined)("is replaced by its standby, and every run goes on to its end", async () => {
    const { kill, primary, promote, standby, waitFor } = await cluster()
    await waitFor("*")
    const httpOf = (address: string) => `http://${new URL(address).host}`
    const way = await Proxy.start(httpOf(primary))
    cleanup.push(() => way.stop())
    const address = new URL(primary)
    address.host = new URL(way.url).host
    const data: Data = {
      address: address.href,
      rows: (statement) => Server.connected(address.href, async (client) => (await client.query(statement)).rows),
      contents: async () => [],
      close: async () => undefined
    }
    const fleet = await Fleet.start(data, { count: 2, apart: true, resume: { leaseTtlMs: 3000 } })
    cleanup.push(() => fleet.close())
    const { front, world } = fleet
    const plans = ["calm", "calm", "longer", "calm", "rounds", "keyedUnattended"] as const
    const runs = await Promise.all(plans.map((plan, index) => world.startAt(fleet.servers[index % 2] ?? front, plan)))
    const follow = async (viewer: Viewer) => {
      while (!viewer.final) {
        await viewer.connect(front.url)
        await sleep(50)
      }
    }
    const others = runs.map(({ viewer }) => new Viewer(viewer.runId))
    const done = Promise.all([...runs.map(({ viewer }) => viewer), ...others].map(follow))
    await until("text of every long run", () => runs.every(({ name, viewer }) => name !== "calm" || viewer.cursor > 5))
    // Some are in the middle of something, and one has just been accepted.
    const late = await world.startAt(front, "keyedUnattended")
    const followed = follow(late.viewer)

    const died = Date.now()
    kill()
    way.cut()
    promote()
    way.retarget(httpOf(standby))
    const seen = runs.map(({ viewer }) => viewer.cursor)
    await until("more of every run", () =>
      runs.every(({ viewer }, index) => viewer.final || viewer.cursor > (seen[index] ?? 0))
    )
    console.info(`the database's server died; all runs went on after ${Date.now() - died} ms`)
    await Promise.all([done, followed])
    for (const [index, { viewer }] of runs.entries()) {
      expect(others[index]?.faults).toEqual([])
      expect(others[index]?.lines).toEqual(viewer.lines)
    }
    expect(await world.check(), front.output()).toEqual([])
    for (const server of fleet.servers) expect(server.alive()).toBe(true)
  })
})
