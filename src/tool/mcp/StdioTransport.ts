/**
 * A Model Context Protocol server as a process of its own, spoken to over its standard streams.
 *
 * The process leads a group of its own: an interrupt from the terminal is not meant for it, and what it has started in
 * turn ends with it.
 *
 * @since 0.1.0
 */
import { type ChildProcess, spawn } from "node:child_process"
import { deserializeMessage, serializeMessage } from "@modelcontextprotocol/sdk/shared/stdio.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

/**
 * - `env`: besides the few variables that every program needs; the rest of this process's own is not given away
 * - `maxMessageBytes`: a longer message ends the connection
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
  readonly cwd?: string | undefined
  readonly maxMessageBytes: number
}

/**
 * - `pid`: of the process, once it runs
 * - `lastWords`: the end of what it wrote to its error stream
 *
 * @since 0.1.0
 * @category models
 */
export interface StdioTransport extends Transport {
  readonly pid: () => number | undefined
  readonly lastWords: () => string
}

const inherited = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"]

/** What is kept of an error stream. */
const keptChars = 2_000

/** How long a process may take to end, after its input has ended and after each signal. */
const graceMs = 1_500
const lookMs = 20

const environment = (env: Options["env"]): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  ),
  ...env
})

/** The process and whatever it has started; those that are gone already are no mistake. */
const signal = (child: ChildProcess, name: NodeJS.Signals): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, name)
  } catch {
    child.kill(name)
  }
}

/** Lines of at most so many bytes. A line may come in any number of pieces. */
const lines = (maxBytes: number, onLine: (line: string) => void, onTooLong: () => void) => {
  let pieces: Array<Buffer> = []
  let size = 0
  let over = false
  return (chunk: Buffer): void => {
    let start = 0
    for (let end = chunk.indexOf(10); !over && end !== -1; end = chunk.indexOf(10, start)) {
      pieces.push(chunk.subarray(start, end))
      const line = Buffer.concat(pieces).toString("utf8").replace(/\r$/, "")
      pieces = []
      size = 0
      start = end + 1
      if (line !== "") onLine(line)
    }
    if (over) return
    pieces.push(chunk.subarray(start))
    size += chunk.length - start
    if (size <= maxBytes) return
    over = true
    pieces = []
    onTooLong()
  }
}

/**
 * A transport whose process ends with the scope: its input is closed, then it is told to stop, then it is stopped.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<StdioTransport, never, Scope.Scope> =>
  Effect.gen(function* () {
    const exited = yield* Deferred.make<void>()
    let child: ChildProcess | undefined
    let words = ""
    const abandoned = () => {
      if (child !== undefined) signal(child, "SIGKILL")
    }

    const transport: StdioTransport = {
      pid: () => child?.pid,
      lastWords: () => words.trim(),
      start: () =>
        new Promise((resolve, reject) => {
          const started = spawn(options.command, options.args, {
            env: environment(options.env),
            cwd: options.cwd,
            stdio: ["pipe", "pipe", "pipe"],
            detached: process.platform !== "win32",
            windowsHide: true
          })
          child = started
          process.once("exit", abandoned)
          const over = () => {
            process.removeListener("exit", abandoned)
            Deferred.unsafeDone(exited, Effect.void)
            transport.onclose?.()
          }
          started.once("spawn", resolve)
          started.once("error", (error) => {
            reject(error)
            if (started.pid === undefined) over()
          })
          // What it has started may hold its streams open.
          started.once("exit", () => signal(started, "SIGKILL"))
          started.once("close", over)
          started.stdin.on("error", (error) => transport.onerror?.(error))
          started.stdout.on("data", lines(options.maxMessageBytes, receive, tooLong))
          started.stderr.on("data", (chunk: Buffer) => {
            words = (words + chunk.toString("utf8")).slice(-keptChars)
          })
        }),
      send: (message) =>
        new Promise((resolve, reject) => {
          const input = child?.stdin
          if (!input?.writable) {
            reject(Object.assign(new Error("The process has ended"), { code: "ECONNREFUSED" }))
            return
          }
          input.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
        }),
      close: () => {
        child?.stdin?.end()
        return Promise.resolve()
      }
    }

    const receive = (line: string): void => {
      let message: JSONRPCMessage
      try {
        message = deserializeMessage(line)
      } catch {
        // A program that writes other things to its output is badly behaved, and can be understood nonetheless.
        transport.onerror?.(new Error("A line is no message of the protocol"))
        return
      }
      transport.onmessage?.(message)
    }
    const tooLong = (): void => {
      words = `A message is longer than ${options.maxMessageBytes} bytes`
      abandoned()
    }

    // Nothing can be interrupted while a scope ends, so that a wait with an end has to look again and again.
    const isOver = Effect.zipRight(
      Effect.repeat(Deferred.isDone(exited), {
        until: (over) => over,
        schedule: Schedule.intersect(Schedule.spaced(lookMs), Schedule.recurs(graceMs / lookMs))
      }),
      Deferred.isDone(exited)
    )
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        const running = child
        if (running?.pid === undefined) return
        running.stdin?.end()
        for (const name of ["SIGTERM", "SIGKILL"] as const) {
          if (yield* isOver) return
          signal(running, name)
        }
        yield* isOver
      })
    )
    return transport
  })
