import { existsSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as CliMigrate from "../../src/cli/Migrate.js"
import * as Migrate from "../../src/node/Migrate.js"
import * as Postgres from "../../src/store/Postgres.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as SqlCopy from "../../src/store/SqlCopy.js"
import { append, begin, create, texts } from "../../src/testing/store/fixtures.js"
import * as PostgresDocuments from "../../src/tool/documents/PostgresDocuments.js"
import { beside, dump, fill, keepsWhatIsLeft } from "../node/support/Moved.js"
import { databaseFile } from "../store/support.js"
import { database, describePostgres, query } from "./support/Database.js"

const layerOf = (url: string) => Postgres.layer({ url: Redacted.make(url) })

describePostgres("moving a database to PostgreSQL and back", () => {
  it.scopedLive("takes everything along, to the last key and character", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      const b = yield* database
      const c = beside(a, "c.db")
      const used = yield* fill(a)
      const before = dump(a)
      const there = yield* Migrate.migrate(a, b)
      expect(there).toMatchObject({ compared: 3, unreadable: [], left: ["bookings"] })
      const back = yield* Migrate.migrate(b, c)
      expect(back).toMatchObject({ rows: there.rows, compared: 3, unreadable: [], left: [] })
      expect(dump(c)).toEqual(before)
      // Keys go on where they were.
      const next = yield* Effect.provide(create({ userId: "dave" }), layerOf(b))
      expect(next.key).toBe(used + 1)
      const more = yield* Effect.provide(append({ key: next.key, events: texts(2) }), layerOf(b))
      expect(more._tag).toBe("Appended")
    })
  )

  it.scopedLive("keeps what any plan of runs, crashes and people has left behind, fold by fold", () =>
    keepsWhatIsLeft(3, (a) =>
      Effect.gen(function* () {
        const b = yield* database
        const c = beside(a, "c.db")
        const moved = yield* Migrate.migrate(a, b)
        yield* Migrate.migrate(b, c)
        return [moved, c] as const
      })
    )
  )

  it.scopedLive("knows every table of a database", () =>
    Effect.gen(function* () {
      const b = yield* database
      yield* Effect.scoped(Layer.build(Layer.provideMerge(PostgresDocuments.layer, layerOf(b))))
      const tables = yield* query<{ readonly name: string }>(
        b,
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
      )
      const own = tables.map(({ name }) => name).filter((name) => !name.startsWith("runlet_"))
      expect(own.sort()).toEqual(SqlCopy.tables.map(({ name }) => name).sort())
    })
  )

  it.scopedLive("is refused while a server lives on what it moves, and into what holds something", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      const b = yield* database
      const c = beside(a, "c.db")
      yield* fill(a)
      const refused = (from: string, to: string) => Effect.map(Effect.flip(Migrate.migrate(from, to)), (_) => _.reason)
      expect(yield* refused(b, c)).toBe("foreign")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(layerOf(b))
          yield* Effect.provide(begin(), context)
          expect(yield* refused(b, c)).toBe("busy")
        })
      )
      // Nobody is connected, but a lease says that somebody who can not be reached may still be at work.
      expect(yield* refused(b, c)).toBe("busy")
      expect(existsSync(c)).toBe(false)
      yield* query(b, "UPDATE runs SET lease_expires_at = 1")
      expect(yield* refused(a, b)).toBe("full")
      yield* Migrate.migrate(b, c)
      const moved = yield* Effect.provide(
        Effect.flatMap(RunStore, (store) => store.list({ userId: "alice", limit: 9 })),
        layerOf(b)
      )
      expect(moved.items).toHaveLength(1)
      expect(dump(c).runs).toHaveLength(1)
    })
  )

  it.scopedLive("a copy that differs is thrown away", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      const b = yield* database
      yield* fill(a)
      yield* Effect.scoped(Layer.build(layerOf(b)))
      yield* query(
        b,
        `CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN NEW.json = replace(NEW.json, '"7"', '"8"'); RETURN NEW; END $$`
      )
      yield* query(b, "CREATE TRIGGER spoil BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION spoil()")
      const error = yield* Effect.flip(Migrate.migrate(a, b))
      expect(error).toMatchObject({ reason: "different", what: ["events", expect.stringMatching(/^run_/)] })
      expect(yield* query(b, "SELECT 1 FROM runs")).toEqual([])
    })
  )

  it.scopedLive("what is in the way is told in one line, without the password", () =>
    Effect.gen(function* () {
      const a = yield* databaseFile
      yield* fill(a)
      const wrong = new URL(yield* database)
      wrong.password = "hunter2"
      wrong.searchParams.set("sslmode", "disable")
      const said = (from: string, to: string) => Effect.map(Effect.flip(CliMigrate.migrate(from, to, false)), (_) => _)
      for (const [from, to] of [
        [a, wrong.href],
        [wrong.href, beside(a, "c.db")]
      ] as const) {
        const { exitCode, message } = yield* said(from, to)
        expect([exitCode, message.includes("hunter2"), message.includes("\n")]).toEqual([1, false, false])
      }
      expect((yield* said(a, "postgres://127.0.0.1:1/nowhere")).message).toMatch(
        /^Nothing was moved from \S+ to postgres:\/\/127\.0\.0\.1:1\/nowhere: .*ECONNREFUSED/
      )
    })
  )
})
