/** Three servers on one database: whatever is asked for, any of them is good for it. */
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import * as Api from "../kill/support/Api.js"
import type { ServerProcess } from "../kill/support/ServerProcess.js"
import { Viewer } from "../kill/support/Viewer.js"
import { ended, eventsOf, requestOf, until, waiting } from "../kill/support/Waiting.js"
import type { Watched } from "../kill/support/World.js"
import * as Data from "./support/Data.js"
import * as Fleet from "./support/Fleet.js"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

Data.describeFleet("three servers on one database", (open) => {
  let fleet: Fleet.Fleet
  beforeAll(async () => {
    fleet = await Fleet.start(await open())
  })
  afterAll(() => fleet.close())

  const three = (): readonly [ServerProcess, ServerProcess, ServerProcess] => {
    const [a, b, c] = fleet.servers
    if (a === undefined || b === undefined || c === undefined) throw new Error("There are not three servers")
    return [a, b, c]
  }

  const decide = (server: ServerProcess, run: Watched, decision: string, more: object = {}) => {
    const { approvalId, previewHash } = requestOf(run)
    return Api.call("POST", `${server.url}/runs/${run.viewer.runId}/approvals/${approvalId}`, {
      decision,
      previewHash,
      ...more
    })
  }

  /** All rules, over all runs so far, read through the proxy. */
  const check = async () => expect(await fleet.world.check()).toEqual([])

  it("a run is watched through each of them, whoever executes it, and all see the same", async () => {
    const [a, ...others] = three()
    const run = await fleet.world.startAt(a, "long")
    const viewers = [...others, fleet.front].map((server) => {
      const viewer = new Viewer(run.viewer.runId)
      return { viewer, closed: viewer.connect(server.url) }
    })
    await run.viewer.connect(a.url)
    expect(run.viewer.state.status).toBe("completed")
    for (const { closed, viewer } of viewers) {
      expect(await closed).toBe("ended")
      expect(viewer.faults).toEqual([])
      expect(viewer.lines).toEqual(run.viewer.lines)
    }
    await check()
  })

  it("a run is cancelled through another one than its owner, which lets go of its model", async () => {
    const servers = three()
    const run = await fleet.world.startAt(servers[0], "endless")
    const closed = run.viewer.connect(servers[0].url)
    await until("text", () => run.viewer.state.textLength > 20)
    const owner = await Data.ownerOf(fleet.data, run.viewer.runId)
    const other = servers.find(({ pid }) => pid !== owner)
    const answer = await Api.call("POST", `${other?.url}/runs/${run.viewer.runId}/cancel`, {})
    await closed
    expect(answer.json).toEqual({ runId: run.viewer.runId, status: "cancelled", lastSeq: run.viewer.state.seq })
    const request = fleet.world.upstream.requests.find(({ text }) => text.includes(run.label))
    await until("the end of the model's answer", () => request?.closedAt !== undefined, 5000)
    expect(request?.aborted).toBe(true)
    Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
    await check()
  })

  it("a request for a decision is answered through any: approved, rejected, and edited before", async () => {
    const [a, b, c] = three()
    const runs = await Promise.all([
      fleet.world.startAt(a, "write"),
      fleet.world.startAt(b, "rejected"),
      fleet.world.startAt(c, "edited")
    ])
    const closed = runs.map((run, i) => run.viewer.connect([b, c, a][i]?.url ?? ""))
    await until("three questions", () => runs.every(waiting))
    const [write, rejected, edited] = runs
    // The same answer to everybody who says the same at once, and one commit.
    const yes = await Promise.all([a, b, c].map((server) => decide(server, write, "approve")))
    expect(new Set(yes.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(yes[0]?.status).toBe(200)
    expect((await decide(a, write, "reject")).status).toBe(409)
    expect((await decide(a, rejected, "reject")).status).toBe(200)
    const first = requestOf(edited).approvalId
    expect((await decide(a, edited, "edit", { input: { text: "corrected" } })).status).toBe(200)
    await until("a new preview", () => waiting(edited) && requestOf(edited).approvalId !== first)
    expect((await decide(b, edited, "approve")).status).toBe(200)
    await Promise.all(closed)
    expect(runs.map(({ viewer }) => viewer.state.status)).toEqual(["completed", "completed", "completed"])
    const commits = runs.map(({ viewer }) =>
      fleet.world.ledger.effects(viewer.runId).filter((_) => _.phase === "commit")
    )
    expect(commits.map((all) => all.map(({ input }) => input.text))).toEqual([["low tide at noon"], [], ["corrected"]])
    await check()
  })

  it("thirty resumes over all of them begin one attempt", async () => {
    const servers = three()
    const run = await fleet.world.startAt(servers[1], "cut")
    await run.viewer.connect(servers[2].url)
    expect(run.viewer.state).toMatchObject({ status: "failed", recoverable: true })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        Api.call("POST", `${servers[i % 3]?.url}/runs/${run.viewer.runId}/resume`, {
          lastAppliedSeq: run.viewer.cursor,
          background: true
        })
      )
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
    await run.viewer.connect(servers[0].url)
    expect(run.viewer.state.status).toBe("completed")
    expect(eventsOf(run.viewer, "run-resumed")).toHaveLength(1)
    await check()
  })

  it("an answer is regenerated through another one, also while it is being given", async () => {
    const [a, b, c] = three()
    const run = await fleet.world.startAt(a, "endless")
    const closed = run.viewer.connect(a.url)
    await until("text", () => run.viewer.state.textLength > 20)
    const answer = await Api.call("POST", `${b.url}/runs/${run.viewer.runId}/regenerate`, { background: true })
    expect(answer.status).toBe(202)
    await closed
    expect(run.viewer.envelopes.at(-1)?.event).toMatchObject({ type: "cancelled", by: "superseded" })
    const next = fleet.world.adopt("endless", run.label, answer.json as Api.Accepted)
    const watching = next.viewer.connect(c.url)
    await until("other text", () => next.viewer.state.textLength > 20)
    expect(eventsOf(next.viewer, "run-start")[0]).toMatchObject({ regeneratedFrom: run.viewer.runId })
    await Api.call("POST", `${a.url}/runs/${next.viewer.runId}/cancel`, {})
    await watching
    for (const one of [run, next]) Object.assign(one, { plan: { ...one.plan, cancelAt: 0 } })
    await check()
  })

  it("one idempotency key is one run, however many ask it of however many", async () => {
    const servers = three()
    const label = fleet.world.label()
    const ask = (i: number, message: string) =>
      Api.call(
        "POST",
        `${servers[i % 3]?.url}/chat`,
        { message, background: true },
        { "idempotency-key": `key-${label}` }
      )
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => ask(i, `plan text ${label}`)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202))
    const accepted = answers.map(({ json }) => json as Api.Accepted)
    expect(new Set(accepted.map(({ runId }) => runId)).size).toBe(1)
    expect(accepted[0]).toBeDefined()
    for (const i of [0, 1, 2]) expect((await ask(i, `plan short ${label}`)).status).toBe(409)
    if (accepted[0] !== undefined) {
      const run = fleet.world.adopt("text", label, accepted[0])
      await run.viewer.connect(servers[1].url)
    }
    expect(fleet.world.upstream.requests.filter(({ text }) => text.includes(`plan text ${label}`))).toHaveLength(1)
    await check()
  })

  it("a busy conversation queues, refuses or is interrupted, whoever of them is asked", async () => {
    const [a, b, c] = three()
    const run = await fleet.world.startAt(a, "endless")
    const watching = run.viewer.connect(b.url)
    await until("text", () => run.viewer.state.textLength > 20)
    const { conversationId } = run
    const ask = async (server: ServerProcess, onBusy: string) => {
      const label = fleet.world.label()
      const message = `plan short ${label}`
      const answer = await Api.call("POST", `${server.url}/chat`, { message, conversationId, onBusy, background: true })
      return { label, answer }
    }
    expect((await ask(c, "reject")).answer.status).toBe(409)
    const queued: Array<Watched> = []
    for (const server of [b, c, a]) {
      const { answer, label } = await ask(server, "enqueue")
      expect(answer.status).toBe(202)
      queued.push(fleet.world.adopt("short", label, answer.json as Api.Accepted))
    }
    const position = async (server: ServerProcess, one: Watched | undefined) =>
      (await Api.snapshot(server.url, one?.viewer.runId ?? "")).queuePosition
    expect(await Promise.all([c, a, b].map((server, i) => position(server, queued[i])))).toEqual([0, 1, 2])
    const { answer, label } = await ask(b, "interrupt")
    expect(answer.status).toBe(202)
    const last = fleet.world.adopt("short", label, answer.json as Api.Accepted)
    await watching
    expect(run.viewer.state.status).toBe("cancelled")
    Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
    for (const one of [...queued, last]) {
      await one.viewer.connect(c.url)
      if (one.viewer.state.status === "cancelled") Object.assign(one, { plan: { ...one.plan, cancelAt: 0 } })
    }
    expect(last.viewer.state.status).toBe("completed")
    expect([...queued, last].every(ended)).toBe(true)
    await check()
  })

  it("requests were spread over all of them by the proxy", async () => {
    expect(fleet.balancer.taken.size).toBe(3)
    for (const taken of fleet.balancer.taken.values()) expect(taken).toBeGreaterThan(3)
  })
})
