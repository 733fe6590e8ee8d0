/**
 * A log as the body of a response, driven by callbacks: the live end of a run costs each of its readers one look and one
 * write for every commit. It writes to node's response itself and holds nothing but a cursor: it asks for what lies
 * behind it when the response took what came before. Only where the live tail does not reach does it ask the store, as an
 * effect.
 *
 * @since 0.1.0
 */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { toServerResponse } from "@effect/platform-node/NodeHttpServerRequest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import type { Compacted, Unavailable } from "../domain/RunError.js"
import type { Frame, Pull, View } from "../engine/RunEngine.js"
import { bytesOf, type Writer } from "./LogWriter.js"
import type { Serving } from "./Serving.js"

/**
 * What is shown: the text `first`, then what the writer makes of the log behind `after`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Content {
  readonly writer: Writer
  readonly first: string
  readonly view?: View | undefined
  readonly after: number
}

/**
 * The raw body of a response that shows a log.
 *
 * @since 0.1.0
 * @category models
 */
export class LogBody {
  constructor(readonly content: Content) {}
}

/** Starts an effect and answers how to interrupt it. */
type Run = <A>(effect: Effect.Effect<A>, options: Runtime.RunCallbackOptions<A>) => () => void

const ended: Pull = { _tag: "end" }

/** A view that fails ends: its reader comes back by cursor. */
const safely = (view: View, pull: Effect.Effect<Pull, Unavailable | Compacted>): Effect.Effect<Pull> =>
  Effect.catchAll(pull, (error) =>
    Effect.as(Effect.annotateLogs(Effect.logWarning("a view ended early", error._tag), "runId", view.runId), ended)
  )

/** Only TCP knows it: neither a pipe nor what is encrypted does. */
const canBeReset = (socket: Socket | null): socket is Socket =>
  socket?.remoteAddress !== undefined && !("encrypted" in socket)

/** A response that is being written. */
class Showing {
  /** None once it is over: a bell that still rings for it holds nothing else. */
  private open:
    | { readonly response: ServerResponse; readonly view: View | undefined; readonly writer: Writer }
    | undefined
  private first: string | undefined
  private cursor: number
  private interrupt: (() => void) | undefined

  constructor(
    response: ServerResponse,
    { after, first, view, writer }: Content,
    private readonly run: Run
  ) {
    this.open = { response, view, writer }
    this.first = first
    this.cursor = after
  }

  begin(): void {
    const bytes = bytesOf(this.first ?? "")
    this.first = undefined
    if (this.open !== undefined && this.write(this.open.response, bytes)) this.look()
  }

  /** Ends the response after what it has, without breaking a frame. */
  end(): void {
    if (this.open?.writer.whole === true) this.cut()
    else this.close()?.end()
  }

  /** Nobody reads it any more, or there is no more to read. */
  close(): ServerResponse | undefined {
    const response = this.open?.response
    this.open = undefined
    this.interrupt?.()
    this.interrupt = undefined
    return response
  }

  /**
   * Called by the bell of the log, which rings for others as well, and when the response takes more again, where nobody
   * would catch anything.
   */
  private readonly look = (pulse = false): void => this.carefully(() => this.advance(pulse))

  /** What can not be written is a fault of ours, and of this response alone. */
  private carefully(step: () => void): void {
    try {
      step()
    } catch (cause) {
      const runId = this.open?.view?.runId
      this.cut()
      this.run(Effect.annotateLogs(Effect.logError("A log could not be shown", Cause.die(cause)), "runId", runId), {})
    }
  }

  private advance(pulse: boolean): void {
    let more = true
    while (more && this.open !== undefined) {
      const { response, view, writer } = this.open
      const verdict = writer.verdict(this.cursor)
      const found = verdict === "on" ? view?.poll(this.cursor, this.look) : undefined
      if (verdict === "cut") {
        this.cut()
      } else if (verdict === "over" || view === undefined) {
        this.finish(writer)
      } else if (found === undefined) {
        this.ask(view)
        more = false
      } else if (found === "waiting") {
        // It would only pile up for a reader who does not read.
        if (pulse && !response.writableNeedDrain) response.write(bytesOf(writer.heartbeat))
        more = false
      } else {
        more = this.show(response, writer, found)
      }
    }
  }

  private ask(view: View): void {
    this.interrupt = this.run(safely(view, view.pull(this.cursor)), {
      // First the other readers of the log are shown what is there.
      immediate: false,
      onExit: (exit) => {
        // What was answered is not held on to: it may be a page of the log.
        this.interrupt = undefined
        const { open } = this
        if (open !== undefined) this.carefully(() => this.answer(open, exit._tag === "Success" ? exit.value : ended))
      }
    })
  }

  private answer({ response, writer }: { response: ServerResponse; writer: Writer }, pull: Pull): void {
    if (pull._tag === "end") this.finish(writer)
    else if (pull._tag === "frames" && this.show(response, writer, pull.frames)) this.look()
    else if (pull._tag === "idle" && this.write(response, bytesOf(writer.heartbeat))) this.look()
  }

  /** Whether the response takes more. */
  private show(response: ServerResponse, writer: Writer, frames: ReadonlyArray<Frame>): boolean {
    this.cursor = frames.at(-1)?.seq ?? this.cursor
    const bytes = writer.write(frames)
    return bytes.length === 0 || this.write(response, bytes)
  }

  /** Whether the response takes more; otherwise it tells when it does. */
  private write(response: ServerResponse, bytes: Uint8Array): boolean {
    if (response.write(bytes)) return true
    response.once("drain", this.look)
    return false
  }

  private finish(writer: Writer): void {
    if (writer.whole && writer.verdict(this.cursor) !== "over") this.cut()
    else this.close()?.end(writer.last())
  }

  /** The reader sees that something is missing, and comes back. */
  private cut(): void {
    const response = this.close()
    // Without chunks, the end of the connection is the end of the response, unless it breaks.
    if (response?.chunkedEncoding === false && canBeReset(response.socket)) response.socket.resetAndDestroy()
    else response?.destroy()
  }
}

/** Nothing is left to answer; the platform does not touch a response that has ended. */
const answered = HttpServerResponse.empty()

/** Writes until the response has come to its end, or its reader has gone. */
const show = (
  response: ServerResponse,
  content: Content,
  { reading, run }: { readonly reading: Serving["Type"]["reading"]; readonly run: Run }
) => {
  const showing = new Showing(response, content, run)
  const written = Effect.async<HttpServerResponse.HttpServerResponse>((resume) => {
    const over = () => {
      showing.close()
      response.end()
      resume(Effect.succeed(answered))
    }
    if (response.destroyed) return over()
    // Emitted when the last byte was handed to the system, or when the connection broke.
    response.once("close", over)
    showing.begin()
  })
  return Effect.zipRight(
    reading(() => showing.end()),
    written
  )
}

/**
 * Makes what writes the responses that show a log, and leaves any other to the platform. Responses are written behind all
 * else that is done with a request, so that nothing of that is held while somebody watches.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = ({
  reading
}: Pick<Serving["Type"], "reading">): Effect.Effect<
  (
    response: HttpServerResponse.HttpServerResponse
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest | Scope.Scope>
> =>
  Effect.map(Effect.runtime<never>(), (runtime) => {
    const run = Runtime.runCallback(runtime)
    return (response) =>
      Effect.flatMap(HttpServerRequest, (request) => {
        const { body, headers, status } = response
        if (body._tag !== "Raw" || !(body.body instanceof LogBody) || request.method === "HEAD") {
          return Effect.succeed(response)
        }
        const target = toServerResponse(request)
        target.writeHead(status, headers)
        return show(target, body.body.content, { reading, run })
      })
  })
