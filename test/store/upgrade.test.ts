import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/agent/Agent.js"
import type { Snapshot } from "../../src/domain/Snapshot.js"
import * as Snapshots from "../../src/domain/Snapshot.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as RunLog from "../../src/engine/RunLog.js"
import * as Demo from "../../src/model/Demo.js"
import * as Runlet from "../../src/node/Runlet.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import * as DocumentTools from "../../src/tool/documents/DocumentTools.js"
import * as SqliteDocuments from "../../src/tool/documents/SqliteDocuments.js"
import { databaseFile } from "./support.js"

const fixture = (name: string) => join(__dirname, "fixtures", name)

const using = <A>(filename: string, use: (db: Database.Database) => A): A => {
  const db = new Database(filename)
  try {
    return use(db)
  } finally {
    db.close()
  }
}

/** The newest schema version that this program makes. */
const newest = Effect.gen(function* () {
  const filename = yield* databaseFile
  yield* Effect.scoped(Layer.build(Layer.fresh(Sqlite.layer({ filename }))))
  return { filename, version: versionOf(filename) }
})

const versionOf = (filename: string) =>
  using(filename, (db) => db.prepare<[], number>("SELECT MAX(migration_id) FROM runlet_migrations").pluck().get())

/** Tables and indexes, however they came to be. */
const shape = (filename: string) =>
  using(filename, (db) =>
    db
      .prepare<[], { name: string; sql: string }>("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
      .all()
      .map(({ name, sql }) => `${name}: ${sql.replace(/"/g, "").replace(/\s+/g, " ")}`)
      .sort()
  )

/** A database as that version left it: the first one's, and what each later one made of it. */
const left = (version: number) =>
  Effect.map(databaseFile, (filename) => {
    using(filename, (db) => {
      db.pragma("journal_mode = WAL")
      for (let step = 1; step <= version; step++) db.exec(readFileSync(fixture(`v${step}.sql`), "utf8"))
    })
    return filename
  })

/** The clock of the moment when the database was left: what waits in it has not run out, and nothing is too old. */
const clockOf = (filename: string): Clock.Clock => {
  const left = using(filename, (db) => db.prepare<[], number>("SELECT MAX(updated_at) FROM runs").pluck().get()) ?? 0
  const real = Clock.make()
  const since = real.unsafeCurrentTimeMillis() - left
  return {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => real.unsafeCurrentTimeMillis() - since,
    currentTimeMillis: Effect.map(real.currentTimeMillis, (now) => now - since),
    unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos(),
    currentTimeNanos: real.currentTimeNanos,
    sleep: (duration) => real.sleep(duration)
  }
}

const opened = (filename: string) => Layer.fresh(Sqlite.layer({ filename, synchronous: "normal" }))

/** What was shown of its runs when the first version left it. */
const shown: Readonly<Record<string, Snapshot>> = JSON.parse(readFileSync(fixture("v1.snapshots.json"), "utf8"))

const engine = (filename: string) => {
  const agent = Layer.effect(
    Agent.Agent,
    Effect.map(DocumentTools.make, (tools) => Agent.make({ models: { demo: Demo.make() }, tools }))
  )
  return Runlet.layerEngine({ limitUsers: false }).pipe(
    Layer.provide(agent),
    Layer.provide(SqliteDocuments.layer),
    Layer.provide(opened(filename))
  )
}

const until = (runId: string, wanted: (snapshot: Snapshot) => boolean) =>
  Effect.flatMap(RunEngine, (_) =>
    _.snapshot(runId).pipe(
      Effect.filterOrFail(wanted, (snapshot) => ({ _tag: "NotYet" as const, snapshot })),
      Effect.retry(Schedule.spaced("20 millis").pipe(Schedule.upTo("60 seconds")))
    )
  )

describe("databases of earlier versions", () => {
  it.scoped("there is one of each, and already one of the present version for the next one", () =>
    Effect.gen(function* () {
      const { version = 0 } = yield* newest
      for (let earlier = 1; earlier <= version; earlier++) expect(existsSync(fixture(`v${earlier}.sql`))).toBe(true)
    })
  )

  it.scoped.each([1, 2, 3])("version %i is brought to the shape of a new one, and nothing in it changes", (version) =>
    Effect.gen(function* () {
      const filename = yield* left(version)
      const tables = ["runs", "events", "turns", "inputs", "messages", "conversations", "idempotency"]
      const content = () =>
        using(filename, (db) => tables.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()))
      const before = content()
      yield* Effect.gen(function* () {
        const store = yield* RunStore
        for (const [name, expected] of Object.entries(shown)) {
          const row = Option.getOrThrow(yield* store.find({ runId: expected.runId, userId: "local" }))
          const { expiresAt: _, queuePosition: __, ...snapshot } = expected
          const now = Snapshots.of(yield* RunLog.load(store, row))
          // The one that was cut in the middle had gone on since it was last looked at.
          if (name === "running") expect(now.text.startsWith(expected.text)).toBe(true)
          // A newer fold may say more; what was said before still holds.
          else expect(now).toMatchObject(snapshot)
        }
      }).pipe(Effect.provide(opened(filename)))
      const made = yield* newest
      expect(versionOf(filename)).toBe(made.version)
      expect(shape(filename)).toEqual(shape(made.filename))
      expect(content()).toEqual(before)
      using(filename, (db) => {
        expect(db.pragma("integrity_check", { simple: true })).toBe("ok")
        expect(db.pragma("foreign_key_check")).toEqual([])
        expect(db.pragma("auto_vacuum", { simple: true })).toBe(2)
      })
      // Opened again, it is as it is.
      yield* Effect.scoped(Layer.build(opened(filename)))
      expect(content()).toEqual(before)
    })
  )

  it.scopedLive.each([1, 2, 3])("runs of version %i go on", (version) =>
    Effect.gen(function* () {
      const filename = yield* left(version)
      const id = (name: string) => shown[name]?.runId ?? ""
      yield* Effect.gen(function* () {
        const runs = yield* RunEngine
        expect(yield* runs.start({ message: "/long 60", idempotencyKey: "key-1" })).toMatchObject({
          runId: id("running"),
          created: false
        })
        const [asked] = (yield* runs.snapshot(id("waiting"))).pendingApprovals
        yield* runs.decide(id("waiting"), asked?.approvalId ?? "", { decision: "approve" })
        expect(yield* runs.resume(id("failed"))).toMatchObject({ _tag: "resumed" })
        for (const name of ["running", "queued", "waiting", "failed"]) {
          const { attempt, toolCalls } = yield* until(id(name), ({ status }) => status === "completed")
          expect([name, attempt]).toEqual([name, name === "running" || name === "failed" ? 2 : 1])
          if (name === "waiting") expect(toolCalls.map(({ state }) => state)).toContain("applied")
        }
        const { messages } = yield* runs.conversation(shown.completed?.conversationId ?? "")
        expect(yield* Stream.runCount(messages)).toBe(4)
        const next = yield* runs.start({ message: "/long 3", conversationId: shown.completed?.conversationId })
        yield* until(next.runId, ({ status }) => status === "completed")
      }).pipe(Effect.provide(engine(filename)), Effect.withClock(clockOf(filename)))
    })
  )
})

describe("a database of a later version", () => {
  it.scoped("is refused and left as it is", () =>
    Effect.gen(function* () {
      const { filename, version = 0 } = yield* newest
      using(filename, (db) => {
        db.prepare("INSERT INTO runlet_migrations (migration_id, name) VALUES (?, 'future')").run(version + 1)
        db.exec("CREATE TABLE future (x)")
      })
      const before = shape(filename)
      const error = yield* Effect.flip(Effect.scoped(Layer.build(opened(filename))))
      expect(error).toMatchObject({ _tag: "StoreError", reason: "newer", method: "migrate" })
      expect(shape(filename)).toEqual(before)
    })
  )

  it.scoped("a file that is no database of ours is refused too", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      using(filename, (db) => db.exec("CREATE TABLE runs (somebody TEXT); INSERT INTO runs VALUES ('else')"))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(opened(filename))))
      expect(error).toMatchObject({ _tag: "StoreError", reason: "corrupt" })
      expect(using(filename, (db) => db.prepare("SELECT * FROM runs").all())).toEqual([{ somebody: "else" }])
      writeFileSync(`${filename}.txt`, "no database at all, but long enough to be looked at. ".repeat(30))
      const other = yield* Effect.flip(Effect.scoped(Layer.build(opened(`${filename}.txt`))))
      expect(other).toMatchObject({ reason: "corrupt" })
    })
  )
})
