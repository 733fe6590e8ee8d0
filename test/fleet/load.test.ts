/**
 * Runs with viewers on three servers, of which one is killed every ten seconds and another takes its place; each is on a
 * machine of its own as far as the others can know. `RUNLET_FLEET_RUNS` are under way at once for
 * `RUNLET_FLEET_SECONDS`; `RUNLET_SEED` is where the dice begin.
 */
import { afterAll, expect, it } from "vitest"
import { quickPlans } from "../kill/support/Plans.js"
import { Viewer } from "../kill/support/Viewer.js"
import { eventsOf } from "../kill/support/Waiting.js"
import { sleep, type Watched } from "../kill/support/World.js"
import * as Data from "./support/Data.js"
import * as Fleet from "./support/Fleet.js"

const crowd = Number(process.env.RUNLET_FLEET_RUNS ?? 20)
const seconds = Number(process.env.RUNLET_FLEET_SECONDS ?? 12)
const seed = Number(process.env.RUNLET_SEED ?? 30)
const leaseTtlMs = 3000
const killEveryMs = Math.min(10_000, (seconds * 1000) / 3)
const endMs = 120_000

/** One more reader of a run, who comes back until it has ended, to whichever server the proxy chooses. */
interface Reader {
  readonly run: Watched
  readonly viewer: Viewer
  /** From an event's making to its arrival, of events that were made while it was connected. */
  readonly delays: Array<number>
}

const read = (
  run: Watched,
  url: string,
  isOver: () => boolean
): { readonly reader: Reader; readonly done: Promise<void> } => {
  const delays: Array<number> = []
  let since = Number.POSITIVE_INFINITY
  const viewer = new Viewer(run.viewer.runId, ({ createdAt }) => {
    if (createdAt > since) delays.push(Date.now() - createdAt)
  })
  const follow = async () => {
    while (!viewer.final && !isOver()) {
      since = Date.now()
      const closed = await viewer.connect(url)
      if (closed === "refused") return
      // A failure that somebody resumes, or a proxy without a server: a moment later there is more.
      await sleep(50)
    }
  }
  return { reader: { run, viewer, delays }, done: follow() }
}

const part = (values: ReadonlyArray<number>, share: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN

Data.describeFleet("three servers under load", (open) => {
  let fleet: Fleet.Fleet
  afterAll(() => fleet.close())

  it(
    "lose nothing, repeat nothing and do nothing twice while one after the other is killed",
    async () => {
      fleet = await Fleet.start(await open(), {
        seed,
        people: true,
        apart: true,
        resume: { leaseTtlMs },
        limits: { maxConcurrentRuns: crowd * 2, maxQueuedRuns: crowd * 2 }
      })
      const { world } = fleet
      const readers = new Map<Watched, ReturnType<typeof read>>()
      const kills: Array<{ readonly at: number; readonly orphans: ReadonlyArray<string> }> = []
      const launches: Array<Promise<unknown>> = []
      let over = false
      const begun = Date.now()
      let next = 0
      let nextKill = begun + killEveryMs
      // A busy machine takes its time to start a server, and nobody is killed before there are three again.
      while (Date.now() < begun + seconds * 1000 || (kills.length < 2 && Date.now() < begun + endMs)) {
        const missing = crowd - (next - world.runs.length + world.active().length)
        for (let i = 0; i < Math.min(crowd / 10, missing); i++) {
          const quick = quickPlans[next % quickPlans.length]
          world.begin(next++ % 3 === 0 && quick !== undefined ? quick : "calm")
        }
        for (const run of world.runs)
          if (!readers.has(run))
            readers.set(
              run,
              read(run, fleet.front.url, () => over)
            )
        if (Date.now() > nextKill && fleet.servers.length === 3) {
          nextKill = Date.now() + killEveryMs
          const victim = fleet.servers[Math.floor(world.random() * fleet.servers.length)]
          if (victim !== undefined) {
            const owned = await fleet.data.rows(
              `SELECT run_id, owner FROM runs WHERE status IN ('running', 'streaming') AND owner LIKE '% ${victim.pid} %'`
            )
            const at = Date.now()
            await fleet.kill(victim)
            kills.push({ at, orphans: owned.map(({ run_id }) => String(run_id)) })
            launches.push(fleet.launch())
          }
        }
        await sleep(100)
      }
      await Promise.all(launches)
      await world.finish(endMs)
      for (const run of world.runs)
        if (!readers.has(run))
          readers.set(
            run,
            read(run, fleet.front.url, () => over)
          )
      // Whoever waits for a run that does not end would wait for ever.
      over = true
      for (const run of world.active()) readers.get(run)?.reader.viewer.close()
      await Promise.all([...readers.values()].map(({ done }) => done))
      const took = (Date.now() - begun) / 1000
      expect(await world.check(), fleet.front.output()).toEqual([])
      for (const { reader } of readers.values()) {
        expect(reader.viewer.faults).toEqual([])
        expect(reader.viewer.lines).toEqual(reader.run.viewer.lines)
      }

      const takeovers = kills.flatMap(({ at, orphans }) =>
        orphans.flatMap((runId) => {
          const run = world.runs.find(({ viewer }) => viewer.runId === runId)
          const resumed = run?.viewer.envelopes.find(
            ({ createdAt, event }) => event.type === "run-resumed" && createdAt > at
          )
          return resumed === undefined ? [] : [resumed.createdAt - at]
        })
      )
      const delays = [...readers.values()].flatMap(({ reader }) => reader.delays)
      const events = world.runs.reduce((sum, { viewer }) => sum + viewer.lines.length, 0)
      const orphans = kills.reduce((sum, kill) => sum + kill.orphans.length, 0)
      console.info(
        [
          `${kills.length} of three servers killed, ${world.runs.length} runs, ${events} events in ${Math.round(took)} s`,
          `${orphans} runs lost their server, ${takeovers.length} of them resumed: after ${part(takeovers, 0.5)} ms (median), ${Math.max(...takeovers)} ms at most`,
          `an event at a viewer through the proxy: ${part(delays, 0.5)} ms (median), ${part(delays, 0.99)} ms (99 %), of ${delays.length}`
        ].join("\n")
      )
      expect(kills.length).toBeGreaterThanOrEqual(2)
      expect(orphans).toBeGreaterThan(0)
      expect(world.runs.some(({ viewer }) => eventsOf(viewer, "run-resumed").length > 0)).toBe(true)
      expect(part(takeovers, 0.5)).toBeLessThan(leaseTtlMs * 4)
    },
    300_000 + seconds * 2000
  )
})
