import * as Data from "../support/Data.js"
import { overFleet } from "../support/Scenarios.js"

Data.describeFleet("three servers behind a proxy", async (open) => {
  overFleet(open)
  await import("../../e2e/canary.test.js")
})
