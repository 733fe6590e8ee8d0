/**
 * What a stream of a run consists of, read from bytes that come cut anywhere. It is strict on purpose, and shares no
 * code with the server that it looks at.
 *
 * @since 0.1.0
 */

/**
 * A frame with data: its `id`, if it had one, and the data as it stood there.
 *
 * @since 0.1.0
 * @category models
 */
export interface Frame {
  readonly id: string | undefined
  readonly data: string
}

const isBeat = (block: string): boolean => block.split("\n").every((line) => line.startsWith(":"))

/**
 * Everything that came over one stream so far. `strange` is what should not be there, in words.
 *
 * @since 0.1.0
 * @category models
 */
export class Wire {
  readonly frames: Array<Frame> = []
  readonly strange: Array<string> = []
  /** Comments, or empty lines: what says that the connection lives. */
  beats = 0
  retries = 0
  text = ""
  private rest = ""
  private readonly decoder = new TextDecoder()

  constructor(readonly form: "sse" | "ndjson") {}

  /** Reads the next bytes, and gives the frames that are complete with them. */
  push(bytes: Uint8Array): ReadonlyArray<Frame> {
    const before = this.frames.length
    const more = this.decoder.decode(bytes, { stream: true })
    this.text += more
    const blocks = (this.rest + more).split(this.form === "sse" ? "\n\n" : "\n")
    this.rest = blocks.pop() ?? ""
    for (const block of blocks) this.form === "sse" ? this.block(block) : this.line(block)
    return this.frames.slice(before)
  }

  private line(line: string): void {
    if (line === "") this.beats++
    else this.frames.push({ id: undefined, data: line })
  }

  private block(block: string): void {
    const lines = block.split("\n").filter((line) => !line.startsWith("retry:"))
    this.retries += block.split("\n").length - lines.length
    if (lines.length === 0) return
    if (isBeat(lines.join("\n"))) {
      this.beats++
      return
    }
    const found = /^(?:id: (0|[1-9][0-9]*)\n)?data: (.*)$/.exec(lines.join("\n"))
    if (found === null) this.strange.push(`a frame is ${JSON.stringify(block.slice(0, 120))}`)
    else this.frames.push({ id: found[1], data: found[2] ?? "" })
  }
}
