/**
 * Reads the configuration: flags win over the environment, the environment over the file, the file over defaults. All
 * of it is checked before anything starts.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as EffectConfig from "effect/Config"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { ParseError } from "effect/ParseResult"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Issues from "../http/Issues.js"
import * as Postgres from "../store/Postgres.js"
import * as JsonText from "../tool/JsonText.js"
import * as ConfigSchema from "./ConfigSchema.js"
import * as ConfigSecrets from "./ConfigSecrets.js"
import * as Outgoing from "./Outgoing.js"

/**
 * A checked configuration. Names that it uses exist in it, and names that must differ do. `secrets` is what of it nobody
 * may read, and what came from the environment.
 *
 * @since 0.1.0
 * @category models
 */
export interface Config extends Omit<typeof ConfigSchema.Config.Type, "defaultModel"> {
  readonly defaultModel: string
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/**
 * What a command line can set.
 *
 * @since 0.1.0
 * @category models
 */
export interface Flags {
  readonly config?: string | undefined
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly data?: string | undefined
}

/**
 * The configuration can not be used. `message` says where it is wrong and what is expected there.
 *
 * @since 0.1.0
 * @category errors
 */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", { message: Schema.String }) {}

/**
 * The file that is read when none is named. It may be missing.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaultFile = "./runlet.config.json"

type Path = ReadonlyArray<string | number>

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const variable = (value: unknown): string | undefined =>
  isRecord(value) && typeof value.env === "string" && Object.keys(value).length === 1 ? value.env : undefined

/** A tool's parameters are a JSON Schema, in which an object with `env` means something else. */
const isForeign = (path: Path) => path.length === 3 && path[0] === "tools" && path[2] === "parameters"

/** Puts the values of variables where the file names them, and tells which of them are secret. */
const fillIn = (value: unknown, path: Path, secrets: Array<string>): Effect.Effect<unknown, ConfigError> => {
  if (isForeign(path)) return Effect.succeed(value)
  const name = variable(value)
  if (name !== undefined) {
    return EffectConfig.string(name).pipe(
      Effect.tap((text) => Effect.sync(() => secrets.push(...ConfigSecrets.ofReference(path, text)))),
      Effect.mapError(
        () => new ConfigError({ message: `${JsonText.pathText(path)}: the environment variable ${name} is not set` })
      )
    )
  }
  if (Array.isArray(value)) return Effect.forEach(value, (item, index) => fillIn(item, [...path, index], secrets))
  if (!isRecord(value)) return Effect.succeed(value)
  return Effect.map(
    Effect.forEach(Object.entries(value), ([key, item]) =>
      Effect.map(fillIn(item, [...path, key], secrets), (filled) => [key, filled] as const)
    ),
    Object.fromEntries
  )
}

const fromEnvironment = Effect.gen(function* () {
  const text = (name: string) =>
    Effect.map(Effect.option(EffectConfig.string(name)), (value) =>
      Option.getOrUndefined(Option.filter(value, (_) => _ !== ""))
    )
  const port = yield* text("RUNLET_PORT")
  if (port !== undefined && !/^\d{1,5}$/.test(port)) {
    return yield* new ConfigError({ message: "RUNLET_PORT: must be an integer from 0 to 65535" })
  }
  if ((yield* text("NODE_TLS_REJECT_UNAUTHORIZED")) === "0") {
    return yield* new ConfigError({
      message:
        "NODE_TLS_REJECT_UNAUTHORIZED: certificates are always verified. Unset it, and name an authority of your own in NODE_EXTRA_CA_CERTS"
    })
  }
  return {
    config: yield* text("RUNLET_CONFIG"),
    host: yield* text("RUNLET_HOST"),
    port: port === undefined ? undefined : Number(port),
    data: yield* text("RUNLET_DATA")
  } satisfies Flags
})

const readFile = (named: string | undefined) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = named ?? defaultFile
    const text = yield* Effect.option(fs.readFileString(path))
    if (Option.isNone(text)) {
      if (named === undefined && !(yield* Effect.orElseSucceed(fs.exists(path), () => true))) return {}
      return yield* new ConfigError({ message: `${path}: the file can not be read` })
    }
    const content = text.value.replace(/^\ufeff/, "")
    const value = yield* Effect.mapError(
      Schema.decode(Schema.parseJson())(content),
      () => new ConfigError({ message: `${path}: is not valid JSON` })
    )
    const loss = JsonText.lossOf(content)
    // Of two limits of one name one would be off, and nobody could tell which.
    return loss === undefined ? value : yield* wrong(JsonText.pathText(loss.path), loss.message)
  })

const decodeConfig = Schema.decodeUnknownEither(ConfigSchema.Config, { onExcessProperty: "error" })

const wrong = (path: string, message: string) =>
  new ConfigError({ message: path === "" ? message : `${path}: ${message}` })

const describe = (error: ParseError): ConfigError => {
  const { message, path } = Issues.first(error)
  // What stands there may be a secret in the wrong place.
  return wrong(path, message.replace(/, actual .*$/s, ""))
}

/** Where providers are when nothing else is said. */
const defaultAddresses: { readonly [provider: string]: string } = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com"
}

/** Every address that the configuration would call, with its path. */
const addresses = (config: typeof ConfigSchema.Config.Type): ReadonlyArray<readonly [path: string, url: string]> =>
  [
    ...Object.entries(config.models).map(([name, model]) => [
      `models.${name}.baseUrl`,
      model.provider === "demo" ? undefined : (model.baseUrl ?? defaultAddresses[model.provider])
    ]),
    ...config.tools.flatMap(({ statusUrl, url }, index) => [
      [`tools[${index}].url`, url],
      [`tools[${index}].statusUrl`, statusUrl]
    ]),
    [
      "auth.jwt.jwksUrl",
      config.auth.jwt !== null && "jwksUrl" in config.auth.jwt ? config.auth.jwt.jwksUrl : undefined
    ],
    ...Object.entries(config.mcpServers).map(([name, server]) => [
      `mcpServers.${name}.url`,
      "url" in server ? server.url : undefined
    ])
  ].flatMap(([path, url]) => (path === undefined || url === undefined ? [] : [[path, url] as const]))

/**
 * Whether users have to show who they are.
 *
 * @since 0.1.0
 * @category predicates
 */
export const hasAuthentication = ({ auth }: Pick<Config, "auth">): boolean =>
  auth.tokens.length > 0 || auth.jwt !== null

/** What the schema can not say: how the names in it hang together. */
const connect = (
  config: typeof ConfigSchema.Config.Type,
  fromEnvironment: ReadonlyArray<string>
): Either.Either<Config, ConfigError> => {
  const names = Object.keys(config.models)
  const defaultModel = config.defaultModel ?? (names.includes("demo") ? "demo" : names[0])
  if (defaultModel === undefined) return Either.left(wrong("models", "must have at least one model"))
  if (!names.includes(defaultModel)) return Either.left(wrong("defaultModel", "must be one of the keys of models"))
  for (const [name, { fallback }] of Object.entries(config.models)) {
    if (fallback !== undefined && (fallback === name || !names.includes(fallback))) {
      return Either.left(wrong(`models.${name}.fallback`, "must be another key of models"))
    }
  }
  const toolNames = config.tools.map(({ name }) => name)
  const twice = toolNames.findIndex((name, index) => toolNames.indexOf(name) < index)
  if (twice !== -1) return Either.left(wrong(`tools[${twice}].name`, "is the name of an earlier tool"))
  const foreign = addresses(config).find(([, url]) => !Outgoing.isAllowed(config.outgoing.allowHosts, url))
  if (foreign !== undefined) return Either.left(wrong(foreign[0], "its host is not in outgoing.allowHosts"))
  if (Postgres.isAddress(config.data) && !/^postgres(ql)?:\/\/[^/]*\/[^/]+$/i.test(config.data.replace(/\?.*$/s, ""))) {
    return Either.left(wrong("data", "must be a file, or an address like postgres://user:password@host:5432/database"))
  }
  const secrets = [...ConfigSecrets.ofConfig(config), ...fromEnvironment].map((text) => Redacted.make(text))
  return Either.right({ ...config, defaultModel, secrets })
}

const defined = (flags: Flags): Record<string, unknown> =>
  Object.fromEntries(Object.entries(flags).filter(([key, value]) => key !== "config" && value !== undefined))

/**
 * Checks a configuration that was written in code or read elsewhere.
 *
 * @since 0.1.0
 * @category loading
 */
export const decode = (value: unknown): Effect.Effect<Config, ConfigError> =>
  Effect.suspend(() => {
    const secrets: Array<string> = []
    return Effect.flatMap(fillIn(value, [], secrets), (filled) =>
      Either.flatMap(Either.mapLeft(decodeConfig(filled), describe), (config) => connect(config, secrets))
    )
  })

/**
 * The configuration of this process. A file that is named must exist, the default one need not.
 *
 * @since 0.1.0
 * @category loading
 */
export const load = (flags: Flags = {}): Effect.Effect<Config, ConfigError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const environment = yield* fromEnvironment
    const file = yield* readFile(flags.config ?? environment.config)
    if (!isRecord(file)) return yield* new ConfigError({ message: "The configuration must be a JSON object" })
    return yield* decode({ ...file, ...defined(environment), ...defined(flags) })
  })
