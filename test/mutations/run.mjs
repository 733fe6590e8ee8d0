/**
 * Makes each mistake of the list in a copy of the sources, and sees whether the kit notices; without any mistake, it
 * must not. Ends with 1 when a mistake lives, or when the list does not fit the sources any more.
 *
 * `npm run test:mutations [words of a name]`. `RUNLET_CASES`: cases for each mistake, `RUNLET_SEED`: their dice,
 * `RUNLET_JOBS`: how many mistakes at once, `RUNLET_PART`: `2/3` is the second third of them.
 */
import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { availableParallelism, tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { mutations } from "./mutations.mjs"

const root = fileURLToPath(new URL("../..", import.meta.url))
const wanted = process.argv.slice(2).join(" ")
const jobs = Number(process.env.RUNLET_JOBS ?? Math.max(1, availableParallelism() - 1))
/**
 * What never comes back is cut off long after every case should have been through: by the seconds of a processor that it
 * has used, which are the same on a busy machine, and in the end by the clock.
 */
const limit = { processorSeconds: 1_800, clockMs: 6 * 3_600_000 }

/** The sources with the edits of a mistake. */
const edited = async ({ edits }) => {
  const sources = new Map()
  for (const { file, find, replace } of edits) {
    const path = resolve(root, "src", file)
    const source = sources.get(path) ?? (await readFile(path, "utf8"))
    if (source.split(find).length !== 2) throw new Error(`its place was not found once in src/${file}`)
    sources.set(
      path,
      source.replace(find, () => replace)
    )
  }
  return sources
}

const bundle = async (mutation, by, outfile) => {
  const sources = mutation === undefined ? new Map() : await edited(mutation)
  await build({
    entryPoints: [join(root, `test/mutations/by/${by}.ts`)],
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
          it.onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
            const contents = sources.get(path)
            return contents === undefined ? undefined : { contents, loader: "ts", resolveDir: dirname(path) }
          })
        }
      }
    ]
  })
}

const run = (file, only) =>
  new Promise((done) => {
    const env = { ...process.env, RUNLET_ONLY: only ?? "" }
    const limited = ["-c", `ulimit -t ${limit.processorSeconds}; exec "$0" "$1"`, process.execPath, file]
    const child = spawn("sh", limited, { cwd: root, env, stdio: ["ignore", "pipe", "ignore"] })
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += chunk
    })
    const timer = setTimeout(() => child.kill("SIGKILL"), limit.clockMs)
    child.on("close", (code) => {
      clearTimeout(timer)
      const line = text.trim().split("\n").at(-1)
      done(line ? JSON.parse(line) : { error: code === null ? "it does not come back" : `it ends with ${code}` })
    })
  })

// The bundles are near the packages that they leave outside.
const folder = await mkdtemp(join(root, "node_modules", ".runlet-mutations-")).catch(() =>
  mkdtemp(join(tmpdir(), "runlet-mutations-"))
)
const [part = 1, parts = 1] = (process.env.RUNLET_PART ?? "1/1").split("/").map(Number)
const named = mutations.filter(({ name }) => name.includes(wanted))
const bound = (of) => Math.round((named.length * of) / parts)
const chosen = named.slice(bound(part - 1), bound(part))
if (chosen.length === 0) {
  console.error(`No mistake of the ${mutations.length} is meant by this.`)
  process.exit(2)
}
const began = Date.now()
const minutes = () => `${((Date.now() - began) / 60_000).toFixed(1)} minutes`
// Once for all parts.
const sound =
  part === 1 ? [...new Set(named.map(({ by }) => by))].map((by) => ({ name: `(no mistake, by ${by})`, by })) : []
const tasks = [...sound.map((task) => ({ ...task, sound: true })), ...chosen]
const failures = []
const counts = new Map()

const tryOne = async (task, index) => {
  const file = join(folder, `${index}.mjs`)
  let outcome
  const start = Date.now()
  try {
    await bundle(task.sound ? undefined : task, task.by, file)
    outcome = await run(file, task.only)
  } catch (error) {
    outcome = { error: String(error.message) }
  }
  const good = outcome.error === undefined && outcome.killed === !task.sound
  if (!good) failures.push(task.name)
  if (!task.sound) counts.set(task.by, (counts.get(task.by) ?? 0) + 1)
  const word =
    outcome.error ??
    (outcome.killed ? `${String(outcome.cases).padStart(5)}  ${outcome.law}` : `lives ${outcome.cases} cases`)
  console.log(
    `${good ? "ok  " : "FAIL"}  ${task.name.padEnd(62)}  ${task.by.padEnd(8)}  ${word}  (${Math.round((Date.now() - start) / 1000)} s)`
  )
  await rm(file, { force: true })
}

try {
  console.log(`      ${"mistake".padEnd(62)}  ${"looked at".padEnd(8)} case  noticed by`)
  const queue = tasks.entries()
  const worker = async () => {
    for (const [index, task] of queue) await tryOne(task, index)
  }
  await Promise.all(Array.from({ length: jobs }, worker))
  const kinds = [...counts].map(([by, count]) => `${count} by ${by}`).join(", ")
  console.log(
    failures.length === 0
      ? `\nAll ${chosen.length} mistakes were noticed (${kinds})${part === 1 ? ", and none where there was none" : ""}, in ${minutes()}.`
      : `\n${failures.length} of ${tasks.length} went wrong, in ${minutes()}: ${failures.join("; ")}`
  )
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.exit(failures.length === 0 ? 0 : 1)
