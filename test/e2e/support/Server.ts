/** The built server as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** `RUNLET_BIN` names another build to test than the one in `dist`. */
const bin = process.env.RUNLET_BIN ?? fileURLToPath(new URL("../../../dist/bin.js", import.meta.url))

export interface Server {
  readonly url: string
  readonly pid: number
  /** What it wrote to both of its streams. */
  readonly output: () => string
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>
  readonly signal: (signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT") => void
  readonly stop: () => Promise<void>
}

/** `launcher`: a program that becomes the given one, with its options; `node`: options of Node itself. */
export interface How {
  readonly launcher?: ReadonlyArray<string> | undefined
  readonly node?: ReadonlyArray<string> | undefined
}

export const start = async (
  config: string,
  data: string,
  options: ReadonlyArray<string> = [],
  { launcher = [], node = [] }: How = {}
): Promise<Server> => {
  if (!existsSync(bin)) throw new Error("The server is not built. Run `npm run build` first.")
  const serve = [bin, ...options, "serve", "--config", config, "--port", "0", "--data", data]
  const [program = process.execPath, ...given] = [...launcher, process.execPath, ...node, ...serve]
  const child: ChildProcess = spawn(program, given, { stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on("exit", (code, signal) => resolve({ code, signal }))
  })
  const url = await new Promise<string>((resolve, reject) => {
    const read = (piece: Buffer) => {
      output += piece.toString("utf8")
      const ready = /Runlet is ready at (\S+)\n/.exec(output)
      if (ready?.[1] !== undefined) resolve(ready[1])
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    exited.then(({ code }) => reject(new Error(`The server ended with ${code} before it was ready:\n${output}`)))
  })
  const running = () => child.exitCode === null && child.signalCode === null
  const signal = (name: NodeJS.Signals) => {
    if (running()) child.kill(name)
  }
  return {
    url,
    pid: child.pid ?? -1,
    output: () => output,
    exited,
    signal,
    stop: async () => {
      signal("SIGKILL")
      await exited
    }
  }
}
