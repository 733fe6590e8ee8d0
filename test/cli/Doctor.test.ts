import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Cli from "../../src/cli/Cli.js"
import * as Doctor from "../../src/cli/Doctor.js"
import type { Failure } from "../../src/cli/Failure.js"
import * as RunState from "../../src/domain/RunState.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import type * as SqliteDoctor from "../../src/store/SqliteDoctor.js"
import { append, begin, create, end, rowOf, seqsOf, texts } from "../../src/testing/store/fixtures.js"
import { databaseFile } from "../store/support.js"

/** Asks the doctor; gives back what was said and how it ended. */
const ask = (data: string, how: { readonly json?: boolean; readonly repair?: boolean } = {}) =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const console = yield* Console.consoleWith(Effect.succeed)
    const result = yield* Doctor.doctor({ data }, { json: false, repair: false, ...how }).pipe(
      Console.withConsole({ ...console, log: (line: string) => Effect.sync(() => said.push(line)) }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
      Effect.provide(NodeContext.layer),
      Effect.either
    )
    const failure: Failure | undefined = result._tag === "Left" ? result.left : undefined
    return { said, text: said.join("\n"), failure }
  })

type Report = SqliteDoctor.Report & { readonly data: string }

const report = (data: string, repair = false) =>
  Effect.map(ask(data, { json: true, repair }), ({ text }): Report => JSON.parse(text))

const opened = (filename: string) => Layer.fresh(Sqlite.layer({ filename, synchronous: "normal" }))

const running = { status: "running" } as const

/** A database with some runs in it; gives back their keys. */
const filled = Effect.gen(function* () {
  const data = yield* databaseFile
  const runs = yield* Effect.gen(function* () {
    const large = yield* begin()
    yield* append({ key: large.key, epoch: large.epoch, events: texts(900), set: running })
    const small = yield* begin()
    yield* append({ key: small.key, epoch: small.epoch, events: texts(20), set: running })
    yield* end(small)
    const compacted = yield* begin()
    yield* append({ key: compacted.key, epoch: compacted.epoch, events: texts(30), set: running })
    yield* end(compacted)
    const store = yield* RunStore
    const { lastSeq } = yield* rowOf(compacted.key)
    const { closed: _, ...state } = RunState.empty(compacted.runId)
    const base = { seq: lastSeq - 1, turns: 0, state: { ...state, seq: lastSeq - 1 } }
    yield* store.compact({ key: compacted.key, lastSeq, base })
    yield* create()
    return { large, small, compacted }
  }).pipe(Effect.provide(opened(data)))
  return { data, ...runs }
})

const damage = (data: string, sql: string) =>
  Effect.sync(() => {
    const db = new Database(data)
    db.pragma("foreign_keys = OFF")
    db.exec(sql)
    db.close()
  })

describe("doctor", () => {
  it.scoped("tells the size, what is in it and the largest runs, and changes nothing", () =>
    Effect.gen(function* () {
      const { compacted, data, large, small } = yield* filled
      yield* report(data, true)
      const before = readFileSync(data)
      const { failure, text } = yield* ask(data)
      expect(failure).toBeUndefined()
      expect(text).toMatch(new RegExp(`^${data}: .*schema version \\d+\n`))
      expect(text).toContain("4 conversations, ")
      expect(text).toMatch(/runs: .*2 completed/)
      expect(text).toMatch(/No problems found$/)
      expect(text).not.toContain("A title")
      const { largest, ...rest } = yield* report(data)
      expect(largest.map(({ runId }) => runId).slice(0, 3)).toEqual([large.runId, small.runId, expect.any(String)])
      expect(largest[0]).toMatchObject({ status: "running", events: 903 })
      expect(largest.map(({ runId }) => runId)).toContain(compacted.runId)
      expect(rest).toMatchObject({
        data,
        conversations: 4,
        runs: { running: 1, completed: 2, queued: 1 },
        reclaimable: true,
        problems: []
      })
      expect(rest.schema.version).toBe(rest.schema.known)
      expect(readFileSync(data).equals(before)).toBe(true)
    })
  )

  it.scoped("mends what is untidy, and nothing that can be read is gone", () =>
    Effect.gen(function* () {
      const { compacted, data, large, small } = yield* filled
      yield* damage(
        data,
        `INSERT INTO events (run_key, seq, type, json, created_at) VALUES (4711, 1, 'text-delta', '{}', 1), (4711, 2, 'text-delta', '{}', 1);
         INSERT INTO sides (run_key, iteration, data) VALUES (4712, 1, '{}');
         INSERT INTO messages (message_id, conversation_id, role, content, created_at)
           SELECT 'msg_lost', conversation_id, 'user', 'nobody''s', 1 FROM conversations LIMIT 1;`
      )
      const found = yield* ask(data)
      expect(found.failure).toMatchObject({ exitCode: 1, message: "" })
      expect(found.text).toContain("3 rows belong to nothing (events, sides): can be repaired with --repair")
      expect(found.text).toContain("1 message belongs to no run: can be repaired with --repair")
      expect(found.text).toContain("33 events are left of compacted logs")

      const repaired = yield* ask(data, { repair: true })
      expect(repaired.failure).toBeUndefined()
      expect(repaired.text.match(/: repaired$/gm)).toHaveLength(3)
      expect((yield* report(data)).problems).toEqual([])
      yield* Effect.gen(function* () {
        expect((yield* seqsOf(large.key)).length).toBe(903)
        expect((yield* seqsOf(small.key)).length).toBe(24)
        expect((yield* seqsOf(compacted.key)).length).toBe(1)
        const store = yield* RunStore
        expect((yield* store.list({ userId: "alice", limit: 10 })).items.length).toBe(4)
      }).pipe(Effect.provide(opened(data)))
    })
  )

  it.scoped("names runs that can not be shown any more", () =>
    Effect.gen(function* () {
      const { compacted, data, large, small } = yield* filled
      yield* damage(
        data,
        `DELETE FROM events WHERE run_key = ${large.key} AND seq = 7;
         UPDATE events SET json = '{"type' WHERE run_key = ${small.key} AND seq = 5;
         DELETE FROM inputs WHERE run_key = ${small.key};
         UPDATE bases SET state = 'x' WHERE run_key = ${compacted.key};`
      )
      const { problems } = yield* report(data, true)
      const damaged = problems.filter(({ severity }) => severity === "damage")
      expect(damaged.map(({ kind, repair, runs }) => [kind, repair, runs])).toEqual([
        ["holes", "impossible", [large.runId]],
        ["states", "impossible", [compacted.runId]],
        ["contents", "impossible", [small.runId]],
        ["inputs", "impossible", [small.runId]]
      ])
      const { failure, text } = yield* ask(data)
      expect(failure?.exitCode).toBe(1)
      expect(text).toContain(`    ${large.runId}`)
    })
  )

  it.scoped("makes an index anew that does not agree with its table", () =>
    Effect.gen(function* () {
      const { data } = yield* filled
      yield* Effect.sync(() => {
        const db = new Database(data)
        db.unsafeMode(true)
        // The index is taken from the schema, rows are changed behind its back, and it is put back as it was.
        const index = db.prepare("SELECT rootpage, sql FROM sqlite_master WHERE name = 'runs_user'").get()
        const row = index as { rootpage: number; sql: string }
        db.pragma("writable_schema = ON")
        db.exec("DELETE FROM sqlite_master WHERE name = 'runs_user'")
        db.close()
        const blind = new Database(data)
        blind.unsafeMode(true)
        blind.exec("UPDATE runs SET user_id = 'bob' WHERE key = 1")
        blind.pragma("writable_schema = ON")
        blind
          .prepare(
            "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('index', 'runs_user', 'runs', ?, ?)"
          )
          .run(row.rootpage, row.sql)
        blind.close()
      })
      const before = (yield* report(data)).problems
      expect(before.map(({ kind, repair }) => [kind, repair])).toContainEqual(["indexes", "possible"])
      const after = (yield* report(data, true)).problems
      expect(after.find(({ kind }) => kind === "indexes")?.repair).toBe("done")
      expect((yield* report(data)).problems).toEqual([])
    })
  )

  it.scoped("says that a page is damaged, and what can be done", () =>
    Effect.gen(function* () {
      const { data } = yield* filled
      yield* report(data, true)
      const scribble = (from: number, to: number) =>
        Effect.sync(() => {
          const file = openSync(data, "r+")
          for (let page = from; page < to; page++) writeSync(file, Buffer.alloc(4096, 0x5a), 0, 4096, page * 4096)
          closeSync(file)
        })
      const pages = Math.floor(statSync(data).size / 4096)
      const db = new Database(data, { readonly: true })
      const page = db
        .prepare<[], number>("SELECT MAX(pageno) FROM dbstat WHERE name = 'events' AND pagetype = 'leaf'")
        .pluck()
        .get()
      db.close()
      yield* scribble((page ?? 1) - 1, page ?? 1)
      const { failure, text } = yield* ask(data)
      expect(failure?.exitCode).toBe(1)
      expect(text).toContain("The file is damaged.")
      expect(text).toContain("Restore a backup")
      expect(text).toContain("can not be repaired here")
      expect((yield* ask(data, { repair: true })).failure?.exitCode).toBe(1)
      expect((yield* report(data)).runs).toMatchObject({ running: 1 })

      yield* scribble(1, pages)
      expect((yield* ask(data)).failure).toMatchObject({
        exitCode: 1,
        message: expect.stringMatching(/too damaged.*Restore a backup/)
      })
    })
  )

  it.scoped("gives free space back, and makes an older file able to", () =>
    Effect.gen(function* () {
      const { data, large } = yield* filled
      yield* damage(
        data,
        `PRAGMA auto_vacuum = NONE; VACUUM; DELETE FROM events WHERE run_key = ${large.key} AND seq < 800;
         UPDATE runs SET compacted_seq = 0 WHERE key = ${large.key}`
      )
      const before = yield* report(data)
      expect(before.reclaimable).toBe(false)
      expect(before.freeBytes).toBeGreaterThan(20_000)
      const size = statSync(data).size

      // Somebody has it open: it is left as it is.
      const reader = new Database(data, { readonly: true })
      reader.prepare("SELECT COUNT(*) FROM runs").get()
      expect((yield* report(data, true)).reclaimable).toBe(false)
      reader.close()

      const after = yield* report(data, true)
      expect(after).toMatchObject({ reclaimable: true, freeBytes: 0, walBytes: 0 })
      expect(statSync(data).size).toBeLessThan(size - 20_000)
      yield* Effect.scoped(Layer.build(opened(data)))
    })
  )

  it.scoped("works beside a server, and leaves its runs alone", () =>
    Effect.gen(function* () {
      const { data, small } = yield* filled
      const context = yield* Layer.build(opened(data))
      yield* Effect.gen(function* () {
        const run = yield* begin()
        const more = () => append({ key: run.key, epoch: run.epoch, events: texts(5), set: running })
        yield* more()
        expect((yield* report(data)).runs.running).toBe(2)
        yield* more()
        expect((yield* report(data, true)).problems.every(({ repair }) => repair === "done")).toBe(true)
        expect((yield* more())._tag).toBe("Appended")
        expect((yield* seqsOf(run.key)).length).toBe(18)
        expect((yield* seqsOf(small.key)).length).toBe(24)
      }).pipe(Effect.provide(context))
    })
  )

  it.scoped("what can not be examined is told in one line", () =>
    Effect.gen(function* () {
      const { data } = yield* filled
      const missing = join(data, "..", "missing.db")
      expect((yield* ask(missing)).failure).toMatchObject({ exitCode: 1, message: expect.stringContaining("--data") })
      expect(existsSync(missing)).toBe(false)
      const foreign = join(data, "..", "foreign.db")
      const message = `${foreign} is no database of Runlet. Choose another with --data`
      writeFileSync(foreign, "this is no database at all, but long enough to look at".repeat(50))
      expect((yield* ask(foreign)).failure).toMatchObject({ exitCode: 1, message })
      const other = new Database(`${foreign}2`)
      other.exec("CREATE TABLE a (b)")
      other.close()
      expect((yield* ask(`${foreign}2`, { repair: true })).failure?.message).toContain("is no database of Runlet")
      expect((yield* ask(join(data, ".."))).failure?.exitCode).toBe(1)
      yield* damage(data, "INSERT INTO runlet_migrations (migration_id, name) VALUES (99, 'future')")
      const newer = yield* ask(data, { repair: true })
      expect(newer.text).toContain("made by a newer version of Runlet")
      expect(newer.text).not.toMatch(/: repaired$/m)
    })
  )

  it.scoped("is a command with its options", () =>
    Effect.gen(function* () {
      const { data } = yield* filled
      const said: Array<string> = []
      const console = yield* Console.consoleWith(Effect.succeed)
      const run = (...args: ReadonlyArray<string>) =>
        Cli.run(() => Layer.die("not used"))(["node", "runlet", "doctor", ...args]).pipe(
          Console.withConsole({ ...console, log: (line: string) => Effect.sync(() => said.push(line)) }),
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
          Effect.provide(NodeContext.layer)
        )
      yield* run("--data", data, "--repair", "--json")
      expect(JSON.parse(said.join("")).data).toBe(data)
      yield* run("--data", data)
      expect(said.at(-1)).toBe("No problems found")
    })
  )
})
