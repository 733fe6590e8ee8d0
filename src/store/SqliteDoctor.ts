/**
 * A look at a database file from outside: how large it is and why, what is wrong with it, and mending that can do no
 * harm. A server may use the file meanwhile.
 *
 * @since 0.1.0
 */
import { existsSync, statSync } from "node:fs"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Check, all as checks, type Found, isCorrupt } from "./internal/sqliteChecks.js"
import { openDatabase } from "./internal/sqliteDriver.js"
import { known as knownVersion } from "./internal/sqlMigrations.js"

/**
 * The file can not be looked at. `missing`: there is none; `foreign`: it is no database of this program; `busy`: another
 * process holds it for too long; `damaged`: not even its list of tables can be read.
 *
 * @since 0.1.0
 * @category errors
 */
export class DoctorError extends Schema.TaggedError<DoctorError>()("DoctorError", {
  reason: Schema.Literal("missing", "foreign", "busy", "damaged", "failed"),
  cause: Schema.optional(Schema.Defect)
}) {}

/**
 * Something that is wrong. `repair`: whether it was mended, can be, or can not be by this program.
 *
 * @since 0.1.0
 * @category models
 */
export interface Problem extends Found {
  readonly kind: string
  readonly severity: "damage" | "untidy"
  readonly repair: "done" | "possible" | "impossible"
}

/**
 * A run that takes much room: its log and what was kept of its turns, in bytes of text.
 *
 * @since 0.1.0
 * @category models
 */
export interface LargeRun {
  readonly runId: string
  readonly status: string
  readonly events: number
  readonly bytes: number
}

/**
 * What was found. Sizes are bytes. `schema.version` is 0 where it can not be read any more, `schema.known` the one that
 * this program makes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Report {
  readonly bytes: number
  readonly freeBytes: number
  readonly walBytes: number
  readonly reclaimable: boolean
  readonly schema: { readonly version: number; readonly known: number }
  readonly conversations: number
  readonly events: number
  readonly runs: Readonly<Record<string, number>>
  readonly largest: ReadonlyArray<LargeRun>
  readonly problems: ReadonlyArray<Problem>
}

const largestCount = 5

/** How long a lock of a server is waited for, in milliseconds. Nobody else is served by this process. */
const patienceMs = 10_000

const number = (db: Database.Database, text: string): number => db.prepare<[], number>(text).pluck().get() ?? 0

const versionOf = (db: Database.Database): number =>
  orNothing(() => number(db, "SELECT MAX(migration_id) FROM runlet_migrations"), 0)

const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0)

const tablesOf = (db: Database.Database): ReadonlySet<string> =>
  new Set(db.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())

/** What is damaged beyond reading is left out here: the checks tell of it. */
const orNothing = <A>(look: () => A, nothing: A): A => {
  try {
    return look()
  } catch (error) {
    if (isCorrupt(error)) return nothing
    throw error
  }
}

const largestOf = (db: Database.Database): ReadonlyArray<LargeRun> =>
  db
    .prepare<[number], LargeRun>(
      `SELECT run_id AS runId, status, COALESCE(logs.n, 0) AS events,
         COALESCE(logs.bytes, 0) + COALESCE(closed.bytes, 0) AS bytes
       FROM runs
       LEFT JOIN (SELECT run_key, COUNT(*) AS n, SUM(LENGTH(CAST(json AS BLOB))) AS bytes FROM events GROUP BY run_key)
         AS logs ON logs.run_key = runs.key
       LEFT JOIN (SELECT run_key, SUM(LENGTH(CAST(turn AS BLOB)) + LENGTH(CAST(header AS BLOB))) AS bytes
         FROM turns GROUP BY run_key) AS closed ON closed.run_key = runs.key
       ORDER BY bytes DESC, runs.key LIMIT ?`
    )
    .all(largestCount)

/** Whether a problem is mended now, could be, or stays. */
const mended = (db: Database.Database, { find, mend }: Check, found: Found, repair: boolean): Problem["repair"] => {
  if (mend === undefined) return "impossible"
  if (!repair) return "possible"
  orNothing(() => db.transaction(mend).immediate(db), undefined)
  return orNothing(() => find(db), found) === undefined ? "done" : "impossible"
}

const problemsOf = (db: Database.Database, tables: ReadonlySet<string>, repair: boolean): ReadonlyArray<Problem> =>
  checks.flatMap((check) => {
    const { find, kind, needs, severity } = check
    const found = needs.every((table) => tables.has(table)) ? orNothing(() => find(db), undefined) : undefined
    return found === undefined ? [] : [{ kind, severity, ...found, repair: mended(db, check, found, repair) }]
  })

/** Gives free space back. A file that was not made for that is made over, unless somebody else has it open. */
const shrink = (filename: string, db: Database.Database): void => {
  if (number(db, "PRAGMA auto_vacuum") === 2) {
    while (number(db, "PRAGMA freelist_count") > 0) db.exec("PRAGMA incremental_vacuum(1000)")
  } else {
    db.close()
    const alone = openDatabase(filename, { timeout: 0 })
    try {
      alone.pragma("locking_mode = EXCLUSIVE")
      alone.pragma("auto_vacuum = INCREMENTAL")
      alone.exec("VACUUM")
      alone.pragma("locking_mode = NORMAL")
    } catch (error) {
      // It is used by a server: then it stays as it is.
      if (!(error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY"))) throw error
    } finally {
      alone.close()
    }
  }
}

const open = (filename: string, readonly: boolean): Database.Database => {
  if (!existsSync(filename)) throw new DoctorError({ reason: "missing" })
  const db = openDatabase(filename, { readonly, fileMustExist: true, timeout: patienceMs })
  try {
    if (!tablesOf(db).has("runlet_migrations")) throw new DoctorError({ reason: "foreign" })
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

const look = (filename: string, db: Database.Database, repair: boolean): Report => {
  const tables = tablesOf(db)
  const problems = problemsOf(db, tables, repair)
  const pageSize = number(db, "PRAGMA page_size")
  const count = (table: string) =>
    tables.has(table) ? orNothing(() => number(db, `SELECT COUNT(*) FROM ${table}`), 0) : 0
  const statuses = orNothing(
    () => db.prepare<[], [string, number]>("SELECT status, COUNT(*) FROM runs GROUP BY status").raw().all(),
    []
  )
  return {
    bytes: number(db, "PRAGMA page_count") * pageSize,
    freeBytes: number(db, "PRAGMA freelist_count") * pageSize,
    walBytes: sizeOf(`${filename}-wal`),
    reclaimable: number(db, "PRAGMA auto_vacuum") === 2,
    schema: { version: versionOf(db), known: knownVersion },
    conversations: count("conversations"),
    events: count("events"),
    runs: Object.fromEntries(statuses),
    largest: orNothing(() => largestOf(db), []),
    problems
  }
}

const doctorError = (cause: unknown): DoctorError => {
  if (cause instanceof DoctorError) return cause
  const code = cause instanceof Database.SqliteError ? cause.code : ""
  if (isCorrupt(cause)) return new DoctorError({ reason: "damaged", cause })
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return new DoctorError({ reason: "busy", cause })
  return new DoctorError({ reason: code === "SQLITE_NOTADB" ? "foreign" : "failed", cause })
}

const using = <A>(filename: string, readonly: boolean, use: (db: Database.Database) => A): A => {
  const db = open(filename, readonly)
  try {
    return use(db)
  } finally {
    db.close()
  }
}

/**
 * Looks at a database file and changes nothing in it.
 *
 * @since 0.1.0
 * @category checks
 */
export const examine = (filename: string): Effect.Effect<Report, DoctorError> =>
  Effect.try({ try: () => using(filename, true, (db) => look(filename, db, false)), catch: doctorError })

/**
 * Looks at a database file, mends what is safe to mend, and gives free space back. A database of a newer version is only
 * looked at.
 *
 * @since 0.1.0
 * @category checks
 */
export const repair = (filename: string): Effect.Effect<Report, DoctorError> =>
  Effect.try({
    try: () => {
      const before = using(filename, true, (db) => look(filename, db, false))
      if (before.schema.version > before.schema.known) return before
      const { problems } = using(filename, false, (db) => {
        const report = look(filename, db, true)
        db.pragma("wal_checkpoint(TRUNCATE)")
        shrink(filename, db)
        return report
      })
      return { ...using(filename, true, (db) => look(filename, db, false)), problems }
    },
    catch: doctorError
  })
