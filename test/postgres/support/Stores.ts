import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Postgres from "../../../src/store/Postgres.js"
import { schema } from "./Database.js"

/** An empty store of its own, whose time is the test's. */
export const postgres = Layer.unwrapScoped(
  Effect.map(schema, (url) => Postgres.layer({ url: Redacted.make(url), clock: "program" }))
)
