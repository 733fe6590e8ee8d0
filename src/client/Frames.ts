/**
 * Reads the frames of a run's stream. The server writes each as one line of data, so that a whole parser of the
 * `text/event-stream` format would be mostly unused; the page pays for every byte.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"

/**
 * A reader that is fed bytes as they come, cut anywhere, and gives the envelopes that are complete with them. Comments
 * and frames without a seq give none. Throws a `SyntaxError` when the data of a frame is no JSON.
 *
 * @since 0.1.0
 * @category parsing
 */
export const makeReader = (): ((bytes: Uint8Array) => ReadonlyArray<Envelope>) => {
  const decoder = new TextDecoder()
  let pieces: Array<string> = []
  return (bytes) => {
    const [end = "", ...lines] = decoder.decode(bytes, { stream: true }).split("\n")
    // Joined once a line is complete, so that a long one costs no more than its length.
    pieces.push(end)
    const begun = lines.pop()
    if (begun === undefined) return []
    lines.unshift(pieces.join(""))
    pieces = [begun]
    return lines
      .filter((line) => line.startsWith("data:"))
      .map((line) => JSON.parse(line.slice(5)))
      .filter((frame) => frame?.seq)
  }
}
