import { statSync } from "node:fs"
import Database from "better-sqlite3"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

/** Much text in many small pieces: what is stored stays in proportion, and so does what waits to be written back. */
let world: World.World
beforeAll(async () => {
  world = await World.start({
    limits: { maxConcurrentRuns: 60, maxQueuedRuns: 200, maxRunsPerUser: 60, maxStreamsPerUser: 60 }
  })
})
afterAll(() => world.stop())

const size = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
/** What the database holds, whether it was written back or stands in the log yet. */
const stored = (): number => {
  const database = new Database(world.data, { readonly: true })
  try {
    return (
      Number(database.pragma("page_count", { simple: true })) * Number(database.pragma("page_size", { simple: true }))
    )
  } finally {
    database.close()
  }
}
const mb = 1024 * 1024

const pieces = 20_000
const tiny = (message: string, ...before: ReadonlyArray<Script.Step>) =>
  world.upstream.script(message, [
    Script.reply([
      ...before,
      Array.from({ length: pieces }, (_, n) => Script.text(String(n % 10))),
      Script.finish("stop"),
      Script.done
    ])
  ])
const wholeText = Array.from({ length: pieces }, (_, n) => String(n % 10)).join("")

test("runs of 20,000 pieces are stored in proportion, and do not keep another one waiting", async () => {
  const before = stored()
  const messages = Array.from({ length: 10 }, (_, n) => `Twenty thousand pieces, ${n}`)
  // All eleven begin at the same moment.
  const eleventh = "An eleventh run"
  for (const message of messages) tiny(message, Script.gate("all"))
  world.upstream.script(eleventh, [
    Script.reply([Script.gate("all"), Script.text("Here"), Script.finish("stop"), Script.done])
  ])
  const runs = await Promise.all(messages.map((message) => world.client.start(message)))
  const first = await world.client.events(runs[0]?.runId ?? "")
  const other = await world.client.start(eleventh)
  for (const message of [...messages, eleventh]) await world.upstream.received(message)
  await world.upstream.release("all")
  for (const { runId } of runs) {
    const end = await world.client.settled(runId)
    expect([end.status, end.text.length, end.text === wholeText]).toEqual(["completed", pieces, true])
  }
  const timeOf = async (runId: string, wanted: string) =>
    (await world.client.log(runId)).find(({ event }) => event.type === wanted)?.createdAt ?? Number.NaN
  expect(await timeOf(other.runId, "text-delta")).toBeLessThan(await timeOf(runs[9]?.runId ?? "", "finish"))
  await first.ended
  // One row for each piece would be some 130 bytes for each character.
  const perCharacter = (stored() - before) / (10 * pieces)
  expect(perCharacter).toBeLessThan(40)
  await world.check(runs[0] ?? "")
}, 120_000)

test("no piece that somebody saw is lost when the process is killed in the middle", async () => {
  tiny("Killed in the middle")
  const run = await world.client.start("Killed in the middle")
  const reading = await world.client.events(run.runId)
  await reading.until("text", ({ type }) => type === "text-delta")
  await eventually("some pieces", async () => (reading.envelopes.length > 20 ? true : undefined))
  await world.restart()
  const seen = [...reading.envelopes]
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text === wholeText]).toEqual(["completed", true])
  expect((await world.client.log(run.runId)).slice(0, seen.length)).toEqual(seen)
}, 120_000)

test("readers that stay do not keep the write-ahead log from being written back", async () => {
  world.upstream.script("A long one", [
    Script.reply([
      Script.gate("go"),
      Array.from({ length: 3000 }, () => Script.text("x".repeat(4000))),
      Script.finish("stop"),
      Script.done
    ])
  ])
  const run = await world.client.start("A long one")
  const readers = await Promise.all(Array.from({ length: 20 }, () => world.client.events(run.runId)))
  let largest = 0
  const look = setInterval(() => {
    largest = Math.max(largest, size(`${world.data}-wal`))
  }, 50)
  await world.upstream.release("go")
  const logs = await Promise.all(readers.map(({ ended }) => ended))
  clearInterval(look)
  // More than that went through it: twelve million characters, as events and as the turn that they come to.
  expect(stored()).toBeGreaterThan(32 * mb)
  expect(largest).toBeGreaterThan(0)
  expect(largest).toBeLessThan(32 * mb)
  for (const log of logs) expect(log.at(-1)?.event.type).toBe("finish")
}, 120_000)

test("a run that waits for a person costs no memory", async () => {
  const message = "Waits for a person"
  world.upstream.script(
    message,
    Array.from({ length: 40 }, () => Script.calls({ id: "call_w", name: "save_note", args: '{"doc":"d","text":"t"}' }))
  )
  const gauge = async (name: string): Promise<number> => {
    const { text } = await world.client.call("GET", "/metrics")
    return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1])
  }
  const runs = await Promise.all(Array.from({ length: 40 }, () => world.client.start(message)))
  for (const { runId } of runs) await world.client.waiting(runId)
  expect(await gauge("runlet_runs_executing")).toBe(0)
}, 60_000)
