import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { build } from "esbuild"
import { eventually } from "../e2e/support/Waiting.js"

const root = join(__dirname, "../..")

/** Bundled where its packages are found. */
const bundles = join(root, "node_modules/.cache/runlet-examples")

/** Makes one file of a program, that Node can run. */
export const bundle = async (source: string, name: string): Promise<string> => {
  mkdirSync(bundles, { recursive: true })
  const outfile = join(mkdtempSync(join(bundles, `${name}-`)), "main.mjs")
  await build({
    absWorkingDir: root,
    stdin: { contents: source, resolveDir: __dirname, sourcefile: `${name}.ts`, loader: "ts" },
    outfile,
    bundle: true,
    packages: "external",
    alias: {
      runlet: join(root, "src/index.ts"),
      "runlet/node": join(root, "src/node/index.ts"),
      "runlet/ai": join(root, "src/ai.ts"),
      "runlet/testing": join(root, "src/testing/index.ts")
    },
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "silent"
  })
  return outfile
}

/** A running program, in a directory of its own. */
export interface Program {
  readonly child: ChildProcessWithoutNullStreams
  readonly cwd: string
  readonly output: () => string
  readonly ended: Promise<number | null>
  /** Ends it, if it still runs, and cleans up behind it. */
  readonly close: () => Promise<void>
}

/** Starts a bundled program. */
export const start = (file: string, env: Record<string, string> = {}, args: ReadonlyArray<string> = []): Program => {
  const cwd = mkdtempSync(join(tmpdir(), `runlet-${basename(file)}-`))
  const child = spawn(process.execPath, [file, ...args], { cwd, env: { PATH: process.env.PATH, ...env } })
  let output = ""
  child.stdout.on("data", (piece) => {
    output += piece
  })
  let errors = ""
  child.stderr.on("data", (piece) => {
    errors += piece
  })
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  return {
    child,
    cwd,
    output: () => output + errors,
    ended,
    close: async () => {
      if (child.exitCode === null) child.kill("SIGKILL")
      await ended
      rmSync(cwd, { recursive: true, force: true })
      rmSync(join(file, ".."), { recursive: true, force: true })
    }
  }
}

/** Waits until a program has printed this, and answers with what was found. */
export const printed = (program: Program, wanted: RegExp): Promise<RegExpExecArray> =>
  eventually(`the program to print ${wanted}`, () => wanted.exec(program.output()) ?? undefined)

/** Runs a program to its end: its exit code and everything it printed. */
export const run = async (
  source: string,
  name: string
): Promise<{ readonly code: number | null; readonly output: string }> => {
  const program = start(await bundle(source, name))
  try {
    const code = await program.ended
    return { code, output: program.output() }
  } finally {
    await program.close()
  }
}
