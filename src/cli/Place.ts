/**
 * From the options of a command to the runs that it means: those of a server, or those in a database file.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as DataFile from "./DataFile.js"
import { type Failure, ofCode } from "./Failure.js"
import * as Remote from "./Remote.js"
import type { Source } from "./Source.js"

/**
 * What the options say about the server. Absent: the environment's, or this machine's.
 *
 * @since 0.1.0
 * @category models
 */
export interface ServerOptions {
  readonly url: string | undefined
  readonly tokenFile: string | undefined
}

/**
 * What the options say about the place.
 *
 * @since 0.1.0
 * @category models
 */
export interface PlaceOptions extends ServerOptions {
  readonly data: string | undefined
  readonly user: string | undefined
}

const defaultUrl = "http://127.0.0.1:4747"

const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(
    Effect.orElseSucceed(Config.option(Config.nonEmptyString(name)), () => Option.none<string>()),
    Option.getOrUndefined
  )

const tokenOf = (tokenFile: string | undefined): Effect.Effect<string | undefined, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    if (tokenFile === undefined) {
      const token = (yield* variable("RUNLET_TOKEN"))?.trim()
      return token === undefined || isToken(token) ? token : yield* ofCode(2, "RUNLET_TOKEN holds no token")
    }
    const fs = yield* FileSystem.FileSystem
    const text = yield* Effect.mapError(fs.readFileString(tokenFile), () =>
      ofCode(2, `The file ${tokenFile} of --token-file can not be read`)
    )
    const token = text.trim()
    return isToken(token) ? token : yield* ofCode(2, `The file ${tokenFile} must hold one token and nothing else`)
  })

/** The address without a slash at its end, which the calls bring along. */
const urlOf = (text: string): Effect.Effect<string, Failure> => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    return Effect.fail(ofCode(2, `${text} is no address of a server. Give one like ${defaultUrl}`))
  }
  return parsed.username !== "" || parsed.password !== "" || parsed.search !== "" || parsed.hash !== ""
    ? Effect.fail(ofCode(2, `Give --url without credentials, query and fragment, like ${defaultUrl}`))
    : Effect.succeed(parsed.href.replace(/\/+$/, ""))
}

/**
 * The server that the options mean.
 *
 * @since 0.1.0
 * @category constructors
 */
export const remote = ({
  tokenFile,
  url
}: ServerOptions): Effect.Effect<Remote.Remote, Failure, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const address = yield* urlOf(url ?? (yield* variable("RUNLET_URL")) ?? defaultUrl)
    const token = yield* tokenOf(tokenFile)
    const client = yield* Layer.build(NodeHttpClient.layerUndici)
    return yield* Effect.provide(
      Remote.make({ url: address, token: token === undefined ? undefined : Redacted.make(token) }),
      client
    )
  })

/**
 * The runs that the options mean.
 *
 * @since 0.1.0
 * @category constructors
 */
export const source = (options: PlaceOptions): Effect.Effect<Source, Failure, FileSystem.FileSystem | Scope.Scope> => {
  const { data, tokenFile, url, user } = options
  if (data === undefined) {
    return user === undefined
      ? remote(options)
      : Effect.fail(ofCode(2, "--user belongs to --data. A server knows the user by the token"))
  }
  return url === undefined && tokenFile === undefined
    ? DataFile.make({ data, user: user ?? "local" })
    : Effect.fail(ofCode(2, "Give either --data or --url, not both"))
}
