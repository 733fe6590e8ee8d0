// `npm run soak [minutes]`: the random tests, over and over with new dice, for as long as it is told (default 10).
// Each round prints its seed; `RUNLET_SEED` with that seed repeats it.
import { spawnSync } from "node:child_process"
import { randomInt } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const minutes = Number(process.argv[2] ?? 10)
if (!Number.isFinite(minutes) || minutes <= 0) {
  process.stderr.write("Usage: npm run soak [minutes]\n")
  process.exit(2)
}

/** Files whose properties name no seed of their own (see `test/dice.ts`); those of whole runs are in the list below. */
const properties = readdirSync(join(root, "test"), { recursive: true })
  .map((file) => join("test", String(file)))
  .filter((file) => /\.test\.tsx?$/.test(file) && !/^test.(?:bench|providers|testing)/.test(file))
  .filter((file) => /\b(?:it|effect|scoped)\.prop\(|FastCheck\.assert\(/.test(readFileSync(join(root, file), "utf8")))

const until = Date.now() + minutes * 60_000
do {
  const seed = process.env.RUNLET_SEED ?? String(randomInt(1, 2 ** 31))
  process.stdout.write(`\nSoak round with RUNLET_SEED=${seed}\n`)
  const env = {
    RUNLET_CASES: "5000",
    RUNLET_KILLS: "216",
    RUNLET_KILL_MINUTES: "5",
    RUNLET_RETAINED: "1000",
    RUNLET_FLEET_RUNS: "300",
    RUNLET_FLEET_SECONDS: "120",
    ...process.env,
    RUNLET_SEED: seed
  }
  const vitest = join(root, "node_modules/vitest/vitest.mjs")
  const { status } = spawnSync(
    process.execPath,
    [
      vitest,
      "run",
      ...properties,
      "test/node/Migrate.test.ts",
      "test/postgres/migrate.test.ts",
      "test/testing",
      "test/kill/kill.test.ts",
      "test/kill/minute.test.ts",
      "test/faults/retention.test.ts",
      "test/fleet/load.test.ts",
      "--testTimeout",
      "3600000"
    ],
    { cwd: root, env, stdio: "inherit" }
  )
  if (status !== 0) process.exit(status ?? 1)
} while (Date.now() < until)
