import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/agent/Agent.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { until } from "./support.js"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-damage-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const damage = (filename: string, runId: string) =>
  Effect.sync(() => {
    const database = new Database(filename)
    database
      .prepare(
        `UPDATE events SET json = '{"type":"nonsense"' WHERE seq = 2 AND run_key = (SELECT key FROM runs WHERE run_id = ?)`
      )
      .run(runId)
    database.close()
  })

const stack = (filename: string, model: Script.ScriptedModel) =>
  Layer.fresh(Runlet.layer({ filename, pollMs: 20 }).pipe(Layer.provide(Agent.layer({ models: { m: model } }))))

it.scopedLive("a run whose log is damaged ends with a reason, and its conversation goes on", () =>
  Effect.gen(function* () {
    const filename = join(yield* directory, "runs.db")
    const silent = Script.make(() => Script.turn(Script.text("half an"), Script.hang))
    const run = yield* Effect.gen(function* () {
      const engine = yield* RunEngine
      const started = yield* engine.start({ message: "first" })
      yield* until(started.runId, (snapshot) => snapshot.text === "half an")
      return started
    }).pipe(Effect.provide(stack(filename, silent)))
    yield* damage(filename, run.runId)

    const model = Script.make(() => Script.turn(Script.text("a whole one")))
    yield* Effect.gen(function* () {
      const engine = yield* RunEngine
      const ended = yield* engine.cancel(run.runId)
      expect(ended.status).toBe("failed")
      const [listed] = (yield* engine.list({})).items
      expect(listed).toMatchObject({ status: "failed", recoverable: false, error: { code: "store_corrupt" } })
      const next = yield* engine.start({ message: "second", conversationId: run.conversationId })
      yield* until(next.runId, (snapshot) => snapshot.status === "completed")
      expect(model.requests[0]?.messages.filter((message) => message.role === "user")).toEqual([
        { role: "user", content: "first" },
        { role: "user", content: "second" }
      ])
      yield* engine.remove(run.runId)
    }).pipe(Effect.provide(stack(filename, model)))
  })
)
