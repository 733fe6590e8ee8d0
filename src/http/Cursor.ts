/**
 * Where a reader stands in a log, as requests say it. Pure rules without a default for what is wrong: a cursor that is
 * guessed shows text twice or loses it.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { InvalidCursor } from "../domain/RunError.js"

const invalid = (what: string) =>
  Either.left(
    new InvalidCursor({
      message: `${what} must be the seq of the last event you applied: a decimal integer, 0 or greater, without sign, blanks, exponent or leading zeros.`
    })
  )

const decimal = /^(0|[1-9][0-9]*)$/

/**
 * Reads a cursor from text: absent or empty is 0, the start.
 *
 * @since 0.1.0
 * @category parsing
 */
export const fromText = (text: string | undefined, what: string): Either.Either<number, InvalidCursor> => {
  if (text === undefined || text === "") return Either.right(0)
  const value = Number(text)
  return decimal.test(text) && Number.isSafeInteger(value) ? Either.right(value) : invalid(what)
}

/**
 * Reads a cursor from a JSON value: absent or null is 0, and only a number counts.
 *
 * @since 0.1.0
 * @category parsing
 */
export const fromJson = (value: unknown, what: string): Either.Either<number, InvalidCursor> => {
  if (value === undefined || value === null) return Either.right(0)
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)
    ? Either.right(value)
    : invalid(what)
}

/**
 * The cursor of a request: the `Last-Event-ID` header, which a reconnecting `EventSource` sends, wins over `?after`,
 * which stands in its address and is out of date by then. An empty header is no header; a repeated one is no cursor.
 *
 * @since 0.1.0
 * @category parsing
 */
export const fromRequest = (request: {
  readonly lastEventId: string | undefined
  readonly after: string | ReadonlyArray<string> | undefined
}): Either.Either<number, InvalidCursor> => {
  if (request.lastEventId !== undefined && request.lastEventId !== "") {
    return fromText(request.lastEventId, "Last-Event-ID")
  }
  const { after } = request
  return after === undefined || typeof after === "string" ? fromText(after, "after") : invalid("after")
}
