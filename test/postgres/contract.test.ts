import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as StoreContract from "../../src/testing/StoreContract.js"
import { describePostgres } from "./support/Database.js"
import { postgres } from "./support/Stores.js"

describePostgres("PostgreSQL", () => {
  for (const { name, run } of StoreContract.cases) it.effect(name, () => Effect.provide(run, postgres))
})
