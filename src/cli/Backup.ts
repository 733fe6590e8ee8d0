/**
 * `runlet backup`: a copy of the database, also while a server writes to it.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Config from "../node/Config.js"
import * as Postgres from "../store/Postgres.js"
import * as SqliteBackup from "../store/SqliteBackup.js"
import { type Failure, ofCode, ofConfig } from "./Failure.js"
import * as Flags from "./Flags.js"
import { bytes } from "./Table.js"

const refusal = ({ cause, reason }: SqliteBackup.BackupError, data: string, file: string): Failure => {
  switch (reason) {
    case "missing":
      return ofCode(1, `There is no database ${data}. Choose one with --data`)
    case "exists":
      return ofCode(1, `${file} exists already. Choose another name, or remove it`)
    case "damaged":
      return ofCode(1, `The database ${data} is damaged, nothing was saved. See what \`runlet doctor\` says`)
    case "failed":
      return ofCode(1, `The copy could not be made: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/**
 * Saves the configured database as `file`, and says so, as JSON if asked to.
 *
 * @since 0.1.0
 * @category programs
 */
export const backup = (
  given: Pick<Config.Flags, "config" | "data">,
  file: string,
  json = false
): Effect.Effect<void, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const { data } = yield* Effect.mapError(Config.load(given), ofConfig)
    if (Postgres.isAddress(data)) {
      return yield* ofCode(1, `This copies SQLite files. Save ${Postgres.nameOf(data)} with \`pg_dump\``)
    }
    const saved = yield* Effect.mapError(SqliteBackup.backup(data, file), (error) => refusal(error, data, file))
    yield* Console.log(
      json
        ? JSON.stringify({ data, file, runs: saved.runs, bytes: saved.bytes })
        : `Saved ${saved.runs} runs of ${data} to ${file} (${bytes(saved.bytes)})`
    )
  })

/**
 * The command `backup`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make(
  "backup",
  {
    file: Args.text({ name: "file" }).pipe(Args.withDescription("The file to make; it must not exist")),
    config: Flags.config,
    data: Flags.data,
    json: Flags.json
  },
  ({ file, json, ...given }) => backup(given, file, json)
).pipe(Command.withDescription("Save a copy of the database, also while it is being served"))
