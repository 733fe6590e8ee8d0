import { statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import {
  append,
  begin,
  claim,
  create,
  end,
  idsOf,
  rowOf,
  seqsOf,
  texts,
  tryClaim,
  upTo
} from "../../src/testing/store/fixtures.js"
import { ReadClient, WriteClient } from "../../src/tool/SqlClients.js"
import { ToolConflict } from "../../src/tool/Tool.js"
import { databaseFile, sqlite } from "./support.js"

const raw = (filename: string, options?: Database.Options) =>
  Effect.acquireRelease(
    Effect.sync(() => new Database(filename, options)),
    (db) => Effect.sync(() => db.close())
  )

/** What another process would do with the file. */
const otherStore = (filename: string) =>
  Effect.map(
    Layer.build(Layer.fresh(Sqlite.layer({ filename }))),
    (context) =>
      <A, E>(effect: Effect.Effect<A, E, RunStore>) =>
        Effect.provide(effect, context)
  )

const running = { status: "running" } as const

describe("durability", () => {
  it.scoped("everything is there after the file is opened again", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const opened = Sqlite.layer({ filename })
      const before = yield* Effect.gen(function* () {
        const run = yield* begin({ idempotency: { key: "k", bodyHash: "h" } })
        yield* append({
          key: run.key,
          epoch: run.epoch,
          events: texts(60),
          set: running,
          sides: [{ iteration: 1, data: 1 }]
        })
        const store = yield* RunStore
        return { row: yield* rowOf(run.key), events: yield* store.events({ key: run.key, after: 0, limit: 100 }) }
      }).pipe(Effect.provide(opened))
      yield* Effect.gen(function* () {
        const store = yield* RunStore
        const { key } = before.row
        expect(yield* rowOf(key)).toEqual(before.row)
        expect(yield* store.events({ key, after: 0, limit: 100 })).toEqual(before.events)
        expect(yield* store.sides(key)).toEqual([{ iteration: 1, data: 1 }])
        const outcome = yield* append({ key, epoch: before.row.epoch, events: texts(1), set: running })
        expect(outcome).toEqual({ _tag: "Appended", lastSeq: 64, epoch: before.row.epoch })
      }).pipe(Effect.provide(Layer.fresh(opened)))
    })
  )

  it.scoped.each([
    ["full", 2],
    ["normal", 1]
  ] as const)(
    "synchronous is what was asked for (%s), also after writes and when opened again",
    ([synchronous, value]) =>
      Effect.gen(function* () {
        const filename = yield* databaseFile
        const check = Effect.gen(function* () {
          yield* create()
          const sql = yield* WriteClient
          expect(yield* sql`PRAGMA synchronous`).toEqual([{ synchronous: value }])
          expect(yield* sql`PRAGMA journal_mode`).toEqual([{ journal_mode: "wal" }])
          expect(yield* sql`PRAGMA foreign_keys`).toEqual([{ foreign_keys: 1 }])
          expect((yield* sql<{ timeout: number }>`PRAGMA busy_timeout`)[0]?.timeout).toBeLessThanOrEqual(20)
        })
        yield* Effect.provide(check, Layer.fresh(Sqlite.layer({ filename, synchronous })))
        yield* Effect.provide(check, Layer.fresh(Sqlite.layer({ filename, synchronous })))
      })
  )

  it.scoped("the log costs little more than its text, and grows linearly", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const size = Effect.map(raw(filename), (db) => {
        db.pragma("wal_checkpoint(TRUNCATE)")
        return statSync(filename).size
      }).pipe(Effect.scoped)
      const sizes = yield* Effect.gen(function* () {
        const runs = yield* Effect.all(upTo(20).map(() => begin()))
        const store = yield* RunStore
        const fill = Effect.forEach(upTo(20), () =>
          store.append(runs.map(({ epoch, key }) => ({ key, epoch, events: texts(25), set: running })))
        )
        const empty = yield* size
        yield* fill
        const once = yield* size
        yield* fill
        return [empty, once, yield* size] as const
      }).pipe(Effect.provide(Sqlite.layer({ filename })))
      const [empty, once, twice] = sizes
      const textBytes = 10_000 * 45
      expect(once - empty).toBeLessThan(textBytes + 10_000 * 60)
      expect(Math.abs(twice - once - (once - empty))).toBeLessThan((once - empty) * 0.15)
    })
  )
})

describe("transactions", () => {
  it.scoped("nobody sees an append before it is committed", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      yield* Effect.gen(function* () {
        const run = yield* begin()
        const reader = yield* raw(filename, { readonly: true })
        const look = Effect.sync(() => [
          reader.prepare("SELECT COUNT(*) AS n FROM events WHERE run_key = ?").pluck().get(run.key),
          reader.prepare("SELECT last_seq FROM runs WHERE key = ?").pluck().get(run.key)
        ])
        const seen: Array<ReadonlyArray<unknown>> = []
        const within = Effect.map(look, (counts) => void seen.push(counts))
        yield* append({ key: run.key, epoch: run.epoch, events: texts(5), set: running, within })
        expect(seen).toEqual([[3, 3]])
        expect(yield* look).toEqual([8, 8])
      }).pipe(Effect.provide(Sqlite.layer({ filename })))
    })
  )

  it.effect("what an effect writes is committed with its append, or not at all", () =>
    Effect.gen(function* () {
      const sql = yield* WriteClient
      yield* sql`CREATE TABLE notes (note TEXT)`
      const run = yield* begin()
      const note = (text: string) => Effect.orDie(sql`INSERT INTO notes ${sql.insert({ note: text })}`)
      const kept = note("kept")
      const nested = Effect.orDie(sql.withTransaction(note("nested")))
      const conflicting = Effect.zipRight(note("conflicting"), Effect.fail(new ToolConflict({})))
      const dying = Effect.zipRight(note("dying"), Effect.dieMessage("broken tool"))
      const one = { key: run.key, epoch: run.epoch, events: texts(1), set: running }
      expect((yield* append({ ...one, within: Effect.asVoid(kept) }))._tag).toBe("Appended")
      expect((yield* append({ ...one, within: Effect.asVoid(nested) }))._tag).toBe("Appended")
      expect((yield* append({ ...one, within: conflicting }))._tag).toBe("Rejected")
      expect(Exit.isFailure(yield* Effect.exit(append({ ...one, within: dying })))).toBe(true)
      expect((yield* append({ ...one, epoch: 99, within: Effect.asVoid(note("fenced")) }))._tag).toBe("Fenced")
      expect(yield* sql`SELECT note FROM notes`).toEqual([{ note: "kept" }, { note: "nested" }])
      expect(yield* seqsOf(run.key)).toEqual(upTo(5))
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("a commit that fails is an error, stores nothing, and leaves no transaction open", () =>
    Effect.gen(function* () {
      const sql = yield* WriteClient
      yield* sql`CREATE TABLE parents (id INTEGER PRIMARY KEY)`
      yield* sql`CREATE TABLE children (id INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`
      const run = yield* begin()
      const within = Effect.asVoid(Effect.orDie(sql`INSERT INTO children (id) VALUES (7)`))
      const error = yield* Effect.flip(append({ key: run.key, events: texts(1), set: running, within }))
      expect(error).toMatchObject({ _tag: "StoreError", reason: "corrupt", method: "append" })
      expect(yield* seqsOf(run.key)).toEqual(upTo(3))
      expect(yield* sql`SELECT * FROM children`).toEqual([])
      expect((yield* append({ key: run.key, events: texts(1), set: running }))._tag).toBe("Appended")
      expect(yield* seqsOf(run.key)).toEqual(upTo(4))
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("a transaction that somebody left open on the write client is ended first", () =>
    Effect.gen(function* () {
      const sql = yield* WriteClient
      const run = yield* begin()
      yield* sql.unsafe("BEGIN")
      yield* sql`DELETE FROM events`
      expect((yield* append({ key: run.key, events: texts(1), set: running }))._tag).toBe("Appended")
      expect(yield* seqsOf(run.key)).toEqual(upTo(4))
    }).pipe(Effect.provide(sqlite))
  )

  it.live("an interrupted append leaves nothing behind", () =>
    Effect.gen(function* () {
      const sql = yield* WriteClient
      yield* sql`CREATE TABLE notes (note TEXT)`
      const run = yield* begin()
      const begun = yield* Queue.unbounded<void>()
      const within = Effect.orDie(sql`INSERT INTO notes (note) VALUES ('lost')`).pipe(
        Effect.zipRight(Queue.offer(begun, undefined)),
        Effect.zipRight(Effect.never)
      )
      const fiber = yield* Effect.fork(append({ key: run.key, events: texts(1), set: running, within }))
      yield* Queue.take(begun)
      yield* Fiber.interrupt(fiber)
      expect(yield* sql`SELECT * FROM notes`).toEqual([])
      expect((yield* append({ key: run.key, events: texts(1), set: running }))._tag).toBe("Appended")
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("removals leave no row behind in any table", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const sql = yield* WriteClient
      const tables = [
        "conversations",
        "runs",
        "inputs",
        "events",
        "turns",
        "sides",
        "messages",
        "idempotency",
        "compactions"
      ]
      const make = Effect.gen(function* () {
        const run = yield* begin({
          idempotency: { key: `k${yield* Effect.sync(() => performance.now())}`, bodyHash: "h" },
          brought: [{ role: "user", content: "earlier" }]
        })
        yield* append({ key: run.key, events: texts(3), set: running, sides: [{ iteration: 1, data: 1 }] })
        yield* store.saveCompaction({
          conversationId: run.conversationId,
          uptoRunId: run.runId,
          uptoIteration: 1,
          summary: "s",
          madeIn: run.runId,
          madeAt: 1
        })
        yield* end(run)
        return run
      })
      const kept = yield* make
      const counts = Effect.forEach(tables, (table) =>
        Effect.map(sql<{ n: number }>`SELECT COUNT(*) AS n FROM ${sql(table)}`, (rows) => rows[0]?.n)
      )
      const before = yield* counts
      const gone = yield* make
      expect(yield* store.remove({ runId: gone.runId, userId: "alice" })).toBe("deleted")
      expect(yield* store.removeConversation({ conversationId: gone.conversationId, userId: "alice" })).toBe("deleted")
      expect(yield* counts).toEqual(before)
      expect(yield* rowOf(kept.key)).toMatchObject({ status: "completed" })
      expect(yield* sql`PRAGMA foreign_key_check`).toEqual([])
    }).pipe(Effect.provide(sqlite))
  )
})

describe("removals of what is long", () => {
  const long = (conversationId?: string) =>
    Effect.gen(function* () {
      const run = yield* begin({ ...(conversationId !== undefined && { conversationId }) })
      yield* append({ key: run.key, events: texts(2_500), set: running })
      yield* end(run)
      return run
    })

  it.live("are done in steps, between which others have their turn", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const other = yield* begin()
      const { conversationId } = yield* long()
      yield* long(conversationId)
      const turns = yield* Ref.make(0)
      const removal = yield* Effect.fork(store.removeConversation({ conversationId, userId: "alice" }))
      const others = Effect.zipRight(
        append({ key: other.key, events: texts(1), set: running }),
        Ref.update(turns, (n) => n + 1)
      )
      const busy = yield* Effect.fork(Effect.forever(Effect.delay(others, 0)))
      expect(yield* Fiber.join(removal)).toBe("deleted")
      yield* Fiber.interrupt(busy)
      // Ten steps, and one for what is left of the conversation.
      expect(yield* turns).toBeGreaterThanOrEqual(8)
    }).pipe(Effect.provide(sqlite))
  )

  it.live("that are interrupted leave the beginning of a conversation, which can be removed as well", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const sql = yield* WriteClient
      const first = yield* long()
      const { conversationId } = first
      const last = yield* long(conversationId)
      const left = (key: number) =>
        Effect.map(
          sql<{ n: number }>`SELECT COUNT(*) AS n FROM events WHERE run_key = ${key}`,
          (rows) => rows[0]?.n ?? 0
        )
      const whole = yield* left(first.key)
      const removal = yield* Effect.fork(store.removeConversation({ conversationId, userId: "alice" }))
      yield* Effect.repeat(Effect.delay(left(last.key), 0), { until: (n) => n < whole })
      yield* Fiber.interrupt(removal)
      expect(yield* left(first.key)).toBe(whole)
      const rest = yield* left(last.key)
      expect(rest).toBeGreaterThan(0)
      // What is gone of a log is known to be.
      const { compactedSeq, lastSeq } = yield* rowOf(last.key)
      expect(lastSeq - compactedSeq).toBe(rest)
      expect(yield* store.removeConversation({ conversationId, userId: "bob" })).toBe("unknown")
      expect(yield* store.removeConversation({ conversationId, userId: "alice" })).toBe("deleted")
      expect(yield* left(first.key)).toBe(0)
      expect(yield* sql`PRAGMA foreign_key_check`).toEqual([])
    }).pipe(Effect.provide(sqlite))
  )

  it.live("end when a run begins in between", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const first = yield* long()
      const { conversationId } = first
      const removal = yield* Effect.fork(store.removeConversation({ conversationId, userId: "alice" }))
      const begun = yield* create({ conversationId })
      expect(yield* Fiber.join(removal)).toBe("active")
      expect(yield* rowOf(begun.key)).toMatchObject({ status: "queued" })
    }).pipe(Effect.provide(sqlite))
  )
})

describe("broken contents", () => {
  it.effect("a turn that can not be decoded ends the list", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const sql = yield* WriteClient
      const run = yield* begin()
      const turn = JSON.stringify({ n: 1, text0: 0, reasoning0: 0, seq0: 0, parts: [], calls: [] })
      const header = JSON.stringify({
        runId: run.runId,
        status: "running",
        seq: 1,
        attempt: 1,
        iteration: 1,
        textLength: 0,
        reasoningLength: 0,
        usage: {}
      })
      const rows = upTo(5).map((n) => ({ run_key: run.key, n, seq: n, turn, header }))
      yield* sql`INSERT INTO turns ${sql.insert(rows)}`
      expect((yield* store.turns({ key: run.key })).length).toBe(5)
      for (const [broken, left] of [
        [sql`UPDATE turns SET turn = '{"n":4}' WHERE n = 4`, 3],
        [sql`UPDATE turns SET header = '{' WHERE n = 3`, 2],
        [sql`UPDATE turns SET turn = 'null' WHERE n = 1`, 0]
      ] as const) {
        yield* broken
        expect((yield* store.turns({ key: run.key })).length).toBe(left)
      }
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("a row that can not be decoded does not keep others from being taken over", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const sql = yield* WriteClient
      const runs = [yield* begin(), yield* begin(), yield* begin()]
      yield* sql`UPDATE runs SET usage = '{}' WHERE key = ${runs[1]?.key ?? 0}`
      const taken = yield* store.claimAbandoned({ owner: "p2", ttlMs: 60_000, dead: ["p1"], limit: 9 })
      expect(idsOf(taken)).toEqual(idsOf(runs.filter((_, index) => index !== 1)))
      expect((yield* store.owned("p2")).length).toBe(3)
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("an event, a row or an input that can not be decoded is corrupt", () =>
    Effect.gen(function* () {
      const store = yield* RunStore
      const sql = yield* WriteClient
      const run = yield* begin()
      yield* sql`UPDATE events SET json = '{"type":"text-delta"}' WHERE run_key = ${run.key} AND seq = 2`
      yield* sql`UPDATE inputs SET json = '[' WHERE run_key = ${run.key}`
      const whole = { key: run.key, runId: run.runId, after: 0, limit: 10 }
      expect((yield* store.events(whole)).length).toBe(3)
      expect((yield* store.envelopes({ ...whole, limit: 1 })).length).toBe(1)
      const corrupt = { _tag: "StoreError", reason: "corrupt" }
      expect(yield* Effect.flip(store.envelopes(whole))).toMatchObject(corrupt)
      expect(yield* Effect.flip(store.input(run.key))).toMatchObject(corrupt)
      yield* sql`UPDATE runs SET usage = '{}' WHERE key = ${run.key}`
      expect(yield* Effect.flip(store.row(run.key))).toMatchObject(corrupt)
    }).pipe(Effect.provide(sqlite))
  )

  it.scoped("a file that can not be used is refused with the reason", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const opening = (name: string) => Effect.flip(Effect.scoped(Layer.build(Sqlite.layer({ filename: name }))))
      writeFileSync(filename, "this is no database at all, but long enough to look at".repeat(50))
      expect(yield* opening(filename)).toMatchObject({ _tag: "StoreError", reason: "corrupt" })
      expect(yield* opening(join(filename, "..", "nowhere", "x.db"))).toMatchObject({ reason: "unavailable" })
    })
  )
})

describe("several processes", () => {
  it.scoped("stores that open a new file at once all come up", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const stores = yield* Effect.all(
        upTo(4).map(() => otherStore(filename)),
        { concurrency: "unbounded" }
      )
      for (const within of stores) yield* within(create())
      const rows = yield* Effect.forEach(stores, (within) =>
        within(Effect.flatMap(RunStore, (store) => store.list({ userId: "alice", limit: 10 })))
      )
      expect(rows.map(({ items }) => items.length)).toEqual([4, 4, 4, 4])
    })
  )

  it.live("a claim of one is a claim for all, and a fence holds across them", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const one = yield* otherStore(filename)
      const two = yield* otherStore(filename)
      yield* one(Effect.all(upTo(30).map(() => create())))
      const claimed = yield* Effect.forEach(
        upTo(40),
        (n) => (n % 2 === 0 ? one(tryClaim({ owner: "one" })) : two(tryClaim({ owner: "two" }))),
        { concurrency: "unbounded" }
      )
      const rows = claimed.flatMap(Option.toArray)
      expect(new Set(rows.map(({ runId }) => runId)).size).toBe(30)
      expect(rows.length).toBe(30)
      const mine = rows.find(({ owner }) => owner === "one")
      expect(mine).toBeDefined()
      if (mine === undefined) return
      const taken = yield* two(
        Effect.flatMap(RunStore, (store) =>
          store.claimAbandoned({ owner: "two", ttlMs: 60_000, dead: ["one"], limit: 1 })
        )
      )
      expect(idsOf(taken)).toEqual([mine.runId])
      const late = yield* one(append({ key: mine.key, epoch: mine.epoch, events: texts(1), set: running }))
      expect(late).toEqual({ _tag: "Fenced" })
    }).pipe(Effect.scoped)
  )

  it.live("changes tell of the others' commits and not of one's own", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const one = yield* otherStore(filename)
      const two = yield* otherStore(filename)
      const told = yield* Queue.unbounded<void>()
      const store = yield* one(RunStore)
      yield* Effect.forkScoped(Stream.runForEach(store.changes, () => Queue.offer(told, undefined)))
      yield* Effect.sleep("120 millis")
      yield* one(create())
      yield* Effect.sleep("200 millis")
      expect(yield* Queue.size(told)).toBe(0)
      yield* two(create())
      yield* Effect.timeout(Queue.take(told), "3 seconds")
      yield* Effect.sleep("120 millis")
      yield* Queue.takeAll(told)
      yield* two(tryClaim())
      yield* Effect.timeout(Queue.take(told), "3 seconds")
    }).pipe(Effect.scoped)
  )

  it.live("a lock that somebody else holds for long is waited for, without stopping the event loop or readers", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const one = yield* otherStore(filename)
      const run = yield* one(begin())
      const holder = yield* raw(filename)
      holder.exec("BEGIN IMMEDIATE; UPDATE runs SET model = model")
      const gaps: Array<number> = []
      let last = performance.now()
      yield* Effect.sync(() => {
        const now = performance.now()
        gaps.push(now - last)
        last = now
      }).pipe(Effect.repeat(Schedule.spaced("10 millis")), Effect.forkScoped)
      const started = performance.now()
      const appending = yield* Effect.fork(
        one(append({ key: run.key, epoch: run.epoch, events: texts(3), set: running }))
      )
      const creating = yield* Effect.fork(one(create()))
      yield* Effect.sleep("300 millis")
      expect(yield* one(seqsOf(run.key))).toEqual(upTo(3))
      yield* Effect.sleep("1200 millis")
      expect(yield* Fiber.poll(appending)).toEqual(Option.none())
      holder.exec("COMMIT")
      expect(yield* Fiber.join(appending)).toEqual({ _tag: "Appended", lastSeq: 6, epoch: run.epoch })
      yield* Fiber.join(creating)
      expect(performance.now() - started).toBeGreaterThan(1400)
      expect(gaps.length).toBeGreaterThan(20)
      expect(Math.max(...gaps)).toBeLessThan(1000)
    }).pipe(Effect.scoped)
  )

  it.scopedLive.each(["read", "write"] as const)(
    "a statement of the %s client that could not be prepared is prepared when it can be",
    (which) =>
      Effect.gen(function* () {
        const filename = yield* databaseFile
        const context = yield* Layer.build(Layer.fresh(Sqlite.layer({ filename })))
        const sql = which === "read" ? Context.get(context, ReadClient) : Context.get(context, WriteClient)
        const all = sql<{ readonly n: number }>`SELECT n FROM later`
        const count = Effect.gen(function* () {
          const one = yield* Effect.either(all)
          const two = yield* Effect.either(all.values)
          const three = yield* Effect.either(all.raw)
          const four = yield* Effect.either(all.unprepared)
          return [one, two, three, four].map((result) => (result._tag === "Right" ? result.right : undefined))
        })
        for (let i = 0; i < 3; i++) expect(yield* count).toEqual([undefined, undefined, undefined, undefined])
        const other = yield* raw(filename)
        other.exec("CREATE TABLE later (n INTEGER); INSERT INTO later VALUES (1)")
        for (let i = 0; i < 3; i++) expect(yield* count).toEqual([[{ n: 1 }], [[1]], [{ n: 1 }], [{ n: 1 }]])
        // And when it can not be any more, that is said too.
        other.exec("DROP TABLE later")
        expect(yield* count).toEqual([undefined, undefined, undefined, undefined])
        other.exec("CREATE TABLE later (n INTEGER); INSERT INTO later VALUES (2)")
        expect(yield* count).toEqual([[{ n: 2 }], [[2]], [{ n: 2 }], [{ n: 2 }]])
      })
  )

  it.live("waiting for a lock can be interrupted, and nothing happens afterwards", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const one = yield* otherStore(filename)
      const run = yield* one(begin())
      const holder = yield* raw(filename)
      holder.exec("BEGIN IMMEDIATE; UPDATE runs SET model = model")
      const appending = yield* Effect.fork(one(append({ key: run.key, events: texts(3), set: running })))
      yield* Effect.sleep("100 millis")
      yield* Effect.timeout(Fiber.interrupt(appending), "5 seconds")
      holder.exec("COMMIT")
      const outcome = yield* one(append({ key: run.key, epoch: run.epoch, events: texts(1), set: running }))
      expect(outcome).toEqual({ _tag: "Appended", lastSeq: 4, epoch: run.epoch })
      expect((yield* one(create())).status).toBe("queued")
      expect((yield* one(claim())).status).toBe("running")
    }).pipe(Effect.scoped)
  )
})
