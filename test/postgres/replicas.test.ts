/** Server processes that share one PostgreSQL database, and what a viewer at one sees of a run at another. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterEach, expect, it, vi } from "vitest"
import * as Api from "../kill/support/Api.js"
import { launch, type ServerProcess } from "../kill/support/ServerProcess.js"
import { Viewer } from "../kill/support/Viewer.js"
import { eventsOf, median, until } from "../kill/support/Waiting.js"
import { database, describePostgres, query } from "./support/Database.js"
import * as Wire from "./support/Wire.js"

// Every server takes its time to start on a busy machine.
vi.setConfig({ testTimeout: 180_000 })

const cleanup: Array<() => Promise<unknown>> = []

afterEach(async () => {
  for (const one of cleanup.splice(0).reverse()) await one()
})

const leaseTtlMs = 3000

/** Servers on one empty database. */
const fleet = async (count: number, config: Record<string, unknown> = {}) => {
  const scope = Effect.runSync(Scope.make())
  cleanup.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const data = await Effect.runPromise(Scope.extend(database, scope))
  const dir = mkdtempSync(join(tmpdir(), "runlet-replicas-"))
  cleanup.push(async () => rmSync(dir, { recursive: true, force: true }))
  /** `address`: another way to the same database. */
  const start = async (name: string, address = data): Promise<ServerProcess> => {
    const server = await launch({ dir, config: { resume: { leaseTtlMs }, ...config }, data: address, name })
    cleanup.push(() => server.kill())
    return server
  }
  const servers = await Promise.all(Array.from({ length: count }, (_, index) => start(`replica-${index}`)))
  return { data, servers, start }
}

/** Reads until the run has ended, coming back when the connection breaks. */
const watching = async (viewer: Viewer, url: string): Promise<void> => {
  while ((await viewer.connect(url)) !== "ended") await new Promise<void>((done) => setImmediate(done))
}

/** A run that is well under way, the server that executes it, and a viewer at the other one. */
const begun = async (pieces: number) => {
  const { data, servers } = await fleet(2)
  const [first, second] = servers
  if (first === undefined || second === undefined) throw new Error("There are no servers")
  const { runId } = await Api.start(first.url, `/long ${pieces}`)
  const near = new Viewer(runId)
  const looked = near.connect(first.url)
  await until("the run is under way", () => near.cursor > 5)
  // Nobody says that it is the one that accepted it.
  const [row] = await Effect.runPromise(
    query<{ readonly owner: string }>(data, "SELECT owner FROM runs WHERE run_id = $1", [runId])
  )
  const [owner, other] = row?.owner.split(" ")[1] === String(first.pid) ? [first, second] : [second, first]
  const viewer = new Viewer(runId)
  const done = watching(viewer, other.url)
  await until("it is seen elsewhere", () => viewer.cursor > 20)
  near.close()
  await looked
  return { data, owner, other, runId, viewer, done }
}

/** That a viewer has seen exactly the log that there is. */
const isWhole = async (viewer: Viewer, url: string) => {
  expect(viewer.faults).toEqual([])
  expect(viewer.lines).toEqual(await Api.trace(url, viewer.runId))
}

/** The longest silence behind a moment, of a viewer that was told of what came then. */
const silence = (viewer: Viewer, since: number): number => {
  const seen = [since, ...viewer.seenAt.filter((at) => at >= since)]
  return Math.max(...seen.slice(1).map((at, index) => at - (seen[index] ?? at)))
}

describePostgres("servers that share a database", () => {
  it("show each other's runs as they happen, and nobody's password", async () => {
    const { data, done, other, owner, runId, viewer } = await begun(100)
    const near = new Viewer(runId)
    await Promise.all([done, watching(near, owner.url)])
    await isWhole(viewer, owner.url)
    const later = viewer.seenAt.slice(40).map((at, index) => at - (near.seenAt[index + 40] ?? at))
    // On a quiet machine it is two to four milliseconds.
    expect(median(later)).toBeLessThan(100)
    for (const { output } of [owner, other]) expect(output()).not.toContain(new URL(data).password)
  })

  it("go on with the run of one that was killed, and its viewers miss nothing", async () => {
    const { done, other, owner, viewer } = await begun(150)
    await owner.kill()
    await done
    await isWhole(viewer, other.url)
    expect(eventsOf(viewer, "run-resumed").map(({ reason }) => reason)).toEqual(["recovery"])
    expect(eventsOf(viewer, "finish").length).toBe(1)
  })

  it("take over at once what one that is told to stop lets go", async () => {
    const { done, other, owner, viewer } = await begun(150)
    const told = Date.now()
    owner.signal("SIGTERM")
    await done
    expect((await owner.exited).code).toBe(0)
    await isWhole(viewer, other.url)
    expect(eventsOf(viewer, "run-resumed").length).toBe(1)
    expect(silence(viewer, told)).toBeLessThan(1000)
  })

  it("take over within the lease time from one that stands still, which writes nothing any more", async () => {
    const { done, other, owner, viewer } = await begun(150)
    owner.signal("SIGSTOP")
    const stopped = Date.now()
    await until("somebody goes on", () => eventsOf(viewer, "run-resumed").length === 1)
    expect(silence(viewer, stopped)).toBeLessThan(leaseTtlMs + 1500)
    owner.signal("SIGCONT")
    await done
    await isWhole(viewer, other.url)
    await isWhole(viewer, owner.url)
    expect(eventsOf(viewer, "finish").length).toBe(1)
  })

  it("take over within the lease time from one that is stopped in the middle of a transaction", async () => {
    const { data, start } = await fleet(0)
    const scope = Effect.runSync(Scope.make())
    cleanup.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const wire = await Effect.runPromise(Scope.extend(Wire.make(data), scope))
    const owner = await start("replica-0", wire.url)
    const { runId } = await Api.start(owner.url, "/long 150")
    const other = await start("replica-1")
    const viewer = new Viewer(runId)
    const done = watching(viewer, other.url)
    await until("it is seen elsewhere", () => viewer.cursor > 20)
    // What it was adding is not committed, and the rows of its runs are locked.
    await Effect.runPromise(wire.standStillAt("COMMIT"))
    owner.signal("SIGSTOP")
    const stopped = Date.now()
    await until("somebody goes on", () => eventsOf(viewer, "run-resumed").length === 1)
    expect(silence(viewer, stopped)).toBeLessThan(leaseTtlMs + 1500)
    await done
    await isWhole(viewer, other.url)
    expect(eventsOf(viewer, "finish").length).toBe(1)
  })

  it("hear each other again when every connection to the database was ended", async () => {
    const { data, done, owner, viewer } = await begun(250)
    for (let round = 0; round < 3; round++) {
      await Effect.runPromise(
        query(
          data,
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
      )
      const before = viewer.cursor
      await until("more is seen", () => viewer.cursor > before + 10)
    }
    await done
    await isWhole(viewer, owner.url)
    // Nobody took anything from anybody: it was only the connections that ended.
    expect(eventsOf(viewer, "run-resumed")).toEqual([])
  })

  it("share what waits among them", async () => {
    const { servers } = await fleet(3, { limits: { maxConcurrentRuns: 6 } })
    const [a] = servers
    if (a === undefined) throw new Error("There is no server")
    // The first runs fill the places, and what comes behind them is taken as they end.
    const runs = await Promise.all(Array.from({ length: 24 }, () => Api.start(a.url, "/long 20")))
    const viewers = runs.map(({ runId }) => new Viewer(runId))
    await Promise.all(viewers.map((viewer) => watching(viewer, a.url)))
    for (const viewer of viewers) expect(viewer.faults).toEqual([])
    const counts = await Promise.all(servers.map(async ({ url }) => (await Api.call("GET", `${url}/metrics`)).text))
    const endedBy = counts.map((text) =>
      Number(/^runlet_runs_ended_total\{status="completed"\} (\d+)/m.exec(text)?.[1])
    )
    expect(endedBy.reduce((sum, one) => sum + one, 0)).toBe(24)
    // Five or more as a rule; a server that gets little of the processor takes less, and none is left out.
    expect(Math.min(...endedBy)).toBeGreaterThanOrEqual(1)
  })
})
