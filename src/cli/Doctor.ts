/**
 * `runlet doctor`: what is in the database, what is wrong with it, and mending that is safe.
 *
 * @since 0.1.0
 */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Config from "../node/Config.js"
import * as Postgres from "../store/Postgres.js"
import * as SqliteDoctor from "../store/SqliteDoctor.js"
import { type Failure, ofCode, ofConfig } from "./Failure.js"
import * as Flags from "./Flags.js"
import { bytes, columns } from "./Table.js"

const refusal = ({ cause, reason }: SqliteDoctor.DoctorError, data: string): Failure => {
  switch (reason) {
    case "missing":
      return ofCode(1, `There is no database ${data}. Choose one with --data`)
    case "foreign":
      return ofCode(1, `${data} is no database of Runlet. Choose another with --data`)
    case "busy":
      return ofCode(1, `The database ${data} is locked by another process. Try again later`)
    case "damaged":
      return ofCode(
        1,
        `The database ${data} is too damaged to be examined. Restore a backup, or save what can be read with \`sqlite3 ${data} .recover\``
      )
    case "failed":
      return ofCode(
        1,
        `The database ${data} can not be examined: ${cause instanceof Error ? cause.message : String(cause)}`
      )
  }
}

const versionText = ({ known, version }: SqliteDoctor.Report["schema"]): string => {
  if (version === 0) return "schema version unknown"
  if (version > known) return `schema version ${version}, made by a newer version of Runlet (this one knows ${known})`
  return version < known ? `schema version ${version}, upgraded at the next start` : `schema version ${version}`
}

const repairText: Readonly<Record<SqliteDoctor.Problem["repair"], string>> = {
  done: "repaired",
  possible: "can be repaired with --repair",
  impossible: "can not be repaired here"
}

const problemLines = ({ details = [], message, repair, runs = [] }: SqliteDoctor.Problem): ReadonlyArray<string> => [
  `  ${message}: ${repairText[repair]}`,
  ...runs.map((run) => `    ${run}`),
  ...details.map((detail) => `    ${detail}`)
]

/**
 * A report for people.
 *
 * @since 0.1.0
 * @category formatting
 */
export const text = (data: string, report: SqliteDoctor.Report): ReadonlyArray<string> => {
  const { conversations, events, freeBytes, largest, problems, reclaimable, runs, walBytes } = report
  const statuses = Object.entries(runs).map(([status, count]) => `${count} ${status}`)
  return [
    `${data}: ${bytes(report.bytes)}, ${bytes(freeBytes)} of it free, write-ahead log ${bytes(walBytes)}, ${versionText(report.schema)}`,
    `${conversations} conversations, ${events} events, runs: ${statuses.length === 0 ? "none" : statuses.join(", ")}`,
    ...(reclaimable ? [] : ["Free space stays in the file. Stop the server and use --repair to change that"]),
    ...(largest.length === 0 ? [] : ["Largest runs:"]),
    ...columns(
      largest.map((run) => [`  ${run.runId}`, run.status, bytes(run.bytes).padStart(10), run.events, "events"])
    ),
    ...(problems.length === 0 ? ["No problems found"] : ["Problems:", ...problems.flatMap(problemLines)])
  ]
}

/**
 * Examines the configured database, and mends it if asked to. Fails, having said what it found, when something stays
 * wrong.
 *
 * @since 0.1.0
 * @category programs
 */
export const doctor = (
  given: Pick<Config.Flags, "config" | "data">,
  how: { readonly json: boolean; readonly repair: boolean }
): Effect.Effect<void, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const { data } = yield* Effect.mapError(Config.load(given), ofConfig)
    if (Postgres.isAddress(data)) {
      return yield* ofCode(1, `This examines SQLite files. Examine ${Postgres.nameOf(data)} with \`pg_amcheck\``)
    }
    const look = how.repair ? SqliteDoctor.repair : SqliteDoctor.examine
    const report = yield* Effect.mapError(look(data), (error) => refusal(error, data))
    const lines = how.json ? [JSON.stringify({ data, ...report }, undefined, 2)] : text(data, report)
    for (const line of lines) yield* Console.log(line)
    if (report.problems.some((problem) => problem.repair !== "done")) return yield* ofCode(1, "")
  })

/**
 * The command `doctor`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make(
  "doctor",
  {
    config: Flags.config,
    data: Flags.data,
    repair: Options.boolean("repair").pipe(
      Options.withDescription("Mend what is safe to mend, and give free space back to the file system")
    ),
    json: Options.boolean("json").pipe(Options.withDescription("Print the report as JSON"))
  },
  ({ json, repair, ...given }) => doctor(given, { json, repair })
).pipe(Command.withDescription("Examine the database: its size, the largest runs, and what is wrong with it"))
