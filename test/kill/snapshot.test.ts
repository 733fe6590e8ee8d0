import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { forgetClosedTurns, look, play, sizes } from "../bench/Rounds.js"

const dir = mkdtempSync(join(tmpdir(), "runlet-turns-"))

afterAll(() => rmSync(dir, { recursive: true, force: true }))

it("the snapshot of a long run is read from its turns, not from the whole log", async () => {
  const file = join(dir, "whole.db")
  const runId = await play(file, 60)
  const { snapshot } = await look(file, runId)
  expect(snapshot.toolCalls).toHaveLength(60)
  expect(snapshot.status).toBe("completed")
  // Everything in one file, without a log beside it.
  sizes(file)
  const cut = join(dir, "cut.db")
  copyFileSync(file, cut)
  const { left, removed } = forgetClosedTurns(cut)
  expect(removed).toBeGreaterThan(500)
  expect(left).toBeLessThan(20)
  expect((await look(cut, runId)).snapshot).toEqual(snapshot)
})
