import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as SqliteClient from "../../src/store/internal/sqliteClient.js"
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
      expect(db.prepare("SELECT ? AS n").all(1)).toEqual([{ n: 1 }])
      expect(() => db.prepare("SELECT n FROM missing")).toThrow("no such table")
      expect(() => openDatabase(`${filename}/none`, { readonly: true })).toThrow("unable to open database file")
    })
  )

  it.scoped("statements beyond those that are kept prepared are prepared again", () =>
    Effect.gen(function* () {
      const sql = yield* SqliteClient.make({ filename: yield* databaseFile })
      for (const _ of [1, 2]) {
        for (let i = 0; i < 700; i++) {
          expect(yield* sql.unsafe(`SELECT ${i} AS n`)).toEqual([{ n: i }])
          expect(yield* sql.unsafe(`SELECT ${i} AS n`).values).toEqual([[i]])
        }
      }
    })
  )
})
