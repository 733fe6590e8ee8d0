import * as Stores from "../../src/testing/Stores.js"
import { lawsHold } from "./support.js"

// A file costs three times what memory does, and most laws do not care.
lawsHold("SQLite", {
  store: Stores.sqlite,
  cases: Math.ceil(Number(process.env.RUNLET_CASES ?? 1800) / 4),
  first: 10_000
})
