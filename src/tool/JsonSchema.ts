/**
 * Checks input against a JSON Schema that came as data, from a configuration or another server.
 *
 * @since 0.1.0
 */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { bounded } from "./Bounded.js"
import { wellFormed } from "./Json.js"

/**
 * A tool's definition can not be used. `message` names the tool and what is wrong with it.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolConfigError extends Schema.TaggedError<ToolConfigError>()("ToolConfigError", {
  tool: Schema.String,
  message: Schema.String
}) {}

// Formats are annotations, as the standard has it by default; unknown keywords are left to those who know them.
const options = {
  strict: false,
  allErrors: true,
  ownProperties: true,
  validateFormats: false,
  addUsedSchema: false,
  logger: false
} as const

/** How long a schema may take to be compiled, and an input to be checked, in milliseconds of a processor. */
const boundMs = 1_000

/**
 * Nobody else gets on while an input is checked. So checks have `boundMs` together, which comes back as this part of the
 * time that passes; when it is used up, each has `leastMs`, which is plenty for all but inputs that are made to take long.
 */
const share = 1 / 20
const leastMs = 50
let left = { ms: boundMs, at: 0 }

/** What is wrong with an input, `undefined` when it took too long to say. Who took long makes way for others then. */
const problemsOf = (
  validate: ValidateFunction,
  input: unknown
): Effect.Effect<ReadonlyArray<ErrorObject> | undefined> =>
  Effect.flatMap(Effect.clock, (clock) => {
    const nowMs = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6
    const begun = nowMs()
    const ms = Math.min(boundMs, left.ms + Math.max(0, begun - left.at) * share)
    const work = () => (validate(input) === true ? [] : (validate.errors ?? []))
    const problems = Option.liftThrowable(bounded<ReadonlyArray<ErrorObject>>)(work, Math.max(leastMs, Math.round(ms)))
    const at = nowMs()
    const spent = at - begun
    left = { ms: Math.max(0, ms - spent), at }
    const answer = Effect.succeed(Option.getOrUndefined(problems))
    return spent < leastMs ? answer : Effect.delay(answer, Duration.millis(spent))
  })

const problem = ({ instancePath, message, params }: ErrorObject): string => {
  const path = instancePath.split("/").slice(1).join(".")
  const extra = "additionalProperty" in params ? ` (${String(params.additionalProperty)})` : ""
  const allowed = "allowedValues" in params ? `: ${JSON.stringify(params.allowedValues)}` : ""
  return `${path === "" ? "" : `${path}: `}${message ?? "is not valid"}${extra}${allowed}`
}

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isOldDraft = (schema: object): boolean => "$schema" in schema && /draft-0[67]/.test(String(schema.$schema))

/** What schemas themselves are checked by takes long to be made, and keeps nothing of what it has checked. */
const metaSchemas = new Map<boolean, Ajv>()

/** Made whole before it is used: nobody else wrote it, and an engine that is stopped while it compiles is of no more use. */
const metaSchema = (old: boolean): Ajv => {
  const known = metaSchemas.get(old)
  if (known !== undefined) return known
  const made = old ? new Ajv(options) : new Ajv2020(options)
  made.validateSchema({})
  metaSchemas.set(old, made)
  return made
}

/** Each schema has an engine of its own, so that the names in one mean nothing to another. */
const compiled = (schema: object, old: boolean, meta: Ajv): ValidateFunction => {
  if (meta.validateSchema(schema) !== true) throw new Error(`schema is invalid: ${meta.errorsText()}`)
  const alone = { ...options, meta: false, validateSchema: false } as const
  return (old ? new Ajv(alone) : new Ajv2020(alone)).compile(schema)
}

/**
 * A `check` for tools, compiled once. Schemas are read as draft 2020-12, or as draft 7 where they say so. Input that is
 * no object is always refused; input is never changed. A schema that can not be compiled, or refers to another
 * document, is a `ToolConfigError`. What takes too long to be checked, such as a text that a pattern can not decide on,
 * is refused.
 *
 * @since 0.1.0
 * @category constructors
 */
export const compile = (
  tool: string,
  schema: unknown
): Effect.Effect<(input: unknown) => Effect.Effect<unknown, string>, ToolConfigError> =>
  Effect.gen(function* () {
    if (!isRecord(schema)) {
      return yield* new ToolConfigError({ tool, message: `The parameters of ${tool} are not a JSON Schema object.` })
    }
    const validate: ValidateFunction = yield* Effect.try({
      try: () => {
        const old = isOldDraft(schema)
        const meta = metaSchema(old)
        return bounded(() => compiled(schema, old, meta), boundMs)
      },
      catch: (error) =>
        new ToolConfigError({
          tool,
          message: `The parameters of ${tool} are not a usable JSON Schema: ${error instanceof Error ? error.message : "invalid"}`
        })
    })
    return (input) =>
      Effect.suspend(() => {
        if (!isRecord(input)) {
          return Effect.fail(
            `must be an object, and is ${input === null ? "null" : Array.isArray(input) ? "an array" : `a ${typeof input}`}`
          )
        }
        return Effect.flatMap(problemsOf(validate, input), (problems) => {
          if (problems === undefined) return Effect.fail("takes too long to be checked")
          if (problems.length === 0) return Effect.succeed(input)
          return Effect.fail(wellFormed(problems.slice(0, 10).map(problem).join("; ")))
        })
      })
  })
