import { writeFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Envelope } from "../../src/domain/Envelope.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { sqlite } from "../store/support.js"
import { fileOf, golden } from "./files.js"
import { logOf, scenarios } from "./scenarios.js"

/**
 * Logs as they were when somebody last looked at them closely. They are the protocol as clients have it: a difference
 * is either a mistake or a change that clients will notice. `RUNLET_GOLDEN=update npx vitest run test/golden` writes
 * them anew, for `git diff` to show what has changed.
 */
const update = process.env.RUNLET_GOLDEN === "update"

describe.each(scenarios)("$title", (scenario) => {
  it.effect("has the log that it always had, in memory", () =>
    Effect.gen(function* () {
      const log = yield* logOf(scenario)
      if (update) writeFileSync(fileOf(scenario.name), `${log.join("\n")}\n`)
      expect(log).toEqual(golden(scenario.name))
    }).pipe(Effect.provide(MemoryStore.layer))
  )

  it.effect("has the log that it always had, in SQLite", () =>
    Effect.gen(function* () {
      expect(yield* logOf(scenario)).toEqual(golden(scenario.name))
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("is a log: without holes, of envelopes, with one end", () =>
    Effect.gen(function* () {
      const log = yield* Effect.forEach(golden(scenario.name), (line) =>
        Schema.decodeUnknown(Schema.parseJson(Envelope))(line)
      )
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
      const ends = log.filter(({ event }) => ["finish", "cancelled", "error"].includes(event.type))
      expect(ends).toEqual([log.at(-1)])
    })
  )
})
