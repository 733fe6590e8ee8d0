/** The database of a fleet, as the test looks into it from outside. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { describe } from "vitest"
import * as Postgres from "../../postgres/support/Database.js"

export interface Data {
  /** What a server is given as `--data`. */
  readonly address: string
  /** The rows of a statement without parameters. */
  readonly rows: (text: string) => Promise<ReadonlyArray<Record<string, unknown>>>
  /** The tables, or files, that hold one of these texts. */
  readonly tablesWith: (texts: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  readonly close: () => Promise<void>
}

export const sqlite = async (): Promise<Data> => {
  const dir = mkdtempSync(join(tmpdir(), "runlet-fleet-"))
  const address = join(dir, "runlet.db")
  return {
    address,
    rows: async (text) => {
      const db = new Database(address, { readonly: true })
      try {
        return db.prepare<[], Record<string, unknown>>(text).all()
      } finally {
        db.close()
      }
    },
    tablesWith: async (texts) =>
      readdirSync(dir).filter((name) => {
        const bytes = readFileSync(join(dir, name))
        return texts.some((text) => bytes.includes(text))
      }),
    close: async () => rmSync(dir, { recursive: true, force: true })
  }
}

export const postgres = async (): Promise<Data> => {
  const scope = await Effect.runPromise(Scope.make())
  const address = await Effect.runPromise(Scope.extend(Postgres.database, scope))
  return {
    address,
    rows: (text) => Effect.runPromise(Postgres.query(address, text)),
    tablesWith: async (texts) => {
      const query = (text: string, values: ReadonlyArray<string> = []) =>
        Effect.runPromise(Postgres.query<{ readonly name: string }>(address, text, values))
      const tables = await query(`SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
      const found: Array<string> = []
      for (const { name } of tables) {
        const rows = await query(
          `SELECT '${name}' AS name FROM "${name}" AS row WHERE ${texts.map((_, i) => `position($${i + 1} IN row::text) > 0`).join(" OR ")} LIMIT 1`,
          texts
        )
        found.push(...rows.map((row) => row.name))
      }
      return found
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

/** Suites over a fleet, and how each gets its empty database: in PostgreSQL, or with `RUNLET_FLEET_DATA=sqlite` one file. */
export const describeFleet = (name: string, suite: (open: () => Promise<Data>) => void | Promise<void>): void => {
  if (process.env.RUNLET_FLEET_DATA === "sqlite") describe(name, () => suite(sqlite))
  else Postgres.describePostgres(name, () => suite(postgres))
}

/** The process that executes a run; not a number when nobody does. */
export const ownerOf = async (data: Data, runId: string): Promise<number> => {
  const [row] = await data.rows(`SELECT owner FROM runs WHERE run_id = '${runId}'`)
  return typeof row?.owner === "string" ? Number(row.owner.split(" ")[1]) : Number.NaN
}
