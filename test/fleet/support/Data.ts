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
  /** All that is stored: the names of tables, or files, and what is in them. */
  readonly contents: () => Promise<ReadonlyArray<readonly [name: string, text: string]>>
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
    contents: async () => readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "latin1")]),
    close: async () => rmSync(dir, { recursive: true, force: true })
  }
}

export const postgres = async (): Promise<Data> => {
  const scope = await Effect.runPromise(Scope.make())
  const address = await Effect.runPromise(Scope.extend(Postgres.database, scope))
  return {
    address,
    rows: (text) => Effect.runPromise(Postgres.query(address, text)),
    contents: async () => {
      const query = (text: string) => Effect.runPromise(Postgres.query<{ readonly text: string }>(address, text))
      const tables = await query(`SELECT table_name AS text FROM information_schema.tables
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
      return Promise.all(
        tables.map(async ({ text: name }): Promise<readonly [string, string]> => {
          const rows = await query(`SELECT CAST(row_to_json(one) AS TEXT) AS text FROM "${name}" AS one`)
          return [name, rows.map(({ text }) => text).join("\n")]
        })
      )
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
