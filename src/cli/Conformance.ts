/**
 * `runlet conformance <url>`: checks a running server over HTTP.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as HttpContract from "../testing/HttpContract.js"
import { ofCode } from "./Failure.js"
import { optional } from "./Flags.js"

/** A token on the command line is seen by everybody who lists processes, so it may come from the environment. */
const token = (name: string, variable: string, whose: string) =>
  optional(
    Options.redacted(name).pipe(
      Options.withFallbackConfig(Config.redacted(variable)),
      Options.withDescription(`Bearer token of ${whose} (or the environment variable ${variable})`)
    )
  )

const flags = {
  url: Args.text({ name: "url" }).pipe(Args.withDescription("Where the server is, such as http://127.0.0.1:4747")),
  token: token("token", "RUNLET_TOKEN", "the user whose runs are made"),
  otherToken: token("other-token", "RUNLET_OTHER_TOKEN", "another user, for the checks of ownership"),
  message: optional(
    Options.text("message").pipe(
      Options.withDescription("What to ask the model for a short answer (default: its own choice)")
    )
  ),
  longMessage: optional(
    Options.text("long-message").pipe(
      Options.withDescription("What to ask the model for an answer that takes some seconds (default: its own choice)")
    )
  ),
  heartbeatMs: optional(
    Options.integer("heartbeat-ms").pipe(
      Options.withDescription("The silence that the server promises not to exceed (default 15000)")
    )
  ),
  only: optional(Options.text("only").pipe(Options.withDescription("Make only the checks whose names hold this text"))),
  json: Options.boolean("json").pipe(Options.withDescription("Print the report as JSON"))
}

const isUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

/**
 * The command. It fails when the server does not conform, having printed why.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make("conformance", flags, ({ json, ...options }) =>
  Effect.gen(function* () {
    if (!isUrl(options.url)) {
      return yield* ofCode(2, `${options.url} is no address of a server. Give one like http://127.0.0.1:4747`)
    }
    const report = yield* HttpContract.run({
      ...options,
      onResult: (result) => (json ? Effect.void : Console.log(HttpContract.printResult(result)))
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
    yield* Console.log(json ? JSON.stringify(report, undefined, 2) : `\n${HttpContract.printSummary(report)}`)
    if (!report.passed) return yield* ofCode(1, "")
  })
).pipe(Command.withDescription("Check a running server over HTTP: the protocol's rules, as a client meets them"))
