/**
 * A view of a log as the bytes of a response. The stream holds nothing but a cursor: it asks for what lies behind it,
 * writes it as one piece, and asks again when the reader took it. Interrupting it only stops the viewing.
 *
 * @since 0.1.0
 */
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Channel from "effect/Channel"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { CurrentUser } from "../domain/Owner.js"
import type { Frame, Pull, View } from "../engine/RunEngine.js"
import { Serving } from "./Serving.js"
import * as Sse from "./Sse.js"

interface Format {
  readonly contentType: string
  readonly preamble: string
  readonly heartbeat: string
  readonly control: (frame: Sse.ControlFrame) => string
  readonly frame: (frame: Frame) => string
}

/** How long a browser waits before it reconnects, in milliseconds. */
const retryMs = 1000

const sse: Format = {
  contentType: "text/event-stream",
  preamble: Sse.preamble(retryMs),
  heartbeat: Sse.heartbeat,
  control: Sse.control,
  frame: ({ json, seq }) => Sse.frame(seq, json)
}

const ndjson: Format = {
  contentType: "application/x-ndjson",
  preamble: "\n",
  heartbeat: "\n",
  control: (frame) => `${JSON.stringify(frame)}\n`,
  frame: ({ json }) => `${json}\n`
}

const formatOf = (accept: string | undefined): Format => {
  const types = (accept ?? "")
    .toLowerCase()
    .split(",")
    .map((_) => _.split(";", 1)[0]?.trim())
  const lines = types.indexOf(ndjson.contentType)
  const events = types.indexOf(sse.contentType)
  return lines !== -1 && (events === -1 || lines < events) ? ndjson : sse
}

const encoder = new TextEncoder()

interface Encoded {
  readonly last: Frame
  readonly format: Format
  readonly bytes: Uint8Array
}

/** The bytes of a piece of a log by its first frame, so that viewers who stand at one place share them. */
const shared = new WeakMap<Frame, Encoded>()

const encode = (frames: ReadonlyArray<Frame>, format: Format): Uint8Array => {
  const [first] = frames
  const last = frames.at(-1)
  const known = first === undefined ? undefined : shared.get(first)
  if (known !== undefined && known.last === last && known.format === format) return known.bytes
  let text = ""
  for (const frame of frames) text += format.frame(frame)
  const bytes = encoder.encode(text)
  if (first !== undefined && last !== undefined) shared.set(first, { last, format, bytes })
  return bytes
}

type Bytes = Channel.Channel<Chunk.Chunk<Uint8Array>>

const write = (bytes: Uint8Array): Bytes => Channel.write(Chunk.of(bytes))

const ended: Pull = { _tag: "end" }

/**
 * What comes behind the cursor, one piece of bytes a pull. A view that fails ends: its reader comes back by cursor. A
 * channel made by hand, because this runs for every delta of every viewer.
 */
const log = (view: View, after: number, format: Format): Bytes => {
  const heartbeat = write(encoder.encode(format.heartbeat))
  const from = (cursor: number): Bytes => {
    const pull = Effect.catchAll(view.pull(cursor), (error) =>
      Effect.as(Effect.annotateLogs(Effect.logWarning("a view ended early", error._tag), "runId", view.runId), ended)
    )
    return Channel.flatMap(Channel.fromEffect(pull), (pulled) => {
      if (pulled._tag === "end") return Channel.void
      if (pulled._tag === "idle") return Channel.flatMap(heartbeat, () => from(cursor))
      const next = pulled.frames.at(-1)?.seq ?? cursor
      return Channel.flatMap(write(encode(pulled.frames, format)), () => from(next))
    })
  }
  return from(after)
}

/**
 * What a streamed response shows: the frame `control`, the log behind `after`, the frame `last`. What is left out is not
 * sent.
 *
 * @since 0.1.0
 * @category models
 */
export interface Shown {
  readonly runId: string
  readonly view?: View | undefined
  readonly after?: number | undefined
  readonly control?: Sse.ControlFrame | undefined
  readonly last?: Sse.ControlFrame | undefined
}

/**
 * The response that shows a log in the format that the request accepts. The first bytes are there at once, because no
 * header leaves before them.
 *
 * @since 0.1.0
 * @category responses
 */
export const respond = (
  shown: Shown
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest | Serving> =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest
    const { watched } = yield* Serving
    const { control, last, runId, view } = shown
    const format = formatOf(headers.accept)
    const first = encoder.encode(format.preamble + (control === undefined ? "" : format.control(control)))
    const body = write(first).pipe(
      Channel.flatMap(() => (view === undefined ? Channel.void : log(view, shown.after ?? 0, format))),
      Channel.flatMap(() => (last === undefined ? Channel.void : write(encoder.encode(format.control(last)))))
    )
    return HttpServerResponse.stream(watched(Stream.fromChannel(body)), {
      contentType: format.contentType,
      headers: {
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-run-id": runId,
        location: `/runs/${runId}`
      }
    })
  })

/**
 * The log as it stands, as lines: `header` first, then every envelope that is stored when the view is opened.
 *
 * @since 0.1.0
 * @category responses
 */
export const trace = (view: View, header: unknown): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentUser, (user) => {
    const stored = Stream.unfoldEffect(0, (cursor) => {
      if (cursor >= view.lastSeq) return Effect.succeed(Option.none<[Uint8Array, number]>())
      return view.pull(cursor).pipe(
        Effect.map((pull) => {
          if (pull._tag !== "frames") return Option.none<[Uint8Array, number]>()
          const frames = pull.frames.filter(({ seq }) => seq <= view.lastSeq)
          const last = pull.frames.at(-1)?.seq ?? view.lastSeq
          return Option.some<[Uint8Array, number]>([encoder.encode(frames.map(ndjson.frame).join("")), last])
        }),
        Effect.provideService(CurrentUser, user)
      )
    })
    return HttpServerResponse.stream(
      Stream.concat(Stream.succeed(encoder.encode(`${JSON.stringify(header)}\n`)), stored),
      { contentType: ndjson.contentType, headers: { "cache-control": "no-store" } }
    )
  })
