/**
 * `runlet migrate`: everything of one database into another, empty one.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { SqlError } from "@effect/sql/SqlError"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Migrate from "../node/Migrate.js"
import * as Postgres from "../store/Postgres.js"
import { StoreError } from "../store/RunStore.js"
import { type Failure, ofCode } from "./Failure.js"
import * as Flags from "./Flags.js"

/** What the system said is in the innermost error. */
const innermost = (cause: unknown): string =>
  cause instanceof Error ? (cause.cause instanceof Error ? innermost(cause.cause) : cause.message) : String(cause)

const said = (cause: unknown): string => {
  const reason = cause instanceof StoreError || cause instanceof SqlError ? Postgres.reasonOf(cause) : undefined
  return reason === undefined ? innermost(cause) : `the database ${reason}`
}

const refusal = ({ cause, reason, what = [] }: Migrate.MigrateError, from: string, to: string): Failure => {
  switch (reason) {
    case "missing":
      return ofCode(1, `There is no database ${from}`)
    case "foreign":
      return ofCode(1, `${from} is no database of Runlet`)
    case "older":
      return ofCode(1, `${from} is of an earlier version. Start this version of the server on it once, and stop it`)
    case "newer":
      return ofCode(1, `${from} was changed by a newer version of Runlet. Use that version`)
    case "busy":
      return ofCode(
        1,
        `A server uses ${from}, or did until a moment ago, or somebody else has locked ${to}. Stop it, and try again`
      )
    case "same":
      return ofCode(2, `${from} and ${to} are the same database`)
    case "full":
      return ofCode(1, `There are runs or documents in ${to} already. Choose an empty or a new database`)
    case "different":
      return ofCode(
        1,
        `The copy was not like the original and was thrown away; ${from} is as it was. It differed in: ${what.join(", ")}`
      )
    case "failed":
      return ofCode(1, `Nothing was moved from ${from} to ${to}: ${said(cause)}`)
  }
}

/** How often a person wants to hear of a long table. */
const everyRows = 50_000

const progressText = (progress: Migrate.Progress): string | undefined => {
  const { done, total, type } = progress
  if (type === "compared") return `  compared ${done} of ${total} runs`
  if (total === 0 || (done < total && done % everyRows !== 0)) return undefined
  return `  ${progress.table}: ${done}${done < total ? ` of ${total}` : ""}`
}

const summary = ({ compared, left, rows, unreadable }: Migrate.Moved, from: string, to: string) => [
  `Moved ${rows.runs ?? 0} runs with ${rows.events ?? 0} events from ${from} to ${to}; ${compared} runs compared, all alike`,
  ...(unreadable.length === 0
    ? []
    : [`${unreadable.length} runs could not be read before and can not be read now: ${unreadable.join(", ")}`]),
  ...(left.length === 0 ? [] : [`Tables that are not Runlet's stayed behind: ${left.join(", ")}`]),
  `Nothing was changed in ${from}. Start the servers with --data ${to}`
]

/**
 * Moves, and says how far it is: in lines for people, or as one JSON document a line, of which the last has
 * `type: "done"`.
 *
 * @since 0.1.0
 * @category programs
 */
export const migrate = (from: string, to: string, json: boolean): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const tell = (progress: Migrate.Progress) => {
      const line = json ? JSON.stringify(progress) : progressText(progress)
      return line === undefined ? Effect.void : Console.log(line)
    }
    // Addresses are told without what is secret in them.
    const [source, target] = [Postgres.nameOf(from), Postgres.nameOf(to)]
    const moved = yield* Effect.mapError(Migrate.migrate(from, to, tell), (error) => refusal(error, source, target))
    const lines = json
      ? [JSON.stringify({ type: "done", from: source, to: target, ...moved })]
      : summary(moved, source, target)
    for (const line of lines) yield* Console.log(line)
  })

/**
 * The command `migrate`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make(
  "migrate",
  {
    from: Args.text({ name: "from" }).pipe(
      Args.withDescription("The database to read, which nobody may use meanwhile")
    ),
    to: Args.text({ name: "to" }).pipe(Args.withDescription("The database to fill, which is new or empty")),
    json: Flags.json
  },
  ({ from, json, to }) => migrate(from, to, json)
).pipe(
  Command.withDescription("Move everything to another database, all of it or nothing, and compare the copy run by run")
)
