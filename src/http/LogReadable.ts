/**
 * A view of a log as the bytes of a response, driven by callbacks: the live end of a run costs each of its readers one
 * look and one write for every commit. It holds nothing but a cursor: it asks for what lies behind it when the response
 * took what came before. Only where the live tail does not reach does it ask the store, as an effect.
 *
 * @since 0.1.0
 */
import { Readable } from "node:stream"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { Compacted, Unavailable } from "../domain/RunError.js"
import type { Frame, Pull, View } from "../engine/RunEngine.js"
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
 * `first` is the text before the log; `run` starts an effect and answers how to interrupt it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly writer: Writer
  readonly first: string
  readonly view?: View | undefined
  readonly after: number
  readonly run: <A>(effect: Effect.Effect<A>, options: { readonly onExit: (exit: Exit.Exit<A>) => void }) => () => void
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

const ended: Pull = { _tag: "end" }

/** A view that fails ends: its reader comes back by cursor. */
const safely = (view: View, pull: Effect.Effect<Pull, Unavailable | Compacted>): Effect.Effect<Pull> =>
  Effect.catchAll(pull, (error) =>
    Effect.as(Effect.annotateLogs(Effect.logWarning("a view ended early", error._tag), "runId", view.runId), ended)
  )

/**
 * The bytes of a response that shows a log.
 *
 * @since 0.1.0
 * @category models
 */
export class LogReadable extends Readable {
  private begun = false
  /** Whether a bell or the store will answer. */
  private waiting = false
  private over = false
  private cursor: number
  private interrupt: (() => void) | undefined

  constructor(private readonly options: Options) {
    super()
    this.cursor = options.after
  }

  override _read(): void {
    if (!this.begun) {
      this.begun = true
      this.push(bytesOf(this.options.first))
    } else if (!this.waiting && !this.over) {
      this.look()
    }
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.over = true
    this.interrupt?.()
    done(error)
  }

  /** Ends the response after what it has, without breaking a frame. */
  end(): void {
    if (this.over) return
    if (this.options.writer.whole) {
      this.cut()
      return
    }
    this.over = true
    this.interrupt?.()
    this.push(null)
  }

  private readonly ring = (pulse: boolean): void => {
    this.waiting = false
    if (!this.over) this.look(pulse)
  }

  private look(pulse = false): void {
    const { run, view, writer } = this.options
    const verdict = writer.verdict(this.cursor)
    const found = verdict === "on" ? view?.poll(this.cursor, this.ring) : undefined
    if (verdict === "cut") {
      this.cut()
    } else if (verdict === "over") {
      this.finish()
    } else if (found === "waiting") {
      this.waiting = true
      if (pulse) this.push(bytesOf(writer.heartbeat))
    } else if (found !== undefined) {
      this.show(found)
    } else if (view === undefined) {
      this.finish()
    } else {
      this.waiting = true
      this.interrupt = run(safely(view, view.pull(this.cursor)), {
        onExit: (exit) => {
          this.waiting = false
          if (!this.over) this.answer(exit._tag === "Success" ? exit.value : ended)
        }
      })
    }
  }

  private answer(pull: Pull): void {
    if (pull._tag === "end") this.finish()
    else if (pull._tag === "idle") this.push(bytesOf(this.options.writer.heartbeat))
    else this.show(pull.frames)
  }

  private show(frames: ReadonlyArray<Frame>): void {
    this.cursor = frames.at(-1)?.seq ?? this.cursor
    const bytes = this.options.writer.write(frames)
    // A stream that is given nothing does not ask again.
    if (bytes.length === 0) this.look()
    else this.push(bytes)
  }

  private finish(): void {
    const { writer } = this.options
    if (writer.whole && writer.verdict(this.cursor) !== "over") {
      this.cut()
      return
    }
    this.over = true
    const last = writer.last()
    if (last !== undefined) this.push(bytesOf(last))
    this.push(null)
  }

  /** The reader sees that something is missing, and comes back. */
  private cut(): void {
    this.destroy()
  }
}
