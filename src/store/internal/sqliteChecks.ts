/**
 * What can be wrong with a database file, as a list: how each thing is found, and how it is mended where that can do no
 * harm.
 *
 * @since 0.1.0
 */
import Database from "better-sqlite3"

/**
 * Something that is wrong. `count`: how often; `runs`: ids of runs that it is about, a few at most; `details`: what the
 * database itself says.
 *
 * @since 0.1.0
 * @category models
 */
export interface Found {
  readonly message: string
  readonly count: number
  readonly runs?: ReadonlyArray<string> | undefined
  readonly details?: ReadonlyArray<string> | undefined
}

/**
 * One thing to look for. `severity`: whether something is lost or broken, or merely untidy. `needs`: the tables that must
 * be there. `mend`, where there is one, takes nothing away that anybody could still read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Check {
  readonly kind: string
  readonly severity: "damage" | "untidy"
  readonly needs: ReadonlyArray<string>
  readonly find: (db: Database.Database) => Found | undefined
  readonly mend?: ((db: Database.Database) => void) | undefined
}

/**
 * Whether the database says that a part of it is damaged.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isCorrupt = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_CORRUPT/.test(error.code)

/** As many examples as a person will read. */
const few = 10

/** A number with its noun: `1 message belongs`, `3 messages belong`. */
const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

const ids = (db: Database.Database, text: string): ReadonlyArray<string> => db.prepare<[], string>(text).pluck().all()

/** A check for runs that a query names. */
const runs = (
  kind: string,
  needs: ReadonlyArray<string>,
  query: string,
  say: (count: number) => string,
  more: Partial<Check> = {}
): Check => ({
  kind,
  severity: "damage",
  needs: ["runs", ...needs],
  find: (db) => {
    const found = ids(db, query)
    return found.length === 0
      ? undefined
      : { message: say(found.length), count: found.length, runs: found.slice(0, few) }
  },
  ...more
})

/** Complaints that go away when indexes are made anew from their tables. */
const aboutIndex =
  /^(row \d+ missing from index|wrong # of entries in index|non-unique entry in index|row not in PRIMARY KEY order)/

const integrity = (db: Database.Database): ReadonlyArray<string> => {
  try {
    return db
      .prepare<[], { integrity_check: string }>("PRAGMA integrity_check(50)")
      .all()
      .map((row) => row.integrity_check)
      .filter((text) => text !== "ok")
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

const pages: Check = {
  kind: "pages",
  severity: "damage",
  needs: [],
  find: (db) => {
    const complaints = integrity(db).filter((text) => !aboutIndex.test(text))
    return complaints.length === 0
      ? undefined
      : {
          message:
            "The file is damaged. Runs on damaged pages are refused, the others go on. Restore a backup, or save what can be read with `sqlite3 FILE .recover`",
          count: complaints.length,
          details: complaints.slice(0, few)
        }
  }
}

const indexes: Check = {
  kind: "indexes",
  severity: "damage",
  needs: [],
  find: (db) => {
    const complaints = integrity(db).filter((text) => aboutIndex.test(text))
    return complaints.length === 0
      ? undefined
      : {
          message: `${counted(complaints.length, "index does", "indexes do")} not agree with its table`,
          count: complaints.length,
          details: complaints.slice(0, few)
        }
  },
  mend: (db) => {
    db.exec("REINDEX")
  }
}

interface Orphan {
  readonly table: string
  readonly rowid: number
}

const orphansOf = (db: Database.Database): ReadonlyArray<Orphan> =>
  db.prepare<[], Orphan>("PRAGMA foreign_key_check").all()

const orphans: Check = {
  kind: "orphans",
  severity: "untidy",
  needs: [],
  find: (db) => {
    const found = orphansOf(db)
    const tables = [...new Set(found.map(({ table }) => table))].sort()
    return found.length === 0
      ? undefined
      : {
          message: `${counted(found.length, "row belongs", "rows belong")} to nothing (${tables.join(", ")})`,
          count: found.length
        }
  },
  mend: (db) => {
    for (const { rowid, table } of orphansOf(db)) {
      db.prepare(`DELETE FROM "${table.replace(/"/g, '""')}" WHERE rowid = ?`).run(rowid)
    }
  }
}

const orphanMessages = `brought IS NULL AND NOT EXISTS (
  SELECT 1 FROM runs WHERE runs.conversation_id = messages.conversation_id
    AND messages.message_id IN (user_message_id, assistant_message_id))`

const messages: Check = {
  kind: "messages",
  severity: "untidy",
  needs: ["messages", "runs"],
  find: (db) => {
    const count = db.prepare<[], number>(`SELECT COUNT(*) FROM messages WHERE ${orphanMessages}`).pluck().get() ?? 0
    return count === 0
      ? undefined
      : { message: `${counted(count, "message belongs", "messages belong")} to no run`, count }
  },
  mend: (db) => {
    db.exec(`DELETE FROM messages WHERE ${orphanMessages}`)
  }
}

const isLeft = `FROM bases JOIN events ON events.run_key = bases.run_key AND events.seq <= bases.seq`

const leftovers: Check = {
  kind: "leftovers",
  severity: "untidy",
  needs: ["bases", "events"],
  find: (db) => {
    const count = db.prepare<[], number>(`SELECT COUNT(*) ${isLeft}`).pluck().get() ?? 0
    return count === 0
      ? undefined
      : {
          message: `${counted(count, "event is", "events are")} left of compacted logs; the server removes them too`,
          count
        }
  },
  mend: (db) => {
    db.exec(`DELETE FROM events WHERE id IN (SELECT events.id ${isLeft}); UPDATE bases SET trimmed = 1`)
  }
}

const broken = `SELECT run_key FROM events WHERE json_valid(json) = 0
  UNION SELECT run_key FROM turns WHERE json_valid(turn) = 0 OR json_valid(header) = 0
  UNION SELECT run_key FROM inputs WHERE json_valid(json) = 0 OR json_valid(prefix) = 0`

/** Where a page is damaged, all runs together can not be read, and each has to be tried. */
const brokenOneByOne = (db: Database.Database): ReadonlyArray<string> => {
  const isBroken = db
    .prepare<{ readonly key: number }, number>(
      `SELECT EXISTS (SELECT 1 FROM events WHERE run_key = @key AND json_valid(json) = 0)
         OR EXISTS (SELECT 1 FROM turns WHERE run_key = @key AND (json_valid(turn) = 0 OR json_valid(header) = 0))
         OR EXISTS (SELECT 1 FROM inputs WHERE run_key = @key AND (json_valid(json) = 0 OR json_valid(prefix) = 0))`
    )
    .pluck()
  const all = db.prepare<[], { readonly key: number; readonly runId: string }>(
    "SELECT key, run_id AS runId FROM runs ORDER BY key"
  )
  const found: Array<string> = []
  for (const { key, runId } of all.all()) {
    try {
      if (isBroken.get({ key }) === 1) found.push(runId)
    } catch (error) {
      if (!isCorrupt(error)) throw error
      found.push(runId)
    }
  }
  return found
}

const contents: Check = {
  kind: "contents",
  severity: "damage",
  needs: ["runs", "events", "turns", "inputs"],
  find: (db) => {
    let found: ReadonlyArray<string>
    try {
      found = ids(db, `SELECT run_id FROM runs JOIN (${broken}) AS broken ON run_key = runs.key ORDER BY runs.key`)
    } catch (error) {
      if (!isCorrupt(error)) throw error
      found = brokenOneByOne(db)
    }
    return found.length === 0
      ? undefined
      : {
          message: `${counted(found.length, "run has", "runs have")} content that can not be read`,
          count: found.length,
          runs: found.slice(0, few)
        }
  }
}

/**
 * Everything that is looked for.
 *
 * @since 0.1.0
 * @category checks
 */
export const all: ReadonlyArray<Check> = [
  pages,
  indexes,
  runs(
    "holes",
    ["events"],
    `SELECT run_id FROM runs LEFT JOIN events ON run_key = runs.key AND seq > compacted_seq
     GROUP BY runs.key HAVING COUNT(seq) <> last_seq - compacted_seq ORDER BY runs.key`,
    (count) => `The logs of ${counted(count, "run lack", "runs lack")} events, so they can not be shown`
  ),
  runs(
    "states",
    ["bases"],
    `SELECT run_id FROM runs LEFT JOIN bases ON run_key = runs.key
     WHERE compacted_seq > 0 AND (bases.seq IS NULL OR json_valid(state) = 0) ORDER BY runs.key`,
    (count) => `${counted(count, "compacted run has", "compacted runs have")} no readable state`
  ),
  contents,
  runs(
    "inputs",
    ["inputs"],
    `SELECT run_id FROM runs LEFT JOIN inputs ON run_key = runs.key WHERE run_key IS NULL ORDER BY runs.key`,
    (count) => `${counted(count, "run has", "runs have")} no input record, so they can not go on`
  ),
  orphans,
  messages,
  leftovers
]
