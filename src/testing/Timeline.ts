/**
 * A case as a person reads it: what was planned, what happened, run by run, and what was wrong with it.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { Observed } from "./Observed.js"
import type { Plan } from "./Plan.js"

const origin = (observed: Observed): number =>
  Math.min(...observed.runs.flatMap((run) => run.log.slice(0, 1).map((envelope) => envelope.createdAt)))

const brief = ({ type, ...fields }: AgentEvent): string => {
  const { preview: _, previewHash: __, timing: ___, usage: ____, ...shown } = { ...fields } as Record<string, unknown>
  const words = Object.entries(shown).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const text = words.join(" ")
  return `${type} ${text.length > 160 ? `${text.slice(0, 159)}…` : text}`
}

interface Line {
  readonly at: number
  readonly text: string
}

/**
 * Everything that was observed, in the order of time.
 *
 * @since 0.1.0
 * @category printing
 */
export const timeline = (observed: Observed): string => {
  const name = new Map(observed.runs.map((run, index) => [run.runId, `run ${index}`]))
  const lines: Array<Line> = []
  for (const run of observed.runs) {
    for (const { createdAt, event, seq } of run.log) {
      lines.push({ at: createdAt, text: `${name.get(run.runId)} #${seq} ${brief(event)}` })
    }
  }
  for (const entry of observed.ledger) {
    const { at, held, key, phase, process, runId, seq, toolCallId, toolName, what } = entry
    const where = `${name.get(runId)} behind #${seq}${held ? "" : ", NOT HELD"}`
    lines.push({ at, text: `    ${process} ${toolName} ${phase} ${what} ${toolCallId} key ${key} (${where})` })
  }
  for (const { answer, at, name: command, process, runId } of observed.commands) {
    const answered = answer._tag === "Refused" ? `${answer.error}: ${answer.message}` : answer._tag
    lines.push({ at, text: `  > ${process} ${command} ${name.get(runId ?? "") ?? ""} → ${answered}` })
  }
  const start = origin(observed)
  return lines
    .map((line, index) => ({ ...line, index }))
    .sort((a, b) => a.at - b.at || a.index - b.index)
    .map(({ at, text }) => `${String(at - start).padStart(7)} ms  ${text}`)
    .join("\n")
}

const each = (name: string, values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.map((value, index) => `  ${name} ${index}: ${JSON.stringify(value)}`)

/**
 * A plan, part by part.
 *
 * @since 0.1.0
 * @category printing
 */
export const planned = (plan: Plan): string => {
  const { clients, commands, faults, scripts, ...world } = plan
  return [
    `  world: ${JSON.stringify(world)}`,
    ...each("script", scripts),
    ...each("faults of process", faults),
    ...each("client", clients),
    ...commands.map(({ after, at, do: name, ...about }) => {
      const more = Object.keys(about).length === 0 ? "" : ` ${JSON.stringify(about)}`
      return `  after ${after} ms, by process ${at}: ${name}${more}`
    })
  ].join("\n")
}

/**
 * The line of a program that runs a case again. Where it was run with options, they are to be given as well.
 *
 * @since 0.1.0
 * @category printing
 */
export const again = (plan: Plan): string => `Cases.hold(${JSON.stringify(plan)})`

/**
 * What a failing case says: the violations, what was planned, with the seed, the line that runs it again, and the
 * timeline.
 *
 * @since 0.1.0
 * @category printing
 */
export const report = (plan: Plan, observed: Observed, violations: ReadonlyArray<string>): string =>
  [
    ...violations.slice(0, 20),
    "",
    `Planned, with the seed ${plan.seed}:`,
    planned(plan),
    "",
    "Run it again, with the options of this test:",
    again(plan),
    "",
    "What happened:",
    observed.runs.length === 0 ? "(nothing was observed)" : timeline(observed)
  ].join("\n")
