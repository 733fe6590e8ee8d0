/**
 * Checks of runs while they go on: watching, leaving, silence, stopping.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Laws from "../Laws.js"
import {
  ask,
  define,
  envelopes,
  field,
  type HttpCheck,
  logOf,
  must,
  mustKeep,
  snapshot,
  until,
  watch
} from "./Check.js"
import { needsDemo, start } from "./Runs.js"
import { Session } from "./Session.js"
import { Target } from "./Target.js"

const cancel = (runId: string) => ask(200, { method: "POST", path: `/runs/${runId}/cancel` })

/** How much later than promised a heartbeat may come, over a network and on a busy machine. */
const slackMs = 2_000

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const living: ReadonlyArray<HttpCheck> = [
  define(
    "everybody who watches a run sees the same",
    Effect.gen(function* () {
      const { long } = yield* Session
      const { runId } = yield* start(long)
      const path = `/runs/${runId}/events`
      const watching = yield* Effect.fork(
        Effect.all(
          Array.from({ length: 4 }, () => watch({ method: "GET", path })),
          { concurrency: "unbounded" }
        )
      )
      yield* until(runId, ({ text }) => text.length > 20)
      yield* cancel(runId)
      const all = yield* watching
      const texts = new Set(all.map(({ frames }) => frames.map(({ data }) => data).join("\n")))
      yield* must(texts.size === 1, `four viewers saw ${texts.size} different logs`)
      yield* must(
        all.every(({ ended }) => ended),
        "a stream was not closed behind the end"
      )
    })
  ),
  define(
    "a client that leaves does not stop its run",
    Effect.gen(function* () {
      const { short } = yield* Session
      const { frames } = yield* watch(
        { method: "POST", path: "/chat", body: { message: short } },
        { until: ({ frames }) => frames.length > 0 }
      )
      const [first] = yield* envelopes(frames)
      if (first === undefined) return
      const { made } = yield* Session
      const ended = yield* until(
        first.runId,
        ({ status }) => status !== "queued" && status !== "running" && status !== "streaming"
      )
      made.add(ended.conversationId)
      yield* must(ended.status === "completed", `it is ${ended.status}`)
    })
  ),
  define(
    "a stream is never silent for longer than the heartbeat",
    Effect.gen(function* () {
      yield* needsDemo
      const { options } = yield* Target
      const heartbeatMs = options.heartbeatMs ?? 15_000
      const { runId } = yield* start("/write Conformance: never written")
      const waiting = yield* until(runId, ({ status }) => status === "waiting_approval")
      for (const accept of ["text/event-stream", "application/x-ndjson"]) {
        const silent = watch(
          { method: "GET", path: `/runs/${runId}/events?after=${waiting.lastSeq - 1}`, headers: { accept } },
          // The first comment of a stream is its opening.
          { until: ({ beats, form }) => beats >= (form === "sse" ? 2 : 1) }
        )
        const beat = yield* Effect.timeoutOption(silent, heartbeatMs + slackMs)
        yield* must(
          beat._tag === "Some" && !beat.value.ended,
          `${accept}: nothing came for ${heartbeatMs + slackMs} ms`
        )
      }
    })
  ),
  define(
    "a run that is cancelled ends with `cancelled`, keeps its text, and does nothing more",
    Effect.gen(function* () {
      const { long } = yield* Session
      const { conversationId, runId } = yield* start(long)
      const before = yield* until(runId, ({ text }) => text !== "")
      const { json } = yield* cancel(runId)
      const lastSeq = field(json, "lastSeq")
      yield* must(field(json, "status") === "cancelled", `the answer says ${String(field(json, "status"))}`)
      yield* Effect.sleep("500 millis")
      const after = yield* snapshot(runId)
      const log = yield* logOf(runId)
      yield* must(
        after.status === "cancelled" && after.lastSeq === lastSeq,
        `it is ${after.status} at ${after.lastSeq}`
      )
      yield* must(log.at(-1)?.event.type === "cancelled", `its log ends with ${log.at(-1)?.event.type}`)
      yield* must(after.text.startsWith(before.text), "text was taken back")
      yield* mustKeep(Laws.ofLogs, { runs: [{ runId, conversationId, log, turns: [] }] })
    })
  ),
  define(
    "cancelling again, or what is over, tells how it ended",
    Effect.gen(function* () {
      const { long, specimen } = yield* Session
      const over = yield* cancel(specimen.runId)
      yield* must(
        field(over.json, "status") === specimen.snapshot.status &&
          field(over.json, "lastSeq") === specimen.snapshot.lastSeq,
        `of a run that is ${specimen.snapshot.status} it says ${over.text}`
      )
      const { runId } = yield* start(long)
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => cancel(runId)),
        { concurrency: "unbounded" }
      )
      yield* must(new Set(answers.map(({ text }) => text)).size === 1, "five cancels at once have different answers")
    })
  ),
  define(
    "a run that is cancelled in the queue never starts",
    Effect.gen(function* () {
      const { long, short } = yield* Session
      const first = yield* start(long)
      const second = yield* start(short, { conversationId: first.conversationId })
      const waiting = yield* snapshot(second.runId)
      yield* must(waiting.status === "queued", `it is ${waiting.status} while its conversation is busy`)
      yield* cancel(second.runId)
      yield* cancel(first.runId)
      const log = yield* logOf(second.runId)
      const started = log.some(({ event }) => event.type === "run-status" && event.status !== "queued")
      yield* must(!started && log.at(-1)?.event.type === "cancelled", "it did something")
    })
  )
]
