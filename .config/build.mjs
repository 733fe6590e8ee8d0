// Builds everything that is published: the library, the server as one file, and the page.
// With `--server` only what `runlet serve` needs, which takes a second instead of half a minute.
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const root = join(dirname(fileURLToPath(import.meta.url)), "..")
const dist = join(root, "dist")
const serverOnly = process.argv.includes("--server")

/** Emits JavaScript and declarations for every module but the page's. */
const library = () => {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  // Built beside the old one, so that a mistake in the sources does not take a working build away.
  const next = `${dist}.next`
  rmSync(next, { recursive: true, force: true })
  const project = join(root, ".config/tsconfig.build.json")
  const result = spawnSync(process.execPath, [tsc, "-p", project, "--outDir", next], { cwd: root, stdio: "inherit" })
  if (result.status !== 0) {
    rmSync(next, { recursive: true, force: true })
    process.exit(result.status ?? 1)
  }
  rmSync(dist, { recursive: true, force: true })
  renameSync(next, dist)
}

/** Counts tokens with megabytes of tables, which nobody asks for here. */
const withoutTokenizers = {
  name: "without-tokenizers",
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^(gpt-tokenizer|@anthropic-ai\/tokenizer)/ }, ({ path }) => ({ path, namespace: "tokenizer" }))
    onLoad({ filter: /.*/, namespace: "tokenizer" }, () => ({
      contents: "export const encode = undefined, getTokenizer = undefined; export default undefined"
    }))
  }
}

/**
 * One file that starts in half a second, and beside it what only some configurations need. The native database driver
 * can not be part of it.
 */
const server = async () => {
  rmSync(join(dist, "bin"), { recursive: true, force: true })
  await build({
    absWorkingDir: root,
    entryPoints: ["src/cli/bin.ts"],
    outdir: "dist",
    splitting: true,
    chunkNames: "bin/[name]-[hash]",
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    external: ["better-sqlite3"],
    banner: {
      js: [
        'import { createRequire as __createRequire } from "node:module"',
        "const require = __createRequire(import.meta.url)"
      ].join("\n")
    },
    plugins: [withoutTokenizers],
    legalComments: "none",
    logLevel: "warning"
  })
}

/** Every HTML file of the page's room, with the scripts and styles that it names, under names that tell their content. */
const page = async () => {
  const from = join(root, "src/web")
  if (!existsSync(from)) return
  const { build: bundle } = await import("vite")
  await bundle({
    configFile: false,
    root: from,
    logLevel: "warn",
    build: {
      outDir: join(dist, "web"),
      emptyOutDir: true,
      target: "es2022",
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      rollupOptions: { input: readdirSync(from).flatMap((file) => (file.endsWith(".html") ? [join(from, file)] : [])) }
    }
  })
}

if (!serverOnly) library()
await Promise.all([server(), page()])
