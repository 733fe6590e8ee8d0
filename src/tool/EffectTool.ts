/**
 * Tools written in Effect: input and result are Schemas, handlers get decoded input and may use services.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as JSONSchema from "effect/JSONSchema"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { ToolKind } from "../domain/AgentEvent.js"
import {
  type Committed,
  type Probed,
  type Tool,
  type ToolConflict,
  type ToolContext,
  ToolFailure,
  type ToolInDoubt
} from "./Tool.js"

/**
 * A tool to be made. The fields mean what they mean in `Tool`; `A` is the decoded input and `S` the result, which
 * `success` encodes (absent: the result is taken as it is). A commit's preview is in `context.preview`, as JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<A, I, S, SI, R> {
  readonly name: string
  readonly description: string
  readonly title?: string | undefined
  readonly kind: ToolKind
  readonly kindOf?: ((input: A) => ToolKind) | undefined
  readonly parameters: Schema.Schema<A, I>
  readonly success?: Schema.Schema<S, SI> | undefined
  readonly execute?: ((input: A, context: ToolContext) => Effect.Effect<S, ToolFailure | ToolInDoubt, R>) | undefined
  readonly preview?: ((input: A, context: ToolContext) => Effect.Effect<unknown, ToolFailure, R>) | undefined
  readonly commit?:
    | ((input: A, context: ToolContext) => Effect.Effect<CommittedAs<S>, ToolFailure | ToolConflict | ToolInDoubt, R>)
    | undefined
  readonly probe?: ((context: Omit<ToolContext, "progress">) => Effect.Effect<Probed, never, R>) | undefined
  readonly idempotent?: boolean | undefined
  readonly unattended?: boolean | undefined
  readonly cacheable?: boolean | undefined
  readonly timeoutMs?: number | undefined
}

/**
 * `Committed` with a typed result.
 *
 * @since 0.1.0
 * @category models
 */
export interface CommittedAs<S> extends Committed {
  readonly result: S
}

/**
 * The JSON Schema of a tool's input, as an object schema without a `$schema` line.
 *
 * @since 0.1.0
 * @category schemas
 */
export const parametersOf = (schema: Schema.Schema.All): unknown => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const json = JSONSchema.fromAST(schema.ast, { definitions, topLevelReferenceStrategy: "skip" })
  if (!("type" in json) || json.type !== "object") {
    // An empty struct accepts anything but null, which no provider understands.
    return { type: "object", properties: {}, additionalProperties: false }
  }
  return Object.keys(definitions).length === 0 ? json : { ...json, $defs: definitions }
}

/**
 * What is wrong with an input, one problem after the other, each with the path of its field.
 *
 * @since 0.1.0
 * @category schemas
 */
export const problems = (error: ParseResult.ParseIssue): string =>
  ParseResult.ArrayFormatter.formatIssueSync(error)
    .slice(0, 10)
    .map(({ message, path }) => (path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`))
    .join("; ")

/**
 * A `check` that decodes. Unknown fields are refused, as the JSON Schema shown to the model says.
 *
 * @since 0.1.0
 * @category schemas
 */
export const checkWith = <A, I>(schema: Schema.Schema<A, I>): ((input: unknown) => Effect.Effect<A, string>) => {
  const decode = ParseResult.decodeUnknown(schema, { errors: "all", onExcessProperty: "error" })
  return (input) => Effect.mapError(decode(input), problems)
}

const incomplete = (kind: ToolKind, options: { readonly execute?: unknown; readonly commit?: unknown }) =>
  kind === "write" ? options.commit === undefined && "commit" : options.execute === undefined && "execute"

/**
 * A tool whose handlers need nothing. Throws when the handler that its kind demands is missing, or the parameters
 * have no JSON Schema: both are mistakes in the program.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <A, I, S = unknown, SI = S>(options: Options<A, I, S, SI, never>): Tool => {
  const missing = options.kindOf === undefined && incomplete(options.kind, options)
  if (missing) {
    throw new Error(`The tool ${options.name} is ${options.kind} and has no ${missing}`)
  }
  const { commit, execute, kindOf, preview, success } = options
  const check = checkWith(options.parameters)
  const isDecoded = Schema.is(options.parameters)
  const decodeOption = Schema.decodeUnknownOption(options.parameters)
  const encode = success === undefined ? undefined : Schema.encode(success)

  const decoded = (input: unknown): Effect.Effect<A, ToolFailure> =>
    isDecoded(input) ? Effect.succeed(input) : Effect.mapError(check(input), (message) => new ToolFailure({ message }))

  // What has happened stays so, also when its report does not fit its schema.
  const encoded = (result: S): Effect.Effect<unknown> =>
    encode === undefined ? Effect.succeed(result) : Effect.orElseSucceed(encode(result), () => result)

  const strictlyEncoded = (result: S): Effect.Effect<unknown, ToolFailure> =>
    encode === undefined
      ? Effect.succeed(result)
      : Effect.mapError(
          encode(result),
          (error) => new ToolFailure({ message: `The result is not as declared: ${problems(error.issue)}` })
        )

  const kindFor = (input: unknown): ToolKind => {
    if (kindOf === undefined) {
      return options.kind
    }
    if (isDecoded(input)) {
      return kindOf(input)
    }
    const value = decodeOption(input)
    return value._tag === "Some" ? kindOf(value.value) : options.kind
  }

  return {
    name: options.name,
    description: options.description,
    title: options.title,
    parameters: parametersOf(options.parameters),
    kind: options.kind,
    kindOf: kindOf && kindFor,
    check,
    execute:
      execute &&
      ((input, context) =>
        decoded(input).pipe(
          Effect.flatMap((value) => execute(value, context)),
          Effect.flatMap((result) => (kindFor(input) === "readonly" ? strictlyEncoded(result) : encoded(result)))
        )),
    preview: preview && ((input, context) => Effect.flatMap(decoded(input), (value) => preview(value, context))),
    commit:
      commit &&
      ((input, context) =>
        decoded(input).pipe(
          Effect.flatMap((value) => commit(value, context)),
          Effect.flatMap(({ result, within }) => Effect.map(encoded(result), (json) => ({ result: json, within })))
        )),
    probe: options.probe,
    idempotent: options.idempotent,
    unattended: options.unattended,
    cacheable: options.cacheable,
    timeoutMs: options.timeoutMs
  }
}

const provided = <A, I, S, SI, R>(
  { commit, execute, preview, probe, ...rest }: Options<A, I, S, SI, R>,
  context: Context.Context<R>
): Options<A, I, S, SI, never> => ({
  ...rest,
  execute: execute && ((input, call) => Effect.provide(execute(input, call), context)),
  preview: preview && ((input, call) => Effect.provide(preview(input, call), context)),
  commit: commit && ((input, call) => Effect.provide(commit(input, call), context)),
  probe: probe && ((call) => Effect.provide(probe(call), context))
})

/**
 * A tool whose handlers use services, taken from where the tool is made. `within` of a commit runs later and elsewhere,
 * so it must carry its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeWith = <A, I, S = unknown, SI = S, R = never>(
  options: Options<A, I, S, SI, R>
): Effect.Effect<Tool, never, R> => Effect.map(Effect.context<R>(), (context) => make(provided(options, context)))
