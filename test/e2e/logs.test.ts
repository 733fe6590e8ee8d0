import Database from "better-sqlite3"
import { afterAll, beforeAll, expect, test } from "vitest"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

test("what a server logs to no terminal is JSON, names the run, and holds nothing of what was said", async () => {
  const content = "between us alone"
  const run = await world.client.start(content)
  expect((await world.client.settled(run.runId)).text).toContain(content)
  const database = new Database(world.data)
  database
    .prepare(`UPDATE events SET json = ? WHERE run_key = (SELECT key FROM runs WHERE run_id = ?)`)
    .run(`{"type":"${content}`, run.runId)
  database.close()
  expect((await world.client.call("GET", `/runs/${run.runId}`)).status).toBe(500)
  const lines = await eventually("the line", () => {
    const found = world
      .output()
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("Runlet is ready at"))
    return found.length > 0 ? found : undefined
  })
  const told = lines.map((line) => JSON.parse(line))
  expect(told).toContainEqual(
    expect.objectContaining({
      message: "The store did not answer",
      logLevel: "ERROR",
      timestamp: expect.any(String),
      annotations: expect.objectContaining({ runId: run.runId, reason: "corrupt" })
    })
  )
  expect(world.output()).not.toContain(content)
})
