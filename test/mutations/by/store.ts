import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as MemoryStore from "../../../src/store/MemoryStore.js"
import * as StoreContract from "../../../src/testing/StoreContract.js"
import { sqlite } from "../../store/support.js"
import { contract } from "./support.js"

await contract(
  StoreContract.cases.flatMap(({ name, run }) => [
    { name: `${name} (memory)`, run: Effect.provide(run, Layer.fresh(MemoryStore.layer)) },
    { name: `${name} (SQLite)`, run: Effect.provide(run, Layer.fresh(sqlite)) }
  ])
)
