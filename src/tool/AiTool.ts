/**
 * Tools defined with `@effect/ai`. What they may do is read from their annotations, cautiously:
 *
 * - `Readonly` true: `readonly`
 * - anything else: `effectful`, which asks a person before every call, unless `unattended` is given. `Destructive:
 *   false` is no such permission: it says that nothing is lost, not that nobody minds
 * - `Idempotent` true: a call whose outcome is unknown may be made again
 * - `Title` is the line that a person sees
 *
 * A tool with a dry run is better written as a `write` tool with `EffectTool`.
 *
 * @since 0.1.0
 */
import * as AiError from "@effect/ai/AiError"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import type { ToolKind } from "../domain/AgentEvent.js"
import * as EffectTool from "./EffectTool.js"
import { type Tool, type ToolContext, ToolFailure, ToolInDoubt } from "./Tool.js"

/**
 * - `unattended`: the tool may act without asking
 * - `cacheable`, `timeoutMs`: as in `Tool`
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly unattended?: boolean | undefined
  readonly cacheable?: boolean | undefined
  readonly timeoutMs?: number | undefined
}

/** The facts about an `@effect/ai` tool that do not depend on how it is handled. */
const facts = (tool: AiTool.Any, options: Options | undefined) => ({
  name: tool.name,
  description: tool.description ?? AiTool.getDescriptionFromSchemaAst(tool.parametersSchema.ast) ?? "",
  title: Option.getOrUndefined(Context.getOption(tool.annotations, AiTool.Title)),
  kind: Context.get(tool.annotations, AiTool.Readonly) ? ("readonly" as const) : ("effectful" as const),
  idempotent: Context.get(tool.annotations, AiTool.Idempotent),
  ...options
})

const messageOf = (error: unknown): string =>
  typeof error === "string"
    ? error
    : typeof error === "object" && error !== null && "message" in error && typeof error.message === "string"
      ? error.message
      : "The tool failed."

/**
 * An `@effect/ai` tool with its handler. The handler's own failure is `ok: false`, with the encoded failure as its
 * details.
 *
 * @since 0.1.0
 * @category conversions
 */
export const fromAiTool = <T extends AiTool.Any, R = never>(
  tool: T,
  handler: (
    input: AiTool.Parameters<T>,
    context: ToolContext
  ) => Effect.Effect<AiTool.Success<T>, AiTool.Failure<T>, R>,
  options?: Options
): Effect.Effect<Tool, never, R> => {
  const encodeFailure = Schema.encodeUnknownOption(Schema.make<unknown>(tool.failureSchema.ast))
  return EffectTool.makeWith({
    ...facts(tool, options),
    parameters: Schema.make<AiTool.Parameters<T>, unknown>(tool.parametersSchema.ast),
    success: Schema.make<AiTool.Success<T>, unknown>(tool.successSchema.ast),
    execute: (input: AiTool.Parameters<T>, context) =>
      Effect.mapError(
        handler(input, context),
        (error) => new ToolFailure({ message: messageOf(error), result: Option.getOrUndefined(encodeFailure(error)) })
      )
  })
}

/** A report that does not fit its schema comes after the act. */
const handled = (kind: ToolKind, error: unknown): ToolFailure | ToolInDoubt =>
  kind !== "readonly" && error instanceof AiError.MalformedInput
    ? new ToolInDoubt({ message: "The tool ran, and its result is not as declared." })
    : new ToolFailure({ message: messageOf(error) })

/**
 * Every tool of an `@effect/ai` toolkit, with the handlers of its layer. `options` are by the tools' names.
 *
 * @since 0.1.0
 * @category conversions
 */
export const fromToolkit = <Tools extends { readonly [name: string]: AiTool.Any }>(
  toolkit: Toolkit.Toolkit<Tools>,
  options?: { readonly [Name in keyof Tools]?: Options }
): Effect.Effect<ReadonlyArray<Tool>, never, AiTool.HandlersFor<Tools> | AiTool.Requirements<Tools[keyof Tools]>> =>
  Effect.flatMap(toolkit, ({ handle, tools }) =>
    Effect.forEach(Record.toEntries<keyof Tools & string, AiTool.Any>(tools), ([name, tool]) => {
      const about = facts(tool, options?.[name])
      // The toolkit decodes once more, although its type asks for what is decoded already.
      type Input = AiTool.Parameters<Tools[typeof name]>
      const parameters = Schema.make<Input>(tool.parametersSchema.ast)
      const encode = Schema.encode(parameters)
      return EffectTool.makeWith({
        ...about,
        parameters,
        execute: (input: Input) =>
          encode(input).pipe(
            Effect.flatMap((raw) => handle(name, raw)),
            Effect.mapError((error) => handled(about.kind, error)),
            Effect.flatMap(({ encodedResult, isFailure, result }) =>
              isFailure
                ? Effect.fail(new ToolFailure({ message: messageOf(result), result: encodedResult }))
                : Effect.succeed(encodedResult)
            )
          )
      })
    })
  )
