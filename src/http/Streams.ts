/**
 * Responses that show a log: as SSE or as lines, live or as it stands.
 *
 * @since 0.1.0
 */
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { CurrentUser } from "../domain/Owner.js"
import type { LimitReached } from "../domain/RunError.js"
import type { View } from "../engine/RunEngine.js"
import * as LogBody from "./LogBody.js"
import { bytesOf, type Format, plain } from "./LogWriter.js"
import { Serving } from "./Serving.js"
import * as Sse from "./Sse.js"

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
export const respond = (shown: Shown): Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest> =>
  Effect.map(HttpServerRequest, ({ headers }) => {
    const { control, last, runId, view } = shown
    const format = formatOf(headers.accept)
    return send({
      writer: plain(format, last && format.control(last)),
      first: format.preamble + (control === undefined ? "" : format.control(control)),
      view,
      after: shown.after ?? 0,
      headers: {
        "content-type": format.contentType,
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        "x-run-id": runId,
        location: `/runs/${runId}`
      }
    })
  })

/**
 * The response that a writer makes of the log behind `after`; `first` is sent at once.
 *
 * @since 0.1.0
 * @category responses
 */
export const send = ({
  after,
  first,
  headers,
  view,
  writer
}: LogBody.Content & { readonly headers: Readonly<Record<string, string>> }): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(new LogBody.LogBody({ writer, first, view, after }), {
    contentType: headers["content-type"],
    headers
  })

/**
 * An object whose last field is a list of any length, written while the list is read: what is in memory is what is read
 * of it at once. Who reads an answer that is cut has no JSON.
 *
 * @since 0.1.0
 * @category responses
 */
export const list = <A, E>(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  items: Stream.Stream<A, E>
): HttpServerResponse.HttpServerResponse => {
  const head = JSON.stringify({ ...fields, [name]: [] }).slice(0, -2)
  let first = true
  const pieces = Stream.mapChunks(items, (chunk) => {
    const texts = Array.from(chunk, (item) => JSON.stringify(item))
    if (texts.length === 0) return Chunk.empty()
    const text = `${first ? "" : ","}${texts.join(",")}`
    first = false
    return Chunk.of(bytesOf(text))
  })
  return HttpServerResponse.stream(
    Stream.succeed(bytesOf(head)).pipe(Stream.concat(pieces), Stream.concat(Stream.succeed(bytesOf("]}")))),
    { contentType: "application/json" }
  )
}

/** Of how many characters one piece of a long answer is, and for how many it takes one more of the user's streams. */
const pieceLength = 64 * 1024
const slotLength = 1024 * 1024

/**
 * A whole value as JSON. A long one is in memory until it has been read, so it takes the user's streams meanwhile: one for
 * each million characters.
 *
 * @since 0.1.0
 * @category responses
 */
export const whole = (
  value: unknown
): Effect.Effect<HttpServerResponse.HttpServerResponse, LimitReached, Serving | Scope.Scope> =>
  Effect.gen(function* () {
    const text = JSON.stringify(value)
    const contentType = "application/json"
    if (text.length < slotLength) return HttpServerResponse.text(text, { contentType })
    const { slots } = yield* Serving
    yield* slots(Math.floor(text.length / slotLength))
    const pieces = Stream.unfold(0, (from) => {
      if (from >= text.length) return Option.none<[Uint8Array, number]>()
      // A character of two units stays in one piece.
      const end = from + pieceLength
      const to = /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end + 1 : end
      return Option.some<[Uint8Array, number]>([bytesOf(text.slice(from, to)), to])
    })
    return HttpServerResponse.stream(pieces, { contentType })
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
          return Option.some<[Uint8Array, number]>([bytesOf(frames.map(ndjson.frame).join("")), last])
        }),
        Effect.provideService(CurrentUser, user)
      )
    })
    return HttpServerResponse.stream(Stream.concat(Stream.succeed(bytesOf(`${JSON.stringify(header)}\n`)), stored), {
      contentType: ndjson.contentType,
      headers: { "cache-control": "no-store" }
    })
  })
