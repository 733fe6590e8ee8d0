/** A run of many iterations on the whole stack in this process, and what it left in its file. */
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/agent/Agent.js"
import type { Snapshot } from "../../src/domain/Snapshot.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as Runlet from "../../src/node/Runlet.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import type { Tool } from "../../src/tool/Tool.js"

const resultLength = 200

const lookup: Tool = {
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: { type: "object" },
  check: Effect.succeed,
  execute: (input) => Effect.succeed(`${JSON.stringify(input)} ${"tide ".repeat(40)}`.slice(0, resultLength))
}

/** A model that asks for one look-up a turn, `iterations` times, and then answers. */
const model = (iterations: number) =>
  Script.make(({ iteration }) =>
    iteration <= iterations
      ? Script.turn(
          Script.text("Let me ", "see. "),
          Script.call("lookup", { q: `word ${iteration}` }, `call_${iteration}`)
        )
      : Script.turn(Script.text("That is all."))
  )

const stack = (filename: string, iterations: number) =>
  Runlet.layer({ filename, synchronous: "normal", commitWindowMs: 0 }).pipe(
    (layer) => Effect.provide(layer),
    (provide) =>
      <A, E>(effect: Effect.Effect<A, E, RunEngine>) =>
        effect.pipe(
          provide,
          Effect.provide(
            Agent.layer({
              models: { m: model(iterations) },
              tools: [lookup],
              limits: { maxIterations: iterations + 1, runTimeoutMs: 86_400_000 }
            })
          ),
          Effect.scoped
        )
  )

/** Runs it to its end and gives its id. */
export const play = (filename: string, iterations: number): Promise<string> =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { runId } = yield* engine.start({ message: "Look up many words" })
    const end = yield* Effect.fork(
      Stream.runLast(Stream.filter(engine.events(runId), ({ event }) => event.type === "finish"))
    )
    yield* Fiber.join(end)
    return runId
  }).pipe(stack(filename, iterations), Effect.runPromise)

/** The snapshot as a process gives it that has just been started, `times` times. */
export const look = (
  filename: string,
  runId: string,
  times = 1
): Promise<{ readonly snapshot: Snapshot; readonly ms: ReadonlyArray<number> }> =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const ms: Array<number> = []
    let snapshot = yield* engine.snapshot(runId)
    for (let i = 0; i < times; i++) {
      const before = process.hrtime.bigint()
      snapshot = yield* engine.snapshot(runId)
      ms.push(Number(process.hrtime.bigint() - before) / 1e6)
    }
    return { snapshot, ms }
  }).pipe(stack(filename, 0), Effect.runPromise)

/** Bytes of the pages of each table, with its indexes. */
export const sizes = (filename: string): ReadonlyMap<string, number> => {
  const db = new Database(filename)
  try {
    db.pragma("wal_checkpoint(TRUNCATE)")
    db.exec("VACUUM")
    const rows = db
      .prepare<[], { readonly name: string; readonly bytes: number }>(
        `SELECT COALESCE(m.tbl_name, s.name) AS name, SUM(s.pgsize) AS bytes
         FROM dbstat AS s LEFT JOIN sqlite_master AS m ON m.name = s.name GROUP BY 1 ORDER BY 2 DESC`
      )
      .all()
    return new Map(rows.map(({ bytes, name }) => [name, bytes]))
  } finally {
    db.close()
  }
}

/** Bytes of the content of checkpoint events. */
export const checkpointBytes = (filename: string): number => {
  const db = new Database(filename, { readonly: true })
  try {
    const row = db
      .prepare<[], { readonly bytes: number | null }>(
        `SELECT SUM(LENGTH(CAST(json AS BLOB))) AS bytes FROM events WHERE type = 'checkpoint'`
      )
      .get()
    return row?.bytes ?? 0
  } finally {
    db.close()
  }
}

/** Removes the events that closed turns stand for, and tells how many there were and how many are left. */
export const forgetClosedTurns = (filename: string): { readonly removed: number; readonly left: number } => {
  const db = new Database(filename)
  try {
    const { changes } = db
      .prepare(`DELETE FROM events WHERE seq <= (SELECT MAX(seq) FROM turns WHERE turns.run_key = events.run_key)`)
      .run()
    const left = db.prepare<[], { readonly n: number }>("SELECT COUNT(*) AS n FROM events").get()
    return { removed: changes, left: left?.n ?? 0 }
  } finally {
    db.close()
  }
}
