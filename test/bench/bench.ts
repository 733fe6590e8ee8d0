/**
 * The benchmark: rounds in which every subject takes its turn, so that what else the machine does falls on all of them.
 * With `--short` a small form for continuous integration, whose exit code depends on ratios alone.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { baseline, labels, markdown, type Result, ratio, svg, type Table } from "./Report.js"
import { type Metrics, type Name, workloads } from "./Workloads.js"

const { values: flags } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    only: { type: "string" },
    subjects: { type: "string" },
    rounds: { type: "string" },
    save: { type: "string" }
  }
})

/** Above this ratio to the baseline the short form fails. Targets are lower; a noisy machine must not fail by chance. */
const bound = 2.5

const here = fileURLToPath(new URL("..", import.meta.url))
const packages: Readonly<Record<string, string>> = {
  "durable-streams": "@durable-streams/server",
  mcp: "@modelcontextprotocol/sdk"
}

const isName = (name: string): name is Name => Object.hasOwn(workloads, name)
const names = (flags.only ?? (flags.short ? "a,c,d" : Object.keys(workloads).join(",")))
  .split(",")
  .flatMap((name) => (name === "d" ? ["d", "d-burst"] : [name]))
const unknown = names.filter((name) => !isName(name))
if (unknown.length > 0) {
  console.error(`There is no workload ${unknown.join(", ")}. There are ${Object.keys(workloads).join(", ")}`)
  process.exit(2)
}
const rounds = Number(flags.rounds ?? (flags.short ? 3 : 5))
const wanted = flags.subjects?.split(",")

const tables: Array<Table> = []
for (const name of [...new Set(names.filter(isName))]) {
  const workload = workloads[name]
  const measured = new Map<string, Array<Metrics>>()
  const results = new Map<string, Result>()
  const subjects = workload.subjects.filter((subject) => wanted === undefined || wanted.includes(subject))
  for (let round = 0; round < rounds; round++) {
    // Who comes first changes from round to round.
    const order = round % 2 === 0 ? subjects : subjects.toReversed()
    for (const subject of order) {
      const { [subject]: needs } = packages
      if (needs !== undefined && !existsSync(`${here}node_modules/${needs}`)) {
        results.set(subject, { _tag: "Absent", why: "not installed" })
        continue
      }
      try {
        const metrics = await workload.measure(subject, flags.short)
        const shown = Object.entries(metrics).map(([metric, value]) => `${metric} ${value.toFixed(1)}`)
        console.error(`(${name}) ${round + 1}/${rounds} ${labels[subject]?.label ?? subject}: ${shown.join(", ")}`)
        measured.set(subject, [...(measured.get(subject) ?? []), metrics])
      } catch (error) {
        console.error(`(${name}) ${subject} failed: ${error}`)
        results.set(subject, { _tag: "Absent", why: "did not finish" })
      }
    }
  }
  for (const [subject, all] of measured) {
    if (!results.has(subject)) results.set(subject, { _tag: "Measured", rounds: all })
  }
  tables.push({
    name,
    workload,
    results: new Map(
      subjects.flatMap((subject) => {
        const result = results.get(subject)
        return result === undefined ? [] : [[subject, result] as const]
      })
    )
  })
}

const about = [
  `Node ${process.version}, ${availableParallelism()} cores, ${cpus()[0]?.model ?? "unknown processor"}, ${new Date().toISOString().slice(0, 10)}, ${rounds} alternating rounds${flags.short ? ", short form" : ""}. Median (range); ratios are medians of the ratio in each round.`
]
const text = markdown(tables, about)
console.info(text)
mkdirSync(`${here}results`, { recursive: true })
const file = `${here}results/${flags.save ?? "latest"}`
writeFileSync(`${file}.md`, text)
writeFileSync(`${file}.svg`, svg(tables))

const missed: Array<string> = []
for (const table of tables) {
  if (wanted !== undefined && !(wanted.includes("runlet") && wanted.includes(baseline))) continue
  if (table.results.get("runlet")?._tag !== "Measured") missed.push(`(${table.name}) was not measured`)
  for (const { metric, more, target } of table.workload.compared) {
    const found = ratio(table, "runlet", metric)
    if (found === undefined || target === undefined) continue
    const bad = more === true ? found < target : found > target
    if (bad) console.info(`(${table.name}) ${metric}: ${found.toFixed(2)} × the baseline, aimed at ${target}`)
    // Time is the machine's; only processor time is held against the program.
    if (metric.startsWith("CPU") && found > bound)
      missed.push(`(${table.name}) ${metric}: ${found.toFixed(2)} × the baseline`)
  }
}
if (flags.short && missed.length > 0) {
  console.error(`More than ${bound} times the baseline:\n${missed.join("\n")}`)
  process.exitCode = 1
}
