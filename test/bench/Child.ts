/** A child process of the benchmark: asking it, and what the operating system says it used. */
import { type ChildProcess, fork } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { History, Plan, View } from "./Plan.js"

const ticksPerSecond = 100
const here = fileURLToPath(new URL(".", import.meta.url))

/** Seconds of processor time that a process has used, in and for it. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

export class Child {
  private readonly waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  private count = 0
  readonly gone: Promise<void>

  private constructor(
    readonly process: ChildProcess,
    readonly pid: number,
    readonly port: number
  ) {
    this.gone = new Promise((resolve) => process.once("exit", () => resolve()))
    process.on("message", (message: { id?: number; value?: unknown; error?: string }) => {
      if (message.id === undefined) return
      const one = this.waiting.get(message.id)
      this.waiting.delete(message.id)
      if (message.error !== undefined) one?.reject(new Error(message.error))
      else one?.resolve(message.value)
    })
    process.once("exit", () => {
      for (const one of this.waiting.values()) one.reject(new Error("The subject ended"))
    })
  }

  /** Starts `subject <name>` or `upstream`. */
  static start(script: "subject" | "upstream", args: ReadonlyArray<string> = [], env: NodeJS.ProcessEnv = {}) {
    return new Promise<Child>((resolve, reject) => {
      const profile = process.env.BENCH_PROFILE
      const child = fork(join(here, `${script}.js`), [...args], {
        env: { ...process.env, ...env },
        execArgv: [
          "--expose-gc",
          ...(profile !== undefined && args[0] === "runlet" ? ["--cpu-prof", `--cpu-prof-dir=${profile}`] : [])
        ],
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
      child.once("exit", (code) => reject(new Error(`${script} ${args.join(" ")} ended with ${code}`)))
      child.on("message", (message: { ready?: number }) => {
        if (message.ready !== undefined && child.pid !== undefined) resolve(new Child(child, child.pid, message.ready))
      })
    })
  }

  private ask<A>(name: string, more: object = {}): Promise<A> {
    const id = ++this.count
    return new Promise<A>((resolve, reject) => {
      this.waiting.set(id, { resolve: (value) => resolve(value as A), reject })
      this.process.send({ id, name, ...more })
    })
  }

  start(plan: Plan, runs: number): Promise<ReadonlyArray<View>> {
    return this.ask("start", { plan, runs })
  }
  read(plan: Plan, runs: number): Promise<void> {
    return this.ask("read", { plan, runs })
  }
  history(events: number): Promise<History | undefined> {
    return this.ask("history", { events })
  }
  /** Lets the sources begin; the answer is the moment, in milliseconds of the common clock. */
  go(): Promise<number> {
    return this.ask("go")
  }
  hold(): Promise<void> {
    return this.ask("hold")
  }
  disk(): Promise<number | undefined> {
    return this.ask("disk")
  }
  memory(): Promise<number> {
    return this.ask("memory")
  }
  asked(): Promise<number> {
    return this.ask("asked")
  }
  get cpu(): number {
    return cpuSeconds(this.pid)
  }
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    this.process.kill(signal)
    await this.gone
  }
}
