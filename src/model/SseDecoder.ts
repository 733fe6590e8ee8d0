/**
 * Server-sent events from bytes, as they come, in whatever pieces they come. Not an Effect: it runs for every piece of
 * every stream.
 *
 * @since 0.1.0
 */
import { createParser } from "eventsource-parser"

/**
 * One frame. `event` is absent for the default type.
 *
 * @since 0.1.0
 * @category models
 */
export interface Frame {
  readonly event?: string | undefined
  readonly data: string
}

/**
 * Why a body is no event stream, or can not be read on.
 *
 * - `json`, `markup`: the body begins like a JSON value or like HTML
 * - `too-large`: a single frame exceeds the bound
 *
 * @since 0.1.0
 * @category models
 */
export type NotAStream = "json" | "markup" | "too-large"

/**
 * - `push`: takes bytes and hands complete frames to `onFrame`; false when the body turned out not to be a stream
 * - `end`: the bytes are over; a last frame without its blank line is handed over as well
 * - `refused`: why `push` said no
 * - `body`: the beginning of a body that is no stream, up to `bodyLimit` characters
 *
 * @since 0.1.0
 * @category models
 */
export interface SseDecoder {
  readonly push: (bytes: Uint8Array) => boolean
  readonly end: () => void
  readonly refused: () => NotAStream | undefined
  readonly body: () => string
}

/**
 * Characters of a body that is no stream which are kept to look for an error in.
 *
 * @since 0.1.0
 * @category constants
 */
export const bodyLimit = 65_536

/**
 * A decoder for one response. `maxFrame` bounds the characters of one frame.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: { readonly onFrame: (frame: Frame) => void; readonly maxFrame: number }): SseDecoder => {
  const text = new TextDecoder("utf-8")
  let refused: NotAStream | undefined
  let body = ""
  let sniffed = false
  let endsInCr = false
  const parser = createParser({
    onEvent: options.onFrame,
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") refused = "too-large"
    },
    maxBufferSize: options.maxFrame
  })

  // The parser holds a final CR back until more arrives, which for a stream of bare CRs delays every frame by one.
  const oneKindOfLineEnd = (piece: string): string => {
    const rest = endsInCr && piece.startsWith("\n") ? piece.slice(1) : piece
    if (piece !== "") endsInCr = rest.endsWith("\r")
    return rest.includes("\r") ? rest.replace(/\r\n?/g, "\n") : rest
  }

  const feed = (piece: string): void => {
    if (!sniffed) {
      const start = piece.trimStart()
      if (start === "") return
      sniffed = true
      // No field name of an event stream begins like this.
      if (start.startsWith("{") || start.startsWith("[") || start.startsWith('"')) refused = "json"
      if (start.startsWith("<")) refused = "markup"
    }
    if (refused === undefined) parser.feed(oneKindOfLineEnd(piece))
    else if (body.length < bodyLimit) body += piece.slice(0, bodyLimit - body.length)
  }

  return {
    push: (bytes) => {
      feed(text.decode(bytes, { stream: true }))
      return refused === undefined
    },
    end: () => {
      feed(text.decode())
      if (refused === undefined) parser.feed("\n\n")
    },
    refused: () => refused,
    body: () => body
  }
}
