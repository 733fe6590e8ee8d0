import { execFileSync } from "node:child_process"
import { afterEach, describe, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, type Reading } from "../e2e/support/Client.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import * as Disk from "./support/Disk.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

const mb = 1024 * 1024
const piece = (n: number) => `${n} `.padEnd(2000, "x")
const pieces = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => Script.text(piece(from + n)))
const whole = Array.from({ length: 500 }, (_, n) => piece(n)).join("")

/** A run that has said a little, and says much more when it is let go on. */
const talker = async (world: World.World, message: string): Promise<Reading> => {
  world.upstream.script(message, [
    Script.reply([
      pieces(0, 10),
      Script.gate(message),
      pieces(10, 500).flatMap((one) => [one, Script.wait(1)]),
      Script.finish("stop"),
      Script.done
    ])
  ])
  const reading = await world.client.chat(message)
  await reading.until("its first words", ({ type }) => type === "text-delta")
  return reading
}

const runOf = (reading: Reading) => reading.headers.get("x-run-id") ?? ""

/**
 * What holds while nothing can be written: who asks what is stored gets it, who wants something new is told to come
 * again, at once.
 */
const holds = async (world: World.World, run: string) => {
  expect((await world.client.call("GET", "/healthz")).status).toBe(200)
  const refused = await eventually("a refusal", async () => {
    const answer = await world.client.call("POST", "/chat", { message: "x".repeat(100_000), background: true })
    return answer.status === 202 ? undefined : answer
  })
  expect(refused.status).toBe(503)
  expect(refused.body).toEqual({ _tag: "Unavailable", message: expect.any(String), retryAfterMs: expect.any(Number) })
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/)
  expect(refused.text).not.toMatch(/SQLITE|full|disk|\/tmp/i)
  const shown = await world.client.snapshot(run)
  expect(["running", "streaming"]).toContain(shown.status)
  return shown
}

const goesOn = async (world: World.World, reading: Reading, seen: number) => {
  const log = await reading.ended
  const run = runOf(reading)
  const stored = await world.client.log(run)
  // Everything that was shown is what is stored, in one stream without a break.
  expect(log.slice(seen)).toEqual(stored.slice(seen))
  expect(log).toEqual(stored)
  const end = await world.client.snapshot(run)
  expect([end.status, end.text === whole]).toEqual(["completed", true])
  await world.check(run)
}

describe.each([
  { what: "a full disk", forMs: 1_500, leaseTtlMs: 30_000, resumed: 0 },
  { what: "a disk that stays full for longer than a run is kept waiting", forMs: 7_000, leaseTtlMs: 1_000, resumed: 1 }
])("$what", ({ forMs, leaseTtlMs, resumed }) => {
  test("lets nobody see what is not stored, and everything goes on when there is room again", async (context) => {
    const disk = Disk.make(64 * mb)
    if (typeof disk === "string") {
      console.warn(`SKIPPED: ${disk}. The limit of a file's size below stands for it`)
      return context.skip(disk)
    }
    cleanup.push(disk.stop)
    const world = await World.start({ directory: disk.path, resume: { leaseTtlMs } })
    cleanup.push(world.stop)
    const readings = await Promise.all([0, 1, 2].map((n) => talker(world, `Run ${n}, disk full for ${forMs}`)))
    expect(disk.fill()).toBeGreaterThan(mb)
    for (const n of [0, 1, 2]) await world.upstream.release(`Run ${n}, disk full for ${forMs}`)
    for (const reading of readings) await holds(world, runOf(reading))
    await pause(forMs)
    for (const reading of readings) {
      const shown = await holds(world, runOf(reading))
      expect(reading.envelopes.at(-1)?.seq).toBe(shown.lastSeq)
      expect(whole.startsWith(shown.text)).toBe(true)
      expect(shown.text.length).toBeLessThan(whole.length)
    }
    const seen = readings.map(({ envelopes }) => envelopes.length)
    disk.free()
    for (const [n, reading] of readings.entries()) {
      await goesOn(world, reading, seen[n] ?? 0)
      expect(ofType(await reading.ended, "run-resumed")).toHaveLength(resumed)
    }
    const next = await world.client.start("After it")
    expect((await world.client.settled(next.runId)).status).toBe("completed")
  }, 120_000)
})

test("a file that may not grow is like a full disk", async () => {
  const world = await World.start({ resume: { leaseTtlMs: 30_000 } })
  cleanup.push(world.stop)
  const reading = await talker(world, "A file that may not grow")
  const limit = (bytes: string) => execFileSync("prlimit", ["--pid", String(world.server().pid), `--fsize=${bytes}:`])
  limit(String(mb))
  await world.upstream.release("A file that may not grow")
  await holds(world, runOf(reading))
  await pause(1_000)
  const shown = await holds(world, runOf(reading))
  expect(reading.envelopes.at(-1)?.seq).toBe(shown.lastSeq)
  const seen = reading.envelopes.length
  limit("unlimited")
  await goesOn(world, reading, seen)
}, 120_000)
