/**
 * Where logs go, and what does not get into them.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as Inspectable from "effect/Inspectable"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { Secrets } from "../domain/Secrets.js"

/** What the fiber that logs knows to be secret. */
const cleanerOf = (context: FiberRefs.FiberRefs) =>
  Context.get(FiberRefs.getOrDefault(context, FiberRef.currentContext), Secrets).told

const jsonLogger = Logger.make((options) => cleanerOf(options.context).text(Logger.jsonLogger.log(options)))

const textOf = (value: unknown): string =>
  value instanceof Error ? Cause.pretty(Cause.die(value)) : Inspectable.toStringUnknown(value)

const prettyLogger = Logger.mapInputOptions(
  Logger.prettyLogger({ stderr: true }),
  (options: Logger.Logger.Options<unknown>) => {
    const { text } = cleanerOf(options.context)
    const messages = Array.isArray(options.message) ? options.message : [options.message]
    const cause = Cause.isEmpty(options.cause) ? [] : [Cause.pretty(options.cause)]
    return {
      ...options,
      message: [...messages.map(textOf), ...cause].map(text),
      cause: Cause.empty,
      annotations: HashMap.map(options.annotations, (value) => text(textOf(value)))
    }
  }
)

/**
 * Logs go to the error stream: for people where one is watching, as JSON otherwise. No secret is in them that the fiber
 * knows which logs.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (isTerminal: boolean): Layer.Layer<never> =>
  Logger.replace(Logger.defaultLogger, isTerminal ? prettyLogger : Logger.withConsoleError(jsonLogger))
