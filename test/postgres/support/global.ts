/**
 * Finds PostgreSQL and PgBouncer for a run of the tests, and says at its end which suites there was none for. With
 * `RUNLET_POSTGRES=required`, or `RUNLET_PGBOUNCER=required`, a run without it fails.
 */
import type { TestProject } from "vitest/node"
import * as Server from "./Server.js"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgres: Server.Place
  }
}

const advice = {
  PostgreSQL: "Install PostgreSQL (the package `postgresql`), or name a server in DATABASE_URL.",
  PgBouncer: "Install PgBouncer (the package `pgbouncer`)."
}

const demand = (missing: Server.Missing, name: string, isThere: boolean): void => {
  if (isThere || process.env[name] !== "required") return
  throw new Error(`There is no ${missing}, and ${name}=required. ${advice[missing]}`)
}

const report = (place: Server.Place, missing: Server.Missing): void => {
  const suites = Server.allSkipped(place, missing)
  if (suites.length === 0) return
  console.error([`There is no ${missing}, so these suites were NOT RUN:`, ...suites, advice[missing]].join("\n  "))
}

export default (project: TestProject) => {
  const place = Server.place()
  demand("PostgreSQL", "RUNLET_POSTGRES", Server.isThere(place))
  demand("PgBouncer", "RUNLET_PGBOUNCER", place.pooler !== undefined)
  project.provide("postgres", place)
  return async () => {
    report(place, "PostgreSQL")
    report(place, "PgBouncer")
    await Server.stop(place)
  }
}
