import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import * as StoreContract from "../../src/testing/StoreContract.js"
import { sqlite } from "./support.js"

describe("memory", () => {
  for (const { name, run } of StoreContract.cases) it.effect(name, () => Effect.provide(run, MemoryStore.layer))
})

describe("SQLite", () => {
  for (const { name, run } of StoreContract.cases) it.effect(name, () => Effect.provide(run, sqlite))
})
