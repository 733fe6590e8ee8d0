import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { send } from "./support/ToolServer.js"
import { pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

// More than it takes to begin all runs, on a busy machine too.
const chunkTimeoutMs = 6_000

let world: World.World
beforeAll(async () => {
  world = await World.start({
    limits: { chunkTimeoutMs, firstChunkTimeoutMs: chunkTimeoutMs, toolTimeoutMs: chunkTimeoutMs }
  })
})
afterAll(() => world.stop())

test("a server that was stopped for longer than the silence of a model finds what the models said meanwhile", async () => {
  const gone = "Gone while nobody listened"
  const messages = Array.from({ length: 20 }, (_, i) => `Run ${i} goes on`)
  for (const [i, message] of messages.entries()) {
    // Some say something and go on while the server stands still; some begin then.
    const before = i % 2 === 0 ? [Script.text("before ")] : []
    world.upstream.script(message, [
      Script.reply(
        [before, Script.gate(message), Script.text("while "), Script.text("after"), Script.finish("stop"), Script.done],
        i % 4 === 1 ? { headAfterMs: 2_000 } : {}
      )
    ])
  }
  world.upstream.script(gone, [Script.reply([Script.text("a")], { end: "open" })])
  const runs = await Promise.all(messages.map((message) => world.client.start(message)))
  await Promise.all(messages.map((message) => world.upstream.received(message)))
  const silent = await world.client.start(gone)
  await world.client.until(silent.runId, "begun", ({ text }) => text === "a")

  world.server().signal("SIGSTOP")
  await Promise.all(messages.map((message) => world.upstream.release(message)))
  await pause(chunkTimeoutMs + 1_000)
  world.server().signal("SIGCONT")

  const ended = await Promise.all(runs.map(({ runId }) => world.client.settled(runId)))
  expect(ended.map(({ status, text }) => [status, text])).toEqual(
    messages.map((_, i) => ["completed", i % 2 === 0 ? "before while after" : "while after"])
  )
  for (const run of runs) await world.check(run, { followUp: false })
  // Who really is silent is found all the same.
  expect((await world.client.settled(silent.runId)).error?.code).toBe("timeout")
})

test("a tool that answered while the server was stopped for longer than its time has answered in time", async () => {
  const messages = Array.from({ length: 8 }, (_, i) => `Tool of run ${i}`)
  const gone = "A tool that hangs"
  const waiting = new Map<string, () => void>()
  for (const message of [...messages, gone]) {
    world.upstream.script(message, [
      Script.calls({ id: "call_s", name: "lookup", args: JSON.stringify({ q: message }) }),
      Script.answer("Done.")
    ])
    world.tools.on("lookup", message, (_, response) => {
      waiting.set(message, () => send(response, { found: message }))
    })
  }
  const runs = await Promise.all([...messages, gone].map((message) => world.client.start(message)))
  await Promise.all([...messages, gone].map((message) => world.tools.received("lookup", message)))

  world.server().signal("SIGSTOP")
  for (const message of messages) waiting.get(message)?.()
  await pause(chunkTimeoutMs + 1_000)
  world.server().signal("SIGCONT")

  const ended = await Promise.all(runs.map(({ runId }) => world.client.settled(runId)))
  expect(ended.map(({ status, toolCalls }) => [status, toolCalls[0]?.result])).toEqual([
    ...messages.map((message) => ["completed", { found: message }]),
    // What really hangs is given up all the same.
    ["completed", { error: `The tool did not answer within ${chunkTimeoutMs} ms.` }]
  ])
})
