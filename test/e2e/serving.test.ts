import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, type Reading, typesOf } from "./support/Client.js"
import { eventually, pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

const runOf = (reading: Reading) => reading.headers.get("x-run-id") ?? ""

describe("the same request twice", () => {
  test("under one key is one run, at once and later", async () => {
    const message = "Once and for all"
    world.upstream.script(message, [
      Script.reply([Script.text("one"), Script.wait(300), Script.text(" two"), Script.finish("stop"), Script.done])
    ])
    const headers = { "idempotency-key": "key-1" }
    const both = await Promise.all(
      Array.from({ length: 6 }, (_, i) => pause(i).then(() => world.client.chat({ message }, headers)))
    )
    const logs = await Promise.all(both.map(({ ended }) => ended))
    for (const log of logs) expect(log).toEqual(logs[0])
    expect(new Set(both.map(runOf)).size).toBe(1)
    const later = await world.client.chat({ message }, headers)
    expect([runOf(later), await later.ended]).toEqual([both.map(runOf)[0], logs[0]])
    expect(world.upstream.asked(message)).toHaveLength(1)
    const { conversationId } = await world.client.snapshot(runOf(later))
    const page = await world.client.call("GET", `/conversations/${conversationId}`)
    expect(page.body.messages).toHaveLength(2)
    const other = await world.client.call("POST", "/chat", { message: "Something else" }, headers)
    expect([other.status, other.body._tag]).toEqual([409, "Conflict"])
    expect(world.upstream.asked("Something else")).toEqual([])
    await world.check(runOf(later))
  })

  test("without a key is two runs", async () => {
    const runs = await Promise.all([world.client.start("Twice"), world.client.start("Twice")])
    expect(runs[0].runId).not.toBe(runs[1].runId)
    for (const run of runs) await world.client.settled(run.runId)
  })
})

describe("a stream", () => {
  test("says what it is, is not compressed, and comes at once", async () => {
    const run = await world.client.start("Slow to begin [hang]")
    for (const open of [
      () => world.client.chat("Also slow [hang]", { "accept-encoding": "gzip, br" }),
      () => world.client.open(`/runs/${run.runId}/events`, { headers: { "accept-encoding": "gzip, br" } })
    ]) {
      const asked = Date.now()
      const reading = await open()
      const headersAfter = Date.now() - asked
      await reading.until("the start", ({ type }) => type === "run-start")
      const startAfter = (reading.times[0] ?? Number.NaN) - asked
      expect(headersAfter).toBeLessThan(5000)
      expect(startAfter).toBeLessThan(5000)
      expect(reading.status).toBe(200)
      expect(reading.headers.get("content-type")).toMatch(/^text\/event-stream/)
      expect(reading.headers.get("cache-control")).toBe("no-cache, no-transform")
      expect(reading.headers.get("x-accel-buffering")).toBe("no")
      expect(reading.headers.get("content-encoding")).toBeNull()
      expect(reading.raw()).toMatch(/^retry: \d+\n/)
      reading.close()
      await world.client.cancel(runOf(reading))
    }
    await world.check(run)
  })

  test("shows an event soon after it was written", async () => {
    const message = "Piece by piece"
    const steps = Array.from({ length: 20 }, (_, i) => [Script.text(`${i} `), Script.wait(50)]).flat()
    world.upstream.script(message, [Script.reply([steps, Script.finish("stop"), Script.done])])
    const reading = await world.client.chat(message)
    const log = await reading.ended
    const delays = log.map(({ createdAt }, index) => (reading.times[index] ?? Number.NaN) - createdAt)
    expect(Math.max(...delays)).toBeLessThan(1500)
    expect(ofType(log, "text-delta").length).toBeGreaterThan(10)
    await world.check(runOf(reading))
  })
})

test("a run without a viewer is accepted in the background", async () => {
  for (const [body, headers] of [
    [{ message: "In the background", background: true }, {}],
    [{ message: "In the background" }, { prefer: "respond-async" }]
  ] as const) {
    const answer = await world.client.call("POST", "/chat", body, headers)
    expect(answer.status).toBe(202)
    expect(answer.headers.get("location")).toBe(`/runs/${answer.body.runId}`)
    expect(answer.headers.get("x-run-id")).toBe(answer.body.runId)
    expect((await world.client.settled(answer.body.runId)).status).toBe("completed")
  }
})

test("a busy conversation queues, refuses or interrupts, as it is asked to", async () => {
  const first = await world.client.start("Takes long [slow 1000 20]")
  const { conversationId } = first
  const again = (message: string, onBusy: string) =>
    world.client.call("POST", "/chat", { message, conversationId, onBusy, background: true })
  const refused = await again("Refused", "reject")
  expect([refused.status, refused.body._tag]).toEqual([409, "Conflict"])
  const queued = await again("Queued", "enqueue")
  expect([queued.status, queued.body.status]).toEqual([202, "queued"])
  const instead = await again("Instead", "interrupt")
  expect(instead.status).toBe(202)
  expect((await world.client.settled(instead.body.runId)).status).toBe("completed")
  expect((await world.client.settled(first.runId)).cancelled?.by).toBe("superseded")
  expect(["completed", "cancelled"]).toContain((await world.client.settled(queued.body.runId)).status)
  expect(world.upstream.asked("Refused")).toEqual([])
  await world.check(first, { followUp: false })
  await world.check(instead.body.runId)
})

const residentMb = (pid: number): number => {
  const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))
  return Number(found?.[1]) / 1024
}

/** A viewer that asks and then never reads. */
const stuck = (runId: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(world.url())
    const socket = connect(Number(port), hostname, () => {
      socket.pause()
      socket.write(`GET /runs/${runId}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`, () => resolve(socket))
    })
    socket.on("error", reject)
  })

// What a process has of the memory is read from /proc.
test.runIf(process.platform === "linux")("viewers that never read cost little and slow nobody down", async () => {
  const message = "Six megabytes"
  const piece = "x".repeat(64 * 1024)
  world.upstream.script(message, [
    Script.reply([
      Script.text("first "),
      Script.gate("viewers"),
      Array.from({ length: 96 }, () => Script.text(piece)),
      Script.finish("stop"),
      Script.done
    ])
  ])
  const run = await world.client.start(message)
  await world.client.until(run.runId, "streaming", ({ text }) => text !== "")
  const sockets = await Promise.all(Array.from({ length: 90 }, () => stuck(run.runId)))
  const reading = await world.client.events(run.runId)
  const before = residentMb(world.server().pid)
  await world.upstream.release("viewers")
  const log = await reading.ended
  expect(log.at(-1)?.event.type).toBe("finish")
  const asked = Date.now()
  const other = await world.client.chat("Meanwhile")
  expect(typesOf(await other.ended).at(-1)).toBe("finish")
  expect(Date.now() - asked).toBeLessThan(10_000)
  // Ninety copies would be 540 MB; some 100 MB are garbage that nobody was in a hurry to collect.
  expect(residentMb(world.server().pid) - before).toBeLessThan(270)
  for (const socket of sockets) socket.destroy()
  // One that gave up comes back by cursor and misses nothing.
  const middle = Math.floor(log.length / 2)
  const rest = await (await world.client.events(run.runId, log[middle - 1]?.seq)).ended
  expect(rest.map(({ seq }) => seq)).toEqual(log.slice(middle).map(({ seq }) => seq))
})

test("a server that is well says so, and knows no other places", async () => {
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/docs", "/"]) {
    expect([path, (await world.client.call("GET", path)).status]).toEqual([path, 200])
  }
  expect((await world.client.call("GET", "/nowhere")).status).toBe(404)
  expect((await world.client.call("DELETE", "/chat")).status).toBe(405)
  await eventually("the queue to be empty", async () =>
    (await world.client.call("GET", "/runs?status=queued")).body.items.length === 0 ? true : undefined
  )
})
