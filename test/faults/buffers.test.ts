import { get, type IncomingMessage } from "node:http"
import { createParser } from "eventsource-parser"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as World from "../e2e/support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

/** A reader who takes nothing from the socket until it is told to; then everything that had been sent. */
const sleeper = async (url: string) => {
  const response = await new Promise<IncomingMessage>((done, failed) => {
    get(url, { headers: { accept: "text/event-stream" } }, done).on("error", failed)
  })
  response.pause()
  const seen: Array<Envelope> = []
  return {
    wake: () =>
      new Promise<ReadonlyArray<Envelope>>((done) => {
        const parser = createParser({
          onEvent: ({ data }) => {
            const value = JSON.parse(data)
            if ("event" in value) seen.push(value)
          }
        })
        response.setEncoding("utf8")
        response.on("data", (piece: string) => parser.feed(piece))
        response.on("error", () => undefined)
        response.on("close", () => done(seen))
        response.resume()
      })
  }
}

test("what lay in the system's buffers when the server was killed is in the log, and the rest follows without a gap", async () => {
  const message = "Killed with full buffers"
  const pieces = Array.from({ length: 400 }, (_, n) => `${n} `.padEnd(6_000, "z"))
  world.upstream.script(message, [
    Script.reply([
      pieces.slice(0, 200).map(Script.text),
      Script.gate("never"),
      pieces.slice(200).map(Script.text),
      Script.finish("stop"),
      Script.done
    ]),
    Script.reply([pieces.map(Script.text), Script.finish("stop"), Script.done])
  ])
  const run = await world.client.start(message)
  const sleepers = await Promise.all(
    Array.from({ length: 3 }, () => sleeper(`${world.url()}/runs/${run.runId}/events`))
  )
  await world.client.until(run.runId, "in the middle", ({ text }) => text.includes("199 "))
  await world.restart()
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", pieces.join("")])
  const log = await world.client.log(run.runId)
  for (const one of sleepers) {
    const seen = await one.wake()
    // Only a part fits into the buffers; what does is whole, and was stored before.
    expect(seen.length).toBeGreaterThan(2)
    expect(seen).toEqual(log.slice(0, seen.length))
    const rest = await (await world.client.events(run.runId, seen.length)).ended
    expect([...seen, ...rest]).toEqual(log)
  }
  await world.check(run)
}, 120_000)
