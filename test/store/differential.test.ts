import { describe, it } from "@effect/vitest"
import { agrees, commands } from "./differential.js"
import { sqlite } from "./support.js"

describe("memory and SQLite", () => {
  it.scoped.prop("answer the same to everything", { script: commands }, ({ script }) => agrees(sqlite, script), {
    fastCheck: { numRuns: 12 },
    timeout: 120_000
  })
})
