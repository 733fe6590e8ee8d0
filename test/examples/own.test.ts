import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect, FastCheck, Schema } from "effect"
import { EffectTool, ResumePolicy } from "runlet"
import { Runlet } from "runlet/node"
import { Arbitraries, Cases, Stores } from "runlet/testing"

const countWords = EffectTool.make({
  name: "count_words",
  description: "Counts the words of a text",
  kind: "readonly",
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({ words: Schema.Int }),
  execute: ({ text }) => Effect.succeed({ words: text.split(/\s+/).filter((word) => word !== "").length })
})

// What the model may call: a tool by its name, with an input. The model also says things, fails, and is cut off.
const calls = FastCheck.record({
  call: FastCheck.constant("count_words"),
  input: FastCheck.record({ text: FastCheck.string() })
})

const policy = ResumePolicy.of((facts) => ResumePolicy.keepDraft(facts))

// Empty data for each case, and the layer that every process opens it with.
const store: Stores.Store = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "own-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
).pipe(Effect.map((folder) => Stores.open(Runlet.layerStore({ filename: join(folder, "runs.db") }))))

it.prop(
  "runs with it keep every law, whatever breaks",
  [Arbitraries.planOf(calls)],
  ([plan]) => Cases.hold(plan, { tools: [countWords], policy, store }),
  { fastCheck: { numRuns: 5 }, timeout: 60_000 }
)
