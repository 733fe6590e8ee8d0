/**
 * How a command fails: in one line that a person can act on, and with a code that says whose fault it is.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { ConfigError } from "../node/Config.js"

/**
 * The program ends with `exitCode`, having said `message`: 2 for the command line and the configuration, 1 for the
 * world.
 *
 * @since 0.1.0
 * @category errors
 */
export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: Schema.Literal(1, 2)
}) {}

/**
 * A failure from its code and message.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofCode = (exitCode: 1 | 2, message: string): Failure => new Failure({ exitCode, message })

/**
 * A configuration that can not be used is the caller's fault.
 *
 * @since 0.1.0
 * @category conversions
 */
export const ofConfig = ({ message }: ConfigError): Failure => ofCode(2, message)
