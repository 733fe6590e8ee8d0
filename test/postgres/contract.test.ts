import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as StoreContract from "../../src/testing/StoreContract.js"
import { describePostgres } from "./support/Database.js"
import { emptied, postgres } from "./support/Stores.js"

describePostgres("PostgreSQL", () => {
  layer(postgres)((it) => {
    for (const { name, run } of StoreContract.cases) it.effect(name, () => Effect.zipRight(emptied, run))
  })
})
