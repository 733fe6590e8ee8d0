/** Two server processes on one database file: one owner for each run, and each of them good enough for everything. */
import { type ChildProcess, spawn } from "node:child_process"
import { createRequire } from "node:module"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as RunStatus from "../../src/domain/RunStatus.js"
import * as Api from "./support/Api.js"
import type { ServerProcess } from "./support/ServerProcess.js"
import { Viewer } from "./support/Viewer.js"
import { type Options, sleep, type Watched, World } from "./support/World.js"

let cleanup: Array<() => Promise<unknown>> = []

afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

const pair = async (options: Omit<Options, "seed"> = {}) => {
  const world = await World.open({ seed: 7, people: false, ...options })
  cleanup.push(() => world.close())
  const [a, b] = await Promise.all([world.launch("a"), world.launch("b")])
  cleanup.push(
    () => a.kill(),
    () => b.kill()
  )
  return { world, a, b }
}

const until = async (what: string, condition: () => boolean, ms = 30_000): Promise<void> => {
  const end = Date.now() + ms
  while (!condition()) {
    if (Date.now() > end) throw new Error(`In ${ms} ms it did not come to pass: ${what}`)
    await sleep(5)
  }
}

const has = (viewer: Viewer, test: (event: AgentEvent) => boolean): boolean =>
  viewer.envelopes.some(({ event }) => test(event))

const count = (viewer: Viewer, type: AgentEvent["type"]): number =>
  viewer.envelopes.filter(({ event }) => event.type === type).length

/** Follows a run through one server, as long as it lives. */
const follow = (run: { readonly viewer: Viewer }, server: ServerProcess) => run.viewer.connect(server.url)

const ended = (run: Watched) => RunStatus.isEnded(run.viewer.state.status)

/** All rules, read through one server. */
const check = async (world: World, server: ServerProcess): Promise<void> => {
  world.server = server
  expect(await world.check()).toEqual([])
}

const requestsOf = (world: World, run: Watched): number =>
  world.upstream.requests.filter(({ text }) => text.includes(`${run.name} ${run.label}`)).length

const pendingOf = (run: Watched) => {
  const found = run.viewer.envelopes.findLast(({ event }) => event.type === "approval-request")?.event
  if (found?.type !== "approval-request") throw new Error("Nothing is asked")
  return found
}

const approve = async (server: ServerProcess, run: Watched): Promise<Api.Answer> => {
  const { approvalId, previewHash } = pendingOf(run)
  return Api.call("POST", `${server.url}/runs/${run.viewer.runId}/approvals/${approvalId}`, {
    decision: "approve",
    previewHash
  })
}

const waiting = (run: Watched) => run.viewer.state.status === "waiting_approval"

describe("two processes on one file", () => {
  it("a run of one is watched through the other, without a gap and without delay", async () => {
    const { a, b, world } = await pair()
    const run = await world.startAt(a, "longer")
    const far = Array.from({ length: 5 }, () => new Viewer(run.viewer.runId))
    await Promise.all([follow(run, a), ...far.map((viewer) => viewer.connect(b.url))])
    const delays = far
      .flatMap((viewer) => viewer.seenAt.map((at, i) => at - (run.viewer.seenAt[i] ?? at)))
      .sort((x, y) => x - y)
    const median = delays[Math.floor(delays.length / 2)] ?? Number.NaN
    console.info(`seen through the other process ${median} ms later (median), ${delays.at(-1)} ms at most`)
    for (const viewer of far) {
      expect(viewer.faults).toEqual([])
      expect(viewer.lines).toEqual(run.viewer.lines)
    }
    expect(median).toBeLessThan(150)
    expect(requestsOf(world, run)).toBe(1)
    await check(world, b)
  })

  it("cancelling and deciding work through either", async () => {
    const { a, b, world } = await pair()
    const [text, write, tool] = await Promise.all([
      world.startAt(a, "longer"),
      world.startAt(a, "write"),
      world.startAt(a, "hanging")
    ])
    const closed = [follow(text, a), follow(write, a), follow(tool, a)]
    await until("text, a running tool and a question", () => {
      const { ledger } = world
      return text.viewer.state.textLength > 20 && ledger.of(tool.viewer.runId).length > 0 && waiting(write)
    })
    const before = Date.now()
    const answers = await Promise.all(
      [text, tool].map(({ viewer }) => Api.call("POST", `${b.url}/runs/${viewer.runId}/cancel`, {}))
    )
    for (const [i, run] of [text, tool].entries()) {
      await closed[i === 0 ? 0 : 2]
      const { seq, status } = run.viewer.state
      expect(answers[i]?.json).toEqual({ runId: run.viewer.runId, status: "cancelled", lastSeq: seq })
      expect(status).toBe("cancelled")
    }
    const request = world.upstream.requests.find(({ text: sent }) => sent.includes(text.label))
    await until("the model's socket is closed", () => request?.closedAt !== undefined)
    expect(request?.aborted).toBe(true)
    console.info(`the model's socket was closed ${(request?.closedAt ?? 0) - before} ms after the request to cancel`)
    expect((request?.closedAt ?? 0) - before).toBeLessThan(2000)
    // The question was asked by one process and is answered through the other, whichever goes on with the run.
    await closed[1]?.catch(() => undefined)
    return approve(b, write).then(async ({ status }) => {
      expect(status).toBe(200)
      await until("the write's end", () => ended(write))
      for (const run of [text, tool]) Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
      await check(world, a)
    })
  })

  it("thirty simultaneous resumes over both begin one attempt", async () => {
    const { a, b, world } = await pair()
    const run = await world.startAt(a, "cut")
    await follow(run, a)
    expect(run.viewer.state).toMatchObject({ status: "failed", recoverable: true })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        Api.call("POST", `${(i % 2 === 0 ? a : b).url}/runs/${run.viewer.runId}/resume`, {
          lastAppliedSeq: run.viewer.cursor,
          background: true
        })
      )
    )
    for (const { status } of answers) expect(status).toBe(202)
    await follow(run, b)
    expect(run.viewer.state.status).toBe("completed")
    expect(count(run.viewer, "run-resumed")).toBe(1)
    // One for the turn with the call, one that broke off, one for the only new attempt.
    expect(requestsOf(world, run)).toBe(3)
    expect(world.ledger.of(run.viewer.runId)).toHaveLength(1)
    await check(world, b)
  })

  it("the runs of a killed process are taken over at once, whatever their lease says", async () => {
    const { a, b, world } = await pair({ resume: { leaseTtlMs: 60_000, maxAttempts: 5 } })
    const runs = await Promise.all([world.startAt(a, "long"), world.startAt(a, "long"), world.startAt(a, "slowBlind")])
    const watching = runs.map((run) => follow(run, b))
    await until("work in all runs", () => runs.every(({ viewer }) => viewer.state.textLength > 4))
    const owner = runs.map((run) => requestsOf(world, run))
    await a.kill()
    const killed = Date.now()
    await until("new attempts", () => runs.slice(0, 2).every(({ viewer }) => count(viewer, "run-resumed") === 1))
    console.info(`taken over ${Date.now() - killed} ms after the kill`)
    expect(Date.now() - killed).toBeLessThan(3000)
    await Promise.all(watching.slice(0, 2))
    for (const [i, run] of runs.slice(0, 2).entries()) {
      expect(run.viewer.state.status).toBe("completed")
      expect(requestsOf(world, run)).toBe((owner[i] ?? 0) + 1)
    }
    const [, , asked] = runs
    if (asked !== undefined) {
      await until("the question", () => waiting(asked))
      expect((await approve(b, asked)).status).toBe(200)
      await until("its end", () => ended(asked))
    }
    await check(world, b)
  })

  it("a process that slept past its lease can not write any more", async () => {
    const { a, b, world } = await pair({ resume: { leaseTtlMs: 2000, maxAttempts: 5 } })
    const texts = await Promise.all([
      world.startAt(a, "longer"),
      world.startAt(a, "longer"),
      world.startAt(a, "rounds")
    ])
    const writes = await Promise.all([world.startAt(a, "slowWrite"), world.startAt(a, "slowBlind")])
    const runs = [...texts, ...writes]
    const watching = runs.map((run) => follow(run, b))
    await until("questions", () => writes.every(waiting))
    // Taken by whichever process is first; those that the other one took are of no use here and are simply finished.
    for (const run of writes) expect((await approve(a, run)).status).toBe(200)
    await until("commits under way", () =>
      writes.every(({ viewer }) => world.ledger.of(viewer.runId).some(({ phase }) => phase === "commit"))
    )
    a.signal("SIGSTOP")
    await until("takeovers", () => texts.slice(0, 2).every(({ viewer }) => count(viewer, "run-resumed") > 0), 15_000)
    await sleep(500)
    a.signal("SIGCONT")
    const blind = writes[1]
    if (blind === undefined) throw new Error("There is no blind write")
    await until(
      "an end or a question",
      () => ended(blind) || (waiting(blind) && pendingOf(blind).reason === "in_doubt")
    )
    if (waiting(blind)) {
      await world.ledger.quiet(blind.viewer.runId, pendingOf(blind).toolCallId)
      const url = `${a.url}/runs/${blind.viewer.runId}/approvals/${pendingOf(blind).approvalId}`
      expect((await Api.call("POST", url, { decision: "applied" })).status).toBe(200)
    }
    await Promise.all(watching)
    await until("all ends", () => runs.every(ended))
    for (const run of runs) expect(run.viewer.state.status, run.name).toBe("completed")
    // The sleeper is well and takes part again.
    const next = await world.startAt(a, "lookup")
    await follow(next, a)
    expect(next.viewer.state.status).toBe("completed")
    for (const run of writes) expect(world.ledger.effects(run.viewer.runId)).toHaveLength(1)
    await check(world, a)
  })

  it("a process that holds the write lock for seconds makes others slow, not wrong", async () => {
    const { a, b, world } = await pair()
    const runs: Array<Watched> = []
    for (let i = 0; i < 10; i++) {
      runs.push(await world.startAt(i % 2 === 0 ? a : b, i < 6 ? "long" : "rounds"))
    }
    const watching = runs.map((run, i) => follow(run, i % 2 === 0 ? b : a))
    const locker = holdLock(join(world.dir, "runlet.db"), 3, 3000)
    const reads: Array<number> = []
    const starts: Array<number> = []
    let busy = true
    const done = locker.then(() => {
      busy = false
    })
    while (busy) {
      const before = Date.now()
      const answer = await Api.call("GET", `${a.url}/runs/${runs[0]?.viewer.runId}`)
      expect(answer.status).toBe(200)
      reads.push(Date.now() - before)
      if (starts.length < 3) {
        const began = Date.now()
        runs.push(await world.startAt(b, "lookup"))
        starts.push(Date.now() - began)
        const run = runs.at(-1)
        if (run !== undefined) watching.push(follow(run, a))
      }
      await sleep(100)
    }
    await done
    await Promise.all(watching)
    console.info(
      `under the lock: snapshots ${median(reads)} ms (median), ${Math.max(...reads)} ms at most; starts ${starts.join(", ")} ms`
    )
    for (const run of runs) {
      expect(run.viewer.state.status, run.name).toBe("completed")
      expect(run.viewer.state.attempt, run.name).toBe(1)
    }
    await check(world, b)
  })

  it("a run whose owner does not answer can be cancelled, for good", async () => {
    const { a, b, world } = await pair({ resume: { leaseTtlMs: 60_000 } })
    const [run, effect] = await Promise.all([world.startAt(a, "longer"), world.startAt(a, "hanging")])
    const watching = [follow(run, b), follow(effect, b)]
    await until("text and a tool", () => {
      return run.viewer.state.textLength > 20 && world.ledger.of(effect.viewer.runId).length > 0
    })
    a.signal("SIGSTOP")
    for (const { viewer } of [run, effect]) {
      const answer = await Api.call("POST", `${b.url}/runs/${viewer.runId}/cancel`, {})
      expect(answer.json).toMatchObject({ status: "cancelled" })
    }
    await Promise.all(watching)
    a.signal("SIGCONT")
    await sleep(1000)
    for (const { viewer } of [run, effect]) {
      expect(viewer.state.status).toBe("cancelled")
      const again = await Api.call("POST", `${a.url}/runs/${viewer.runId}/resume`, { background: true })
      expect(again.json).toMatchObject({ status: "cancelled" })
      expect(await Api.trace(a.url, viewer.runId)).toEqual(viewer.lines)
    }
    expect(has(effect.viewer, (event) => event.type === "tool-call-result" && event.state === "interrupted")).toBe(true)
    for (const one of [run, effect]) Object.assign(one, { plan: { ...one.plan, cancelAt: 0 } })
    const next = await Api.start(a.url, "plan short after", { conversationId: run.conversationId })
    const viewer = new Viewer(next.runId)
    await viewer.connect(b.url)
    expect(viewer.state.status).toBe("completed")
    await check(world, b)
  })
})

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((x, y) => x - y)[Math.floor(values.length / 2)] ?? Number.NaN

/** Another program that takes the write lock again and again. */
const holdLock = (file: string, times: number, ms: number): Promise<void> => {
  const driver = createRequire(import.meta.url).resolve("better-sqlite3")
  const code = `
    const db = new (require(${JSON.stringify(driver)}))(${JSON.stringify(file)}, { timeout: 10000 })
    const rest = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    for (let i = 0; i < ${times}; i++) {
      db.exec("BEGIN IMMEDIATE")
      rest(${ms})
      db.exec("COMMIT")
      rest(300)
    }
    db.close()`
  const child: ChildProcess = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "ignore", "inherit"] })
  cleanup.push(async () => void child.kill("SIGKILL"))
  return new Promise((done, failed) => {
    child.once("exit", (status) => (status === 0 ? done() : failed(new Error(`The locker ended with ${status}`))))
  })
}
