import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType } from "../e2e/support/Client.js"
import * as World from "../e2e/support/World.js"

/** A model server that is well and ill by turns. */
let world: World.World
beforeAll(async () => {
  world = await World.start({ limits: { firstChunkTimeoutMs: 700, chunkTimeoutMs: 700 } })
})
afterAll(() => world.stop())

const reset = Script.reply([], { end: "reset" })
const silent = Script.reply([Script.wait(60_000)])
const broken = Script.body(500, "application/json", '{"error":{"message":"oops"}}')
const busy = Script.body(429, "application/json", '{"error":{"message":"slow down"}}', { "retry-after": "0" })
const nonsense = Script.body(200, "text/html", "<h1>Bad gateway</h1>")
const cut = Script.reply([Script.text("Half an "), Script.wait(20)], { end: "reset" })
const stuck = Script.reply([Script.text("Half an "), Script.wait(60_000)])
const slow = Script.reply([
  Script.text("A "),
  Script.wait(400),
  Script.text("slow one."),
  Script.finish("stop"),
  Script.done
])
const well = Script.answer("A whole one.")

test.each<readonly [string, ReadonlyArray<Script.Reply>, string, number]>([
  ["recovers in time", [reset, broken, busy, well], "completed", 4],
  ["is slow", [broken, slow], "completed", 2],
  ["says nothing, then answers", [silent, well], "completed", 2],
  ["never recovers", [reset, broken, silent, busy, reset, broken, well], "failed", 4],
  ["is something else", [nonsense, nonsense, nonsense, nonsense, well], "failed", 4],
  ["breaks off", [broken, cut, well], "failed", 2],
  ["gets stuck", [reset, stuck, well], "failed", 2]
])(
  "one that %s is called a bounded number of times",
  async (what, answers, status, calls) => {
    const messages = Array.from({ length: 6 }, (_, n) => `One that ${what}, ${n}`)
    for (const message of messages) world.upstream.script(message, answers)
    const readings = await Promise.all(messages.map((message) => world.client.chat(message)))
    for (const [n, reading] of readings.entries()) {
      const log = await reading.ended
      const end = await world.client.snapshot(reading.headers.get("x-run-id") ?? "")
      expect([end.status, end.recoverable]).toEqual([status, status === "failed" ? expect.any(Boolean) : undefined])
      const asked = world.upstream.asked(messages[n] ?? "").length
      expect(asked).toBeLessThanOrEqual(calls)
      expect(ofType(log, "model-retry").length).toBe(asked - 1)
      // Words that were shown are not said again.
      expect((end.text.match(/Half an /g) ?? []).length).toBeLessThanOrEqual(1)
      expect(ofType(log, "finish").length + ofType(log, "error").length).toBe(1)
    }
    const [first] = readings
    await world.check(first?.headers.get("x-run-id") ?? "", { followUp: false })
  },
  60_000
)

test("runs that failed meanwhile are continued when it is well again, and nothing is repeated", async () => {
  const messages = Array.from({ length: 10 }, (_, n) => `Flapping, ${n}`)
  for (const [n, message] of messages.entries()) {
    const flaps = [cut, reset, broken, stuck, silent]
    world.upstream.script(message, [...Array.from({ length: 4 }, (_, k) => flaps[(n + k) % flaps.length] ?? cut), well])
  }
  const runs = await Promise.all(messages.map((message) => world.client.start(message)))
  for (const run of runs) {
    let tries = 0
    for (let end = await world.client.settled(run.runId); end.status === "failed"; tries++) {
      expect([end.recoverable, tries < 6]).toEqual([true, true])
      await (await world.client.resume(run, end.lastSeq)).ended
      end = await world.client.settled(run.runId)
    }
    const end = await world.client.snapshot(run.runId)
    expect([end.status, end.text]).toEqual(["completed", "A whole one."])
    await world.check(run, { followUp: false })
  }
  for (const message of messages) expect(world.upstream.asked(message).length).toBe(5)
}, 60_000)
