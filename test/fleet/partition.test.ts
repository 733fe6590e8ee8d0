/**
 * A server that is cut off, from its database or from its clients, while it goes on with everything else. Each is on a
 * machine of its own as far as the others can know.
 */
import { afterEach, expect, it, vi } from "vitest"
import * as Proxy from "../client/support/Proxy.js"
import * as Api from "../kill/support/Api.js"
import type { ServerProcess } from "../kill/support/ServerProcess.js"
import { Viewer } from "../kill/support/Viewer.js"
import { eventsOf, until } from "../kill/support/Waiting.js"
import { sleep, type Watched } from "../kill/support/World.js"
import { describePostgres } from "../postgres/support/Database.js"
import * as Data from "./support/Data.js"
import * as Fleet from "./support/Fleet.js"

vi.setConfig({ testTimeout: 180_000 })

const leaseTtlMs = 3000
/** A lease, the moment in which somebody looks for what has run out, and a busy machine. */
const soonMs = leaseTtlMs + 6000

describePostgres("a server that is cut off", () => {
  let cleanup: Array<() => Promise<unknown>> = []
  afterEach(async () => {
    for (const one of cleanup.reverse()) await one()
    cleanup = []
  })

  /** A server whose way to the database can be cut, which has the run; and another one. */
  const torn = async (plan: "endless" | "slowBlind" = "endless") => {
    const data = await Data.postgres()
    const fleet = await Fleet.start(data, { count: 0, apart: true, resume: { leaseTtlMs } })
    cleanup.push(() => fleet.close())
    const address = new URL(data.address)
    const way = await Proxy.start(`http://${address.host}`)
    cleanup.push(() => way.stop())
    address.host = new URL(way.url).host
    const a = await fleet.launch(address.href)
    const run = await fleet.world.startAt(a, plan)
    await until("work", () => fleet.world.upstream.requests.some(({ text }) => text.includes(run.label)))
    const b = await fleet.launch()
    return { fleet, way, a, b, run }
  }

  const requestsOf = (fleet: Fleet.Fleet, run: Watched) =>
    fleet.world.upstream.requests.filter(({ text }) => text.includes(run.label))

  const finish = async (fleet: Fleet.Fleet, server: ServerProcess, run: Watched) => {
    await Api.call("POST", `${server.url}/runs/${run.viewer.runId}/cancel`, {})
    await until("the end", () => run.viewer.final)
    Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
    fleet.world.server = server
    expect(await fleet.world.check()).toEqual([])
  }

  for (const how of ["is broken", "swallows everything"] as const) {
    it(`stops showing events, and its run within the lease, when the way to its database ${how}; another goes on`, async () => {
      const { a, b, fleet, run, way } = await torn()
      const near = new Viewer(run.viewer.runId)
      void near.connect(a.url)
      void run.viewer.connect(b.url)
      await until("text at both", () => near.state.textLength > 20 && run.viewer.state.textLength > 20)
      const [request] = requestsOf(fleet, run)
      if (how === "is broken") {
        way.refuse(true)
        way.cut()
      } else {
        way.blackHole()
        way.refuse(true)
      }
      const cut = Date.now()
      await until("the end of the model's answer", () => request?.closedAt !== undefined, soonMs)
      const stopped = (request?.closedAt ?? 0) - cut
      await until("a new attempt", () => eventsOf(run.viewer, "run-resumed").length === 1, soonMs)
      const taken = (eventsOf(run.viewer, "run-resumed").length === 1 ? Date.now() : 0) - cut
      console.info(`cut off: its model was let go after ${stopped} ms, the run went on elsewhere after ${taken} ms`)
      // What it showed is what the others know, and it shows nothing more.
      const shown = near.lines.length
      await until(
        "text of the new attempt",
        () => run.viewer.state.textLength > 20 && run.viewer.lines.length > shown + 5
      )
      expect(near.faults).toEqual([])
      expect(run.viewer.lines.slice(0, near.lines.length)).toEqual(near.lines)
      expect(near.lines.length).toBe(shown)
      // It can not write any more, and when the way is there again it takes part again.
      const epoch = await fleet.data.rows(`SELECT epoch, owner FROM runs WHERE run_id = '${run.viewer.runId}'`)
      way.refuse(false)
      way.cut()
      const next = await insist(() => fleet.world.startAt(a, "short"))
      await next.viewer.connect(a.url)
      expect(next.viewer.state.status).toBe("completed")
      expect(await fleet.data.rows(`SELECT epoch, owner FROM runs WHERE run_id = '${run.viewer.runId}'`)).toEqual(epoch)
      expect(requestsOf(fleet, run)).toHaveLength(2)
      await until("all that was shown before", () => near.lines.length >= shown, 1000)
      near.close()
      await finish(fleet, b, run)
    })
  }

  it("goes on with its runs when only its clients are cut off, and nobody takes them over", async () => {
    const data = await Data.postgres()
    const fleet = await Fleet.start(data, { count: 1, apart: true, resume: { leaseTtlMs } })
    cleanup.push(() => fleet.close())
    const [a] = fleet.servers
    if (a === undefined) throw new Error("There is no server")
    const way = await Proxy.start(a.url)
    cleanup.push(() => way.stop())
    const run = await fleet.world.startAt(a, "calm")
    const b = await fleet.launch()
    const closed = run.viewer.connect(way.url)
    await until("text", () => run.viewer.state.textLength > 10)
    way.refuse(true)
    way.cut()
    expect(await closed).toBe("cut")
    // Whoever was cut off comes back elsewhere, and misses nothing.
    await run.viewer.connect(b.url)
    expect(run.viewer.faults).toEqual([])
    expect(run.viewer.state).toMatchObject({ status: "completed", attempt: 1 })
    expect(requestsOf(fleet, run)).toHaveLength(2)
    fleet.world.server = b
    expect(await fleet.world.check()).toEqual([])
  })

  /** Tries until the server has its database again. */
  const insist = async <A>(attempt: () => Promise<A>): Promise<A> => {
    for (let left = 100; ; left--) {
      try {
        return await attempt()
      } catch (error) {
        if (left === 0) throw error
        await sleep(200)
      }
    }
  }
})
