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
