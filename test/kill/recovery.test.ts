/** What becomes of runs whose process is stopped in an orderly way, or again and again, or comes back as another. */
import { afterEach, describe, expect, it, vi } from "vitest"
import * as Api from "./support/Api.js"
import type { ServerProcess } from "./support/ServerProcess.js"
import { Viewer } from "./support/Viewer.js"
import { ended, eventsOf, requestOf, until, waiting } from "./support/Waiting.js"
import { type Options, sleep, type Watched, World } from "./support/World.js"

// Every server takes its time to start on a busy machine.
vi.setConfig({ testTimeout: 300_000 })

let cleanup: Array<() => Promise<unknown>> = []

afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

const open = async (options: Omit<Options, "seed"> = {}): Promise<World> => {
  const world = await World.open({ seed: 11, people: false, ...options })
  cleanup.push(() => world.close())
  return world
}

const launch = async (world: World, more: object = {}): Promise<ServerProcess> => {
  const server = await world.launch("server", more)
  cleanup.push(() => server.kill())
  return server
}

const check = async (world: World, server: ServerProcess): Promise<void> => {
  world.server = server
  expect(await world.check()).toEqual([])
}

const approve = async (server: ServerProcess, run: Watched): Promise<void> => {
  const { approvalId, previewHash } = requestOf(run)
  const url = `${server.url}/runs/${run.viewer.runId}/approvals/${approvalId}`
  expect((await Api.call("POST", url, { decision: "approve", previewHash })).status).toBe(200)
}

const failure = ({ viewer }: Watched) => {
  const { end } = viewer.state
  return end?.type === "error" ? { code: end.code, recoverable: end.recoverable } : end?.type
}

/** The conversation goes on after whatever happened. */
const goesOn = async (server: ServerProcess, { conversationId }: Watched): Promise<void> => {
  const next = await Api.start(server.url, "plan short next", { conversationId })
  const viewer = new Viewer(next.runId)
  await viewer.connect(server.url)
  expect(viewer.state.status).toBe("completed")
}

describe("an orderly stop", () => {
  it("lets a running effect finish, ends streams cleanly, and loses nothing", async () => {
    const graceMs = 15_000
    const world = await open({ limits: { shutdownGraceMs: graceMs } })
    const first = await launch(world)
    const texts = await Promise.all([1, 2, 3].map(() => world.startAt(first, "longer")))
    const hanging = await world.startAt(first, "hanging")
    const write = await world.startAt(first, "slowBlind")
    const runs = [...texts, hanging, write]
    const more = texts.flatMap(({ viewer }) => [new Viewer(viewer.runId), new Viewer(viewer.runId)])
    const closed = Promise.all(
      [...runs.map(({ viewer }) => viewer), ...more].map((viewer) => viewer.connect(first.url))
    )
    await until("a question", () => waiting(write))
    await approve(first, write)
    await until("everything under way", () => {
      const commits = world.ledger.of(write.viewer.runId).filter(({ phase }) => phase === "commit")
      return commits.length > 0 && world.ledger.of(hanging.viewer.runId).length > 0 && texts.every(inText)
    })
    const asked = Date.now()
    first.signal("SIGTERM")
    const exit = await first.exited
    console.info(`stopped after ${Date.now() - asked} ms`)
    expect(exit).toEqual({ code: 0, signal: null })
    expect(Date.now() - asked).toBeLessThan(graceMs)
    for (const how of await closed) expect(how).toBe("clean")
    for (const run of runs) expect(ended(run), run.name).toBe(false)
    expect(world.ledger.effects(write.viewer.runId)).toHaveLength(1)

    const second = await launch(world)
    void Promise.all(runs.map(({ viewer }) => viewer.connect(second.url)))
    await until("the ends", () => [...texts, write].every(ended))
    for (const run of texts) expect(eventsOf(run.viewer, "run-resumed")).toHaveLength(1)
    // The effect was let finish and its result was stored, so there was nothing to ask.
    expect(eventsOf(write.viewer, "approval-request").map(({ reason }) => reason)).toEqual(["write"])
    expect(eventsOf(write.viewer, "tool-call-result").map(({ state }) => state)).toEqual(["applied"])
    await Api.call("POST", `${second.url}/runs/${hanging.viewer.runId}/cancel`, {})
    await until("the end of the hanging run", () => ended(hanging))
    Object.assign(hanging, { plan: { ...hanging.plan, cancelAt: 0 } })
    await check(world, second)
  })

  it("a second signal ends the process at once", async () => {
    const world = await open({ limits: { shutdownGraceMs: 60_000 } })
    const server = await launch(world)
    const write = await world.startAt(server, "slowBlind")
    void write.viewer.connect(server.url)
    await until("a question", () => waiting(write))
    await approve(server, write)
    await until("a commit", () => world.ledger.of(write.viewer.runId).some(({ phase }) => phase === "commit"))
    server.signal("SIGTERM")
    await sleep(100)
    const asked = Date.now()
    server.signal("SIGTERM")
    await server.exited
    expect(Date.now() - asked).toBeLessThan(5_000)
  })
})

const inText = ({ viewer }: Watched): boolean => viewer.state.textLength > 20

describe("recovery", () => {
  it("a run that ends its process again and again is given up", async () => {
    const world = await open({ resume: { maxAttempts: 2 } })
    let server = await launch(world)
    const run = await world.startAt(server, "endless")
    let kills = 0
    const healthy = await world.startAt(server, "write")
    void healthy.viewer.connect(server.url)
    await until("a question", () => waiting(healthy))
    while (kills < 10 && !ended(run)) {
      void run.viewer.connect(server.url)
      const from = run.viewer.state.attempt
      await until("text or an end", () => ended(run) || (run.viewer.state.attempt >= from && inTextNow(run)))
      if (ended(run)) break
      await server.kill()
      kills++
      server = await launch(world)
      run.viewer.close()
      await sleep(50)
      void run.viewer.connect(server.url)
      await until("a new attempt or an end", () => ended(run) || run.viewer.state.attempt > kills)
    }
    expect(kills).toBe(3)
    expect(failure(run)).toEqual({ code: "recovery_exhausted", recoverable: false })
    const again = await Api.call("POST", `${server.url}/runs/${run.viewer.runId}/resume`, { background: true })
    expect(again.json).toMatchObject({ status: "failed" })
    await goesOn(server, run)
    // A run that waits for a person has no part in it.
    void healthy.viewer.connect(server.url)
    await approve(server, healthy)
    await until("the end", () => ended(healthy))
    expect(healthy.viewer.state.status).toBe("completed")
    expect(healthy.viewer.state.attempt).toBe(1)
  })

  it("a run whose model is gone fails for good, one whose tool is gone goes on without it", async () => {
    const world = await open()
    const two = {
      models: {
        scripted: { provider: "openai-compatible", baseUrl: world.upstream.url },
        other: { provider: "openai-compatible", baseUrl: world.upstream.url }
      }
    }
    const first = await launch(world, two)
    const lost = await world.startAt(first, "endless")
    const tool = await world.startAt(first, "hanging")
    const asked = await world.startAt(first, "write")
    const runs = [lost, tool, asked]
    for (const { viewer } of runs) void viewer.connect(first.url)
    await until("work", () => inText(lost) && world.ledger.of(tool.viewer.runId).length > 0 && waiting(asked))
    await first.kill()

    const second = await launch(world, {
      models: { other: two.models.other },
      defaultModel: "other"
    })
    for (const { viewer } of runs) void viewer.connect(second.url)
    await until("honest ends", () => ended(lost) && ended(tool))
    for (const run of [lost, tool]) expect(failure(run)).toEqual({ code: "model_unavailable", recoverable: false })
    const answer = await Api.call("POST", `${second.url}/chat`, {
      resume: { runId: lost.viewer.runId, lastAppliedSeq: 1, assistantMessageId: lost.assistantMessageId }
    })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain("resume-start")
    await goesOn(second, lost)
    expect(waiting(asked)).toBe(true)
    await second.kill()

    const third = await launch(world, {
      tools: (world.config() as { readonly tools: ReadonlyArray<{ readonly name: string }> }).tools.filter(
        ({ name }) => name !== "save_note" && name !== "slow_lookup"
      )
    })
    void asked.viewer.connect(third.url)
    await approve(third, asked)
    await until("the end", () => ended(asked))
    expect(asked.viewer.state.status).toBe("completed")
    expect(eventsOf(asked.viewer, "tool-call-result").map(({ ok, state }) => ({ ok, state }))).toEqual([
      { ok: false, state: "invalid" }
    ])
    expect(world.ledger.effects(asked.viewer.runId)).toEqual([])
  })

  it("under the manual policy a crash is a failure that a person may resume, or cancel for good", async () => {
    const world = await open({ resume: { policy: "manual" } })
    const first = await launch(world)
    const [resumed, cancelled] = await Promise.all([world.startAt(first, "longer"), world.startAt(first, "endless")])
    for (const { viewer } of [resumed, cancelled]) void viewer.connect(first.url)
    await until("text", () => inText(resumed) && inText(cancelled))
    await first.kill()
    const second = await launch(world)
    // Whether recovery has come to it yet or not, the answer is the same.
    const answer = await Api.call("POST", `${second.url}/runs/${cancelled.viewer.runId}/cancel`, {})
    expect(answer.json).toMatchObject({ status: "cancelled" })
    for (const { viewer } of [resumed, cancelled]) void viewer.connect(second.url)
    await until("ends", () => ended(resumed) && cancelled.viewer.state.status === "cancelled")
    expect(failure(resumed)).toEqual({ code: "interrupted", recoverable: true })
    const kept = resumed.viewer.state.textLength
    expect(kept).toBeGreaterThan(20)
    for (const { viewer } of [resumed, cancelled]) {
      await Api.call("POST", `${second.url}/runs/${viewer.runId}/resume`, {
        lastAppliedSeq: viewer.cursor,
        background: true
      })
    }
    void resumed.viewer.connect(second.url)
    await until("the end of the resumed run", () => resumed.viewer.final)
    expect(resumed.viewer.state.status).toBe("completed")
    expect(cancelled.viewer.state.status).toBe("cancelled")
    Object.assign(cancelled, { plan: { ...cancelled.plan, cancelAt: 0 } })
    await check(world, second)
  })

  it("a waiting run outlives its process without costing an attempt, and is decided by the next one", async () => {
    const world = await open()
    let server = await launch(world)
    const run = await world.startAt(server, "write")
    void run.viewer.connect(server.url)
    await until("a question", () => waiting(run))
    for (let i = 0; i < 2; i++) {
      await server.kill()
      server = await launch(world)
      expect(await Api.snapshot(server.url, run.viewer.runId)).toMatchObject({
        status: "waiting_approval",
        attempt: 1,
        pendingApprovals: [{ approvalId: requestOf(run).approvalId, preview: requestOf(run).preview }]
      })
    }
    void run.viewer.connect(server.url)
    await approve(server, run)
    await until("the end", () => ended(run))
    expect(eventsOf(run.viewer, "run-resumed")).toEqual([])
    await check(world, server)
  })
})

/** Text of the present attempt. */
const inTextNow = ({ viewer }: Watched): boolean => viewer.state.textLength > 4
