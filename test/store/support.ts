import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sqlite from "../../src/store/Sqlite.js"

/** The path of a database in a directory of its own, which goes with the scope. */
export const databaseFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-store-"))),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
  ),
  (directory) => join(directory, "test.db")
)

/** An empty store in a file of its own. */
export const sqlite = Layer.unwrapScoped(Effect.map(databaseFile, (filename) => Sqlite.layer({ filename })))
