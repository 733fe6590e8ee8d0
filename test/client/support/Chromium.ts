/**
 * A real Chromium: the one that is named or installed, else the one of the development dependencies, unpacked once.
 * Without any, this fails and says what to do.
 */
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Browser, chromium } from "playwright-core"

const version = "143.0.4"
const cache = fileURLToPath(new URL(`../../../node_modules/.cache/chromium-${version}`, import.meta.url))

const libraries = (directory: string) => ({
  ...process.env,
  LD_LIBRARY_PATH: [join(directory, "al2023/lib"), process.env.LD_LIBRARY_PATH].filter(Boolean).join(":")
})

const starts = (path: string, env: NodeJS.ProcessEnv): boolean =>
  existsSync(path) && spawnSync(path, ["--version", "--no-sandbox"], { env, timeout: 30_000 }).status === 0

/** Workers of a test run may come at once: each unpacks for itself, and the first to be done wins. */
const unpacked = async (): Promise<string> => {
  if (existsSync(join(cache, "chromium"))) return cache
  const own = mkdtempSync(join(tmpdir(), "runlet-chromium-"))
  const before = process.env.TMPDIR
  // Both are read when the package is loaded.
  process.env.AWS_LAMBDA_JS_RUNTIME = "nodejs20.x"
  process.env.TMPDIR = own
  try {
    const { default: packed } = await import("@sparticuz/chromium")
    await packed.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
  mkdirSync(join(cache, ".."), { recursive: true })
  const aside = mkdtempSync(`${cache}-`)
  cpSync(own, aside, { recursive: true })
  rmSync(own, { recursive: true, force: true })
  try {
    renameSync(aside, cache)
  } catch {
    rmSync(aside, { recursive: true, force: true })
  }
  return cache
}

interface Found {
  readonly executablePath: string
  readonly env: NodeJS.ProcessEnv
}

const find = async (): Promise<Found> => {
  const installed = [process.env.CHROMIUM_PATH, "/usr/bin/chromium", "/usr/bin/google-chrome"]
  for (const executablePath of installed) {
    if (executablePath !== undefined && starts(executablePath, process.env)) return { executablePath, env: process.env }
  }
  const directory = await unpacked()
  const executablePath = join(directory, "chromium")
  for (const env of [process.env, libraries(directory)]) {
    if (starts(executablePath, env)) return { executablePath, env }
  }
  throw new Error("No Chromium starts here. Install one, or name it: CHROMIUM_PATH=/path/to/chromium npm test")
}

export const launch = async (): Promise<Browser> => {
  const { env, executablePath } = await find()
  return chromium.launch({
    executablePath,
    env: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    ),
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync"
    ]
  })
}
