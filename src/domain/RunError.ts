/**
 * The refusals that a caller can act on. Each message says what to do, and none holds a path, a statement or a
 * secret.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * No such run, conversation or approval, or it belongs to somebody else: the two can not be told apart.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { message: Schema.String }) {}

/**
 * The request is well formed and contradicts what is stored: decided already, not ended, busy, another body under the
 * same key.
 *
 * @since 0.1.0
 * @category errors
 */
export class Conflict extends Schema.TaggedError<Conflict>()("Conflict", {
  message: Schema.String,
  runId: Schema.optional(Schema.String)
}) {}

/**
 * The request is valid JSON of the right shape that can not be carried out: an unknown model, an edit that the tool's
 * parameters refuse.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unprocessable extends Schema.TaggedError<Unprocessable>()("Unprocessable", {
  message: Schema.String,
  path: Schema.optional(Schema.String)
}) {}

/**
 * A cursor that is no decimal integer of the log, or lies beyond its end.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", { message: Schema.String }) {}

/**
 * The events behind this cursor were compacted away; `snapshot` says where to read what they came to.
 *
 * @since 0.1.0
 * @category errors
 */
export class Compacted extends Schema.TaggedError<Compacted>()("Compacted", {
  message: Schema.String,
  snapshot: Schema.String
}) {}

/**
 * A limit is reached. Try again after `retryAfterMs`.
 *
 * @since 0.1.0
 * @category errors
 */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  message: Schema.String,
  limit: Schema.String,
  retryAfterMs: Schema.Number
}) {}

/**
 * The process is draining or its store does not answer. Try again after `retryAfterMs`, or ask another process. Without
 * `retryAfterMs` trying again is of no use: what is stored is damaged, and a server answers 500.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  message: Schema.String,
  retryAfterMs: Schema.optional(Schema.Number)
}) {}
