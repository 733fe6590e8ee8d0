// Bundles the benchmark and its subjects, so that modules are loaded as a published server loads them, and runs it.
import { spawnSync } from "node:child_process"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const here = dirname(fileURLToPath(import.meta.url))

await build({
  absWorkingDir: here,
  entryPoints: ["bench.ts", "subject.ts", "upstream.ts"],
  outdir: ".build",
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
  legalComments: "none",
  logLevel: "warning"
})

const { signal, status } = spawnSync(process.execPath, [join(here, ".build/bench.js"), ...process.argv.slice(2)], {
  stdio: "inherit"
})
process.exitCode = signal === null ? (status ?? 1) : 1
