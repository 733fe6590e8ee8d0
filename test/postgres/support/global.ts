/**
 * Finds PostgreSQL for a run of the tests, and says at its end which suites there was none for. With
 * `RUNLET_POSTGRES=required` a run without it fails.
 */
import type { TestProject } from "vitest/node"
import * as Server from "./Server.js"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgres: Server.Place
  }
}

const advice = "Install PostgreSQL (the package `postgresql`), or name a server in DATABASE_URL."

export default (project: TestProject) => {
  const place = Server.place()
  if (!Server.isThere(place) && process.env.RUNLET_POSTGRES === "required") {
    throw new Error(`There is no PostgreSQL, and RUNLET_POSTGRES=required. ${advice}`)
  }
  project.provide("postgres", place)
  return async () => {
    const suites = Server.allSkipped(place)
    await Server.stop(place)
    if (suites.length === 0) return
    console.error(["There is no PostgreSQL, so these suites were NOT RUN:", ...suites, advice].join("\n  "))
  }
}
