/**
 * The commands. Every failure that a person can mend is one line, without a stack; the exit code says whose it is: 2
 * for the command line and the configuration, 1 for the world.
 *
 * @since 0.1.0
 */
import * as Command from "@effect/cli/Command"
import * as ValidationError from "@effect/cli/ValidationError"
import * as Effect from "effect/Effect"
import * as Backup from "./Backup.js"
import * as Chat from "./Chat.js"
import * as Conformance from "./Conformance.js"
import * as Doctor from "./Doctor.js"
import { Failure } from "./Failure.js"
import * as Migrate from "./Migrate.js"
import * as Runs from "./Runs.js"
import * as Serve from "./Serve.js"
import * as Trace from "./Trace.js"

/**
 * The version of this program.
 *
 * @since 0.1.0
 * @category constants
 */
export const version = "0.1.0"

const root = (wiring: Serve.Wiring) =>
  Command.make("runlet").pipe(
    Command.withDescription("Durable, resumable agent runs"),
    Command.withSubcommands([
      Serve.command(wiring),
      Chat.command,
      Runs.command,
      Trace.command,
      Backup.command,
      Doctor.command,
      Migrate.command,
      Conformance.command
    ])
  )

/**
 * Runs a command line: `[node, script, ...arguments]`. Help and version are answers, anything else that is no command
 * is a failure.
 *
 * @since 0.1.0
 * @category programs
 */
export const run = (wiring: Serve.Wiring) => {
  const execute = Command.run(root(wiring), { name: "Runlet", version })
  return (argv: ReadonlyArray<string>) =>
    execute(argv).pipe(
      Effect.catchIf(ValidationError.isValidationError, () =>
        // What is wrong with the command line was printed together with what would be right.
        Effect.fail(new Failure({ message: "", exitCode: 2 }))
      )
    )
}
