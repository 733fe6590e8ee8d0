import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Postgres from "../../src/store/Postgres.js"
import * as Fixtures from "../../src/testing/store/fixtures.js"
import { Documents, keptActs } from "../../src/tool/documents/Documents.js"
import * as MemoryDocuments from "../../src/tool/documents/MemoryDocuments.js"
import * as PostgresDocuments from "../../src/tool/documents/PostgresDocuments.js"
import * as Seed from "../../src/tool/documents/seed/Seed.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import type { ToolConflict } from "../../src/tool/Tool.js"
import * as Workspace from "../limits/support/Workspace.js"
import { database, describePostgres, query } from "./support/Database.js"

const user = "alice"

const workspace = (url: string) =>
  Layer.provideMerge(PostgresDocuments.layer, Postgres.layer({ url: Redacted.make(url) }))

const texts = ["an elephant, 100% grey", "a_b and a\\b", "断线恢复 \u0000 NUL", "Ünïcode ELEPHANTS", "nothing"]

const questions = [
  ...["How does a client resume a run?", "how do approvals work", "elephant", "ELEPHANT", "100%", "a_b", "\\", "恢复"],
  ...["断线", "ünï", "no such thing anywhere", "\u0000", "%", "_", ""]
]

/** Stores a change in a transaction of the store's. */
const stored = (within: Effect.Effect<void, ToolConflict>) =>
  Effect.gen(function* () {
    const run = yield* Fixtures.begin()
    return yield* Fixtures.append({ key: run.key, epoch: run.epoch, events: Fixtures.texts(1), within })
  })

/** The titles of what is found for each question. */
const found = Effect.gen(function* () {
  const documents = yield* Documents
  return yield* Effect.forEach(questions, (asked) =>
    Effect.map(documents.search({ user, query: asked, limit: 50 }), (hits) => hits.map(({ title }) => title).sort())
  )
})

const filled = <E>(apply: (within: Effect.Effect<void, ToolConflict>) => Effect.Effect<unknown, E>) =>
  Effect.gen(function* () {
    const documents = yield* Documents
    for (const [index, text] of texts.entries()) {
      const { within = Effect.void } = yield* documents.create({ user, key: `k${index}`, title: `T${index}`, text })
      yield* Effect.orDie(apply(within))
    }
    return yield* found
  })

describePostgres("documents in PostgreSQL", () => {
  it.scopedLive.each([true, false])("are found as in memory, with the index of pg_trgm: %s", (indexed) =>
    Effect.gen(function* () {
      const url = yield* database
      if (indexed) yield* query(url, "CREATE EXTENSION pg_trgm")
      const expected = yield* Effect.provide(
        filled((within) => within),
        MemoryDocuments.layer
      )
      const actual = yield* Effect.gen(function* () {
        const context = yield* Effect.context<Effect.Effect.Context<ReturnType<typeof stored>>>()
        return yield* filled((within) => Effect.provide(stored(within), context))
      }).pipe(Effect.provide(workspace(url)))
      expect(actual).toEqual(expected)
      const indexes = yield* query(url, "SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%gin_trgm_ops%'")
      expect(indexes.length).toBe(indexed ? 2 : 0)
    })
  )

  it.scopedLive("are changed once, together with the record of it, or not at all", () =>
    Effect.gen(function* () {
      const documents = yield* Documents
      const created = yield* documents.create({ user, key: "k", title: "T", text: "one" })
      const { within = Effect.void } = created
      for (let time = 0; time < 2; time++) expect(yield* stored(within)).toMatchObject({ _tag: "Appended" })
      expect(yield* documents.applied({ user, key: "k" })).toEqual(Option.some(created.result))
      const count = yield* Effect.flatMap(WriteClient, (sql) => sql`SELECT 1 FROM documents WHERE user_id = ${user}`)
      expect(count.length).toBe(1)
    }).pipe(Effect.provide(Layer.unwrapScoped(Effect.map(database, workspace))))
  )

  const bounded = (url: string) =>
    Layer.fresh(
      Layer.provideMerge(
        PostgresDocuments.layerWith(Seed.documents, Workspace.bounds),
        Postgres.layer({ url: Redacted.make(url) })
      )
    )

  it.scopedLive("are as many as may be, also when several servers add to them at once", () =>
    Effect.gen(function* () {
      const url = yield* database
      yield* Effect.provide(Workspace.fillsDocuments, bounded(url))
      yield* Effect.provide(Workspace.fillsMemories, bounded(url))
      const servers = yield* Effect.all([Layer.build(bounded(url)), Layer.build(bounded(url))])
      const create = (server: (typeof servers)[number], key: string) =>
        Effect.flatMap(Documents, (documents) => documents.create({ user: "carol", key, title: key, text: "t" })).pipe(
          Effect.flatMap(({ within = Effect.void }) => stored(within)),
          Effect.map(({ _tag }) => _tag),
          Effect.provide(server)
        )
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 10 }, (_, n) => n),
        (n) => create(servers[n % 2] ?? servers[0], `k${n}`),
        { concurrency: "unbounded" }
      )
      expect(outcomes.filter((tag) => tag === "Appended")).toHaveLength(Workspace.bounds.maxDocuments)
      expect(outcomes.filter((tag) => tag === "Rejected")).toHaveLength(10 - Workspace.bounds.maxDocuments)
    })
  )

  it.scopedLive("of what was done the newest acts are known", () =>
    Effect.provide(Workspace.keepsFewActs(keptActs), Layer.unwrapScoped(Effect.map(database, workspace)))
  )

  it.scopedLive("are planted once by servers that start at once", () =>
    Effect.gen(function* () {
      const url = yield* database
      yield* Effect.forEach([1, 2, 3, 4], () => Layer.build(Layer.fresh(workspace(url))), { concurrency: "unbounded" })
      const twice = yield* query(url, "SELECT title FROM documents GROUP BY title, user_id HAVING COUNT(*) > 1")
      expect(twice).toEqual([])
    })
  )
})
