// `npm start`: builds the server when it is missing or older than its sources, then becomes it. The server runs in
// this very process, so that a signal reaches it directly and its exit code is ours.
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, "..")
const bin = join(root, "dist/bin.js")

const changedSince = (time, path) => {
  const stat = statSync(path)
  return stat.isDirectory()
    ? stat.mtimeMs > time || readdirSync(path).some((name) => changedSince(time, join(path, name)))
    : stat.mtimeMs > time
}

const stale = () => {
  if (!existsSync(bin)) return true
  const built = statSync(bin).mtimeMs
  return ["src", "package.json", ".config/build.mjs"].some((path) => changedSince(built, join(root, path)))
}

if (existsSync(join(root, "src")) && stale()) {
  const result = spawnSync(process.execPath, [join(here, "build.mjs"), "--server"], { cwd: root, stdio: "inherit" })
  if (result.status !== 0) process.exit(result.status ?? 1)
}

process.argv = [process.execPath, bin, "serve", ...process.argv.slice(2)]
await import(pathToFileURL(bin).href)
