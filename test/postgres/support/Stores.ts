import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Postgres from "../../../src/store/Postgres.js"
import { RunStore } from "../../../src/store/RunStore.js"
import { WriteClient } from "../../../src/tool/SqlClients.js"
import { schema } from "./Database.js"

/** An empty store of its own, whose time is the test's. */
export const postgresWith = (options: Pick<Postgres.PostgresOptions, "readers">) =>
  Layer.unwrapScoped(
    Effect.map(schema, (url) => Postgres.layer({ url: Redacted.make(url), clock: "program", ...options }))
  )

export const postgres = postgresWith({})

/** Empties the store of the surroundings, which is sooner done than to make another one. */
export const emptied = Effect.gen(function* () {
  const sql = yield* WriteClient
  yield* sql`TRUNCATE conversations, runs, events, messages RESTART IDENTITY CASCADE`
  return yield* RunStore
})
