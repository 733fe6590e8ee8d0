import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import type { Handler } from "../e2e/support/ToolServer.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"

/** Answers that do not end: what is kept of them is bounded, whatever they are. */
let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

const mb = 1024 * 1024

/** What the process has of the machine's memory, in bytes. */
const resident = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024

/** Sends pieces for as long as somebody takes them, up to four gigabytes; tells how much it was. */
const endless =
  (contentType: string, first: string, piece: string, sent: { bytes: number }): Handler =>
  (_, response) => {
    response.writeHead(200, { "content-type": contentType })
    response.write(first)
    const bytes = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)))
    const more = () => {
      while (!response.destroyed && sent.bytes < 4096 * mb) {
        sent.bytes += bytes.length
        if (!response.write(bytes)) return void response.once("drain", more)
      }
      response.end()
    }
    more()
  }

test.each([
  ["a text", "text/plain", "", "words and words "],
  ["one string", "application/json", '"', "words and words "],
  ["a list", "application/json", "[0", ",[1,2,3]"],
  ["nesting", "application/json", "", "["]
])(
  "a tool that answers gigabytes as %s is cut off, by many runs at once",
  async (what, type, first, piece) => {
    const runs = 8
    const sent = { bytes: 0 }
    world.tools.on("lookup", `gigabytes of ${what}`, endless(type, first, piece, sent))
    const before = resident(world.server().pid)
    let most = before
    const look = setInterval(() => {
      most = Math.max(most, resident(world.server().pid))
    }, 20)
    const messages = Array.from({ length: runs }, (_, n) => `Gigabytes as ${what}, ${n}`)
    for (const message of messages) {
      world.upstream.script(message, [
        Script.calls({ id: "call_g", name: "lookup", args: `{"q":"gigabytes of ${what}"}` }),
        Script.answer("Enough.")
      ])
    }
    const all = await Promise.all(messages.map((message) => world.client.start(message)))
    for (const { runId } of all) {
      const end = await world.client.settled(runId)
      expect([end.status, end.text]).toEqual(["completed", "Enough."])
      const [call] = end.toolCalls
      expect(JSON.stringify(call?.result).length).toBeLessThan(mb)
    }
    clearInterval(look)
    // The model is told, by whatever stands for the answer.
    for (const message of messages) {
      const told = Script.messagesOf(await world.upstream.received(message, 1)).at(-1)
      expect(told?.role).toBe("tool")
      expect(String(told?.content)).toMatch(/cut|too (long|large|big)|longer|limit/i)
    }
    await eventually("every connection to be closed", () =>
      world.tools.ledger.every(({ closedAt }) => closedAt !== undefined) ? true : undefined
    )
    // What was sent includes what lay in the buffers of the sockets.
    expect(sent.bytes).toBeLessThan(runs * 24 * mb)
    console.info(
      `${what}: ${Math.round(sent.bytes / mb)} MB sent to ${runs} runs, memory ${Math.round(before / mb)} MB before and ${Math.round(most / mb)} MB at most`
    )
    expect(most - before).toBeLessThan(200 * mb)
    await world.check(all[0] ?? "")
  },
  60_000
)
