// Installs the providers' packages beside this file, as a program would that uses them, and runs their tests.
import { spawnSync } from "node:child_process"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const bin = join(here, "../../node_modules/.bin")

const run = (command, args) => {
  const { status } = spawnSync(command, args, { cwd: here, stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}

run("npm", ["ci", "--strict-peer-deps", "--ignore-scripts"])
run(join(bin, "tsc"), ["-p", "."])
run(join(bin, "vitest"), ["run", "--config", "vitest.config.ts"])
