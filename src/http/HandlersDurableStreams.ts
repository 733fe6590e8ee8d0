/**
 * A run's log as a stream of the Durable Streams protocol, to be read: as it stands, by long-poll, or by SSE. Nobody
 * writes to it but the run.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Compacted, Unavailable } from "../domain/RunError.js"
import * as RunStatus from "../domain/RunStatus.js"
import { type Frame, type Pull, RunEngine, type View } from "../engine/RunEngine.js"
import * as Adapting from "./Adapting.js"
import * as Durable from "./DurableStreams.js"
import { bytesOf, type Writer } from "./LogWriter.js"
import { RunsApi } from "./RunsApi.js"
import { Serving } from "./Serving.js"
import * as Streams from "./Streams.js"

/** How much an answer takes in before it ends, in characters. Its reader asks for the rest. */
const maxChars = 1024 * 1024

/** How long a stream of SSE lasts at least before its reader has to come again, in milliseconds. */
const sseMs = 60_000

const json = "application/json"
/** Other people may use the same browser: what is kept is shown only after the server was asked. */
const kept = "private, no-cache"
const notKept = "no-store"

const idle: Pull = { _tag: "idle" }

/**
 * The view of a log that is not closed: also behind a failure that somebody may resume there is something to wait for.
 * That it was resumed rings no bell, so such a log is looked at every second, and `idle` is told after fifteen.
 */
const patient = (view: View): View => {
  const pull = (after: number, looks: number): Effect.Effect<Pull, Unavailable | Compacted> =>
    Effect.flatMap(view.pull(after), (found) => {
      if (found._tag !== "end") return Effect.succeed(found)
      return looks === 0 ? Effect.succeed(idle) : Effect.delay(pull(after, looks - 1), "1 second")
    })
  return { ...view, pull: (after) => pull(after, 15) }
}

/** The messages that there are behind `after`, up to the size of an answer. */
const stored = (view: View, after: number) =>
  Effect.gen(function* () {
    const frames: Array<Frame> = []
    let cursor = after
    let chars = 0
    while (cursor < view.lastSeq && chars < maxChars) {
      const pull = yield* view.pull(cursor)
      if (pull._tag !== "frames") break
      for (const frame of pull.frames) {
        frames.push(frame)
        cursor = frame.seq
        chars += frame.json.length
      }
    }
    return frames
  })

/** The next messages, or none after a while, or when the server is about to stop. */
const awaited = (view: View, after: number) =>
  Effect.gen(function* () {
    const { reading } = yield* Serving
    const over = yield* Deferred.make<Pull>()
    yield* reading(() => Deferred.unsafeDone(over, Effect.succeed(idle)))
    const pull = yield* Effect.raceFirst(patient(view).pull(after), Deferred.await(over))
    return pull._tag === "frames" ? pull.frames : []
  })

const cursorFor = (asked: Durable.Asked) =>
  Effect.zipWith(Clock.currentTimeMillis, Random.nextIntBetween(1, 181), (now, jitter) =>
    Durable.cursorOf(now, asked.cursor, jitter)
  )

const head = (runId: string) =>
  Effect.gen(function* () {
    const snapshot = yield* Effect.flatMap(RunEngine, (engine) => engine.snapshot(runId))
    const { "stream-up-to-date": _, ...headers } = Durable.headers({
      seq: snapshot.lastSeq,
      upToDate: false,
      closed: RunStatus.isFinal(snapshot)
    })
    return HttpServerResponse.empty({
      status: 200,
      headers: { ...headers, "content-type": json, "cache-control": notKept }
    })
  })

const answered = (frames: ReadonlyArray<Frame>, headers: Readonly<Record<string, string>>) =>
  HttpServerResponse.text(Durable.body(frames), { contentType: json, headers })

const catchUp = (view: View, after: number, closed: boolean) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest
    const frames = yield* stored(view, after)
    const seq = frames.at(-1)?.seq ?? after
    const place = { seq, upToDate: seq >= view.lastSeq, closed: closed || Durable.closes(frames.at(-1)) }
    const etag = Durable.etag(view.runId, after, place)
    const headers = { ...Durable.headers(place), etag, "cache-control": kept }
    return Durable.matches(request.headers["if-none-match"], etag)
      ? HttpServerResponse.empty({ status: 304, headers })
      : answered(frames, headers)
  })

const longPoll = (view: View, after: number, closed: boolean, asked: Durable.Asked) =>
  Effect.gen(function* () {
    const waits = after >= view.lastSeq
    const frames = closed ? [] : yield* waits ? awaited(view, after) : stored(view, after)
    const seq = frames.at(-1)?.seq ?? after
    const place = { seq, upToDate: seq >= view.lastSeq, closed: closed || Durable.closes(frames.at(-1)) }
    const headers = { ...Durable.headers(place), "stream-cursor": String(yield* cursorFor(asked)) }
    return frames.length === 0 && place.upToDate
      ? HttpServerResponse.empty({ status: 204, headers: { ...headers, "cache-control": notKept } })
      : answered(frames, { ...headers, etag: Durable.etag(view.runId, after, place), "cache-control": kept })
  })

const sse = (view: View, after: number, closed: boolean, asked: Durable.Asked) =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const cursor = yield* cursorFor(asked)
    const until = clock.unsafeCurrentTimeMillis() + sseMs
    let over = closed
    const writer: Writer = {
      write: (frames) => {
        const last = frames.at(-1)
        if (last === undefined) return bytesOf("")
        over = Durable.closes(last)
        // Behind what there was at first, a reader is given whatever there is as soon as it is there.
        const place = { seq: last.seq, upToDate: last.seq >= view.lastSeq, closed: over }
        return bytesOf(Durable.data(frames) + Durable.control(place, cursor))
      },
      heartbeat: ": hb\n\n",
      verdict: () => (over || clock.unsafeCurrentTimeMillis() >= until ? "over" : "on"),
      last: () => undefined,
      whole: false
    }
    return yield* Streams.send({
      writer,
      first: after < view.lastSeq ? ":ok\n\n" : Durable.control({ seq: after, upToDate: true, closed }, cursor),
      view: patient(view),
      after,
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no"
      }
    })
  })

/** Nothing of the log, for who wants only what comes after it. */
const tail = (seq: number, closed: boolean) =>
  answered([], { ...Durable.headers({ seq, upToDate: true, closed }), "cache-control": notKept })

const get = (runId: string, parameters: Parameters<typeof Durable.parse>[0]) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const { accepting, slot } = yield* Serving
    const asked = yield* Durable.parse(parameters)
    yield* accepting
    const now = asked.after === "now" ? yield* engine.snapshot(runId) : undefined
    if (now !== undefined && asked.live === undefined) return tail(now.lastSeq, RunStatus.isFinal(now))
    const after = now?.lastSeq ?? (asked.after === "now" ? 0 : asked.after)
    const view = yield* now === undefined ? engine.view(runId, after) : Adapting.viewOf(runId, after)
    yield* slot
    // That nothing will follow is told by the last message, and to who has that, by the run.
    const closed = view.ended && after === view.lastSeq && RunStatus.isFinal(now ?? (yield* engine.snapshot(runId)))
    if (asked.live === undefined) return yield* catchUp(view, after, closed)
    return yield* (asked.live === "sse" ? sse : longPoll)(view, after, closed, asked)
  })

/**
 * The handlers of the stream of a run.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "durableStreams", (handlers) =>
  Effect.succeed(
    handlers.handle("read", ({ path, urlParams }) =>
      Effect.flatMap(HttpServerRequest, ({ method }) =>
        method === "HEAD" ? head(path.runId) : get(path.runId, urlParams)
      )
    )
  )
)
