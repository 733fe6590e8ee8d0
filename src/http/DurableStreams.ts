/**
 * A run's log in the words of the Durable Streams protocol: positions, tags and cursors as pure rules. A message is an
 * envelope, and the offset behind it is its seq, padded so that offsets sort as text.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import type * as Envelope from "../domain/Envelope.js"
import { InvalidCursor } from "../domain/RunError.js"
import type { Frame } from "../engine/RunEngine.js"
import { BadRequest } from "./RunsApi.js"

type Parameter = string | ReadonlyArray<string> | undefined

/**
 * What a reader asks for: the messages behind `after`, or behind the end of the log (`now`); as they stand, or waiting
 * for more.
 *
 * @since 0.1.0
 * @category models
 */
export interface Asked {
  readonly after: number | "now"
  readonly live: "long-poll" | "sse" | undefined
  /** The last `Stream-Cursor` that the reader was given. */
  readonly cursor: number | undefined
}

/**
 * Where a reader stands after an answer: the seq of the last message it has, whether there was nothing behind that, and
 * whether there never will be.
 *
 * @since 0.1.0
 * @category models
 */
export interface Place {
  readonly seq: number
  readonly upToDate: boolean
  readonly closed: boolean
}

/** As many digits as the largest seq has. */
const digits = 16

/**
 * The offset behind the message with this seq; 0 is the beginning.
 *
 * @since 0.1.0
 * @category encoding
 */
export const offsetOf = (seq: number): string => String(seq).padStart(digits, "0")

const bad = (path: string, message: string) => Either.left(new BadRequest({ message: `${path}: ${message}`, path }))

const afterOf = (offset: string | undefined): Either.Either<number | "now", InvalidCursor> => {
  if (offset === undefined || offset === "-1") return Either.right(0)
  if (offset === "now") return Either.right("now")
  const seq = Number(offset)
  return /^\d{16}$/.test(offset) && Number.isSafeInteger(seq)
    ? Either.right(seq)
    : Either.left(
        new InvalidCursor({
          message: "offset must be -1, now, or a Stream-Next-Offset that this server has given you."
        })
      )
}

/**
 * Reads the parameters of a request.
 *
 * @since 0.1.0
 * @category parsing
 */
export const parse = (parameters: { readonly [name in "offset" | "live" | "cursor"]?: Parameter }) =>
  Either.gen(function* () {
    const { cursor, live, offset } = parameters
    if (typeof offset === "object") return yield* bad("offset", "may be given once")
    if (live !== undefined && live !== "long-poll" && live !== "sse") {
      return yield* bad("live", "must be long-poll or sse")
    }
    if (live !== undefined && offset === undefined) {
      return yield* bad("offset", "must be given with live: -1, now, or the last Stream-Next-Offset")
    }
    if (cursor !== undefined && (typeof cursor === "object" || !/^\d{1,15}$/.test(cursor))) {
      return yield* bad("cursor", "must be the last Stream-Cursor that this server has given you")
    }
    const asked: Asked = {
      after: yield* afterOf(offset),
      live,
      cursor: cursor === undefined ? undefined : Number(cursor)
    }
    return asked
  })

/** Cursors are numbers of intervals of time: a cache that collapses requests asks anew in each of them. */
const intervalMs = 20_000
const epochMs = Date.UTC(2024, 9, 9)

/**
 * The cursor of an answer at `now` (epoch milliseconds): greater than the one that was asked with, by `jitter` (1 or
 * more), so that no cache answers with what it answered before.
 *
 * @since 0.1.0
 * @category encoding
 */
export const cursorOf = (now: number, asked: number | undefined, jitter: number): number => {
  const interval = Math.floor((now - epochMs) / intervalMs)
  return asked === undefined || asked < interval ? interval : asked + jitter
}

/**
 * The tag of the messages behind `after` up to a place. It changes when the log is closed.
 *
 * @since 0.1.0
 * @category encoding
 */
export const etag = (runId: string, after: number, { closed, seq }: Place): string =>
  `"${runId}:${offsetOf(after)}:${offsetOf(seq)}${closed ? ":c" : ""}"`

/**
 * Whether an `If-None-Match` header has this tag.
 *
 * @since 0.1.0
 * @category parsing
 */
export const matches = (ifNoneMatch: string | undefined, tag: string): boolean =>
  (ifNoneMatch ?? "").split(",").some((one) => one.trim().replace(/^W\//, "") === tag)

/**
 * The headers that say where a reader stands.
 *
 * @since 0.1.0
 * @category encoding
 */
export const headers = ({ closed, seq, upToDate }: Place): Record<string, string> => ({
  "stream-next-offset": offsetOf(seq),
  ...(upToDate && { "stream-up-to-date": "true" }),
  ...(closed && { "stream-closed": "true" })
})

/**
 * Messages as the body of an answer.
 *
 * @since 0.1.0
 * @category encoding
 */
export const body = (frames: ReadonlyArray<Frame>): string => `[${frames.map(({ json }) => json).join(",")}]`

/**
 * The event that says where a reader of SSE stands.
 *
 * @since 0.1.0
 * @category encoding
 */
export const control = ({ closed, seq, upToDate }: Place, cursor: number): string => {
  const value = {
    streamNextOffset: offsetOf(seq),
    ...(closed ? { streamClosed: true } : { streamCursor: String(cursor) }),
    ...(upToDate && { upToDate: true })
  }
  return `event: control\ndata: ${JSON.stringify(value)}\n\n`
}

/**
 * Messages as an event of SSE.
 *
 * @since 0.1.0
 * @category encoding
 */
export const data = (frames: ReadonlyArray<Frame>): string => `event: data\ndata: ${body(frames)}\n\n`

/**
 * Whether a log is closed by its last message: nothing may follow. A failure that can be resumed does not close it.
 *
 * @since 0.1.0
 * @category predicates
 */
export const closes = (frame: Frame | undefined): boolean => {
  if (frame === undefined || !frame.terminal) return false
  // What this process has stored itself is an envelope.
  const { event } = JSON.parse(frame.json) as Envelope.Envelope
  return event.type !== "error" || !event.recoverable
}
