import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Agent from "../../src/agent/Agent.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"
import { until } from "./support.js"

/** What nobody may find in a log. */
const content = "kept between us"

const save: Tool = {
  name: "save",
  description: "Saves a text",
  parameters: { type: "object" },
  check: Effect.succeed,
  kind: "write",
  preview: (input) => Effect.succeed({ wouldSave: input }),
  commit: () => Effect.succeed({ result: { saved: true } })
}

interface Line {
  readonly message: string
  readonly fields: Record<string, unknown>
}

/** An engine on a file, the database behind its back, and what it logs. */
const world = (models: Record<string, Script.ScriptedModel>, approvalTtlMs = 60_000) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-faults-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const filename = join(directory, "runs.db")
    const lines: Array<Line> = []
    const raw: Array<string> = []
    const logger = Logger.make<unknown, void>((options) => {
      raw.push(Logger.jsonLogger.log(options))
      lines.push({
        message: String(Array.isArray(options.message) ? options.message[0] : options.message),
        fields: Object.fromEntries(HashMap.toEntries(options.annotations))
      })
    })
    const agent = Agent.layer({ models, tools: [save], limits: { approvalTtlMs } })
    const context = yield* Layer.build(
      Layer.fresh(Runlet.layer({ filename, pollMs: 20 })).pipe(
        Layer.provide(agent),
        Layer.provide(Logger.replace(Logger.defaultLogger, logger))
      )
    )
    const database = yield* Effect.acquireRelease(
      Effect.sync(() => new Database(filename)),
      (open) => Effect.sync(() => open.close())
    )
    const inside = <A, E>(effect: Effect.Effect<A, E, RunEngine>): Effect.Effect<A, E> =>
      effect.pipe(Effect.provide(context), Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    return {
      inside,
      raw,
      of: (runId: string) => lines.filter(({ fields }) => fields.runId === runId),
      damage: (runId: string) =>
        Effect.sync(() => {
          database
            .prepare(
              `UPDATE events SET json = '{"type":"${content}"' WHERE run_key = (SELECT key FROM runs WHERE run_id = ?)`
            )
            .run(runId)
        }),
      refuse: (text: string) =>
        Effect.sync(() => {
          database.exec(
            `CREATE TRIGGER refused BEFORE INSERT ON events WHEN instr(NEW.json, '${text}') > 0 BEGIN SELECT RAISE(ABORT, '${content}'); END`
          )
        })
    }
  })

describe("a fault of the store", () => {
  it.scopedLive("names the run that could not be read, and nothing that was stored", () =>
    Effect.gen(function* () {
      const m = Script.make(() => Script.turn(Script.text("an answer")))
      const { damage, inside, of, raw } = yield* world({ m })
      const ended = yield* inside(
        Effect.gen(function* () {
          const engine = yield* RunEngine
          const { runId } = yield* engine.start({ message: content })
          yield* until(runId, ({ status }) => status === "completed")
          yield* damage(runId)
          expect((yield* Effect.flip(engine.snapshot(runId)))._tag).toBe("Unavailable")
          return runId
        })
      )
      expect(of(ended)).toEqual([
        {
          message: "The store did not answer",
          fields: expect.objectContaining({ runId: ended, reason: "corrupt", code: expect.any(String) })
        }
      ])
      expect(raw.join("\n")).not.toContain(content)
    })
  )

  it.scopedLive("names the run whose events were not taken, and leaves the others alone", () =>
    Effect.gen(function* () {
      const m = Script.make(({ messages }) => {
        const last = messages.at(-1)
        const isUnlucky = last?.role === "user" && last.content.startsWith("unlucky")
        return Script.turn(Script.text(isUnlucky ? "an unlucky word" : "a word"))
      })
      const { inside, of, raw, refuse } = yield* world({ m })
      yield* refuse("an unlucky")
      const [lucky, unlucky] = yield* inside(
        Effect.gen(function* () {
          const engine = yield* RunEngine
          const unlucky = yield* engine.start({ message: `unlucky ${content}` })
          const lucky = yield* engine.start({ message: `lucky ${content}` })
          yield* until(lucky.runId, ({ status }) => status === "completed")
          yield* until(unlucky.runId, () => of(unlucky.runId).length > 0)
          return [lucky.runId, unlucky.runId]
        })
      )
      expect(of(unlucky ?? "")[0]).toEqual({
        message: "A run was left to recovery because its events could not be stored",
        fields: expect.objectContaining({ method: "append", reason: "corrupt", code: "SQLITE_CONSTRAINT_TRIGGER" })
      })
      expect(of(lucky ?? "")).toEqual([])
      expect(raw.join("\n")).not.toContain(content)
    })
  )

  it.scopedLive("in one run that waits for a person does not keep others from their expiry", () =>
    Effect.gen(function* () {
      const m = Script.make(({ messages }) =>
        messages.at(-1)?.role === "tool"
          ? Script.turn(Script.text("then not"))
          : Script.turn(Script.call("save", { text: "a" }))
      )
      const { damage, inside, of, raw } = yield* world({ m }, 1_500)
      yield* inside(
        Effect.gen(function* () {
          const engine = yield* RunEngine
          const waiting = (runId: string) => until(runId, ({ status }) => status === "waiting_approval")
          const broken = yield* engine.start({ message: content })
          yield* waiting(broken.runId)
          yield* damage(broken.runId)
          const whole = yield* engine.start({ message: content })
          yield* until(
            whole.runId,
            ({ status, toolCalls }) => status === "completed" && toolCalls[0]?.state === "expired"
          )
          const { items } = yield* engine.list({})
          expect(items.find(({ runId }) => runId === broken.runId)).toMatchObject({
            status: "failed",
            error: { code: "store_corrupt" }
          })
          expect(of(broken.runId).map(({ message }) => message)).toEqual([
            "A run was ended because what is stored of it can not be read"
          ])
        })
      )
      expect(raw.join("\n")).not.toContain(content)
    })
  )
})
