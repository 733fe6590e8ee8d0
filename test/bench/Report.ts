/** What was measured, as a table in markdown and as a plot. */

import type { Metrics, Name, Workload } from "./Workloads.js"
import { quantile } from "./Workloads.js"

export type Result =
  | { readonly _tag: "Measured"; readonly rounds: ReadonlyArray<Metrics> }
  | { readonly _tag: "Absent"; readonly why: string }

export interface Table {
  readonly name: Name
  readonly workload: Workload
  readonly results: ReadonlyMap<string, Result>
}

export const baseline = "plain-full"

export const labels: Readonly<Record<string, { readonly label: string; readonly stores: string }>> = {
  "plain-memory": { label: "plain node + memory", stores: "nothing" },
  "plain-full": { label: "plain node + SQLite FULL", stores: "fsync before it is seen" },
  "plain-normal": { label: "plain node + SQLite NORMAL", stores: "page cache before it is seen" },
  "durable-streams": { label: "@durable-streams/server, in memory", stores: "nothing" },
  mcp: { label: "MCP SDK, example event store", stores: "nothing" },
  runlet: { label: "Runlet", stores: "fsync before it is seen" }
}

const valuesOf = (rounds: ReadonlyArray<Metrics>, metric: string): ReadonlyArray<number> =>
  rounds.flatMap((round) => {
    const value = round[metric]
    return value === undefined ? [] : [value]
  })

const short = (value: number): string =>
  value >= 1000 ? `${(value / 1000).toFixed(1)}k` : value >= 100 ? value.toFixed(0) : value.toFixed(1)

const cell = (values: ReadonlyArray<number>): string => {
  if (values.length === 0) return "–"
  const median = short(quantile(values, 0.5))
  return values.length === 1 ? median : `${median} (${short(Math.min(...values))}–${short(Math.max(...values))})`
}

/**
 * The median over the rounds of a metric's ratio to the baseline of the same round: rounds differ more than subjects do.
 */
export const ratio = (table: Table, subject: string, metric: string, against = baseline): number | undefined => {
  const one = table.results.get(subject)
  const base = table.results.get(against)
  if (one?._tag !== "Measured" || base?._tag !== "Measured") return undefined
  const ratios = one.rounds.flatMap((round, index) => {
    const value = round[metric]
    const other = base.rounds[index]?.[metric]
    return value === undefined || other === undefined || other === 0 ? [] : [value / other]
  })
  return ratios.length === 0 ? undefined : quantile(ratios, 0.5)
}

const tableText = (table: Table): string => {
  const { name, results, workload } = table
  const metrics = [
    ...new Set(
      [...results.values()].flatMap((result) => (result._tag === "Measured" ? result.rounds.flatMap(Object.keys) : []))
    )
  ]
  const compared = workload.compared.map(({ metric }) => metric)
  const header = ["", "stores", ...metrics, ...compared.map((metric) => `× FULL, ${metric}`)]
  const rows = [...results].map(([subject, result]) => {
    const { label = subject, stores = "" } = labels[subject] ?? {}
    if (result._tag === "Absent") return [label, result.why, ...header.slice(2).map(() => "")]
    return [
      label,
      stores,
      ...metrics.map((metric) => cell(valuesOf(result.rounds, metric))),
      ...compared.map((metric) => ratio(table, subject, metric)?.toFixed(2) ?? "–")
    ]
  })
  const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
  return [`### (${name}) ${workload.title}`, "", line(header), line(header.map(() => "---")), ...rows.map(line)].join(
    "\n"
  )
}

export const markdown = (tables: ReadonlyArray<Table>, about: ReadonlyArray<string>): string =>
  [...about, ...tables.map(tableText)].join("\n\n").concat("\n")

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const colours: Readonly<Record<string, string>> = { runlet: "#0b7285", [baseline]: "#495057" }

/** One panel a workload: the first compared metric of each subject, a bar for the median and a line for the range. */
export const svg = (tables: ReadonlyArray<Table>): string => {
  const width = 860
  const left = 260
  const right = 130
  const row = 24
  let y = 16
  const out: Array<string> = []
  for (const table of tables) {
    const metric = table.workload.compared[0]?.metric
    if (metric === undefined) continue
    const bars = [...table.results].flatMap(([subject, result]) => {
      const values = result._tag === "Measured" ? valuesOf(result.rounds, metric) : []
      return values.length === 0 ? [] : [{ subject, values }]
    })
    const most = Math.max(...bars.map(({ values }) => Math.max(...values)))
    const scale = (value: number): number => (value / most) * (width - left - right)
    y += 12
    out.push(
      `<text x="0" y="${y + 6}" font-weight="600">(${table.name}) ${escape(table.workload.title)}: ${escape(metric)}</text>`
    )
    y += 20
    for (const { subject, values } of bars) {
      const middle = y + row / 2
      const median = quantile(values, 0.5)
      const low = left + scale(Math.min(...values))
      const high = left + scale(Math.max(...values))
      out.push(
        `<text x="${left - 8}" y="${middle + 4}" text-anchor="end">${escape(labels[subject]?.label ?? subject)}</text>`,
        `<rect x="${left}" y="${y + 5}" width="${scale(median).toFixed(1)}" height="${row - 10}" fill="${colours[subject] ?? "#adb5bd"}"/>`,
        `<line x1="${low.toFixed(1)}" x2="${high.toFixed(1)}" y1="${middle}" y2="${middle}" stroke="#212529" stroke-width="2"/>`,
        `<text x="${(Math.max(high, left + scale(median)) + 8).toFixed(1)}" y="${middle + 4}">${short(median)}</text>`
      )
      y += row
    }
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 16}" font-family="system-ui, sans-serif" font-size="13" fill="#212529"><title>Results of the benchmark</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    ...out,
    "</svg>",
    ""
  ].join("\n")
}
