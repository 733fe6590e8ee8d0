import * as Statement from "@effect/sql/Statement"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as RunState from "../../src/domain/RunState.js"
import { moveStatement, plainMoveStatement } from "../../src/store/internal/sqlAppend.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import { append, begin, create, end, park, requeue, rowOf, texts, tryClaim } from "../../src/testing/store/fixtures.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import { databaseFile } from "./support.js"

/** Every operation of the store once, with every optional condition. */
const everything = Effect.gen(function* () {
  const store = yield* RunStore
  const run = yield* begin({ idempotency: { key: "k", bodyHash: "h" }, brought: [{ role: "user", content: "x" }] })
  const { conversationId, key, runId } = run
  const userId = "alice"
  yield* create({ idempotency: { key: "k2", bodyHash: "h" }, conversationId, rejectIfBusy: true }).pipe(Effect.exit)
  yield* append({
    key,
    events: texts(1),
    set: { status: "running" },
    turn: JSON.parse('{"n":1,"seq":1,"turn":{},"header":{}}'),
    sides: [{ iteration: 1, data: 1 }]
  })
  yield* append({ key, epoch: 99, events: texts(1), set: { status: "running" } })
  yield* park(run)
  yield* requeue(run)
  yield* tryClaim({ maxPerUser: 3 })
  yield* store.claimAbandoned({ owner: "p2", ttlMs: 0, dead: ["p1"], limit: 9 })
  yield* store.claimAbandoned({ owner: "p2", ttlMs: 0, dead: ["a", "b"], limit: 9 })
  yield* store.renew({ owner: "p2", ttlMs: 0 })
  yield* store.owned("p2")
  yield* store.owners
  yield* store.release({ key, epoch: 0 })
  yield* store.find({ runId, userId })
  yield* store.row(key)
  yield* store.input(key)
  yield* store.events({ key, after: 1, limit: 10 })
  yield* store.checkpoints(key)
  yield* store.turns({ key, upTo: 10 })
  yield* store.sides(key)
  yield* store.queuePosition(key)
  yield* store.due(10)
  yield* store.supersedable({ conversationId, before: { key, ord: 10 } })
  yield* store.list({ userId, limit: 10 })
  yield* store.list({ userId, conversationId, status: "running", limit: 10, cursor: "OTk" })
  yield* store.conversations({ userId, limit: 10, cursor: "WzEsIngiXQ" })
  yield* store.conversation({ conversationId, userId, limit: 10 })
  yield* store.conversation({ conversationId, userId, limit: 10, after: { part: "runs", at: 1 } })
  yield* store.questions({ conversationId, userId })
  yield* store.renameConversation({ conversationId, userId, title: "t" })
  yield* store.saveCompaction({
    conversationId,
    uptoRunId: runId,
    uptoIteration: 1,
    summary: "s",
    madeIn: runId,
    madeAt: 1
  })
  yield* store.compactions(conversationId)
  yield* store.census
  yield* store.outlived({ what: "log", endedBefore: 1, limit: 1 })
  yield* store.outlived({ what: "run", endedBefore: 1, limit: 1, behind: { endedAt: 1, key: 1 } })
  yield* store.trim(1)
  yield* store.reclaim(4096)
  yield* end(run)
  const { lastSeq } = yield* rowOf(key)
  const { closed: _, ...state } = RunState.empty(runId)
  yield* store.compact({ key, lastSeq, base: { seq: 1, turns: 0, state: { ...state, seq: 1 } } })
  yield* store.base(key)
  yield* store.trim(1)
  const old = yield* begin()
  yield* end(old)
  yield* store.expire({ key: old.key, endedBefore: 1_000_000, limit: 100 })
  yield* create({ conversationId, userMessageId: run.userMessageId, regeneratedFrom: run })
  yield* store.remove({ runId, userId })
  const other = yield* create()
  yield* end(other)
  yield* store.removeConversation({ conversationId: other.conversationId, userId })
})

// Reading all of these is reading what is waiting or executing, and no more.
const small = /^SCAN (\w+) USING (COVERING )?INDEX (runs_(queued|executing|due|active)|bases_untrimmed)$/
const derived =
  /^SCAN (me|users|served|json_each|pragma_\w+|busy|\(subquery-\d+\)|\d+ CONSTANT ROW|CONSTANT ROW|\d+-ROW VALUES CLAUSE)/

describe("query plans", () => {
  it.scoped("no statement reads a whole table", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const statements = new Map<string, ReadonlyArray<unknown>>()
      yield* Effect.gen(function* () {
        yield* everything.pipe(
          Statement.withTransformer((statement) =>
            Effect.sync(() => {
              const [text, parameters] = statement.compile()
              statements.set(text, parameters)
              return statement
            })
          )
        )
        statements.set(moveStatement(yield* WriteClient), ["[]"])
        statements.set(plainMoveStatement(yield* WriteClient), ["[]"])
      }).pipe(Effect.provide(Sqlite.layer({ filename })))
      expect(statements.size).toBeGreaterThan(40)
      const db = yield* Effect.acquireRelease(
        Effect.sync(() => new Database(filename)),
        (open) => Effect.sync(() => open.close())
      )
      const scans = Array.from(statements).flatMap(([text, parameters]) =>
        db
          .prepare<Array<unknown>, { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
          .all(...parameters)
          .map(({ detail }) => detail)
          .filter((detail) => detail.startsWith("SCAN") && !small.test(detail) && !derived.test(detail))
          .map((detail) => `${detail}: ${text}`)
      )
      expect(scans).toEqual([])
    })
  )

  it.scoped("a page of a log, a list and a sweep use the index made for them", () =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      yield* Effect.scoped(Effect.provide(create(), Sqlite.layer({ filename })))
      const db = new Database(filename)
      const plan = (text: string) =>
        db
          .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
          .all()
          .map(({ detail }) => detail)
          .join("; ")
      const paging = plan("SELECT json FROM events WHERE run_key = 1 AND seq > 5 ORDER BY seq LIMIT 256")
      expect(paging).toContain("USING INDEX sqlite_autoindex_events_1 (run_key=? AND seq>?)")
      expect(paging).not.toContain("TEMP B-TREE")
      const listing = plan("SELECT * FROM runs WHERE user_id = 'a' AND key < 9 ORDER BY key DESC LIMIT 20")
      expect(listing).toContain("USING INDEX runs_user (user_id=?")
      expect(listing).not.toContain("TEMP B-TREE")
      expect(plan("SELECT seq FROM events WHERE run_key = 1 AND type = 'checkpoint' ORDER BY seq")).toContain(
        "events_checkpoints"
      )
      expect(plan("SELECT key FROM runs WHERE status = 'waiting_approval' AND next_expiry <= 5")).toContain("runs_due")
      const sweeping = "SELECT * FROM runs WHERE ended_at <= 5"
      const order = "ORDER BY ended_at, key LIMIT 9"
      for (const [text, index] of [
        [`${sweeping} AND compacted_seq = 0 AND (ended_at, key) > (1, 2) ${order}`, "runs_whole"],
        [`${sweeping} AND (ended_at, key) > (1, 2) ${order}`, "runs_ended"]
      ] as const) {
        expect(plan(text)).toContain(`USING INDEX ${index}`)
        expect(plan(text)).not.toContain("TEMP B-TREE")
      }
      expect(plan("SELECT run_key FROM bases WHERE trimmed = 0 ORDER BY run_key LIMIT 1")).toContain("bases_untrimmed")
      db.close()
    })
  )
})
