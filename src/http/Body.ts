/**
 * Reads a request's body: all of it before anything is answered, never more than allowed, and only as JSON.
 *
 * @since 0.1.0
 */
import type { IncomingMessage } from "node:http"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import { toIncomingMessage } from "@effect/platform-node/NodeHttpServerRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ParseError } from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Json from "../tool/Json.js"
import * as JsonText from "../tool/JsonText.js"
import * as Issues from "./Issues.js"
import { BadRequest, PayloadTooLarge, UnsupportedMediaType } from "./RunsApi.js"
import { Serving } from "./Serving.js"

/** How long the rest of a refused body is swallowed, so that its sender gets to read the refusal. */
const lingering = Duration.seconds(2)

const swallow = (source: IncomingMessage) =>
  Effect.zipRight(
    Effect.sync(() => source.resume()),
    Effect.delay(
      Effect.sync(() => {
        if (!source.complete) source.destroy()
      }),
      lingering
    )
  )

/** A body in more pieces than this must have so many bytes in each on average: every piece costs as much as many bytes. */
const manyPieces = 4_096
const bytesOfPiece = 64

const collect = (source: IncomingMessage, maxBytes: number) =>
  Effect.async<Uint8Array, PayloadTooLarge | BadRequest>((resume) => {
    // One piece of memory, not one for each piece of the body: those of a few bytes would take a hundred times as much.
    let bytes = Buffer.alloc(0)
    let size = 0
    let pieces = 0
    const done = (result: Effect.Effect<Uint8Array, PayloadTooLarge | BadRequest>) => {
      source.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut)
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      pieces++
      const before = size
      size += chunk.length
      if (size > maxBytes) return done(tooLarge(maxBytes))
      if (pieces > manyPieces && size < pieces * bytesOfPiece) return done(tooManyPieces)
      if (size > bytes.length) {
        const grown = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(size, 2 * bytes.length)))
        bytes.copy(grown, 0, 0, before)
        bytes = grown
      }
      chunk.copy(bytes, before)
    }
    const onEnd = () => done(Effect.succeed(bytes.subarray(0, size)))
    const onCut = () => done(new BadRequest({ message: "The body ended early." }))
    source.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut)
    return Effect.sync(() => {
      source.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut)
    })
  })

const tooManyPieces = new PayloadTooLarge({
  message: `The body came in more than ${manyPieces} pieces, of fewer than ${bytesOfPiece} bytes on average. Send larger ones.`
})

const tooLarge = (maxBytes: number) =>
  new PayloadTooLarge({ message: `The body may have at most ${maxBytes} bytes.`, limit: "maxBodyBytes" })

const isJson = (contentType: string): boolean => {
  const [type = "", ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((_) => _.trim())
  return (
    /^application\/([a-z0-9.-]+\+)?json$/.test(type) &&
    parameters.every((_) => !_.startsWith("charset=") || /^charset="?utf-?8"?$/.test(_))
  )
}

const parseJson = (bytes: Uint8Array): Either.Either<unknown, BadRequest> => {
  const text = Either.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => new BadRequest({ message: "The body must be UTF-8." })
  })
  const shallow = Either.filterOrLeft(
    text,
    (text) => !Json.isTooDeep(text),
    () => new BadRequest({ message: `The body may be nested ${Json.maxDepth} levels deep at most.` })
  )
  const read = Either.flatMap(shallow, (text) =>
    Either.try({
      // Halves of pairs can only come from escapes, so most bodies are spared the walk.
      try: (): unknown => (/\\u[dD][89a-fA-F]/.test(text) ? Json.toJson(JSON.parse(text)) : JSON.parse(text)),
      catch: () => new BadRequest({ message: "The body must be JSON." })
    })
  )
  return Either.flatMap(read, (value) => {
    const loss = Either.isRight(text) ? JsonText.lossOf(text.right) : undefined
    if (loss === undefined) return Either.right(value)
    const path = JsonText.pathText(loss.path)
    return Either.left(new BadRequest({ message: `${path}: ${loss.message}`, path }))
  })
}

const read = (
  most: number
): Effect.Effect<unknown, BadRequest | PayloadTooLarge | UnsupportedMediaType, HttpServerRequest | Serving> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const { later, limits } = yield* Serving
    const maxBytes = Math.min(most, limits.maxBodyBytes)
    const source = toIncomingMessage(request)
    const { "content-encoding": encoding, "content-length": length, "content-type": type } = request.headers

    const refuse = <E>(error: Effect.Effect<never, E>) => Effect.zipRight(later(swallow(source)), error)
    if (Number(length ?? 0) > maxBytes) return yield* refuse(tooLarge(maxBytes))
    if ((type !== undefined && !isJson(type)) || (encoding !== undefined && encoding !== "identity")) {
      return yield* refuse(new UnsupportedMediaType({ message: "Send JSON as `Content-Type: application/json`." }))
    }
    const bytes = yield* Effect.catchTag(collect(source, maxBytes), "PayloadTooLarge", refuse)
    if (bytes.length === 0) return {}
    if (type === undefined) {
      return yield* new UnsupportedMediaType({ message: "Send JSON as `Content-Type: application/json`." })
    }
    return yield* parseJson(bytes)
  })

/**
 * The body as a JSON value; `{}` when there is none.
 *
 * @since 0.1.0
 * @category reading
 */
export const json = read(Number.POSITIVE_INFINITY)

/** What anybody may send who has not shown a credential yet. */
const smallBytes = 16_384

/**
 * Like `json`, of a few kilobytes at most.
 *
 * @since 0.1.0
 * @category reading
 */
export const smallJson = read(smallBytes)

/**
 * The first thing that is wrong, as a message that names the field.
 *
 * @since 0.1.0
 * @category errors
 */
export const badRequest = (error: ParseError): BadRequest => {
  const { message, path } = Issues.first(error)
  return new BadRequest(path === "" ? { message } : { message: `${path}: ${message}`, path })
}

/**
 * Decodes a JSON value by a schema. Fields that the schema does not know are dropped.
 *
 * @since 0.1.0
 * @category reading
 */
export const decode = <A, I>(schema: Schema.Schema<A, I>) => {
  const decodeUnknown = Schema.decodeUnknownEither(schema)
  return (value: unknown): Either.Either<A, BadRequest> => Either.mapLeft(decodeUnknown(value), badRequest)
}
