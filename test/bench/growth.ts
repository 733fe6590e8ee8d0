/**
 * How much a run stores for each of its iterations, at 10, 100 and 1000 of them, and how long its snapshot takes then.
 * Fails when the bytes of an iteration grow with the number of iterations.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { checkpointBytes, look, play, sizes } from "./Rounds.js"

const rounds = [10, 100, 1000]
const dir = mkdtempSync(join(tmpdir(), "runlet-growth-"))

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const measure = async (iterations: number) => {
  const file = join(dir, `${iterations}.db`)
  const began = Date.now()
  const runId = await play(file, iterations)
  const seconds = (Date.now() - began) / 1000
  const { ms } = await look(file, runId, 20)
  const tables = sizes(file)
  const total = [...tables.values()].reduce((sum, bytes) => sum + bytes, 0)
  return { iterations, seconds, tables, total, snapshotMs: median(ms), checkpoints: checkpointBytes(file) }
}

try {
  // What a database without a run takes is no growth.
  const nothing = join(dir, "0.db")
  await play(nothing, 0)
  const empty = sizes(nothing)
  const base = [...empty.values()].reduce((sum, bytes) => sum + bytes, 0)
  const all: Array<Awaited<ReturnType<typeof measure>>> = []
  for (const n of rounds) all.push(await measure(n))
  const perIteration = all.map(({ iterations, total }) => (total - base) / iterations)
  const names = [...(all.at(-1)?.tables.keys() ?? [])].filter((name) => (all.at(-1)?.tables.get(name) ?? 0) > 4096 * 2)
  const grown = (table: string) =>
    all.map(({ iterations, tables }) => Math.round(((tables.get(table) ?? 0) - (empty.get(table) ?? 0)) / iterations))
  const row = (name: string, cells: ReadonlyArray<number | string>) =>
    console.info(name.padEnd(34) + cells.map((cell) => String(cell).padStart(12)).join(""))
  row("iterations", rounds)
  row("bytes per iteration", perIteration.map(Math.round))
  for (const name of names) row(`  ${name}`, grown(name))
  row(
    "file, bytes",
    all.map(({ total }) => total)
  )
  row(
    "checkpoint events, bytes",
    all.map(({ checkpoints }) => checkpoints)
  )
  row(
    "snapshot, ms (median of 20)",
    all.map(({ snapshotMs }) => snapshotMs.toFixed(1))
  )
  row(
    "run, s",
    all.map(({ seconds }) => seconds.toFixed(1))
  )
  const [, hundred = Number.NaN, thousand = Number.NaN] = perIteration
  const ratio = thousand / hundred
  console.info(`bytes per iteration, 1000 against 100: ${ratio.toFixed(3)} (at most 1.1)`)
  if (!(ratio <= 1.1)) process.exitCode = 1
} finally {
  rmSync(dir, { recursive: true, force: true })
}
