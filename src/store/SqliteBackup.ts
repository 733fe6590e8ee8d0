/**
 * A copy of a database file, made while others write to it.
 *
 * @since 0.1.0
 */
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs"
import { dirname } from "node:path"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { openDatabase } from "./internal/sqliteDriver.js"

/**
 * There is no copy. `reason`: there is no such database, the target exists, or what the system said.
 *
 * @since 0.1.0
 * @category errors
 */
export class BackupError extends Schema.TaggedError<BackupError>()("BackupError", {
  reason: Schema.Literal("missing", "exists", "failed", "damaged"),
  cause: Schema.optional(Schema.Defect)
}) {}

/**
 * What was saved: the size of the copy in bytes, and how many runs are in it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Saved {
  readonly bytes: number
  readonly runs: number
}

const failed = (cause: unknown): BackupError =>
  new BackupError({
    reason: cause instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(cause.code) ? "damaged" : "failed",
    cause
  })

/** Waits until what was written to a file, or what a directory lists, would survive a loss of power. */
const sync = (path: string): void => {
  const file = openSync(path, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const copy = (filename: string, target: string): void => {
  const source = openDatabase(filename, { readonly: true, fileMustExist: true })
  try {
    source.prepare("VACUUM INTO ?").run(target)
  } finally {
    source.close()
  }
}

/** A copy of a damaged database can be made without an error, so it is looked at before it gets its name. */
const examine = (target: string): Saved => {
  const made = openDatabase(target, { readonly: true, fileMustExist: true })
  try {
    const said = made.pragma("quick_check(1)", { simple: true })
    if (said !== "ok") throw new BackupError({ reason: "damaged" })
    const runs = made.prepare<[], number>("SELECT COUNT(*) FROM runs").pluck().get() ?? 0
    return { bytes: statSync(target).size, runs }
  } finally {
    made.close()
  }
}

/**
 * Saves the database of `filename` as one compact file, `target`, which must not exist yet. Writers go on meanwhile;
 * the copy is the state of one moment. Under its name there is either the whole copy, readable by its owner alone and
 * safe on the disk, or nothing.
 *
 * @since 0.1.0
 * @category backup
 */
export const backup = (filename: string, target: string): Effect.Effect<Saved, BackupError> =>
  Effect.try({
    try: () => {
      if (!existsSync(filename)) throw new BackupError({ reason: "missing" })
      if (existsSync(target)) throw new BackupError({ reason: "exists" })
      const partial = `${target}.partial`
      rmSync(partial, { force: true })
      try {
        // Made before anything is in it, so that nobody else can read it at any time.
        closeSync(openSync(partial, "wx", 0o600))
        copy(filename, partial)
        chmodSync(partial, 0o600)
        const saved = examine(partial)
        sync(partial)
        renameSync(partial, target)
        sync(dirname(target))
        return saved
      } catch (cause) {
        rmSync(partial, { force: true })
        throw cause
      }
    },
    catch: (cause) => (cause instanceof BackupError ? cause : failed(cause))
  })
