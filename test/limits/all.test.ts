import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import * as Limits from "../../src/domain/Limits.js"

/** What is tested where the thing is that it bounds. */
const elsewhere: Record<string, string> = {
  heartbeatMs: "../http/Handlers.test.ts",
  shutdownGraceMs: "../http/Drain.test.ts"
}

test("every limit is tested", () => {
  const here = readdirSync(__dirname).flatMap((name) =>
    name.endsWith(".ts") ? [readFileSync(join(__dirname, name), "utf8")] : []
  )
  for (const key of Object.keys(Limits.defaults)) {
    const file = elsewhere[key]
    const texts = file === undefined ? here : [readFileSync(join(__dirname, file), "utf8")]
    expect([key, texts.some((text) => new RegExp(`\\b${key}\\b`).test(text))]).toEqual([key, true])
  }
})
