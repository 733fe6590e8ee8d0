/**
 * How a log is written: in which format, in which words, and as which bytes.
 *
 * @since 0.1.0
 */
import type { Frame } from "../engine/RunEngine.js"
import type * as Sse from "./Sse.js"

/**
 * How a stream is written: SSE or lines.
 *
 * @since 0.1.0
 * @category models
 */
export interface Format {
  readonly contentType: string
  readonly preamble: string
  readonly heartbeat: string
  readonly control: (frame: Sse.ControlFrame) => string
  readonly frame: (frame: Frame) => string
}

/**
 * What a stream makes of a log.
 *
 * - `verdict`: whether the stream goes on behind this cursor, has come to its end, or has to be cut, because what it has
 *   said does not hold any more
 * - `last`: what it ends with
 * - `whole`: its readers take a clean end for the end of the run. A stream that is ended early is cut then
 *
 * @since 0.1.0
 * @category models
 */
export interface Writer {
  readonly write: (frames: ReadonlyArray<Frame>) => Uint8Array
  readonly heartbeat: string
  readonly verdict: (cursor: number) => "on" | "over" | "cut"
  readonly last: () => string | undefined
  readonly whole: boolean
}

/**
 * Text as bytes.
 *
 * @since 0.1.0
 * @category encoding
 */
export const bytesOf = (text: string): Uint8Array => Buffer.from(text)

interface Encoded {
  readonly first: Frame | undefined
  readonly last: Frame | undefined
  readonly format: Format
  readonly bytes: Uint8Array
}

/** The piece of a log that was encoded last: viewers who stand at one place look right after each other, and share it. */
let latest: Encoded | undefined

const encode = (frames: ReadonlyArray<Frame>, format: Format): Uint8Array => {
  const first = frames[0]
  const last = frames.at(-1)
  if (latest !== undefined && latest.first === first && latest.last === last && latest.format === format) {
    return latest.bytes
  }
  let text = ""
  for (const frame of frames) text += format.frame(frame)
  const bytes = bytesOf(text)
  latest = { first, last, format, bytes }
  return bytes
}

/**
 * Writes every event the same way for all readers, and `last` after them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const plain = (format: Format, last?: string): Writer => ({
  write: (frames) => encode(frames, format),
  heartbeat: format.heartbeat,
  verdict: () => "on",
  last: () => last,
  whole: false
})
