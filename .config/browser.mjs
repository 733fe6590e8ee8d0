// Bundles every browser-safe module the way a page would, and fails when something of Node.js is in it.
import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")

const modules = (directory) =>
  existsSync(join(root, directory))
    ? readdirSync(join(root, directory), { recursive: true })
        .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"))
        .map((file) => join(directory, file))
    : []

const bundle = (entryPoints, apart = []) =>
  build({
    absWorkingDir: root,
    entryPoints,
    outdir: "out",
    outbase: "src",
    write: false,
    bundle: true,
    minify: true,
    metafile: true,
    platform: "browser",
    target: "es2022",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    // A package that a module needs optionally stays outside; a module of Node.js is an error below.
    external: ["node:*", "react", ...apart],
    logLevel: "warning"
  })

const problems = []
const safe = [
  ...modules("src/domain"),
  ...modules("src/client"),
  ...modules("src/adapters"),
  ...["src/http/RunsApi.ts", "src/http/RunsSchemas.ts", "src/http/AdaptersApi.ts", "src/http/Sse.ts"].filter((file) =>
    existsSync(join(root, file))
  ),
  ...modules("src/web")
]
const all = await bundle(safe)
for (const [input, { imports }] of Object.entries(all.metafile.inputs)) {
  for (const { path } of imports) {
    if (path.startsWith("node:")) problems.push(`${input} imports ${path}`)
    if (/platform-node|better-sqlite3/.test(path)) problems.push(`${input} imports ${path}`)
  }
}

// The fold is what a small client is made of: nothing but its own text may come with it.
const pure = ["src/domain/RunState.ts", "src/domain/RunStatus.ts", "src/domain/Snapshot.ts"]
const small = await bundle(pure)
for (const input of Object.keys(small.metafile.inputs)) {
  if (!pure.includes(input)) problems.push(`the fold brings ${input} along`)
}

// What a page pays for the client: its own text, and with the fold that it shares with the server. Taking away a thing
// at a time shows where it goes: 1.1 kB the reducer of events, 0.7 the way from a snapshot to a state, 0.6 the calls of
// the server, 0.3 watching with all its ends, 0.2 sharing between tabs, 0.1 each for finding a run again, repeating a start
// safely, reading frames, and what only the engine needs of a state. Names are nearly free: they repeat. So less than
// 5 kB needs less to do, such as a state of the client's own in place of the shared one.
const entry = ["src/client/index.ts"]
const isFold = (input) => input.startsWith("src/domain/")
const client = await bundle(entry)
for (const input of Object.keys(client.metafile.inputs)) {
  if (!isFold(input) && !input.startsWith("src/client/")) problems.push(`the client brings ${input} along`)
}
const sizeOf = ({ outputFiles }) => outputFiles.reduce((sum, { contents }) => sum + gzipSync(contents).length, 0) / 1024
const budget = (what, size, most) => {
  console.log(`${what}  ${size.toFixed(1)} of ${most} kB gzipped`)
  if (size > most) problems.push(`${what} is larger than ${most} kB`)
}
budget("client without the fold", sizeOf(await bundle(entry, ["../domain/*"])), 4.1)
budget("client", sizeOf(client), 6.2)

for (const { path, contents } of small.outputFiles) {
  console.log(`${path.slice(path.indexOf("/out/") + 5)}  ${(gzipSync(contents).length / 1024).toFixed(1)} kB gzipped`)
}
if (problems.length > 0) {
  for (const problem of problems) console.error(problem)
  process.exit(1)
}
console.log(`${safe.length} modules are safe for browsers`)
