/** Servers of the Model Context Protocol as processes, and what they have written down. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { build } from "esbuild"
import type { ServerConfig } from "../../../src/tool/mcp/McpLink.js"
import type { ToolContext } from "../../../src/tool/Tool.js"

const root = join(__dirname, "../../..")

export const token = "mcp-canary-91ab77"

/** What a call knows that nobody looks at closely. */
export const context: ToolContext = {
  user: "u",
  runId: "run_1",
  conversationId: "conv_1",
  toolCallId: "c",
  phase: "execute",
  idempotencyKey: "key-1",
  currentDocument: null,
  progress: () => Effect.void
}

let bundled: Promise<string> | undefined

/** The server as a file that Node can run, bundled where its packages are found. */
export const serverFile = (): Promise<string> => {
  bundled ??= (async () => {
    const cache = join(root, "node_modules/.cache/runlet-mcp")
    mkdirSync(cache, { recursive: true })
    const outfile = join(mkdtempSync(join(cache, "server-")), "main.mjs")
    await build({
      absWorkingDir: root,
      entryPoints: [join(__dirname, "server.ts")],
      outfile,
      bundle: true,
      packages: "external",
      platform: "node",
      target: "node20",
      format: "esm",
      logLevel: "silent"
    })
    return outfile
  })()
  return bundled
}

export interface Line {
  readonly pid: number
  readonly started?: boolean
  readonly listed?: number
  readonly called?: string
  readonly key?: string
  readonly cancelled?: string
  readonly [field: string]: unknown
}

export const journalOf = (file: string): ReadonlyArray<Line> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .trimEnd()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : []

export const eventually = <A>(what: string, look: () => A | undefined): Effect.Effect<A> =>
  Effect.sync(look).pipe(
    Effect.flatMap((found) => (found === undefined ? Effect.fail("not yet") : Effect.succeed(found))),
    Effect.retry(Schedule.spaced("20 millis")),
    Effect.timeout("20 seconds"),
    Effect.orElse(() => Effect.dieMessage(`nobody saw ${what}`))
  )

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export interface Place {
  readonly config: ServerConfig
  readonly journal: () => ReadonlyArray<Line>
  readonly dir: string
  /** Starts it again after its death, where nobody else does. */
  readonly revive: Effect.Effect<void>
}

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-mcp-"))),
  (dir) => Effect.sync(() => rmSync(dir, { recursive: true, force: true }))
)

/** A server that is started by whoever wants to use it. */
export const stdio = (env: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const file = yield* Effect.promise(serverFile)
    const dir = yield* directory
    const journal = join(dir, "journal")
    const all = { JOURNAL: journal, API_TOKEN: token, ...env }
    const place: Place = {
      config: {
        command: process.execPath,
        args: [file],
        env: Object.fromEntries(Object.entries(all).map(([name, value]) => [name, Redacted.make(value)]))
      },
      journal: () => journalOf(journal),
      dir,
      revive: Effect.void
    }
    return place
  })

/** A server at an address. */
export const http = (env: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const file = yield* Effect.promise(serverFile)
    const dir = yield* directory
    const journal = join(dir, "journal")
    let child: ChildProcess | undefined
    const start = (port: string) =>
      Effect.async<string>((resume) => {
        const started = spawn(process.execPath, [file], {
          env: { PATH: process.env.PATH, JOURNAL: journal, API_TOKEN: token, PORT: port, ...env },
          stdio: ["ignore", "pipe", "inherit"]
        })
        child = started
        started.stdout.once("data", (piece) => resume(Effect.succeed(String(piece).trim())))
      })
    const port = yield* start("0")
    yield* Effect.addFinalizer(() => Effect.sync(() => child?.kill("SIGKILL")))
    const place: Place = {
      config: {
        url: `http://127.0.0.1:${port}/mcp`,
        headers: { authorization: Redacted.make(`Bearer ${token}`) }
      },
      journal: () => journalOf(journal),
      dir,
      revive: Effect.asVoid(start(port))
    }
    return place
  })
