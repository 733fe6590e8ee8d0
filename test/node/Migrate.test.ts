import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CliMigrate from "../../src/cli/Migrate.js"
import * as Migrate from "../../src/node/Migrate.js"
import * as SqlCopy from "../../src/store/SqlCopy.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import { create } from "../../src/testing/store/fixtures.js"
import * as SqliteDocuments from "../../src/tool/documents/SqliteDocuments.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import { databaseFile } from "../store/support.js"
import { beside, dump, fill, keepsWhatIsLeft, tablesOf, using } from "./support/Moved.js"

describe("moving a database", () => {
  it.scopedLive("takes everything along, there and back", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      const [b, c] = [beside(a, "new/b.db"), beside(a, "c.db")]
      const used = yield* fill(a)
      const told: Array<Migrate.Progress> = []
      const moved = yield* Migrate.migrate(a, b, (progress) => Effect.sync(() => told.push(progress)))
      const before = dump(a)
      const counts = Object.fromEntries(SqlCopy.tables.map(({ name }) => [name, before[name]?.length]))
      expect(moved).toMatchObject({ rows: counts, compared: 3, unreadable: [], left: ["bookings"] })
      expect(dump(b)).toEqual(before)
      expect(told.filter((one) => one.type === "copied" && one.table === "events").map(({ done }) => done)).toEqual(
        [...Array(Math.floor((counts.events ?? 0) / 200)).keys()].map((n) => (n + 1) * 200).concat(counts.events ?? 0)
      )
      expect(statSync(dirname(b)).mode & 0o777).toBe(0o700)
      yield* Migrate.migrate(b, c)
      expect(dump(c)).toEqual(before)
      yield* Effect.gen(function* () {
        const next = yield* create({ userId: "dave" })
        expect(next.key).toBe(used + 1)
        const found = yield* Effect.flatMap(
          WriteClient,
          (sql) => sql`SELECT rowid FROM documents_text WHERE documents_text MATCH '"tide"'`.withoutTransform
        )
        expect(found).toHaveLength(1)
      }).pipe(Effect.provide(Sqlite.layer({ filename: c })))
    })
  )

  it.scopedLive("keeps what any plan of runs, crashes and people has left behind, fold by fold", () =>
    keepsWhatIsLeft(8, (a) => {
      const b = beside(a, "b.db")
      return Effect.map(Migrate.migrate(a, b), (moved) => [moved, b] as const)
    })
  )

  it.scopedLive("knows every table and column of a database", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* Effect.scoped(Layer.build(SqliteDocuments.layer.pipe(Layer.provideMerge(Sqlite.layer({ filename: a })))))
      const known = SqlCopy.tables.map(({ name }) => name)
      const own = using(a, tablesOf).filter((name) => !/^sqlite_|^documents_text|^runlet_migrations$/.test(name))
      expect([...own].sort()).toEqual([...known].sort())
      for (const { key, name } of SqlCopy.tables) {
        const unique = using(a, (db) =>
          db
            .prepare<[string], string>("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk")
            .pluck()
            .all(name)
        )
        expect(unique, name).toEqual(key)
      }
    })
  )

  it.scopedLive("refuses what it can not do, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      const b = beside(a, "b.db")
      const refused = (from: string, to: string) => Effect.map(Effect.flip(Migrate.migrate(from, to)), (_) => _.reason)
      expect(yield* refused(a, b)).toBe("missing")
      expect(existsSync(a)).toBe(false)
      yield* fill(a)
      const before = dump(a)
      expect(yield* refused(a, a)).toBe("same")

      // A server that has nothing to do is one as well.
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Layer.build(Sqlite.layer({ filename: a }))
          expect(yield* refused(a, b)).toBe("busy")
        })
      )
      const full = beside(a, "full.db")
      yield* Effect.provide(create(), Sqlite.layer({ filename: full }))
      const theirs = dump(full)
      expect(yield* refused(a, full)).toBe("full")
      expect(dump(full)).toEqual(theirs)

      const other = beside(a, "other.db")
      writeFileSync(other, "this is no database at all, but long enough to look at".repeat(50))
      expect(yield* refused(other, b)).toBe("foreign")
      const strange = beside(a, "strange.db")
      using(strange, (db) => db.exec("CREATE TABLE t (x)"))
      expect(yield* refused(strange, b)).toBe("foreign")

      using(a, (db) => db.exec("UPDATE runlet_migrations SET migration_id = 99 WHERE migration_id = 1"))
      expect(yield* refused(a, b)).toBe("newer")
      using(a, (db) => db.exec("DELETE FROM runlet_migrations WHERE migration_id > 1"))
      expect(yield* refused(a, b)).toBe("older")
      expect(dump(a)).toEqual(before)
      expect(readdirSync(dirname(a)).filter((name) => name.startsWith("b.db"))).toEqual([])
    })
  )

  it.scopedLive("what was served before counts as empty while nobody has put anything into it", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* fill(a)
      const b = beside(a, "b.db")
      yield* Effect.scoped(Layer.build(SqliteDocuments.layer.pipe(Layer.provideMerge(Sqlite.layer({ filename: b })))))
      yield* Migrate.migrate(a, b)
      expect(dump(b)).toEqual(dump(a))
    })
  )

  it.scopedLive("a copy that differs in one byte or one row is thrown away", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* fill(a)
      const spoils = {
        events:
          "UPDATE events SET json = replace(json, '\"7\"', '\"8\"') WHERE id = NEW.id AND NEW.json LIKE '%\"7\"%'",
        idempotency: "DELETE FROM idempotency",
        conversations: "UPDATE conversations SET title = 'another'"
      }
      for (const [table, spoil] of Object.entries(spoils)) {
        const b = beside(a, `${table}.db`)
        yield* Effect.scoped(Layer.build(Sqlite.layer({ filename: b })))
        using(b, (db) => db.exec(`CREATE TRIGGER spoil AFTER INSERT ON ${table} BEGIN ${spoil}; END`))
        const error = yield* Effect.flip(Migrate.migrate(a, b))
        expect(error).toMatchObject({ reason: "different", what: expect.arrayContaining([table]) })
        expect(dump(b).runs).toEqual([])
      }
    })
  )

  it.scopedLive("a run that could not be read before is moved as it is, and told", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* fill(a)
      const runId = using(a, (db) => {
        const key = db.prepare<[], number>("SELECT MIN(key) FROM runs").pluck().get() ?? 0
        db.prepare("DELETE FROM events WHERE run_key = ? AND seq = 100").run(key)
        return db.prepare<[number], string>("SELECT run_id FROM runs WHERE key = ?").pluck().get(key)
      })
      const b = beside(a, "b.db")
      const moved = yield* Migrate.migrate(a, b)
      expect(moved.unreadable).toEqual([runId])
      expect(dump(b)).toEqual(dump(a))
    })
  )

  it.scopedLive("the command tells how far it is, and what came of it, in lines or in JSON", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* fill(a)
      const said = (to: string, json: boolean) =>
        Effect.gen(function* () {
          const lines: Array<string> = []
          const console = yield* Console.consoleWith(Effect.succeed)
          yield* Effect.either(CliMigrate.migrate(a, to, json)).pipe(
            Effect.flatMap((outcome) =>
              Effect.sync(() => {
                if (outcome._tag === "Left") lines.push(`${outcome.left.exitCode} ${outcome.left.message}`)
              })
            ),
            Console.withConsole({ ...console, log: (line: string) => Effect.sync(() => lines.push(line)) })
          )
          return lines
        })
      const [b, c] = [beside(a, "b.db"), beside(a, "c.db")]
      const lines = yield* said(b, false)
      expect(lines.at(0)).toBe("  conversations: 2")
      expect(lines).toContain("Tables that are not Runlet's stayed behind: bookings")
      expect(lines.at(-3)).toMatch(/^Moved 3 runs with \d+ events from \S+ to \S+; 3 runs compared, all alike$/)
      expect(lines.at(-1)).toBe(`Nothing was changed in ${a}. Start the servers with --data ${b}`)
      expect(yield* said(b, false)).toEqual([
        `1 There are runs or documents in ${b} already. Choose an empty or a new database`
      ])
      const json = (yield* said(c, true)).map((line) => JSON.parse(line))
      expect(new Set(json.map(({ type }) => type))).toEqual(new Set(["copied", "compared", "done"]))
      expect(json.at(-1)).toMatchObject({ type: "done", from: a, to: c, compared: 3, rows: { runs: 3 } })
    })
  )
})
