import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import type { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import * as Fixtures from "../../src/testing/store/fixtures.js"
import { Documents } from "../../src/tool/documents/Documents.js"
import * as MemoryDocuments from "../../src/tool/documents/MemoryDocuments.js"
import * as SqliteDocuments from "../../src/tool/documents/SqliteDocuments.js"

const file = Layer.unwrapScoped(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    return Sqlite.layer({ filename: `${directory}/test.db` })
  })
).pipe(Layer.provide(NodeFileSystem.layer))

const user = "alice"

for (const [backend, layer] of [
  ["memory", Layer.merge(MemoryDocuments.layer, MemoryStore.layer)],
  ["sqlite", Layer.provideMerge(SqliteDocuments.layer, file)]
] as const) {
  const test = <A, E>(title: string, body: Effect.Effect<A, E, Documents | RunStore>) =>
    it.scopedLive(title, () => Effect.provide(body, layer))

  describe(`a commit and its record in ${backend}`, () => {
    test(
      "are stored together",
      Effect.gen(function* () {
        const documents = yield* Documents
        const run = yield* Fixtures.begin()
        const created = yield* documents.create({ user, key: "k", title: "T", text: "walrus" })
        expect(yield* documents.applied({ user, key: "k" })).toEqual(Option.none())
        const outcome = yield* Fixtures.append({
          key: run.key,
          epoch: run.epoch,
          events: [Fixtures.text("recorded")],
          set: { status: "streaming" },
          within: created.within
        })
        expect(outcome).toMatchObject({ _tag: "Appended" })
        expect(yield* documents.applied({ user, key: "k" })).toEqual(Option.some(created.result))
        expect(yield* documents.search({ user, query: "walrus", limit: 5 })).toHaveLength(1)
      })
    )

    test(
      "are both refused when the document has changed",
      Effect.gen(function* () {
        const documents = yield* Documents
        const run = yield* Fixtures.begin()
        const append = (within: Effect.Effect.Success<ReturnType<typeof documents.create>>["within"]) =>
          Fixtures.append({
            key: run.key,
            epoch: run.epoch,
            events: [Fixtures.text("recorded")],
            set: { status: "streaming" },
            within
          })
        yield* append((yield* documents.create({ user, key: "new", title: "T", text: "v1" })).within)
        const id = (yield* documents.list({ user })).find(({ readOnly }) => !readOnly)?.id ?? expect.fail("no document")
        const one = yield* documents.update({ user, key: "one", id, version: 1, title: "T", text: "v2" })
        const two = yield* documents.update({ user, key: "two", id, version: 1, title: "T", text: "other" })
        expect(yield* append(one.within)).toMatchObject({ _tag: "Appended" })
        const before = yield* Fixtures.seqsOf(run.key)
        expect(yield* append(two.within)).toMatchObject({ _tag: "Rejected", conflict: { _tag: "ToolConflict" } })
        expect(yield* Fixtures.seqsOf(run.key)).toEqual(before)
        expect(yield* documents.applied({ user, key: "two" })).toEqual(Option.none())
        expect(yield* documents.read({ user, id })).toMatchObject({ value: { text: "v2", version: 2 } })
      })
    )

    test(
      "are both refused when somebody else owns the run",
      Effect.gen(function* () {
        const documents = yield* Documents
        const run = yield* Fixtures.begin()
        const created = yield* documents.create({ user, key: "k", title: "T", text: "walrus" })
        const outcome = yield* Fixtures.append({
          key: run.key,
          epoch: run.epoch - 1,
          events: [Fixtures.text("recorded")],
          set: { status: "streaming" },
          within: created.within
        })
        expect(outcome).toMatchObject({ _tag: "Fenced" })
        expect(yield* documents.applied({ user, key: "k" })).toEqual(Option.none())
        expect((yield* documents.list({ user })).every(({ readOnly }) => readOnly)).toBe(true)
      })
    )
  })
}
