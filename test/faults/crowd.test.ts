import { Agent, request } from "node:http"
import { afterEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import * as Crowd from "./support/Crowd.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

/** Somebody who watches a run that talks for as long as it is let. */
const watched = async (world: World.World, message: string) => {
  world.upstream.script(message, [
    Script.reply([
      Array.from({ length: 200 }, (_, n) => [Script.text(`${n} `), Script.wait(50)]).flat(),
      Script.gate("end"),
      Script.text("end"),
      Script.finish("stop"),
      Script.done
    ])
  ])
  const reading = await world.client.chat(message)
  await reading.until("its first words", ({ type }) => type === "text-delta")
  return reading
}

const wholeText = `${Array.from({ length: 200 }, (_, n) => `${n} `).join("")}end`

/** The share of a processor that the server uses for so long. */
const load = async (world: World.World, ms: number): Promise<number> => {
  const { pid } = world.server()
  const before = Crowd.processorSeconds(pid)
  await pause(ms)
  return ((Crowd.processorSeconds(pid) - before) * 1000) / ms
}

test("a server that has no descriptors left keeps its viewers and its runs, and is well again afterwards", async () => {
  const world = await World.start({ how: { launcher: ["prlimit", "--nofile=160:160", "--"] } })
  cleanup.push(world.stop)
  const readings = await Promise.all([0, 1, 2].map((n) => watched(world, `Watched ${n}`)))
  world.upstream.script("Needs the model and a tool meanwhile", [
    Script.reply([Script.gate("crowded"), Script.text("Let me see. "), Script.finish("stop"), Script.done])
  ])
  const crowd = await Crowd.gather(world.url(), 2_000, ["silent", "headers", "body"])
  cleanup.push(crowd.leave)
  const seen = readings.map(({ envelopes }) => envelopes.length)
  await eventually("viewers to see more", () =>
    readings.every(({ envelopes }, n) => envelopes.length > (seen[n] ?? 0) + 3) ? true : undefined
  )
  const open = crowd.open()
  const busy = await load(world, 2_000)
  console.info(`${open} of ${crowd.opened} connections are held, ${Math.round(busy * 100)} % of a processor`)
  expect(open).toBeLessThan(160)
  expect(busy).toBeLessThan(0.6)
  crowd.leave()
  await eventually("health", async () => {
    const answer = await world.client.call("GET", "/healthz").catch(() => undefined)
    return answer?.status === 200 ? true : undefined
  })
  await world.upstream.release("end")
  for (const reading of readings) {
    await reading.ended
    const end = await world.client.snapshot(reading.headers.get("x-run-id") ?? "")
    expect([end.status, end.attempt, end.text]).toEqual(["completed", 1, wholeText])
  }
  await world.check(readings[0]?.headers.get("x-run-id") ?? "")
  expect(world.server().output()).not.toContain("unexpectedly")
}, 60_000)

test("a run that begins while there are no descriptors left reaches its model all the same", async () => {
  const world = await World.start({ how: { launcher: ["prlimit", "--nofile=160:160", "--"] } })
  cleanup.push(world.stop)
  world.tools.on("lookup", "crowded", async (_, response) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end('"found"')
  })
  const message = "Begins among many"
  world.upstream.script(message, [
    Script.calls({ id: "call_c", name: "lookup", args: '{"q":"crowded"}' }),
    Script.answer("Found.")
  ])
  // The place of who is there already stays; what it asks for next needs descriptors of the server's own.
  const keeper = new Agent({ keepAlive: true, maxSockets: 1 })
  cleanup.push(() => keeper.destroy())
  const ask = (method: string, path: string, body?: object) =>
    new Promise<{ status: number; text: string }>((done, failed) => {
      const sent = request(
        `${world.url()}${path}`,
        { agent: keeper, method, headers: { "content-type": "application/json" } },
        (response) => {
          let text = ""
          response.on("data", (piece) => {
            text += piece
          })
          response.on("end", () => done({ status: response.statusCode ?? 0, text }))
        }
      )
      sent.on("error", failed)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  expect((await ask("GET", "/healthz")).status).toBe(200)
  const crowd = await Crowd.gather(world.url(), 2_000, ["silent"])
  cleanup.push(crowd.leave)
  const started = await ask("POST", "/chat", { message, background: true })
  expect([started.status, started.text]).toEqual([202, expect.any(String)])
  const { runId } = JSON.parse(started.text)
  const end = await eventually("its end", async () => {
    const shown = JSON.parse((await ask("GET", `/runs/${runId}`)).text)
    return ["completed", "failed"].includes(shown.status) ? shown : undefined
  })
  expect(end).toMatchObject({ status: "completed", text: "Found." })
  crowd.leave()
}, 60_000)

test("thousands who never come to the point are waited for a while, and nobody else waits for them", async () => {
  const world = await World.start({ limits: { requestTimeoutMs: 4_000 } })
  cleanup.push(world.stop)
  const reading = await watched(world, "Watched")
  const crowd = await Crowd.gather(world.url(), 3_000, ["silent", "headers", "body"])
  cleanup.push(crowd.leave)
  const held = crowd.open()
  const seen = reading.envelopes.length
  const times: Array<number> = []
  for (let n = 0; n < 20; n++) {
    const begun = performance.now()
    expect((await world.client.call("GET", "/healthz")).status).toBe(200)
    times.push(performance.now() - begun)
  }
  times.sort((a, b) => a - b)
  const run = await world.client.start("Meanwhile")
  expect((await world.client.settled(run.runId)).status).toBe("completed")
  expect(reading.envelopes.length).toBeGreaterThan(seen)
  await eventually("all of them to be sent away", () => (crowd.open() === 0 ? true : undefined))
  await world.upstream.release("end")
  await reading.ended
  expect((await world.client.snapshot(reading.headers.get("x-run-id") ?? "")).text).toBe(wholeText)
  console.info(
    `${held} connections were held; health after ${Math.round(times[10] ?? 0)} ms (median), ${Math.round(times[19] ?? 0)} ms at most`
  )
  expect(held).toBeGreaterThan(1_000)
  expect(times[10]).toBeLessThan(1_000)
}, 60_000)
