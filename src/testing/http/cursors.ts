/**
 * Checks of cursors: how a reader comes back.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import {
  ask,
  type Broken,
  brief,
  controls,
  define,
  envelopes,
  field,
  type HttpCheck,
  must,
  refused,
  Skipped,
  watch
} from "./Check.js"
import { start } from "./Runs.js"
import { Session } from "./Session.js"
import { Target, type Unreachable } from "./Target.js"
import type { Frame } from "./Wire.js"

const dataOf = (frames: ReadonlyArray<Frame>): string => frames.map(({ data }) => data).join("\n")

/** Cursors that tell something: both ends, their neighbours, and some between. */
const places = (last: number): ReadonlyArray<number> =>
  [...new Set([0, 1, 2, Math.floor(last / 3), Math.floor(last / 2), last - 2, last - 1])].filter(
    (n) => n >= 0 && n < last
  )

const isOver = (item: unknown): boolean => ["completed", "cancelled", "failed"].includes(String(field(item, "status")))

/** So many of the oldest runs are looked at. */
const most = 5

/** All that a list holds, page after page. */
const all = (path: string, cursor = ""): Effect.Effect<ReadonlyArray<unknown>, Broken | Unreachable, Target> =>
  Effect.gen(function* () {
    const { json } = yield* ask(200, { method: "GET", path: `${path}${cursor}` })
    const items = field(json, "items")
    const next = field(json, "nextCursor")
    const here = Array.isArray(items) ? items : []
    return typeof next === "string" ? [...here, ...(yield* all(path, `&cursor=${encodeURIComponent(next)}`))] : here
  })

/** What there is of a run whose events were removed: its snapshot, its end, and no way on. */
const isGone = ({
  lastSeq,
  path,
  runId
}: {
  readonly runId: string
  readonly path: string
  readonly lastSeq: number
}) =>
  Effect.gen(function* () {
    for (const how of [{ path: `${path}?after=0` }, { path, headers: { "last-event-id": "1" } }]) {
      const gone = yield* refused(410, { method: "GET", ...how })
      const at = field(gone.json, "snapshot")
      yield* must(field(gone.json, "_tag") === "Compacted" && typeof at === "string", `it is ${brief(gone)}`)
      const left = yield* ask(200, { method: "GET", path: String(at) })
      yield* must(
        field(left.json, "runId") === runId && field(left.json, "lastSeq") === lastSeq,
        `its snapshot is ${brief(left)}`
      )
    }
    yield* ask(204, { method: "GET", path: `${path}?after=${lastSeq}` })
    const resumed = yield* watch({ method: "POST", path: `/runs/${runId}/resume`, body: { lastAppliedSeq: 0 } })
    const [begin, end] = yield* controls(resumed.frames)
    yield* must(
      resumed.ended &&
        resumed.frames.length === 2 &&
        field(begin, "type") === "resume-start" &&
        field(end, "type") === "resume-unavailable",
      `a resume gives ${dataOf(resumed.frames).slice(0, 160)}`
    )
  })

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const cursors: ReadonlyArray<HttpCheck> = [
  define(
    "behind a cursor comes the log without its first events, byte for byte",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { frames } = specimen.stream
      const path = `/runs/${specimen.runId}/events`
      for (const n of places(frames.length)) {
        const expected = dataOf(frames.slice(n))
        const asked = yield* watch({ method: "GET", path: `${path}?after=${n}` })
        yield* must(dataOf(asked.frames) === expected, `after=${n} gives something else`)
        yield* must(asked.ended, `after=${n} was not closed at the end`)
        const sent = yield* watch({ method: "GET", path, headers: { "last-event-id": String(n) } })
        yield* must(dataOf(sent.frames) === expected, `Last-Event-ID: ${n} gives something else`)
      }
    })
  ),
  define(
    "Last-Event-ID wins over ?after, and an empty one is none",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { frames } = specimen.stream
      const path = `/runs/${specimen.runId}/events`
      const both = yield* watch({ method: "GET", path: `${path}?after=1`, headers: { "last-event-id": "2" } })
      yield* must(dataOf(both.frames) === dataOf(frames.slice(2)), "the header was not followed")
      const empty = yield* watch({ method: "GET", path: `${path}?after=` })
      yield* must(dataOf(empty.frames) === dataOf(frames), "an empty ?after is not the start")
    })
  ),
  define(
    "what is no cursor is refused as InvalidCursor",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const last = specimen.stream.frames.length
      const path = `/runs/${specimen.runId}/events`
      const wrong = [
        "-1",
        "%2B1",
        "1.5",
        "1e1",
        "01",
        "00",
        "abc",
        "0x1",
        "%201",
        "1%20",
        String(last + 1),
        "9".repeat(30)
      ]
      for (const text of wrong) {
        const answer = yield* refused(400, { method: "GET", path: `${path}?after=${text}` })
        yield* must(
          field(answer.json, "_tag") === "InvalidCursor",
          `after=${text} is ${String(field(answer.json, "_tag"))}`
        )
      }
      yield* refused(400, { method: "GET", path: `${path}?after=1&after=2` })
      for (const text of ["-1", "1.5", "x", String(last + 1)]) {
        yield* refused(400, { method: "GET", path, headers: { "last-event-id": text } })
      }
    })
  ),
  define(
    "at the end of a run that is over there is nothing more: 204",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const last = specimen.stream.frames.length
      const { text } = yield* ask(204, { method: "GET", path: `/runs/${specimen.runId}/events?after=${last}` })
      yield* must(text === "", `it has a body: ${text.slice(0, 80)}`)
    })
  ),
  define(
    "a client that comes and goes sees a live run once and in order",
    Effect.gen(function* () {
      const { long } = yield* Session
      const { runId } = yield* start(long)
      const path = `/runs/${runId}/events`
      const seen: Array<Frame> = []
      for (const take of [1, 2, 5, 3, 20, 1]) {
        const { frames } = yield* watch(
          { method: "GET", path, headers: { "last-event-id": String(seen.length) } },
          { until: ({ frames }) => frames.length >= take }
        )
        seen.push(...frames)
      }
      yield* ask(200, { method: "POST", path: `/runs/${runId}/cancel` })
      const whole = yield* watch({ method: "GET", path })
      yield* must(
        seen.every(({ id }, index) => id === String(index + 1)),
        `it saw ${seen.map(({ id }) => id).join(" ")}`
      )
      yield* must(dataOf(whole.frames.slice(0, seen.length)) === dataOf(seen), "what it saw is not what is stored")
    })
  ),
  define(
    "a resume begins with resume-start, and gives what ?after gives",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { assistantMessageId } = specimen.snapshot
      const { frames } = specimen.stream
      for (const n of [0, 1, frames.length - 1]) {
        const resume = { runId: specimen.runId, lastAppliedSeq: n, assistantMessageId }
        for (const [path, body] of [
          ["/chat", { resume }],
          [`/runs/${specimen.runId}/resume`, { lastAppliedSeq: n }]
        ] as const) {
          const again = yield* watch({ method: "POST", path, body })
          const [first] = yield* controls(again.frames)
          yield* must(field(first, "type") === "resume-start", `${path} from ${n} begins with ${again.frames[0]?.data}`)
          yield* must(field(first, "fromSeq") === n, `its fromSeq is ${String(field(first, "fromSeq"))}`)
          yield* must(
            field(first, "replayedCount") === frames.length - n,
            `its replayedCount is ${String(field(first, "replayedCount"))}`
          )
          yield* must(
            dataOf(again.frames.slice(1)) === dataOf(frames.slice(n)),
            `${path} from ${n} gives something else`
          )
        }
      }
      yield* refused(400, { method: "POST", path: `/runs/${specimen.runId}/resume`, body: { lastAppliedSeq: -1 } })
      yield* refused(400, {
        method: "POST",
        path: "/chat",
        body: { resume: { runId: specimen.runId, lastAppliedSeq: frames.length + 1 } }
      })
    })
  ),
  define(
    "a cursor in a part of the log that was removed is 410, and names the snapshot",
    Effect.gen(function* () {
      let removed = 0
      for (const item of (yield* all("/runs?limit=200")).filter(isOver).slice(-most)) {
        const runId = String(field(item, "runId"))
        const path = `/runs/${runId}/events`
        const { request } = yield* Target
        const first = yield* request({ method: "GET", path, headers: { accept: "application/x-ndjson" } })
        if (first.status === 410) {
          removed++
          yield* isGone({ runId, path, lastSeq: Number(field(item, "lastSeq")) })
          continue
        }
        yield* must(first.status === 200, `${path}: ${brief(first)}`)
        const lines = first.text.split("\n").filter((line) => line !== "")
        const log = yield* envelopes(lines.map((data) => ({ id: undefined, data })))
        yield* must(
          log.every(({ seq }, index) => seq === index + 1) && log.length >= Number(field(item, "lastSeq")),
          `${path}: ${log.length} events from ${log[0]?.seq} on are given as if they were all`
        )
      }
      if (removed === 0) return yield* new Skipped({ message: "no run here is so old" })
    })
  )
]
