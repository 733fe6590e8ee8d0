/**
 * The server is killed at each durable boundary and at random moments, again and again, while a dozen runs are under
 * way; then everything that anybody saw or did is compared with what the logs say.
 *
 * `RUNLET_KILLS` sets how often (108 unless said), `RUNLET_SEED` where the dice begin.
 */
import { afterAll, expect, it } from "vitest"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import type { Entry, Point } from "./support/Ledger.js"
import { type PlanName, quickPlans } from "./support/Plans.js"
import { sleep, type Watched, World } from "./support/World.js"

const worlds = 3
const total = Number(process.env.RUNLET_KILLS ?? 108)
const seed = Number(process.env.RUNLET_SEED ?? 20)
const perWorld = Math.ceil(total / worlds)
const crowd = 12

type Boundary =
  | {
      readonly name: string
      readonly plans: ReadonlyArray<PlanName>
      readonly event: (event: AgentEvent, run: Watched) => boolean
    }
  | {
      readonly name: string
      readonly plans: ReadonlyArray<PlanName>
      readonly outside: (point: Point, entry: Entry) => boolean
    }

const atRandom = "at random"

const type =
  (wanted: AgentEvent["type"]) =>
  (event: AgentEvent): boolean =>
    event.type === wanted

const effects: ReadonlyArray<PlanName> = ["keyedEffect", "keyedUnattended", "blindUnattended"]

/** The moment at which the server dies: as soon as a viewer has seen this, or the outside world has. */
const boundaries: ReadonlyArray<Boundary> = [
  { name: "run-start", plans: ["text"], event: type("run-start") },
  { name: "running", plans: ["text"], event: (e) => e.type === "run-status" && e.status === "running" },
  { name: "streaming", plans: ["reasoning"], event: (e) => e.type === "run-status" && e.status === "streaming" },
  {
    name: "first text",
    plans: ["text"],
    event: (e, { viewer }) => e.type === "text-delta" && viewer.state.textLength <= 30
  },
  { name: "reasoning", plans: ["reasoning"], event: type("reasoning-delta") },
  { name: "tool-call-start", plans: ["lookup"], event: type("tool-call-start") },
  { name: "tool-call-ready", plans: ["rounds"], event: type("tool-call-ready") },
  { name: "model-end", plans: ["parallel"], event: type("model-end") },
  { name: "tool-start", plans: ["parallel"], event: type("tool-start") },
  {
    name: "reading",
    plans: ["parallel"],
    outside: (p, e) => p === "received" && e.phase === "execute" && e.tool === "slow_lookup"
  },
  { name: "read, unanswered", plans: ["rounds"], outside: (p, e) => p === "effect" && e.tool === "lookup" },
  { name: "tool-call-result", plans: ["lookup"], event: type("tool-call-result") },
  {
    name: "one of two results",
    plans: ["parallel"],
    event: (e) => e.type === "tool-call-result" && e.toolName === "lookup"
  },
  { name: "iteration-end", plans: ["rounds"], event: type("iteration-end") },
  {
    name: "second text",
    plans: ["lookup"],
    event: (e, { viewer }) => e.type === "text-delta" && viewer.state.iteration === 2
  },
  { name: "previewing", plans: ["write"], outside: (p, e) => p === "received" && e.phase === "preview" },
  { name: "approval-request", plans: ["rejected"], event: type("approval-request") },
  { name: "waiting", plans: ["write"], event: (e) => e.type === "run-status" && e.status === "waiting_approval" },
  { name: "approval-decision", plans: ["twoWrites"], event: type("approval-decision") },
  { name: "edited", plans: ["edited"], event: (e) => e.type === "approval-decision" && e.decision === "edited" },
  { name: "queued again", plans: ["write"], event: (e) => e.type === "run-status" && e.reason === "approval" },
  { name: "commit begun", plans: ["write"], event: (e) => e.type === "tool-start" && e.phase === "commit" },
  {
    name: "commit, before",
    plans: ["write", "writeGivingUp"],
    outside: (p, e) => p === "received" && e.tool === "save_note" && e.phase === "commit"
  },
  { name: "commit, unanswered", plans: ["twoWrites"], outside: (p, e) => p === "effect" && e.tool === "save_note" },
  {
    name: "blind commit, before",
    plans: ["blindWrite"],
    outside: (p, e) => p === "received" && e.tool === "post_blind" && e.phase === "commit"
  },
  {
    name: "blind commit, unanswered",
    plans: ["blindWrite"],
    outside: (p, e) => p === "effect" && e.tool === "post_blind"
  },
  { name: "conflict", plans: ["conflicting"], event: type("tool-conflict") },
  {
    name: "conflicting commit",
    plans: ["conflicting"],
    outside: (p, e) => p === "received" && e.input.conflict === true && e.phase === "commit"
  },
  {
    name: "effect, before",
    plans: effects,
    outside: (p, e) => p === "received" && ["send_keyed", "ring", "fire_blind"].includes(e.tool)
  },
  {
    name: "effect, unanswered",
    plans: effects,
    outside: (p, e) => p === "effect" && ["send_keyed", "ring", "fire_blind"].includes(e.tool)
  },
  { name: "recoverable failure", plans: ["cut"], event: (e) => e.type === "error" && e.recoverable },
  { name: "run-resumed", plans: ["text"], event: type("run-resumed") },
  { name: "cancelled", plans: ["cancelText", "cancelTool", "cancelWrite"], event: type("cancelled") },
  { name: "finish", plans: ["short"], event: type("finish") },
  { name: atRandom, plans: [], event: () => false },
  { name: atRandom, plans: [], event: () => false }
]

/** How long a boundary is waited for. */
const patienceMs = 30_000

/** How long everything may take to come to its end when nobody disturbs it any more. */
const endMs = 120_000

/** Lies in wait for a boundary, over a start of the server; tells whether it came. */
const lieInWait = (world: World, boundary: Boundary) => {
  let timer: NodeJS.Timeout | undefined
  let strike: (reached: boolean) => void = () => undefined
  const struck = new Promise<boolean>((done) => {
    const stop =
      "outside" in boundary
        ? world.ledger.on((point, entry) => boundary.outside(point, entry) && strike(true))
        : () => undefined
    if ("event" in boundary) {
      world.watch = ({ event }, run) => {
        if (boundary.event(event, run)) strike(true)
      }
    }
    strike = (reached) => {
      strike = () => undefined
      clearTimeout(timer)
      stop()
      world.watch = () => undefined
      // The signal is sent before anything else can happen in this process.
      void world.kill().then(() => done(reached))
    }
  })
  return {
    struck,
    startClock: () => {
      timer = setTimeout(() => strike(false), boundary.name === atRandom ? world.random() * 900 : patienceMs)
    }
  }
}

const campaign = async (n: number): Promise<World> => {
  const world = await World.open({ seed: seed * 100 + n })
  open.push(world)
  let next = Math.floor(world.random() * quickPlans.length)
  for (let kill = 0; kill < perWorld; kill++) {
    // 7 has no factor in common with the number of boundaries, so each gets its turn.
    const boundary = boundaries[(kill * 7 + n * 12) % boundaries.length]
    if (boundary === undefined) throw new Error("There is no boundary")
    const { startClock, struck } = lieInWait(world, boundary)
    const survivors = world.active()
    await world.start()
    world.recall(survivors)
    startClock()
    for (const name of boundary.plans) world.begin(name)
    for (let i = world.active().length + boundary.plans.length; i < crowd; i++) {
      const name = quickPlans[next++ % quickPlans.length]
      if (name !== undefined) world.begin(name)
    }
    const reached = await struck
    world.count(`killed: ${reached ? boundary.name : atRandom}`)
    world.count("kills")
    world.count(`runs alive at a kill: ${world.active().length >= 8 ? "8 or more" : "fewer"}`)
  }
  await world.start()
  await world.finish(endMs)
  world.followUp(40)
  await world.finish(endMs)
  return world
}

const open: Array<World> = []

afterAll(async () => {
  await Promise.all(open.map((world) => world.close()))
})

it(
  `${total} kills lose nothing, repeat nothing and do nothing twice`,
  async () => {
    const begun = Date.now()
    const all = await Promise.all(
      Array.from({ length: worlds }, async (_, n) => {
        await sleep(n * 300)
        return campaign(n)
      })
    )
    const tally = new Map<string, number>()
    for (const world of all) {
      for (const [what, times] of world.tally) tally.set(what, (tally.get(what) ?? 0) + times)
    }
    const runs = all.flatMap((world) => world.runs)
    const seconds = Math.round((Date.now() - begun) / 1000)
    const lines = [...tally].sort(([a], [b]) => (a < b ? -1 : 1)).map(([what, times]) => `  ${what}: ${times}`)
    console.info([`${runs.length} runs in ${seconds} s`, ...lines].join("\n"))
    const faults = (await Promise.all(all.map((world) => world.check()))).flat()
    expect(faults).toEqual([])
    expect(tally.get("kills")).toBeGreaterThanOrEqual(total)
    if (total >= 100) {
      for (const { name } of boundaries) expect(tally.get(`killed: ${name}`), name).toBeGreaterThan(0)
      expect(tally.get("asked in_doubt"), "questions about unknown outcomes").toBeGreaterThan(0)
      expect(tally.get("said applied"), "unknown outcomes that had happened").toBeGreaterThan(0)
      expect(tally.get("said retry"), "unknown outcomes that had not").toBeGreaterThan(0)
    }
  },
  600_000 + total * 40_000
)
