import { it } from "@effect/vitest"
import { agrees, commands } from "../store/differential.js"
import { describePostgres } from "./support/Database.js"
import { postgres } from "./support/Stores.js"

describePostgres("memory and PostgreSQL", () => {
  it.scoped.prop("answer the same to everything", { script: commands }, ({ script }) => agrees(postgres, script), {
    fastCheck: { numRuns: Number(process.env.RUNLET_DIFFERENTIAL ?? 2) },
    timeout: 300_000
  })
})
