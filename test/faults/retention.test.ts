import { type ChildProcess, spawn } from "node:child_process"
import { statSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Agent from "../../src/agent/Agent.js"
import type { Snapshot } from "../../src/domain/Snapshot.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as SqliteDoctor from "../../src/store/SqliteDoctor.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { databaseFile } from "../store/support.js"

/** `RUNLET_RETAINED` says how many runs there are; a soak takes a thousand. */
const count = Number(process.env.RUNLET_RETAINED ?? 200)

const talkative = Script.make((request) =>
  JSON.stringify(request.messages).includes("active")
    ? Script.turn(Script.text("half"), Script.hang)
    : Script.turn(...Array.from({ length: 8 }, (_, n) => Script.text(`${n} `.padEnd(1_000, "x"))))
)

const stack = (filename: string) =>
  Layer.fresh(
    Runlet.layer({ filename, synchronous: "normal", limitUsers: false }).pipe(
      Layer.provide(Agent.layer({ models: { m: talkative }, limits: { maxQueuedRuns: 2 * count } }))
    )
  )

const ask = (filename: string, text: string): number => {
  const db = new Database(filename, { readonly: true, timeout: 5_000 })
  try {
    return Number(db.prepare(text).pluck().get())
  } finally {
    db.close()
  }
}

const vite = join(__dirname, "../../node_modules/vite-node/vite-node.mjs")

/** Lets a sweeper work until there are so many logs that are compacted, and kills it between two instructions. */
const sweep = (filename: string, done: () => boolean) =>
  Effect.acquireUseRelease(
    Effect.sync(() =>
      spawn(process.execPath, [vite, join(__dirname, "support/Sweeper.ts"), filename], { stdio: "inherit" })
    ),
    () => Effect.repeat(Effect.sync(done), { schedule: Schedule.spaced("10 millis"), until: (over) => over }),
    (child: ChildProcess) =>
      Effect.async<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )

it.scopedLive(
  "many logs are compacted over kills in the middle, nothing changes in what they come to, and the file shrinks",
  () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const before = yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        const runs = yield* Effect.forEach(
          Array.from({ length: count }, (_, n) => `message ${n}`),
          (message) => engine.start({ message }),
          { concurrency: 50 }
        )
        const active = yield* engine.start({ message: "active" })
        yield* Effect.repeat(
          Effect.sync(() => ask(filename, "SELECT COUNT(*) FROM runs WHERE status = 'completed'")),
          { schedule: Schedule.spaced("50 millis"), until: (n) => n === count }
        )
        const shown: Array<Snapshot> = []
        for (const { runId } of runs.slice(0, 50)) shown.push(yield* engine.snapshot(runId))
        return { shown, active: active.runId }
      }).pipe(Effect.provide(stack(filename)))
      const { size } = statSync(filename)
      const bases = "SELECT COUNT(*) FROM bases"
      for (const some of [count * 0.15, count * 0.5]) {
        yield* sweep(filename, () => ask(filename, bases) >= some)
        expect(ask(filename, bases)).toBeLessThan(count)
      }
      yield* sweep(
        filename,
        () =>
          ask(filename, "SELECT COUNT(*) FROM bases WHERE trimmed = 1") === count &&
          ask(filename, "SELECT freelist_count * 10 FROM pragma_freelist_count()") <=
            ask(filename, "SELECT page_count + 3000 FROM pragma_page_count()")
      )
      const report = yield* SqliteDoctor.repair(filename)
      expect(report.problems).toEqual([])
      expect(report.runs).toMatchObject({ completed: count })
      console.info(`${count} runs: ${size} bytes before, ${statSync(filename).size} bytes after`)
      expect(statSync(filename).size).toBeLessThan(size * 0.75)
      yield* Effect.gen(function* () {
        const engine = yield* RunEngine
        for (const snapshot of before.shown) {
          const { expiresAt: _, ...wanted } = snapshot
          expect(yield* engine.snapshot(snapshot.runId)).toMatchObject(wanted)
          expect(yield* Effect.flip(engine.view(snapshot.runId, 0))).toMatchObject({ _tag: "Compacted" })
        }
        // What was active the whole time has its log still.
        expect((yield* engine.view(before.active, 0)).ended).toBe(false)
      }).pipe(Effect.provide(stack(filename)))
    }),
  120_000 + count * 1_000
)
