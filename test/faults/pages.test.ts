import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { afterEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as World from "../e2e/support/World.js"
import * as Pages from "./support/Pages.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

const bin = fileURLToPath(new URL("../../dist/bin.js", import.meta.url))
const doctor = (data: string, ...more: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [bin, "doctor", "--data", data, ...more], { encoding: "utf8" })

/** Enough text that no cache of the database holds all of it. */
const long = (mark: string) => Array.from({ length: 300 }, (_, n) => Script.text(`${mark}-${n} `.padEnd(9000, "y")))

const said = async (world: World.World, mark: string) => {
  world.upstream.script(mark, [Script.reply([...long(mark), Script.finish("stop"), Script.done])])
  const run = await world.client.start(mark)
  expect((await world.client.settled(run.runId)).status).toBe("completed")
  return run
}

test("a run on a damaged page is refused and named; the others go on, before and after a restart", async () => {
  const world = await World.start()
  cleanup.push(world.stop)
  const damaged = await said(world, "damaged")
  const sound = await said(world, "sound")
  world.upstream.script("Left in the middle", [
    Script.reply([...long("active"), Script.gate("on"), Script.text("end"), Script.finish("stop"), Script.done])
  ])
  const active = await world.client.start("Left in the middle")
  await world.client.until(active.runId, "in the middle", ({ text }) => text.includes("active-299"))
  world.upstream.script("Left to a person", [
    Script.calls({ id: "call_w", name: "save_note", args: '{"doc":"d","text":"t"}' }),
    Script.answer("Saved.")
  ])
  const waiting = await world.client.start("Left to a person")
  const pending = await world.client.waiting(waiting.runId)
  for (const [table, mark] of [
    ["events", "damaged-150 "],
    ["turns", "damaged-150 "],
    ["events", "active-150 "]
  ] as const) {
    const pages = Pages.holding(world.data, table, mark)
    expect(pages.length).toBeGreaterThan(0)
    for (const page of pages) Pages.scribble(world.data, page)
  }

  const refused = async (runId: string) => {
    for (const path of [`/runs/${runId}`, `/runs/${runId}/trace`, `/runs/${runId}/events`]) {
      const answer = await world.client.call("GET", path)
      // What can be read before the damage is shown, and nothing behind it.
      if (answer.status === 200) {
        expect(path).not.toBe(`/runs/${runId}`)
        expect(answer.text).not.toContain("ZZZZ")
        expect(answer.text).not.toMatch(/"type":"finish"/)
      } else {
        expect([path, answer.status]).toEqual([path, 500])
        expect(answer.body).toMatchObject({ _tag: "Unavailable", message: expect.stringContaining("damaged") })
        // Coming again is of no use.
        expect([answer.headers.get("retry-after"), answer.body.retryAfterMs]).toEqual([null, undefined])
      }
    }
  }
  await refused(damaged.runId)
  // Both ways to a damaged place come to the same: from the beginning, and by the cursor of who has read up to it.
  const { text } = await world.client.call("GET", `/runs/${damaged.runId}/events`)
  const cursor = Number([...text.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1] ?? 0)
  expect((await world.client.call("GET", `/runs/${damaged.runId}/events?after=${cursor}`)).status).toBe(500)
  expect((await world.client.call("GET", "/runs")).body.items).toHaveLength(4)
  expect((await world.client.call("GET", `/conversations/${damaged.conversationId}`)).status).toBe(200)
  await world.check(sound)

  const report = doctor(world.data)
  expect(report.status).toBe(1)
  expect(report.stdout).toContain("The file is damaged")
  const { problems } = JSON.parse(doctor(world.data, "--json").stdout)
  const contents = problems.find(({ kind }: { readonly kind: string }) => kind === "contents")
  expect(contents.runs).toEqual([damaged.runId, active.runId])

  await world.restart()
  const end = await world.client.call("GET", "/runs?limit=10")
  await refused(damaged.runId)
  const failed = end.body.items.find(({ runId }: { readonly runId: string }) => runId === active.runId)
  expect(failed).toMatchObject({ status: "failed", recoverable: false, error: { code: "store_corrupt" } })
  await world.upstream.release("on")
  // The conversations of damaged runs go on.
  for (const { conversationId } of [damaged, active]) {
    const next = await world.client.start({ message: "And now?", conversationId })
    expect((await world.client.settled(next.runId)).status).toBe("completed")
  }
  await world.client.decide(waiting.runId, pending.approvalId, "approve", { previewHash: pending.previewHash })
  await world.client.until(waiting.runId, "completed", ({ status }) => status === "completed")
  await world.check(waiting)
  await world.check(sound, { followUp: false })
  expect((await world.client.call("DELETE", `/runs/${damaged.runId}`)).text).not.toContain("InternalError")
}, 120_000)

test.each([
  ["of the file", () => 1],
  ["of the runs", (file: string) => Pages.root(file, "runs")],
  ["of the events", (file: string) => Pages.root(file, "events")]
])(
  "when the first page %s is damaged the start says so, and nothing is made worse",
  async (_, find) => {
    const world = await World.start()
    cleanup.push(world.stop)
    await world.client.settled((await world.client.start("Something")).runId)
    await world.server().stop()
    const page = find(world.data)
    Pages.settle(world.data)
    Pages.scribble(world.data, page)
    const started = await world.restart().then(
      () => "ready",
      (error: Error) => error.message
    )
    if (started === "ready") {
      expect((await world.client.call("GET", "/healthz")).status).toBe(200)
      const answer = await world.client.call("POST", "/chat", { message: "Hello", background: true })
      expect([answer.status, answer.body._tag]).toEqual([500, "Unavailable"])
      expect(answer.body.message).toContain("damaged")
    } else {
      expect(started).toMatch(/ended with 1 /)
      expect(started).toMatch(/The database \S+ is damaged\. See what `runlet doctor` says, restore a backup/)
      expect(started).not.toMatch(/\n\s+at |SqliteError/)
    }
    const { status, stderr, stdout } = doctor(world.data)
    expect(status).toBe(1)
    expect(`${stdout}${stderr}`).toMatch(/damaged|no database of Runlet/)
  },
  60_000
)
