/**
 * The text of a stream: how frames are written, and a parser that reads them back from pieces cut anywhere. Plain
 * functions without a runtime import, for servers and browsers alike.
 *
 * @since 0.1.0
 */

/**
 * A frame that belongs to one connection and not to the log: no seq, no id, so it never moves a cursor.
 *
 * - `resume-start`: the log behind `fromSeq` follows, `replayedCount` events of it are stored already
 * - `resume-unavailable`: the run can not go on; `recoverable` says whether trying again later makes sense
 *
 * @since 0.1.0
 * @category models
 */
export type ControlFrame =
  | {
      readonly type: "resume-start"
      readonly runId: string
      readonly fromSeq: number
      readonly replayedCount: number
    }
  | {
      readonly type: "resume-unavailable"
      readonly runId: string
      readonly reason: string
      readonly recoverable: boolean
    }

/**
 * The frame of one event. `json` is an envelope as one line, which JSON text without line breaks always is.
 *
 * @since 0.1.0
 * @category encoding
 */
export const frame = (seq: number, json: string): string => `id: ${seq}\ndata: ${json}\n\n`

/**
 * A control frame: data without an id.
 *
 * @since 0.1.0
 * @category encoding
 */
export const control = (value: ControlFrame): string => `data: ${JSON.stringify(value)}\n\n`

/**
 * What a stream begins with: how long an `EventSource` waits before it reconnects, and a comment, so that the headers
 * leave at once.
 *
 * @since 0.1.0
 * @category encoding
 */
export const preamble = (retryMs: number): string => `retry: ${retryMs}\n:ok\n\n`

/**
 * A comment that keeps proxies and clients from taking a quiet stream for a dead one.
 *
 * @since 0.1.0
 * @category encoding
 */
export const heartbeat = ": hb\n\n"

/**
 * A parsed event. `id` is the last id seen on the stream, `event` is `message` when the frame names none.
 *
 * @since 0.1.0
 * @category models
 */
export interface SseEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/**
 * What the parser reports. `onComment` is also called for heartbeats, so that a client can tell a quiet stream from a
 * dead one.
 *
 * @since 0.1.0
 * @category models
 */
export interface SseSink {
  readonly onEvent: (event: SseEvent) => void
  readonly onComment?: ((text: string) => void) | undefined
  readonly onRetry?: ((milliseconds: number) => void) | undefined
}

/**
 * A parser that is fed bytes as they come.
 *
 * @since 0.1.0
 * @category models
 */
export interface SseParser {
  /** Reads the next bytes. They may end anywhere, also inside a character or between CR and LF. */
  readonly push: (bytes: Uint8Array) => void
}

/**
 * A parser by the rules of the `text/event-stream` format: lines end with LF, CR or CRLF, a byte order mark at the
 * start is skipped, an event without data is none, and an event that the end of the stream cuts off is dropped. Time
 * and memory are linear in what is pushed.
 *
 * @since 0.1.0
 * @category parsing
 */
export const makeParser = (sink: SseSink): SseParser => {
  const decoder = new TextDecoder("utf-8")
  let pieces: Array<string> = []
  let afterCr = false
  let id = ""
  let event = ""
  let data: Array<string> = []

  const dispatch = () => {
    if (data.length > 0) sink.onEvent({ id, event: event === "" ? "message" : event, data: data.join("\n") })
    data = []
    event = ""
  }

  const field = (name: string, value: string) => {
    switch (name) {
      case "data":
        data.push(value)
        return
      case "event":
        event = value
        return
      case "id":
        if (!value.includes("\0")) id = value
        return
      case "retry":
        if (/^[0-9]+$/.test(value)) sink.onRetry?.(Number(value))
        return
    }
  }

  const line = (text: string) => {
    if (text === "") return dispatch()
    const colon = text.indexOf(":")
    if (colon === 0) return sink.onComment?.(text.slice(1))
    if (colon === -1) return field(text, "")
    field(text.slice(0, colon), text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1))
  }

  const breaks = /[\r\n]/g
  return {
    push: (bytes) => {
      const text = decoder.decode(bytes, { stream: true })
      if (text === "") return
      let from = afterCr && text[0] === "\n" ? 1 : 0
      afterCr = false
      breaks.lastIndex = from
      for (let match = breaks.exec(text); match !== null; match = breaks.exec(text)) {
        pieces.push(text.slice(from, match.index))
        const whole = pieces.length === 1 ? pieces[0] : pieces.join("")
        pieces = []
        line(whole ?? "")
        from = match.index + 1
        if (match[0] === "\r") {
          if (text[from] === "\n") from += 1
          else afterCr = from === text.length
        }
        breaks.lastIndex = from
      }
      if (from < text.length) pieces.push(text.slice(from))
    }
  }
}
