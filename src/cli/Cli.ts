/**
 * The commands. Every failure that a person can mend is one line, without a stack; the exit code says whose it is: 2
 * for the command line and the configuration, 1 for the world.
 *
 * @since 0.1.0
 */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as ValidationError from "@effect/cli/ValidationError"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as PlatformServer from "@effect/platform/HttpServer"
import type { ServeError } from "@effect/platform/HttpServerError"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { RunEngine } from "../engine/RunEngine.js"
import * as Auth from "../http/Auth.js"
import * as HttpServer from "../http/HttpServer.js"
import * as Config from "../node/Config.js"
import type { StoreError } from "../store/RunStore.js"

/**
 * The program ends with `exitCode`, having said `message`.
 *
 * @since 0.1.0
 * @category errors
 */
export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: Schema.Literal(1, 2)
}) {}

/**
 * The stack that a configuration describes.
 *
 * @since 0.1.0
 * @category models
 */
export type Wiring = (config: Config.Config) => Layer.Layer<RunEngine, Config.ConfigError | StoreError>

const codeOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined

const cannotListen = ({ cause }: ServeError, { host, port }: Config.Config): Failure => {
  const code = codeOf(cause)
  const reasons: { readonly [code: string]: string } = {
    EADDRINUSE: `port ${port} is in use. Stop what uses it, or choose another with --port`,
    EACCES: `port ${port} may not be opened by this user. Choose another with --port`,
    EADDRNOTAVAIL: `${host} is no address of this machine. Choose another with --host`,
    ENOTFOUND: `${host} is no known name. Choose another with --host`
  }
  return new Failure({
    message: `Can not listen on ${host}:${port}: ${reasons[code ?? ""] ?? code ?? "unknown reason"}`,
    exitCode: 1
  })
}

const cannotOpen = ({ reason }: StoreError, { data }: Config.Config): Failure =>
  new Failure({
    message:
      reason === "corrupt"
        ? `The database ${data} is damaged, or of a newer version. Restore it, or choose another with --data`
        : `The database ${data} can not be opened. Check that it may be written and is not locked, or choose another with --data`,
    exitCode: 1
  })

const authentication = ({ auth, host }: Config.Config) => {
  if (auth.tokens.length > 0) return Effect.succeed(Auth.layerTokens(auth.tokens))
  return Auth.isLoopback(host)
    ? Effect.succeed(Auth.layerNone)
    : new Failure({
        message: `Without authentication Runlet serves this machine only, not ${host}. Configure auth.tokens, or use --host 127.0.0.1`,
        exitCode: 2
      })
}

const urlOf = (address: PlatformServer.Address): string => {
  if (address._tag === "UnixAddress") return address.path
  const host = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname
  return `http://${host}:${address.port}`
}

/** The part of the grace time after which the process ends, whatever is not finished. */
const patience = 0.98

/**
 * Serves until it is interrupted, and has stopped within the grace time then.
 *
 * @since 0.1.0
 * @category programs
 */
export const serve = (flags: Config.Flags, wiring: Wiring): Effect.Effect<never, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const config = yield* Config.load(flags)
    const auth = yield* authentication(config)
    const server = HttpServer.layer(config).pipe(Layer.provide(auth), Layer.provide(wiring(config)))
    return yield* Effect.acquireUseRelease(
      Scope.make(),
      (scope) =>
        Effect.gen(function* () {
          const context = yield* Effect.catchTags(Layer.buildWithScope(server, scope), {
            ServeError: (error) => cannotListen(error, config),
            StoreError: (error) => cannotOpen(error, config)
          })
          yield* Console.log(`Runlet is ready at ${urlOf(Context.get(context, PlatformServer.HttpServer).address)}`)
          return yield* Effect.never
        }),
      // What does not let itself be stopped is left behind.
      (scope) =>
        Scope.close(scope, Exit.void).pipe(
          Effect.interruptible,
          Effect.disconnect,
          Effect.timeoutOption(config.limits.shutdownGraceMs * patience)
        )
    )
  }).pipe(Effect.catchTag("ConfigError", ({ message }) => new Failure({ message, exitCode: 2 })))

const optional = <A>(option: Options.Options<A>) => Options.map(Options.optional(option), Option.getOrUndefined)

const flags = {
  config: optional(
    Options.text("config").pipe(
      Options.withDescription(`Configuration file (default ${Config.defaultFile}, if it exists)`)
    )
  ),
  host: optional(Options.text("host").pipe(Options.withDescription("Address to listen on (default 127.0.0.1)"))),
  port: optional(
    Options.integer("port").pipe(Options.withDescription("Port to listen on, 0 for any free one (default 4747)"))
  ),
  data: optional(Options.text("data").pipe(Options.withDescription("Database file (default ./.runlet/runlet.db)")))
}

/**
 * The version of this program.
 *
 * @since 0.1.0
 * @category constants
 */
export const version = "0.1.0"

const root = (wiring: Wiring) =>
  Command.make("runlet").pipe(
    Command.withDescription("Durable, resumable agent runs"),
    Command.withSubcommands([
      Command.make("serve", flags, (flags) => serve(flags, wiring)).pipe(
        Command.withDescription("Serve runs over HTTP")
      )
    ])
  )

/**
 * Runs a command line: `[node, script, ...arguments]`. Help and version are answers, anything else that is no command
 * is a failure.
 *
 * @since 0.1.0
 * @category programs
 */
export const run = (wiring: Wiring) => {
  const execute = Command.run(root(wiring), { name: "Runlet", version })
  return (argv: ReadonlyArray<string>) =>
    execute(argv).pipe(
      Effect.catchIf(ValidationError.isValidationError, () =>
        // What is wrong with the command line was printed together with what would be right.
        Effect.fail(new Failure({ message: "", exitCode: 2 }))
      )
    )
}

/**
 * Logs go to the error stream: for people where one is watching, as JSON otherwise.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerLogger = (isTerminal: boolean): Layer.Layer<never> =>
  Logger.replace(
    Logger.defaultLogger,
    isTerminal ? Logger.prettyLogger({ stderr: true }) : Logger.withConsoleError(Logger.jsonLogger)
  )
