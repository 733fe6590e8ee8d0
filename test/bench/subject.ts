/** A subject in a process of its own, which answers its parent over IPC. */

import { asked, go, hold, type Plan, type Subject } from "./Plan.js"
import * as DurableStreams from "./subjects/durable.js"
import * as Mcp from "./subjects/mcp.js"
import * as Ours from "./subjects/ours.js"
import * as Plain from "./subjects/plain.js"

type Ask =
  | { readonly id: number; readonly name: "start" | "read"; readonly plan: Plan; readonly runs: number }
  | { readonly id: number; readonly name: "history"; readonly events: number }
  | { readonly id: number; readonly name: "go" | "hold" | "disk" | "memory" | "asked" }

const make = (name: string): Promise<Subject> => {
  switch (name) {
    case "plain-memory":
      return Plain.make("memory")
    case "plain-full":
      return Plain.make("FULL")
    case "plain-normal":
      return Plain.make("NORMAL")
    case "durable-streams":
      return DurableStreams.make()
    case "mcp":
      return Mcp.make()
    case "runlet":
      return Ours.make({ file: process.env.BENCH_FILE, upstream: process.env.BENCH_UPSTREAM })
    default:
      throw new Error(`There is no subject ${name}`)
  }
}

const answer = async (subject: Subject, ask: Ask): Promise<unknown> => {
  switch (ask.name) {
    case "start":
      return subject.start(ask.plan, ask.runs)
    case "read":
      return subject.read?.(ask.plan, ask.runs)
    case "history":
      go()
      return subject.history?.(ask.events)
    case "go":
      return go()
    case "hold":
      return hold()
    case "disk":
      return subject.disk?.()
    case "memory":
      global.gc?.()
      global.gc?.()
      return process.memoryUsage().rss
    case "asked":
      return asked.count
  }
}

const main = async (): Promise<void> => {
  if (process.env.BENCH_OPEN === "1") go()
  const subject = await make(process.argv[2] ?? "")
  process.on("message", (ask: Ask) => {
    answer(subject, ask).then(
      (value) => process.send?.({ id: ask.id, value }),
      (error: unknown) => process.send?.({ id: ask.id, error: String(error) })
    )
  })
  // A parent that is gone asks nothing more.
  process.on("disconnect", () => process.exit(0))
  process.on("SIGTERM", () => process.exit(0))
  process.send?.({ ready: subject.port })
}

main().catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})
