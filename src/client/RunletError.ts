/**
 * What a client's call fails with: the server's own refusal, or that no answer of it could be had.
 *
 * @since 0.1.0
 */
import type * as RunError from "../domain/RunError.js"
import type * as RunsApi from "../http/RunsApi.js"

type Refusal =
  | RunError.NotFound
  | RunError.Conflict
  | RunError.Unprocessable
  | RunError.InvalidCursor
  | RunError.Compacted
  | RunError.LimitReached
  | RunError.Unavailable
  | RunsApi.BadRequest
  | RunsApi.Unauthorized
  | RunsApi.Forbidden
  | RunsApi.MethodNotAllowed
  | RunsApi.PayloadTooLarge
  | RunsApi.UnsupportedMediaType
  | RunsApi.InternalError

/**
 * The server's refusals by name, and `Unreachable`: no answer, or one that is not the server's.
 *
 * @since 0.1.0
 * @category errors
 */
export type ErrorTag = Refusal["_tag"] | "Unreachable"

/**
 * What an answer that refuses says. Which of the optional fields are there depends on the `_tag`.
 *
 * @since 0.1.0
 * @category errors
 */
export interface ErrorBody {
  readonly _tag: ErrorTag
  readonly message: string
  readonly path?: string | undefined
  readonly runId?: string | undefined
  readonly limit?: string | undefined
  readonly retryAfterMs?: number | undefined
  readonly snapshot?: string | undefined
}

/**
 * A failed call. `message` is fit to be shown and says what to do; `status` is 0 when there was no answer.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunletError extends Error {
  readonly _tag: ErrorTag
  constructor(
    readonly status: number,
    readonly body: ErrorBody,
    cause?: unknown
  ) {
    super(body.message, { cause })
    this._tag = body._tag
  }
  /**
   * Whether the same call may succeed later without anybody doing something about it. An answer of 500 says that it will
   * not: what was asked for is damaged, or the server has a mistake.
   */
  get transient(): boolean {
    return this.status === 0 || this.status === 429 || this.status > 500
  }
}

/**
 * Whatever was thrown on the way to an answer, as an error of this kind.
 *
 * @since 0.1.0
 * @category errors
 */
export const unreachable = (cause?: unknown, status = 0): RunletError =>
  cause instanceof RunletError
    ? cause
    : new RunletError(status, { _tag: "Unreachable", message: "The server can not be reached." }, cause)
