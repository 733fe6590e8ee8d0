/**
 * How a command fails: in one line that a person can act on, and with a code that says whose fault it is.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { ConfigError } from "../node/Config.js"

/**
 * What the program ends with: 1 for the world, 2 for the command line and the configuration, 3 when a person must decide
 * before a run goes on, 130 when somebody interrupted it.
 *
 * @since 0.1.0
 * @category models
 */
export const ExitCode = Schema.Literal(1, 2, 3, 130)
/**
 * @since 0.1.0
 * @category models
 */
export type ExitCode = typeof ExitCode.Type

/**
 * The program ends with `exitCode`, having said `message`. `refusal` is what the server called it, where it was the
 * server that refused.
 *
 * @since 0.1.0
 * @category errors
 */
export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: ExitCode,
  refusal: Schema.optional(Schema.String)
}) {}

/**
 * A failure from its code and message.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofCode = (exitCode: ExitCode, message: string): Failure => new Failure({ exitCode, message })

/**
 * A configuration that can not be used is the caller's fault.
 *
 * @since 0.1.0
 * @category conversions
 */
export const ofConfig = ({ message }: ConfigError): Failure => ofCode(2, message)
