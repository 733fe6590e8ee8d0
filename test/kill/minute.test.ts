/**
 * Twenty kills a minute while a dozen runs are always under way, for `RUNLET_KILL_MINUTES` (a third of one unless said);
 * then everything that anybody saw or did is compared with what the logs say. `RUNLET_SEED` is where the dice begin.
 */
import { afterAll, expect, it } from "vitest"
import { quickPlans } from "./support/Plans.js"
import { sleep, World } from "./support/World.js"

const minutes = Number(process.env.RUNLET_KILL_MINUTES ?? 1 / 3)
const seed = Number(process.env.RUNLET_SEED ?? 20)
const everyMs = 3_000
const crowd = 12
const endMs = 120_000

let world: World | undefined
afterAll(() => world?.close())

it(
  "twenty kills a minute under load lose nothing, repeat nothing and do nothing twice",
  async () => {
    world = await World.open({ seed: seed * 100 + 77 })
    const kills = Math.round((minutes * 60_000) / everyMs)
    const begun = Date.now()
    let next = 0
    // A few that are long enough to be there when the next kill comes, and short ones that come and go.
    const fill = (on: World) => {
      const missing = crowd - on.active().length
      const long = on.active().filter(({ name }) => name === "long").length
      for (let i = 0; i < Math.min(3, missing); i++) {
        const name = long + i < 4 ? "long" : quickPlans[next++ % quickPlans.length]
        if (name !== undefined) on.begin(name)
      }
    }
    const alive: Array<number> = []
    for (let kill = 1; kill <= kills; kill++) {
      const survivors = world.active()
      await world.start()
      world.recall(survivors)
      // At least a moment of work, even where a start takes as long as the pace allows.
      const until = Math.max(Date.now() + 300 + world.random() * 400, begun + kill * everyMs)
      while (Date.now() < until) {
        fill(world)
        await sleep(200)
      }
      alive.push(world.active().length)
      await world.kill()
    }
    const seconds = (Date.now() - begun) / 1000
    await world.start()
    await world.finish(endMs)
    world.followUp(40)
    await world.finish(endMs)
    const attempts = world.runs.map(({ viewer }) => viewer.state.attempt)
    console.info(
      `${kills} kills in ${Math.round(seconds)} s (${((kills * 60) / seconds).toFixed(1)} a minute), ${world.runs.length} runs, ` +
        `${Math.min(...alive)} to ${Math.max(...alive)} alive at a kill, ${attempts.filter((n) => n > 1).length} of them resumed, ` +
        `${Math.max(...attempts)} attempts at most, ${world.runs.reduce((sum, { viewer }) => sum + viewer.lines.length, 0)} events`
    )
    expect(await world.check()).toEqual([])
    expect(Math.max(...alive)).toBeGreaterThanOrEqual(crowd / 2)
  },
  300_000 + minutes * 180_000
)
