import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(__dirname, "../..")

/** A suite beside this one, in a surrounding of its own. */
const run = (env: Record<string, string>, suite = "server") =>
  spawnSync(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", `test/postgres/${suite}.test.ts`], {
    cwd: root,
    encoding: "utf8",
    env: { HOME: "/nonexistent", NO_COLOR: "1", ...env }
  })

describe("where there is no PostgreSQL", () => {
  it("the end of the run says which suites were not run", () => {
    const { status, stderr } = run({ PATH: process.env.PATH ?? "", RUNLET_POSTGRES: "off" })
    expect(stderr).toContain("NOT RUN:\n  test/postgres/server.test.ts\n  Install PostgreSQL")
    expect(status).toBe(0)
  })

  it("a run that requires it fails at once", () => {
    // A directory without programs; and no server anywhere else, unless it is installed as a distribution does.
    const { status, stderr } = run({
      PATH: __dirname,
      RUNLET_POSTGRES: "required",
      RUNLET_POSTGRES_BINARIES: __dirname
    })
    expect(stderr).toContain("There is no PostgreSQL, and RUNLET_POSTGRES=required")
    expect(status).toBe(1)
  })
})

describe("where there is no PgBouncer", () => {
  it("the end of the run says which suite was not run", () => {
    // Nobody asks this server anything.
    const { status, stderr } = run(
      { PATH: process.env.PATH ?? "", DATABASE_URL: "postgres://127.0.0.1:1/none", RUNLET_PGBOUNCER: "off" },
      "pooler"
    )
    expect(stderr).toContain("There is no PgBouncer, so these suites were NOT RUN:\n  test/postgres/pooler.test.ts\n")
    expect(status).toBe(0)
  })
})
