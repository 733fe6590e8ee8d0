/** What a user does who fills a workspace to the brim, over any store. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Documents } from "../../../src/tool/documents/Documents.js"
import * as DocumentTools from "../../../src/tool/documents/DocumentTools.js"
import { WriteClient } from "../../../src/tool/SqlClients.js"
import type { Committed, ToolContext } from "../../../src/tool/Tool.js"
import { reached } from "./Reached.js"

export const bounds = { maxDocuments: 3, maxMemories: 2 }

const context = (user: string, key: string): ToolContext => ({
  user,
  runId: "run",
  conversationId: "conversation",
  toolCallId: "call",
  phase: "preview",
  idempotencyKey: key,
  currentDocument: null,
  progress: () => Effect.void
})

const preview = (name: string, input: unknown, user = "alice") =>
  Effect.gen(function* () {
    const tool = (yield* DocumentTools.make).find((one) => one.name === name)
    const checked = yield* tool?.check(input) ?? Effect.dieMessage(`no tool ${name}`)
    return yield* Effect.either(tool?.preview?.(checked, context(user, "p")) ?? Effect.dieMessage(`${name} has none`))
  })

/** The change in a transaction, as the engine makes it; answers whether it was made. */
export const made = ({ within = Effect.void }: Committed) =>
  Effect.flatMap(Effect.serviceOption(WriteClient), (client) =>
    Effect.isSuccess(
      Option.isNone(client) ? within : Effect.catchTag(client.value.withTransaction(within), "SqlError", Effect.die)
    )
  )

export const fillsDocuments = Effect.gen(function* () {
  const documents = yield* Documents
  const own = (user: string) =>
    Effect.map(documents.list({ user }), (all) => all.filter(({ readOnly }) => !readOnly).length)
  const create = (key: string, user = "alice") =>
    Effect.flatMap(documents.create({ user, key, title: key, text: "text" }), made)
  for (const key of ["one", "two"]) assert.isTrue(yield* create(key))
  // Both were shown when there was room for one.
  const shown = yield* preview("document_write", { title: "three", text: "" })
  assert.strictEqual(shown._tag, "Right")
  assert.deepStrictEqual([yield* create("three"), yield* create("late")], [true, false])
  assert.strictEqual(yield* own("alice"), bounds.maxDocuments)
  assert.isTrue(Option.isNone(yield* documents.applied({ user: "alice", key: "late" })))
  // What was done is done, also when it is done again.
  assert.isTrue(yield* create("three"))

  const before = yield* reached("maxDocumentsPerUser")
  const refused = yield* preview("document_write", { title: "four", text: "" })
  assert.match(
    refused._tag === "Left" ? refused.left.message : "",
    /^The user has 3 documents, .*limits\.maxDocumentsPerUser.*document_update.*document_delete/
  )
  assert.strictEqual(yield* reached("maxDocumentsPerUser"), before + 1)
  assert.isTrue(yield* create("hers", "bob"))

  const first = (yield* documents.list({ user: "alice" })).find(({ readOnly }) => !readOnly)
  const { id = "", title = "", version = 0 } = first ?? {}
  const act = { user: "alice", id, version }
  assert.isTrue(yield* Effect.flatMap(documents.update({ ...act, key: "change", title, text: "ibexes" }), made))
  const removed = (key: string, version: number, user = "alice") =>
    Effect.flatMap(documents.remove({ user, id, title, version, key }), made)
  assert.deepStrictEqual(
    [yield* removed("stale", version), yield* removed("foreign", version + 1, "bob")],
    [false, false]
  )
  assert.strictEqual((yield* preview("document_delete", { id }))._tag, "Right")
  assert.strictEqual((yield* preview("document_delete", { id }, "bob"))._tag, "Left")
  assert.strictEqual((yield* preview("document_delete", { id: "runlet/runs" }))._tag, "Left")
  assert.isTrue(yield* removed("delete", version + 1))
  assert.isTrue(Option.isNone(yield* documents.read({ user: "alice", id })))
  assert.deepStrictEqual(yield* documents.search({ user: "alice", query: "ibexes", limit: 9 }), [])
  assert.strictEqual((yield* preview("document_write", { title: "four", text: "" }))._tag, "Right")
  assert.isTrue(yield* create("four"))
  assert.strictEqual(yield* own("alice"), bounds.maxDocuments)
})

export const fillsMemories = Effect.gen(function* () {
  const documents = yield* Documents
  const remember = (key: string, user = "alice") => Effect.flatMap(documents.remember({ user, key, text: key }), made)
  assert.deepStrictEqual(yield* Effect.forEach(["a", "b", "c"], (key) => remember(key)), [true, true, false])
  const before = yield* reached("maxMemoriesPerUser")
  const refused = yield* preview("memory_write", { text: "d" })
  assert.match(
    refused._tag === "Left" ? refused.left.message : "",
    /^The user has 2 memories, .*limits\.maxMemoriesPerUser.*memory_forget/
  )
  assert.strictEqual(yield* reached("maxMemoriesPerUser"), before + 1)
  assert.isTrue(yield* remember("hers", "bob"))
  const memory = (yield* documents.recall({ user: "alice", limit: 9 })).find(({ text }) => text === "a")
  const id = memory?.id ?? ""
  const forget = (key: string, user: string) => Effect.flatMap(documents.forget({ user, id, key }), made)
  assert.strictEqual((yield* preview("memory_forget", { id }, "bob"))._tag, "Left")
  assert.isFalse(yield* forget("foreign", "bob"))
  assert.strictEqual((yield* preview("memory_forget", { id }))._tag, "Right")
  assert.isTrue(yield* forget("forget", "alice"))
  assert.isFalse(yield* forget("again", "alice"))
  assert.isTrue(yield* remember("d"))
  const kept = yield* documents.recall({ user: "alice", limit: 9 })
  assert.deepStrictEqual(kept.map(({ text }) => text).sort(), ["b", "d"])
})

/** Records of acts of two users, one of whom has one more than are kept. */
export const keepsFewActs = (keptActs: number) =>
  Effect.gen(function* () {
    const documents = yield* Documents
    const sql = yield* WriteClient
    yield* sql`INSERT INTO document_acts (user_id, act_key, result, created_at)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n <= ${keptActs})
      SELECT 'alice', CAST(n AS TEXT), '{}', n FROM numbers UNION ALL SELECT 'bob', 'hers', '{}', 0`
    assert.isTrue(yield* Effect.flatMap(documents.remember({ user: "alice", key: "new", text: "t" }), made))
    const acts = yield* sql<{ readonly n: number | string }>`
      SELECT COUNT(*) AS n FROM document_acts GROUP BY user_id ORDER BY user_id`
    assert.deepStrictEqual(
      acts.map(({ n }) => Number(n)),
      [keptActs, 1]
    )
    const known = (user: string, key: string) => Effect.map(documents.applied({ user, key }), Option.isSome)
    assert.deepStrictEqual(
      yield* Effect.all([known("alice", "1"), known("alice", "2"), known("alice", "3"), known("alice", "new")]),
      [false, false, true, true]
    )
    assert.isTrue(yield* known("bob", "hers"))
  })
