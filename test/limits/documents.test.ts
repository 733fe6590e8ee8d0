import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sqlite from "../../src/store/Sqlite.js"
import { Documents, keptActs } from "../../src/tool/documents/Documents.js"
import * as MemoryDocuments from "../../src/tool/documents/MemoryDocuments.js"
import * as SqliteDocuments from "../../src/tool/documents/SqliteDocuments.js"
import * as Seed from "../../src/tool/documents/seed/Seed.js"
import { databaseFile } from "../store/support.js"
import * as Workspace from "./support/Workspace.js"

const inFile = (filename: string) =>
  Layer.fresh(
    Layer.provideMerge(SqliteDocuments.layerWith(Seed.documents, Workspace.bounds), Sqlite.layer({ filename }))
  )
const sqlite = Layer.unwrapScoped(Effect.map(databaseFile, inFile))

for (const [backend, layer] of [
  ["memory", MemoryDocuments.layerWith(Seed.documents, Workspace.bounds)],
  ["SQLite", sqlite]
] as const) {
  describe(`a workspace in ${backend}`, () => {
    it.scoped("maxDocumentsPerUser: the next one is refused, before somebody is asked and in the end", () =>
      Effect.provide(Workspace.fillsDocuments, layer)
    )
    it.scoped("maxMemoriesPerUser: the next one is refused, before somebody is asked and in the end", () =>
      Effect.provide(Workspace.fillsMemories, layer)
    )
  })
}

it.scopedLive("of what was done in a workspace the newest acts are known", () =>
  Effect.provide(Workspace.keepsFewActs(keptActs), sqlite)
)

it.scopedLive("a workspace without bounds has none, as that of the one user of a server without authentication", () =>
  Effect.gen(function* () {
    const documents = yield* Documents
    for (let n = 0; n < 20; n++) {
      const made = yield* documents.create({ user: "alice", key: `${n}`, title: "T", text: "t" })
      expect(yield* Workspace.made(made)).toBe(true)
    }
    expect(yield* documents.full({ user: "alice", of: "documents" })).toMatchObject({ _tag: "None" })
  }).pipe(Effect.provide(MemoryDocuments.layerWith([])))
)
