/**
 * The options that several commands have.
 *
 * @since 0.1.0
 */
import * as Options from "@effect/cli/Options"
import * as Option from "effect/Option"
import * as Config from "../node/Config.js"

/**
 * An option that may be left out; `undefined` then.
 *
 * @since 0.1.0
 * @category options
 */
export const optional = <A>(option: Options.Options<A>): Options.Options<A | undefined> =>
  Options.map(Options.optional(option), Option.getOrUndefined)

/**
 * `--config`: which configuration file to read.
 *
 * @since 0.1.0
 * @category options
 */
export const config = optional(
  Options.text("config").pipe(
    Options.withDescription(`Configuration file (default ${Config.defaultFile}, if it exists)`)
  )
)

/**
 * `--data`: which database file to use.
 *
 * @since 0.1.0
 * @category options
 */
export const data = optional(
  Options.text("data").pipe(Options.withDescription("Database file (default ./.runlet/runlet.db)"))
)

/**
 * `--json`: for programs instead of people.
 *
 * @since 0.1.0
 * @category options
 */
export const json = Options.boolean("json").pipe(
  Options.withDescription("Print JSON: one document, or one a line where there is more to come")
)

const url = optional(
  Options.text("url").pipe(
    Options.withDescription(
      "Where the server is (default: the environment variable RUNLET_URL, or http://127.0.0.1:4747)"
    )
  )
)

/** A token on the command line would be seen by everybody who lists processes. */
const tokenFile = optional(
  Options.text("token-file").pipe(
    Options.withDescription("File that holds the token for the server (default: the environment variable RUNLET_TOKEN)")
  )
)

/**
 * Which server to speak to.
 *
 * @since 0.1.0
 * @category options
 */
export const server = { url, tokenFile }

/**
 * Which server to speak to, or which database file to look into instead.
 *
 * @since 0.1.0
 * @category options
 */
export const place = {
  ...server,
  data: optional(
    Options.text("data").pipe(
      Options.withDescription(
        "Database file, or address of a PostgreSQL database, to look into instead of asking a server"
      )
    )
  ),
  user: optional(Options.text("user").pipe(Options.withDescription("Whose runs of the database (default local)")))
}
