import { readdirSync, readFileSync } from "node:fs"
import { describe, it } from "@effect/vitest"
import * as Cases from "../../src/testing/Cases.js"
import * as Stores from "../../src/testing/Stores.js"

const folder = new URL("found/", import.meta.url)

describe("cases that once broke a law, as they were found and shrunk", () => {
  for (const [where, store] of [
    ["memory", Stores.memory],
    ["SQLite", Stores.sqlite]
  ] as const) {
    for (const name of readdirSync(folder).sort()) {
      it(`${name}, over ${where}`, () => Cases.hold(JSON.parse(readFileSync(new URL(name, folder), "utf8")), { store }))
    }
  }
})
