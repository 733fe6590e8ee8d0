/**
 * Makes each mistake of the list in a copy of the sources and runs cases until a law notices; first none, which must
 * live. Ends with 1 when a mistake lives, or when the list does not fit the sources any more.
 *
 * `node test/mutations/run.mjs [words of a name]`; `RUNLET_CASES` and `RUNLET_SEED` as for the tests.
 */
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { mutations } from "./mutations.mjs"

const root = fileURLToPath(new URL("../..", import.meta.url))
const wanted = process.argv.slice(2).join(" ")
/** A case that never ends is cut off long after all cases should have. */
const limitMs = 2 * Number(process.env.RUNLET_MS ?? 600_000) + 60_000

const bundle = async (mutation, outfile) => {
  const path = mutation && resolve(root, mutation.file)
  const source = path && (await readFile(path, "utf8"))
  if (source !== undefined && source.split(mutation.find).length !== 2) throw new Error("its place was not found once")
  await build({
    entryPoints: [join(root, "test/mutations/cases.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    outfile,
    external: ["better-sqlite3"],
    logLevel: "silent",
    banner: { js: 'import { createRequire } from "module"; const require = createRequire(import.meta.url);' },
    plugins: [
      {
        name: "mutation",
        setup: (it) => {
          it.onLoad({ filter: /\.ts$/ }, ({ path: loaded }) =>
            loaded === path
              ? { contents: source.replace(mutation.find, () => mutation.replace), loader: "ts" }
              : undefined
          )
        }
      }
    ]
  })
}

const run = (file) =>
  new Promise((done) => {
    const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "ignore"] })
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += chunk
    })
    // Something that never ends is noticed, too, but by nobody's law.
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs)
    child.on("close", (code) => {
      clearTimeout(timer)
      const line = text.trim().split("\n").at(-1)
      done(line ? JSON.parse(line) : { killed: code !== 0, cases: 0, law: code === null ? "time" : `exit ${code}` })
    })
  })

const folder = await mkdtemp(join(tmpdir(), "runlet-mutations-"))
let failed = 0
try {
  const chosen = mutations.filter((mutation) => mutation.name.includes(wanted))
  for (const [index, mutation] of [...(wanted === "" ? [undefined] : []), ...chosen].entries()) {
    const name = mutation?.name ?? "(none)"
    let outcome
    try {
      const file = join(folder, `${index}.mjs`)
      await bundle(mutation, file)
      outcome = await run(file)
    } catch (error) {
      outcome = { killed: false, cases: 0, error: String(error.message) }
    }
    const good = mutation === undefined ? !outcome.killed : outcome.killed
    if (!good) failed++
    const word =
      outcome.error ?? (outcome.killed ? `case ${outcome.cases}: ${outcome.law}` : `lived ${outcome.cases} cases`)
    console.log(`${good ? "ok  " : "FAIL"} ${name.padEnd(58)} ${word}`)
  }
  console.log(failed === 0 ? `all ${chosen.length} were noticed` : `${failed} went wrong`)
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.exit(failed === 0 ? 0 : 1)
