import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType } from "../e2e/support/Client.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

/** A clock that can be set while the server runs, as an administrator or a time server would: timers go on as they were. */
const settable = () => {
  const directory = mkdtempSync(join(tmpdir(), "runlet-clock-"))
  cleanup.push(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, "shift")
  writeFileSync(file, "0")
  const code = `import { readFileSync } from "node:fs"
    const real = Date
    const shift = () => Number(readFileSync(${JSON.stringify(file)}, "utf8"))
    globalThis.Date = class extends real {
      constructor(...given) { given.length === 0 ? super(real.now() + shift()) : super(...given) }
      static now() { return real.now() + shift() }
    }`
  const node = ["--import", `data:text/javascript,${encodeURIComponent(code)}`]
  return { how: { node }, set: (hours: number) => writeFileSync(file, String(hours * 3_600_000)) }
}

const talk = (gate: string) => [
  Script.reply([
    Script.text("Before, "),
    Script.gate(gate),
    Array.from({ length: 20 }, () => [Script.text("and on, "), Script.wait(50)]).flat(),
    Script.text("after."),
    Script.finish("stop"),
    Script.done
  ])
]
const wholeText = `Before, ${"and on, ".repeat(20)}after.`

test.each([
  ["forward", 2],
  ["back", -2],
  ["back by months", -2000]
])(
  "a clock that is set %s disturbs no run",
  async (_, hours) => {
    const { how, set } = settable()
    const world = await World.start({ how, resume: { leaseTtlMs: 1_000 } })
    cleanup.push(world.stop)
    const messages = [0, 1, 2].map((n) => `Over the jump ${n}`)
    for (const message of messages) world.upstream.script(message, talk("jump"))
    const readings = await Promise.all(messages.map((message) => world.client.chat(message)))
    world.upstream.script("Asks over the jump", [
      Script.calls({ id: "call_w", name: "save_note", args: '{"doc":"d","text":"t"}' }),
      Script.answer("Saved.")
    ])
    const asking = await world.client.start("Asks over the jump")
    const pending = await world.client.waiting(asking.runId)
    for (const reading of readings) await reading.until("its first words", ({ type }) => type === "text-delta")
    set(hours)
    await world.upstream.release("jump")
    const during = await world.client.start("Begun after the jump")
    expect((await world.client.settled(during.runId)).status).toBe("completed")
    for (const [n, reading] of readings.entries()) {
      await reading.ended
      const end = await world.client.snapshot(reading.headers.get("x-run-id") ?? "")
      expect([end.status, end.attempt, end.text]).toEqual(["completed", 1, wholeText])
      expect(end.timing?.durationMs).toBeGreaterThanOrEqual(0)
      expect(world.upstream.asked(messages[n] ?? "")).toHaveLength(1)
    }
    const { previewHash } = pending
    expect((await world.client.decide(asking.runId, pending.approvalId, "approve", { previewHash })).status).toBe(200)
    await world.client.until(asking.runId, "completed", ({ status }) => status === "completed")
    expect(world.tools.of(asking.runId, "commit")).toHaveLength(1)
    // And back again, with what was written meanwhile lying in the past or in the future.
    set(0)
    const next = await world.client.start({ message: "After all", conversationId: during.conversationId })
    expect((await world.client.settled(next.runId)).status).toBe("completed")
    const { body } = await world.client.call("GET", "/runs?limit=1")
    expect(body.items[0].runId).toBe(next.runId)
    await world.check(asking)
  },
  60_000
)

test("a process that stood still for longer than its leases goes on without repeating anything", async () => {
  const world = await World.start({ resume: { leaseTtlMs: 1_000 } })
  cleanup.push(world.stop)
  world.upstream.script("Stands still", talk("still"))
  const reading = await world.client.chat("Stands still")
  await reading.until("its first words", ({ type }) => type === "text-delta")
  world.tools.on("save_note", "slowly", async ({ phase }, response) => {
    if (phase === "commit") await pause(1_500)
    response.writeHead(200, { "content-type": "application/json" })
    response.end('{"saved":true}')
  })
  world.upstream.script("Writes while it stands still", [
    Script.calls({ id: "call_s", name: "save_note", args: '{"doc":"d","text":"slowly"}' }),
    Script.answer("Saved.")
  ])
  const writing = await world.client.start("Writes while it stands still")
  const { approvalId, previewHash } = await world.client.waiting(writing.runId)
  await world.client.decide(writing.runId, approvalId, "approve", { previewHash })
  await eventually("the commit", () => world.tools.of(writing.runId, "commit")[0])
  world.server().signal("SIGSTOP")
  await world.upstream.release("still")
  await pause(3_000)
  world.server().signal("SIGCONT")
  const log = await reading.ended
  const end = await world.client.snapshot(reading.headers.get("x-run-id") ?? "")
  expect([end.status, end.text]).toEqual(["completed", wholeText])
  expect(world.upstream.asked("Stands still")).toHaveLength(1 + ofType(log, "run-resumed").length)
  const written = await world.client.until(writing.runId, "completed", ({ status }) => status === "completed")
  expect(written.text).toBe("Saved.")
  expect(new Set(world.tools.of(writing.runId, "commit").map(({ key }) => key)).size).toBe(1)
  await world.check(writing)
}, 60_000)
