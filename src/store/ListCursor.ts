/**
 * Where a page of a list ended, as text that is handed to clients and back.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

interface Codec<A> {
  readonly encode: (position: A) => string
  /** None for a text that no page can have given out. */
  readonly decode: (cursor: string) => Option.Option<A>
}

const codec = <A>(schema: Schema.Schema<A, string>): Codec<A> => {
  const encode = (position: A) => Encoding.encodeBase64Url(Schema.encodeSync(schema)(position))
  const read = Schema.decodeOption(schema)
  return {
    encode,
    decode: (cursor) =>
      Option.filter(
        Option.flatMap(Either.getRight(Encoding.decodeBase64UrlString(cursor)), (text) => read(text)),
        // Other spellings of the same position were not ours.
        (position) => encode(position) === cursor
      )
  }
}

/**
 * In lists of runs: the key of the last one.
 *
 * @since 0.1.0
 * @category codecs
 */
export const runs: Codec<number> = codec(Schema.compose(Schema.NumberFromString, Schema.NonNegativeInt))

/**
 * In lists of conversations: when the last one was changed, and its id.
 *
 * @since 0.1.0
 * @category codecs
 */
export const conversations: Codec<readonly [updatedAt: number, conversationId: string]> = codec(
  Schema.parseJson(Schema.Tuple(Schema.Number, Schema.String))
)
