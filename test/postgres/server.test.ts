import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { database, describePostgres, query } from "./support/Database.js"
import * as Server from "./support/Server.js"

describePostgres("the server of these suites", () => {
  it("has directories of its own, and leaves the one that they are in as it is", () => {
    const modes = () => [tmpdir(), dirname(tmpdir())].map((path) => statSync(path).mode)
    const before = modes()
    const directory = mkdtempSync(join(tmpdir(), "runlet-directory-"))
    Server.ownDirectory(join(directory, "data"))
    rmSync(directory, { recursive: true })
    expect(modes()).toEqual(before)
  })

  it.scopedLive("gives each who asks an empty database of its own, and takes it away", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(
        Effect.gen(function* () {
          const [one, other] = [yield* database, yield* database]
          expect(one).not.toBe(other)
          yield* query(one, "CREATE TABLE things (n INTEGER)")
          const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
          expect(yield* query(one, tables)).toEqual([{ tablename: "things" }])
          expect(yield* query(other, tables)).toEqual([])
          return new URL(one).pathname.slice(1)
        })
      )
      const present = yield* query(yield* database, "SELECT 1 FROM pg_database WHERE datname = $1", [gone])
      expect(present).toEqual([])
    })
  )

  it.scopedLive("is of a version that the store is made for", () =>
    Effect.gen(function* () {
      const [row] = yield* query<{ readonly version: number }>(
        yield* database,
        "SELECT current_setting('server_version_num')::int AS version"
      )
      expect(row?.version).toBeGreaterThanOrEqual(130_000)
    })
  )
})
