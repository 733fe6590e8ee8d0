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

const bundle = (entry) =>
  build({
    absWorkingDir: root,
    ...(Array.isArray(entry) ? { entryPoints: entry } : entry),
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
    external: ["node:*", "react"],
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

// What a client folds is what it is made of: nothing but its own text may come with it.
const pure = ["src/domain/RunView.ts", "src/domain/RunStatus.ts", "src/domain/Snapshot.ts"]
const small = await bundle(pure)
for (const input of Object.keys(small.metafile.inputs)) {
  if (!pure.includes(input)) problems.push(`the fold brings ${input} along`)
}

// What a page pays for the client: its own text, and the fold that it shares with the server.
const whole = "src/client/index.ts"
const client = await bundle([whole])
for (const input of Object.keys(client.metafile.inputs)) {
  if (!pure.includes(input) && !input.startsWith("src/client/")) problems.push(`the client brings ${input} along`)
}
const used = await bundle({
  stdin: { contents: `export { makeClient } from "./${whole}"`, resolveDir: root, loader: "ts" }
})
const budget = (what, { outputFiles }, most) => {
  const size = outputFiles.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0)
  console.log(`${what}  ${size} of ${most} bytes gzipped`)
  if (size > most) problems.push(`${what} is larger than ${most} bytes`)
}
budget("makeClient", used, 5000)
budget("everything of runlet/client", client, 5200)

for (const { path, contents } of small.outputFiles) {
  console.log(`${path.slice(path.indexOf("/out/") + 5)}  ${(gzipSync(contents).length / 1024).toFixed(1)} kB gzipped`)
}
if (problems.length > 0) {
  for (const problem of problems) console.error(problem)
  process.exit(1)
}
console.log(`${safe.length} modules are safe for browsers`)
