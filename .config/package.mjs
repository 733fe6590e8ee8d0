// What is published, looked at as npm would hand it out: its manifest, its types, and nothing in it that does not belong.
// Needs a build.
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const scratch = mkdtempSync(join(tmpdir(), "runlet-package-"))
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }))

const run = (command, args) => {
  const { stdout, stderr, status } = spawnSync(command, args, { cwd: root, encoding: "utf8" })
  if (status === 0) return stdout
  console.error(stdout, stderr)
  process.exit(1)
}

const [{ filename, files }] = JSON.parse(
  run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", scratch])
)
const strange = files.filter(
  ({ path }) => !/^(dist|src)\/|^(README|CHANGELOG)\.md$|^LICENSE$|^package\.json$/.test(path)
)
if (strange.length > 0) {
  console.error("The package holds what nobody needs:", strange.map(({ path }) => path).join(", "))
  process.exit(1)
}
const tarball = join(scratch, filename)
run("npx", ["publint", "run", tarball, "--strict"])
run("npx", ["attw", tarball, "--profile", "esm-only"])
console.log(`${filename}: ${files.length} files, manifest and types as they should be`)
