import * as NodeContext from "@effect/platform-node/NodeContext"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { backup } from "../../src/cli/Backup.js"
import * as DataFile from "../../src/cli/DataFile.js"
import { doctor } from "../../src/cli/Doctor.js"
import * as Config from "../../src/node/Config.js"
import * as Postgres from "../../src/store/Postgres.js"
import { begin } from "../../src/testing/store/fixtures.js"
import { database, describePostgres } from "./support/Database.js"

const data = "postgres://runlet:a-long-password@db.internal:5432/runlet?sslmode=verify-full"

describe("an address as the data setting", () => {
  it.effect("keeps its password from logs and events, and nothing else", () =>
    Effect.gen(function* () {
      const { secrets } = yield* Config.decode({ data })
      const values = secrets.map(Redacted.value)
      expect(values).toContain("a-long-password")
      for (const word of ["runlet", "verify-full", "db.internal"]) expect(values).not.toContain(word)
      expect(Postgres.nameOf(data)).toBe("postgres://runlet@db.internal:5432/runlet")
    })
  )

  it.effect.each(["postgres://", "postgresql://host", "postgres://user:a-long-password@host:5432/"])(
    "must name a database: %s",
    (wrong) =>
      Effect.gen(function* () {
        const { message } = yield* Effect.flip(Config.decode({ data: wrong }))
        expect(message).toContain("data: must be a file, or an address like postgres://")
        expect(message).not.toContain("a-long-password")
      })
  )

  it.effect("is told by the commands for files what to use instead", () =>
    Effect.gen(function* () {
      const saved = yield* Effect.flip(backup({ data }, "copy.db"))
      expect(saved.message).toContain("Save postgres://runlet@db.internal:5432/runlet with `pg_dump`")
      const examined = yield* Effect.flip(doctor({ data }, { json: false, repair: true }))
      expect(examined.message).toContain("Examine postgres://runlet@db.internal:5432/runlet with `pg_amcheck`")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describePostgres("the commands that look into a database", () => {
  it.scopedLive("show and cancel the runs of one in PostgreSQL", () =>
    Effect.gen(function* () {
      const url = yield* database
      const run = yield* Effect.provide(
        begin({ userId: "local" }),
        Layer.fresh(Postgres.layer({ url: Redacted.make(url) }))
      )
      const source = yield* DataFile.make({ data: url, user: "local" })
      expect((yield* source.list({})).items.map(({ runId }) => runId)).toEqual([run.runId])
      expect(yield* source.cancel(run.runId, undefined)).toMatchObject({ runId: run.runId, status: "cancelled" })
      expect((yield* source.snapshot(run.runId)).status).toBe("cancelled")
    })
  )

  it.scopedLive("say what is wrong with one that is not there or holds nothing", () =>
    Effect.gen(function* () {
      const url = yield* database
      const empty = yield* Effect.flip(DataFile.make({ data: url, user: "local" }))
      expect(empty.message).toContain(`${Postgres.nameOf(url)} holds nothing of Runlet`)
      const address = new URL(url)
      address.pathname = "/not_there"
      const missing = yield* Effect.flip(DataFile.make({ data: address.href, user: "local" }))
      expect(missing.message).toContain("/not_there does not exist")
      for (const { message } of [empty, missing]) expect(message).not.toContain(address.password)
    })
  )
})
