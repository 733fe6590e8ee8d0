/**
 * `runlet serve`: the server, from its configuration to its end.
 *
 * @since 0.1.0
 */
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as PlatformServer from "@effect/platform/HttpServer"
import type { ServeError } from "@effect/platform/HttpServerError"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Secrets from "../domain/Secrets.js"
import type { RunEngine } from "../engine/RunEngine.js"
import * as Auth from "../http/Auth.js"
import * as HttpServer from "../http/HttpServer.js"
import * as JwtCredentials from "../http/JwtCredentials.js"
import * as TokenCredentials from "../http/TokenCredentials.js"
import * as Config from "../node/Config.js"
import * as Heap from "../node/Heap.js"
import * as Telemetry from "../node/Telemetry.js"
import * as Postgres from "../store/Postgres.js"
import type { StoreError } from "../store/RunStore.js"
import { Failure, ofConfig } from "./Failure.js"
import * as Flags from "./Flags.js"

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

const cannotOpen = (error: StoreError, { data }: Config.Config): Failure => {
  const { reason } = error
  if (Postgres.isAddress(data)) {
    const newer = "was changed by a newer version of Runlet. Use that version, or choose another database"
    const why = reason === "newer" ? newer : (Postgres.reasonOf(error) ?? "can not be used")
    return new Failure({ message: `The database ${Postgres.nameOf(data)} ${why}`, exitCode: 1 })
  }
  const reasons = {
    corrupt: "is damaged. See what `runlet doctor` says, restore a backup, or choose another with --data",
    newer: "was changed by a newer version of Runlet. Use that version, or choose another database with --data",
    unavailable: "can not be opened. Check that it may be written and is not locked, or choose another with --data"
  }
  return new Failure({ message: `The database ${data} ${reasons[reason]}`, exitCode: 1 })
}

const authentication = (config: Config.Config): Effect.Effect<Layer.Layer<Auth.Authentication>, Failure> => {
  const { auth, host } = config
  if (Config.hasAuthentication(config)) {
    const tokens = auth.tokens.length === 0 ? [] : [TokenCredentials.make(auth.tokens)]
    return auth.jwt === null
      ? Effect.succeed(Auth.layerCredentials(tokens))
      : Effect.map(JwtCredentials.make(auth.jwt), (jwt) => Auth.layerCredentials([...tokens, jwt]))
  }
  return Auth.isLoopback(host)
    ? Effect.succeed(Auth.layerNone)
    : new Failure({
        message: `Without authentication Runlet serves this machine only, not ${host}. Configure auth.tokens or auth.jwt, or use --host 127.0.0.1`,
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

const serving = (
  config: Config.Config,
  wiring: Wiring,
  otlp: Telemetry.Otlp | undefined
): Effect.Effect<never, Failure | Config.ConfigError> =>
  Effect.gen(function* () {
    const auth = yield* authentication(config)
    const server = HttpServer.layer({ ...config, traceUrl: config.telemetry.traceUrl ?? undefined }).pipe(
      Layer.provide(auth),
      Layer.provide(wiring(config)),
      Layer.provide(Telemetry.layer(otlp).pipe(Layer.provide(Secrets.layer(config.secrets))))
    )
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
  })

/**
 * Serves until it is interrupted, and has stopped within the grace time then.
 *
 * @since 0.1.0
 * @category programs
 */
export const serve = (flags: Config.Flags, wiring: Wiring): Effect.Effect<never, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const loaded = yield* Config.load(flags)
    const otlp = yield* Telemetry.fromEnvironment
    const config = { ...loaded, secrets: [...loaded.secrets, ...Object.values(otlp?.headers ?? {})] }
    yield* Heap.tune
    return yield* Effect.provide(serving(config, wiring, otlp), Secrets.layer(config.secrets))
  }).pipe(Effect.catchTag("ConfigError", ofConfig))

const flags = {
  config: Flags.config,
  host: Flags.optional(Options.text("host").pipe(Options.withDescription("Address to listen on (default 127.0.0.1)"))),
  port: Flags.optional(
    Options.integer("port").pipe(Options.withDescription("Port to listen on, 0 for any free one (default 4747)"))
  ),
  data: Flags.data
}

/**
 * The command `serve` over a stack.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = (wiring: Wiring) =>
  Command.make("serve", flags, (given) => serve(given, wiring)).pipe(Command.withDescription("Serve runs over HTTP"))
