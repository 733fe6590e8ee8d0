/** The built command line program as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { eventually } from "../../e2e/support/Waiting.js"

const bin = process.env.RUNLET_BIN ?? fileURLToPath(new URL("../../../dist/bin.js", import.meta.url))

export interface Options {
  readonly env?: Record<string, string>
  /** The whole standard input; none: it is closed at once. */
  readonly input?: string
}

export interface Result {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Program {
  readonly out: () => string
  readonly err: () => string
  /** Waits until the output holds this text. */
  readonly says: (text: string | RegExp) => Promise<void>
  readonly signal: (signal: "SIGINT" | "SIGTERM" | "SIGKILL") => void
  readonly write: (text: string) => void
  /** Closes the output that the program writes to. */
  readonly deafen: () => void
  readonly ended: Promise<Result>
}

/** All that a program learns from the environment of these tests: one that says `CI`, say, has no colours. */
const clean = { PATH: process.env.PATH, HOME: process.env.HOME, LANG: "C.UTF-8" }

const watch = (child: ChildProcess): Program => {
  let out = ""
  let err = ""
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    out += text
  })
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    err += text
  })
  let over = false
  const ended = new Promise<Result>((resolve) => {
    child.once("close", (code) => {
      over = true
      resolve({ code, out, err })
    })
  })
  return {
    out: () => out,
    err: () => err,
    says: (text) =>
      eventually(`the program to say ${text}`, () => {
        if (typeof text === "string" ? out.includes(text) : text.test(out)) return true
        if (over) throw new Error(`It ended without saying ${text}:\n${out}\n${err}`)
        return undefined
      }).then(() => undefined),
    signal: (signal) => void child.kill(signal),
    write: (text) => void child.stdin?.write(text),
    deafen: () => void child.stdout?.destroy(),
    ended
  }
}

export const start = (args: ReadonlyArray<string>, options: Options = {}): Program => {
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...clean, ...options.env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  child.stdin.end(options.input ?? "")
  return watch(child)
}

/** Runs it to its end. */
export const run = (args: ReadonlyArray<string>, options?: Options): Promise<Result> => start(args, options).ended

/** In a terminal of its own, in which what is written to it is typed. */
export const inTerminal = (args: ReadonlyArray<string>, env: Record<string, string> = {}): Program => {
  const quoted = [process.execPath, bin, ...args].map((arg) => `'${arg.replaceAll("'", "'\\''")}'`).join(" ")
  const child = spawn("script", ["-qfec", `stty cols 100; exec ${quoted}`, "/dev/null"], {
    env: { ...clean, TERM: "xterm-256color", ...env },
    stdio: ["pipe", "pipe", "pipe"]
  })
  return watch(child)
}

/** Characters that a terminal would obey, other than the end of a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const harmful = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
