/**
 * The built server as a child process: started on a free port, ended by a signal to exactly this process.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const bin = resolve(process.env.RUNLET_BIN ?? fileURLToPath(new URL("../../../dist/bin.js", import.meta.url)))

export interface Exited {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A server that has said that it is ready, and what it has written since. */
export interface ServerProcess {
  readonly url: string
  readonly pid: number
  readonly exited: Promise<Exited>
  readonly alive: () => boolean
  readonly output: () => string
  readonly signal: (name: NodeJS.Signals) => void
  /** Ends it with SIGKILL and waits until it is gone. */
  readonly kill: () => Promise<Exited>
}

/** A start takes half a second of a free processor; a busy machine may not have one for long. */
const readyMs = 180_000

export const launch = async (options: {
  readonly dir: string
  readonly config: unknown
  readonly data?: string | undefined
  readonly name?: string | undefined
  /** Options of Node itself. */
  readonly node?: ReadonlyArray<string> | undefined
}): Promise<ServerProcess> => {
  if (!existsSync(bin)) throw new Error(`There is no built server at ${bin}. Run \`npm run build\` first.`)
  const { config, dir, name = "server", node = [] } = options
  mkdirSync(dir, { recursive: true })
  const file = join(dir, `${name}.config.json`)
  writeFileSync(file, JSON.stringify(config))
  const data = options.data ?? join(dir, "runlet.db")
  const child = spawn(process.execPath, [...node, bin, "serve", "--config", file, "--port", "0", "--data", data], {
    cwd: dir,
    stdio: ["ignore", "pipe", "pipe"]
  })
  let gone = false
  const exited = new Promise<Exited>((done) => {
    child.once("exit", (code, signal) => {
      gone = true
      done({ code, signal })
    })
  })
  let text = ""
  const ready = new Promise<string>((found, failed) => {
    const timer = setTimeout(() => failed(new Error(`The server did not get ready:\n${text}`)), readyMs)
    const settled = (act: () => void) => {
      clearTimeout(timer)
      act()
    }
    const hear = (piece: Buffer) => {
      text += piece.toString("utf8")
      const url = /ready at (http:\S+)/.exec(text)?.[1]
      if (url !== undefined) settled(() => found(url))
    }
    child.stdout.on("data", hear)
    child.stderr.on("data", hear)
    void exited.then(({ code, signal }) =>
      settled(() => failed(new Error(`The server ended with ${signal ?? code}:\n${text}`)))
    )
  })
  const url = await ready.catch((error: unknown) => {
    child.kill("SIGKILL")
    throw error
  })
  return {
    url,
    pid: pidOf(child),
    exited,
    alive: () => !gone,
    output: () => text,
    signal: (signalName) => {
      child.kill(signalName)
    },
    kill: () => {
      child.kill("SIGKILL")
      return exited
    }
  }
}

const pidOf = (child: ChildProcess): number => {
  if (child.pid === undefined) throw new Error("The server has no process id")
  return child.pid
}
