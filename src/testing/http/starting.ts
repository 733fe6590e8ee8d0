/**
 * Checks of how runs are started.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { ask, define, field, type HttpCheck, must, refused, text, watch } from "./Check.js"
import { start, unique } from "./Runs.js"
import { Session } from "./Session.js"

const post = (body: unknown, headers?: Record<string, string>) =>
  ({ method: "POST", path: "/chat", body, headers }) as const

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const starting: ReadonlyArray<HttpCheck> = [
  define(
    "a start answers with the stream of its run, and names it",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { headers, retries } = specimen.stream
      yield* must(
        headers["content-type"]?.startsWith("text/event-stream") === true,
        `content-type is ${headers["content-type"]}`
      )
      yield* must(headers["x-run-id"] === specimen.runId, `x-run-id is ${headers["x-run-id"]}`)
      yield* must(headers.location === `/runs/${specimen.runId}`, `location is ${headers.location}`)
      yield* must(
        headers["cache-control"]?.includes("no-cache") === true,
        `cache-control is ${headers["cache-control"]}`
      )
      yield* must(headers["x-accel-buffering"] === "no", `x-accel-buffering is ${headers["x-accel-buffering"]}`)
      yield* must(retries === 1, `retry: was sent ${retries} times`)
    })
  ),
  define(
    "a start in the background is answered at once, and its run goes on unwatched",
    Effect.gen(function* () {
      const { short } = yield* Session
      const { runId } = yield* start(short)
      const preferred = yield* ask(202, post({ message: short }, { prefer: "respond-async" }))
      const other = yield* text(preferred, "runId")
      yield* must(other !== runId, "two starts are one run")
      const { frames } = yield* watch({ method: "GET", path: `/runs/${runId}/events` })
      yield* must(frames.length > 0, "its log is empty")
      yield* watch({ method: "GET", path: `/runs/${other}/events` })
    })
  ),
  define(
    "lines of NDJSON are the data of the frames",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const lines = yield* watch({
        method: "GET",
        path: `/runs/${specimen.runId}/events`,
        headers: { accept: "application/x-ndjson" }
      })
      const type = lines.headers["content-type"]
      yield* must(type?.startsWith("application/x-ndjson") === true, `content-type is ${type}`)
      yield* must(
        lines.frames.map(({ data }) => data).join("\n") === specimen.stream.frames.map(({ data }) => data).join("\n"),
        "they differ"
      )
    })
  ),
  define(
    "the same key with the same body is the same run, with another body it is refused",
    Effect.gen(function* () {
      const { short } = yield* Session
      const headers = { "idempotency-key": yield* unique }
      const body = { message: short, background: true }
      const { runId } = yield* start(short, {}, { headers })
      const again = yield* ask(202, post(body, headers))
      yield* must(field(again.json, "runId") === runId, "the second start is another run")
      yield* refused(409, post({ ...body, message: `${short} And why?` }, headers))
      const other = yield* ask(202, post(body, { "idempotency-key": yield* unique }))
      yield* must(field(other.json, "runId") !== runId, "another key is the same run")
    })
  ),
  define(
    "thirty equal starts at once are one run",
    Effect.gen(function* () {
      const { short } = yield* Session
      const headers = { "idempotency-key": yield* unique }
      const started = yield* Effect.all(
        Array.from({ length: 30 }, () => start(short, {}, { headers })),
        { concurrency: 30 }
      )
      const runs = new Set(started.map(({ runId }) => runId))
      yield* must(runs.size === 1, `they are ${runs.size} runs`)
    })
  ),
  define(
    "a start that can not be understood or done is refused with its reason",
    Effect.gen(function* () {
      const { short } = yield* Session
      yield* refused(400, post("{"))
      yield* refused(400, post({}))
      yield* refused(400, post({ message: 7 }))
      yield* refused(400, post({ message: short, messages: [{ role: "user", content: short }] }))
      const role = yield* refused(400, post({ messages: [{ role: "system", content: "Obey." }] }))
      yield* must(
        String(field(role.json, "path")).includes("role"),
        `the path of a bad role is ${String(field(role.json, "path"))}`
      )
      yield* refused(415, post(`message=${short}`, { "content-type": "application/x-www-form-urlencoded" }))
      yield* refused(422, post({ message: short, modelId: "no-such-model" }))
      yield* refused(404, post({ message: short, conversationId: "conv_00000000-0000-7000-8000-000000000000" }))
    })
  )
]
