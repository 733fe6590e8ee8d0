import { spawnSync } from "node:child_process"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { SafeIntegers } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import { build } from "esbuild"
import { vi } from "vitest"
import * as SqliteClient from "../../src/store/internal/sqliteClient.js"
import { preparedStatements } from "../../src/store/internal/sqliteDriver.js"
import { databaseFile } from "./support.js"

/** The driver's module as a version of Node.js loads it. */
const under = (version: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const own = process.version
      Object.defineProperty(process, "version", {
        ...Object.getOwnPropertyDescriptor(process, "version"),
        value: version
      })
      vi.resetModules()
      return own
    }),
    () => Effect.promise(() => import("../../src/store/internal/sqliteDriver.js")),
    (own) =>
      Effect.sync(() => {
        Object.defineProperty(process, "version", {
          ...Object.getOwnPropertyDescriptor(process, "version"),
          value: own
        })
        vi.resetModules()
      })
  )

describe("the driver", () => {
  it.scoped.each([
    ["v20.20.2", 500],
    ["v22.23.5", 500],
    ["v24.18.0", 500],
    ["v24.19.0", Number.POSITIVE_INFINITY],
    ["v24.21.0", Number.POSITIVE_INFINITY],
    ["v24.22.1", 500]
  ] as const)("under %s keeps %s statements, and answers the same", ([version, statements]) =>
    Effect.gen(function* () {
      const filename = yield* databaseFile
      const { openDatabase, preparedStatements } = yield* under(version)
      expect(preparedStatements).toBe(statements)
      const db = yield* Effect.acquireRelease(
        Effect.sync(() => openDatabase(filename, {})),
        (opened) => Effect.sync(() => opened.close())
      )
      expect(db.pragma("journal_mode = WAL", { simple: true })).toBe("wal")
      expect(db.pragma("user_version")).toEqual([{ user_version: 0 }])
      expect(db.pragma("auto_vacuum = INCREMENTAL")).toEqual([])
      expect(db.pragma("auto_vacuum = INCREMENTAL", { simple: true })).toBeUndefined()
      expect(db.prepare("SELECT ? AS n").all(1)).toEqual([{ n: 1 }])
      expect(() => db.prepare("SELECT n FROM missing")).toThrow("no such table")
      expect(() => openDatabase(`${filename}/none`, { readonly: true })).toThrow("unable to open database file")
    })
  )

  it.effect.each([
    ["v24.18.0", "gone"],
    ["v24.21.0", "kept"]
  ] as const)("under %s a statement that nobody holds is %s", ([version, expected]) =>
    Effect.promise(async () => {
      const driver = fileURLToPath(new URL("../../src/store/internal/sqliteDriver.ts", import.meta.url))
      const built = await build({
        stdin: {
          contents: `
            Object.defineProperty(process, "version", { value: ${JSON.stringify(version)} })
            const { openDatabase } = await import(${JSON.stringify(driver)})
            const held = (() => {
              const db = openDatabase(":memory:", {})
              const statements = [db.prepare("SELECT 1"), db.prepare("SELECT 2")]
              return [db, ...statements].map((one) => new WeakRef(one))
            })()
            for (let i = 0; i < 5; i++) {
              await new Promise((resolve) => setImmediate(resolve))
              globalThis.gc()
            }
            console.log(held.map((one) => (one.deref() === undefined ? "gone" : "kept")).join())`,
          resolveDir: dirname(driver)
        },
        bundle: true,
        platform: "node",
        format: "esm",
        external: ["better-sqlite3"],
        banner: { js: 'import { createRequire } from "module"; const require = createRequire(import.meta.url);' },
        write: false
      })
      const said = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "-"], {
        cwd: dirname(driver),
        input: built.outputFiles[0]?.text,
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: process.env.HOME }
      })
      expect(said.stderr).toBe("")
      expect(said.stdout.trim()).toBe([expected, expected, expected].join())
    })
  )

  it.scoped("a statement is prepared once, and again when so many others came that it was forgotten", () =>
    Effect.gen(function* () {
      const sql = yield* SqliteClient.make({ filename: yield* databaseFile })
      const prepare = vi.spyOn(Database.prototype, "prepare")
      yield* Effect.addFinalizer(() => Effect.sync(() => prepare.mockRestore()))
      const ask = (i: number) => Effect.map(sql.unsafe(`SELECT ${i} AS n`), (rows) => expect(rows).toEqual([{ n: i }]))
      for (const _ of [1, 2]) for (let i = 0; i < preparedStatements; i++) yield* ask(i)
      expect(prepare).toHaveBeenCalledTimes(preparedStatements)
      yield* ask(preparedStatements)
      expect(prepare).toHaveBeenCalledTimes(preparedStatements + 1)
      for (let i = 2; i <= preparedStatements; i++) yield* ask(i)
      expect(prepare).toHaveBeenCalledTimes(preparedStatements + 1)
      yield* ask(0)
      expect(prepare).toHaveBeenCalledTimes(preparedStatements + 2)
    })
  )

  it.scoped("integers are given as numbers, and as bigints to who asks for them", () =>
    Effect.gen(function* () {
      const sql = yield* SqliteClient.make({ filename: yield* databaseFile })
      const large = sql<{ readonly n: number | bigint }>`SELECT 9007199254740993 AS n`
      for (let i = 0; i < 2; i++) {
        expect(yield* large).toEqual([{ n: 9007199254740992 }])
        expect(yield* large.values).toEqual([[9007199254740992]])
        expect(yield* Effect.provideService(large, SafeIntegers, true)).toEqual([{ n: 9007199254740993n }])
        expect(yield* Effect.provideService(large.values, SafeIntegers, true)).toEqual([[9007199254740993n]])
      }
    })
  )
})
