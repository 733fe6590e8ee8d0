/** Two server processes on one database file: one owner for each run, and each of them good enough for everything. */
import { type ChildProcess, spawn } from "node:child_process"
import { createRequire } from "node:module"
import { join } from "node:path"
import Database from "better-sqlite3"
import { afterEach, describe, expect, it, vi } from "vitest"
import * as Api from "./support/Api.js"
import type { ServerProcess } from "./support/ServerProcess.js"
import { Viewer } from "./support/Viewer.js"
import { ended, eventsOf, median, requestOf, until, waiting } from "./support/Waiting.js"
import { type Options, sleep, type Watched, World } from "./support/World.js"

// Every server takes its time to start on a busy machine.
vi.setConfig({ testTimeout: 300_000 })

let cleanup: Array<() => Promise<unknown>> = []

afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

/**
 * One process, and a way to start another on the same file. What is started before the other one is there belongs to the
 * first.
 */
const pair = async (options: Omit<Options, "seed"> = {}) => {
  const world = await World.open({ seed: 7, people: false, ...options })
  cleanup.push(() => world.close())
  const launch = async (name: string) => {
    const server = await world.launch(name)
    cleanup.push(() => server.kill())
    return server
  }
  const a = await launch("a")
  return { world, a, second: () => launch("b") }
}

/** Stops a process, but not in the middle of a transaction: nobody could write any more then. */
const freeze = async (world: World, server: ServerProcess): Promise<void> => {
  const db = new Database(join(world.dir, "runlet.db"), { timeout: 100 })
  try {
    while (true) {
      server.signal("SIGSTOP")
      await sleep(20)
      try {
        db.exec("BEGIN IMMEDIATE")
        db.exec("ROLLBACK")
        return
      } catch {
        server.signal("SIGCONT")
        await sleep(10)
      }
    }
  } finally {
    db.close()
  }
}

/** The process that executes a run. */
const ownerOf = (world: World, run: Watched): number => {
  const db = new Database(join(world.dir, "runlet.db"), { readonly: true })
  try {
    const row = db
      .prepare<[string], { readonly owner: string | null }>("SELECT owner FROM runs WHERE run_id = ?")
      .get(run.viewer.runId)
    return Number(row?.owner?.split(" ")[1])
  } finally {
    db.close()
  }
}

/** Follows a run through one server, as long as it lives. */
const follow = (run: { readonly viewer: Viewer }, server: ServerProcess) => run.viewer.connect(server.url)

/** All rules, read through one server. */
const check = async (world: World, server: ServerProcess): Promise<void> => {
  world.server = server
  expect(await world.check()).toEqual([])
}

const requestsOf = (world: World, run: Watched): number =>
  world.upstream.requests.filter(({ text }) => text.includes(`${run.name} ${run.label}`)).length

const approve = async (server: ServerProcess, run: Watched): Promise<Api.Answer> => {
  const { approvalId, previewHash } = requestOf(run)
  return Api.call("POST", `${server.url}/runs/${run.viewer.runId}/approvals/${approvalId}`, {
    decision: "approve",
    previewHash
  })
}

describe("two processes on one file", () => {
  it("a run of one is watched through the other, without a gap and without delay", async () => {
    const { a, second, world } = await pair()
    const watched = world.startAt(a, "short")
    const b = await second()
    await follow(await watched, a)
    // Whichever process takes it executes it; the viewers are spread over both.
    const run = await world.startAt(a, "longer")
    await until("somebody executes it", () => !Number.isNaN(ownerOf(world, run)))
    const [near, other] = ownerOf(world, run) === a.pid ? [a, b] : [b, a]
    const far = Array.from({ length: 5 }, () => new Viewer(run.viewer.runId))
    await Promise.all([follow(run, near), ...far.map((viewer) => viewer.connect(other.url))])
    const delays = far.flatMap((viewer) => viewer.seenAt.map((at, i) => at - (run.viewer.seenAt[i] ?? at)))
    console.info(
      `seen through the other process ${median(delays)} ms later (median), ${Math.max(...delays)} ms at most`
    )
    for (const viewer of far) {
      expect(viewer.faults).toEqual([])
      expect(viewer.lines).toEqual(run.viewer.lines)
    }
    expect(median(delays)).toBeLessThan(150)
    expect(requestsOf(world, run)).toBe(1)
    await check(world, b)
  })

  it("cancelling and deciding work through either", async () => {
    const { a, second, world } = await pair()
    const tool = await world.startAt(a, "hanging")
    const write = await world.startAt(a, "write")
    const [text, b] = await Promise.all([world.startAt(a, "endless"), second()])
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
    expect((await approve(b, write)).status).toBe(200)
    await until("the write's end", () => ended(write))
    expect(write.viewer.state.status).toBe("completed")
    for (const run of [text, tool]) Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
    await check(world, a)
  })

  it("thirty simultaneous resumes over both begin one attempt", async () => {
    const { a, second, world } = await pair()
    const [run, b] = await Promise.all([world.startAt(a, "cut"), second()])
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
    expect(eventsOf(run.viewer, "run-resumed").length).toBe(1)
    // One for the turn with the call, one that broke off, one for the only new attempt.
    expect(requestsOf(world, run)).toBe(3)
    expect(world.ledger.of(run.viewer.runId)).toHaveLength(1)
    await check(world, b)
  })

  it("the runs of a killed process are taken over at once, whatever their lease says", async () => {
    const { a, second, world } = await pair({ resume: { leaseTtlMs: 60_000, maxAttempts: 5 } })
    const runs = await Promise.all([
      world.startAt(a, "endless"),
      world.startAt(a, "endless"),
      world.startAt(a, "slowBlind")
    ])
    const b = await second()
    const watching = runs.map((run) => follow(run, b))
    await until("work in all runs", () => runs.every(({ viewer }) => viewer.state.textLength > 4))
    const owner = runs.map((run) => requestsOf(world, run))
    await a.kill()
    const killed = Date.now()
    await until("new attempts", () =>
      runs.slice(0, 2).every(({ viewer }) => eventsOf(viewer, "run-resumed").length === 1)
    )
    console.info(`taken over ${Date.now() - killed} ms after the kill`)
    expect(Date.now() - killed).toBeLessThan(10_000)
    for (const [i, run] of runs.slice(0, 2).entries()) {
      await until("text of the new attempt", () => run.viewer.state.textLength > 4)
      expect(requestsOf(world, run)).toBe((owner[i] ?? 0) + 1)
      await Api.call("POST", `${b.url}/runs/${run.viewer.runId}/cancel`, {})
      Object.assign(run, { plan: { ...run.plan, cancelAt: 0 } })
    }
    await Promise.all(watching.slice(0, 2))
    const [, , asked] = runs
    if (asked !== undefined) {
      await until("the question", () => waiting(asked))
      expect((await approve(b, asked)).status).toBe(200)
      await until("its end", () => ended(asked))
    }
    await check(world, b)
  })

  it("a process that slept past its lease can not write any more", async () => {
    const { a, second, world } = await pair({ resume: { leaseTtlMs: 2000, maxAttempts: 50 } })
    const writes = await Promise.all([world.startAt(a, "slowWrite"), world.startAt(a, "slowBlind")])
    const near = writes.map((run) => follow(run, a))
    await until("questions", () => writes.every(waiting))
    const b = await second()
    for (const { viewer } of writes) viewer.close()
    await Promise.all(near)
    const texts = await Promise.all([1, 2, 3].map((n) => world.startAt(a, n === 3 ? "rounds" : "longer")))
    const runs = [...texts, ...writes]
    const watching = runs.map((run) => follow(run, b))
    for (const run of writes) expect((await approve(a, run)).status).toBe(200)
    await until("commits under way", () =>
      writes.every(({ viewer }) => world.ledger.of(viewer.runId).some(({ phase }) => phase === "commit"))
    )
    await freeze(world, a)
    const left = runs.filter((run) => ownerOf(world, run) === a.pid)
    await until("takeovers", () => left.every((run) => ownerOf(world, run) !== a.pid))
    for (const run of left) await until("a new attempt", () => eventsOf(run.viewer, "run-resumed").length > 0)
    console.info(`${left.length} of ${runs.length} runs were taken from a sleeping process`)
    a.signal("SIGCONT")
    const blind = writes[1]
    if (blind === undefined) throw new Error("There is no blind write")
    await until(
      "an end or a question",
      () => ended(blind) || (waiting(blind) && requestOf(blind).reason === "in_doubt")
    )
    if (waiting(blind)) {
      await world.ledger.quiet(blind.viewer.runId, requestOf(blind).toolCallId)
      const url = `${a.url}/runs/${blind.viewer.runId}/approvals/${requestOf(blind).approvalId}`
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
    const { a, second, world } = await pair({ resume: { leaseTtlMs: 60_000 } })
    const b = await second()
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
    const { a, second, world } = await pair({ resume: { leaseTtlMs: 60_000 } })
    const [run, effect] = await Promise.all([world.startAt(a, "endless"), world.startAt(a, "hanging")])
    const b = await second()
    const watching = [follow(run, b), follow(effect, b)]
    await until("text and a tool", () => {
      return run.viewer.state.textLength > 20 && world.ledger.of(effect.viewer.runId).length > 0
    })
    await freeze(world, a)
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
    expect(eventsOf(effect.viewer, "tool-call-result").map(({ state }) => state)).toEqual(["interrupted"])
    for (const one of [run, effect]) Object.assign(one, { plan: { ...one.plan, cancelAt: 0 } })
    const next = await Api.start(a.url, "plan short after", { conversationId: run.conversationId })
    const viewer = new Viewer(next.runId)
    await viewer.connect(b.url)
    expect(viewer.state.status).toBe("completed")
    await check(world, b)
  })
})

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
