import { execFileSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, expect, test } from "vitest"
import * as World from "../e2e/support/World.js"
import * as Disk from "./support/Disk.js"

let cleanup: Array<() => unknown> = []
afterEach(async () => {
  for (const one of cleanup.reverse()) await one()
  cleanup = []
})

/** A directory that can be made read-only: for whoever may mount a disk of its own, else by its mode. */
const directory = () => {
  const disk = Disk.make(16 * 1024 * 1024)
  if (typeof disk !== "string") {
    cleanup.push(disk.stop)
    const mount = (mode: string) => () => execFileSync("mount", ["-o", `remount,${mode}`, disk.path])
    return { path: disk.path, lock: mount("ro"), unlock: mount("rw") }
  }
  const path = mkdtempSync(join(tmpdir(), "runlet-readonly-"))
  cleanup.push(() => rmSync(path, { recursive: true, force: true }))
  const mode = (all: number, one: number) => () => {
    chmodSync(join(path, "runlet.db"), one)
    chmodSync(path, all)
  }
  return { path, lock: mode(0o555, 0o444), unlock: mode(0o755, 0o644) }
}

test("a server whose data may not be written says so at its start, and starts when it may", async () => {
  const { lock, path, unlock } = directory()
  const world = await World.start({ directory: path })
  cleanup.push(world.stop)
  const run = await world.client.start("Before")
  await world.client.settled(run.runId)
  await world.server().stop()
  lock()
  const begun = Date.now()
  const message = await world.restart().then(
    () => "ready",
    (error: Error) => error.message
  )
  expect(Date.now() - begun).toBeLessThan(15_000)
  expect(message).toMatch(/ended with 1 /)
  expect(message).toContain(`The database ${world.data} can not be opened. Check that it may be written`)
  expect(message).not.toMatch(/\n\s+at |Sqlite(Error)?:/)
  unlock()
  await world.restart()
  expect((await world.client.snapshot(run.runId)).status).toBe("completed")
  await world.check(run)
}, 60_000)
