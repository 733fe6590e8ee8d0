/** Databases that hold one of everything, and all that is in one. */
import { dirname, join } from "node:path"
import Database from "better-sqlite3"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { expect } from "vitest"
import type * as Migrate from "../../../src/node/Migrate.js"
import { RunStore } from "../../../src/store/RunStore.js"
import * as SqlCopy from "../../../src/store/SqlCopy.js"
import * as Sqlite from "../../../src/store/Sqlite.js"
import * as SqliteBackup from "../../../src/store/SqliteBackup.js"
import * as Arbitraries from "../../../src/testing/Arbitraries.js"
import type { Plan } from "../../../src/testing/Plan.js"
import * as Simulation from "../../../src/testing/Simulation.js"
import { append, begin, create, end, ending, texts } from "../../../src/testing/store/fixtures.js"
import * as SqliteDocuments from "../../../src/tool/documents/SqliteDocuments.js"
import { WriteClient } from "../../../src/tool/SqlClients.js"
import { databaseFile } from "../../store/support.js"

export type Dump = Record<string, ReadonlyArray<unknown>>

export const using = <A>(file: string, use: (db: Database.Database) => A): A => {
  const db = new Database(file)
  try {
    return use(db)
  } finally {
    db.close()
  }
}

export const tablesOf = (db: Database.Database): ReadonlyArray<string> =>
  db
    .prepare<[], string>("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')")
    .pluck()
    .all()

/** Everything that is in a file, and what the next keys will be. */
export const dump = (file: string): Dump =>
  using(file, (db) => {
    const there = tablesOf(db)
    return Object.fromEntries([
      ...SqlCopy.tables
        .filter(({ name }) => there.includes(name))
        .map(({ key, name }) => [name, db.prepare(`SELECT * FROM ${name} ORDER BY ${key.join(", ")}`).all()] as const),
      ["sqlite_sequence", db.prepare("SELECT name, seq FROM sqlite_sequence WHERE name = 'runs'").all()] as const
    ])
  })

/** One of everything that a store can hold, and a run key that is used up. */
export const fill = (file: string) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const idempotency = { key: "k1", bodyHash: "h1" }
    const first = yield* begin({ idempotency, brought: [{ role: "user", content: "Before ☃ \u{1F600}" }] })
    yield* append({
      key: first.key,
      epoch: first.epoch,
      events: texts(450),
      set: { status: "streaming" },
      sides: [{ iteration: 1, data: { signature: "s" } }]
    })
    yield* end(first)
    const failed = yield* begin({ conversationId: first.conversationId })
    yield* append({ key: failed.key, epoch: failed.epoch, ...ending.failed(true) })
    yield* store.saveCompaction({
      conversationId: first.conversationId,
      uptoRunId: first.runId,
      uptoIteration: 1,
      summary: "They said hello.",
      madeIn: failed.runId,
      madeAt: 1
    })
    yield* create({ userId: "bob" })
    const gone = yield* create({ userId: "carol" })
    yield* end(gone, ending.cancelled())
    expect(yield* store.remove({ runId: gone.runId, userId: "carol" })).toBe("deleted")
    yield* store.removeConversation({ conversationId: gone.conversationId, userId: "carol" })
    const sql = yield* WriteClient
    yield* sql`INSERT INTO documents (id, user_id, title, body, version, content_hash, updated_at)
      VALUES ('d1', 'alice', 'A harbour', 'Low tide at noon', 3, 'h', 7)`
    yield* sql`INSERT INTO document_acts VALUES ('alice', 'act', 'done', 7)`
    yield* sql`INSERT INTO memories VALUES ('m1', 'alice', 'likes tea', 7)`
    yield* sql`CREATE TABLE bookings (id INTEGER PRIMARY KEY)`
    return gone.key
  }).pipe(Effect.provide(SqliteDocuments.layer.pipe(Layer.provideMerge(Sqlite.layer({ filename: file })))))

export const beside = (file: string, name: string) => join(dirname(file), name)

/** A file with what a plan of runs, crashes and people has left behind. What the plan has crashed still has its own open. */
export const leftBy = (plan: Plan) =>
  Effect.gen(function* () {
    const file = yield* databaseFile
    const layer = Sqlite.layer({ filename: file, synchronous: "normal", pollMs: 200 })
    const open = Effect.orDie(Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, RunStore)))
    yield* Effect.sync(() => Effect.runSync(Simulation.run(plan, { store: Effect.succeed(open) })))
    const left = beside(file, "left.db")
    yield* SqliteBackup.backup(file, left)
    return left
  })

/** That a move keeps all that a plan has left behind. It answers what it has moved, and the file in which all of it is. */
export const keepsWhatIsLeft = (
  numRuns: number,
  move: (file: string) => Effect.Effect<readonly [Migrate.Moved, string], Migrate.MigrateError, Scope.Scope>
) =>
  Effect.promise(() =>
    FastCheck.assert(
      FastCheck.asyncProperty(Arbitraries.plan, (plan) =>
        Effect.gen(function* () {
          const file = yield* leftBy(plan)
          const [{ compared, unreadable }, copy] = yield* move(file)
          expect(unreadable).toEqual([])
          const before = dump(file)
          expect(compared).toBe(before.runs?.length)
          expect(dump(copy)).toEqual(before)
        }).pipe(Effect.scoped, Effect.runPromise)
      ),
      { numRuns, seed: Number(process.env.RUNLET_SEED ?? 1) }
    )
  )
