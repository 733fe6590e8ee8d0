/**
 * Checks of logs, and of what follows from them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as RunState from "../../domain/RunState.js"
import * as RunStatus from "../../domain/RunStatus.js"
import * as Snapshot from "../../domain/Snapshot.js"
import * as Json from "../../tool/Json.js"
import * as Laws from "../Laws.js"
import type { ObservedRun } from "../Observed.js"
import * as Check from "./Check.js"
import { start } from "./Runs.js"
import { Session } from "./Session.js"
import { Target } from "./Target.js"

const runOf = ({ conversationId, log, runId }: Pick<ObservedRun, "runId" | "conversationId" | "log">): ObservedRun => ({
  runId,
  conversationId,
  log,
  turns: []
})

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const logs: ReadonlyArray<Check.HttpCheck> = [
  Check.define(
    "a log counts 1, 2, 3 …, every event may follow the one before, and nothing follows its one end",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const last = specimen.log.at(-1)?.event.type ?? "nothing"
      yield* Check.must(specimen.stream.ended, "the server did not close the stream")
      yield* Check.must(Check.isTerminal(last), `the stream was closed behind ${last}`)
      yield* Check.mustKeep(Laws.ofLogs, { runs: [runOf(specimen)] })
    })
  ),
  Check.define(
    "a log is the same for whoever reads it again",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const again = yield* Check.watch({ method: "GET", path: `/runs/${specimen.runId}/events` })
      yield* Check.must(
        again.frames.map(({ data }) => data).join("\n") === specimen.stream.frames.map(({ data }) => data).join("\n"),
        "it differs from what was streamed"
      )
    })
  ),
  Check.define(
    "a snapshot is the fold of the log, in the end and on the way, and goes on as the log does",
    Effect.gen(function* () {
      const { long, specimen } = yield* Session
      const { conversationId, runId } = yield* start(long)
      const snapshots = [{ runId: specimen.runId, stored: specimen.snapshot.lastSeq, snapshot: specimen.snapshot }]
      yield* Check.until(runId, ({ text }) => text !== "")
      for (let n = 0; n < 3; n++) {
        const snapshot = yield* Check.snapshot(runId)
        snapshots.push({ runId, stored: snapshot.lastSeq, snapshot })
        yield* Effect.sleep("100 millis")
      }
      yield* Check.ask(200, { method: "POST", path: `/runs/${runId}/cancel` })
      const log = yield* Check.logOf(runId)
      yield* Check.mustKeep([Laws.sameFold, Laws.snapshotGoesOn, ...Laws.ofLogs], {
        runs: [runOf(specimen), runOf({ runId, conversationId, log })],
        snapshots
      })
    })
  ),
  Check.define(
    "what a client sees is stored: a snapshot that is read then is never behind it",
    Effect.gen(function* () {
      const { long } = yield* Session
      const target = yield* Target
      const { runId } = yield* start(long)
      let behind: string | undefined
      let looks = 0
      yield* Check.watch(
        { method: "GET", path: `/runs/${runId}/events` },
        {
          onFrames: (frames) =>
            Effect.gen(function* () {
              looks++
              const seen = Number(frames.at(-1)?.id)
              const { json } = yield* target.request({ method: "GET", path: `/runs/${runId}` })
              const lastSeq = Number(Check.field(json, "lastSeq"))
              if (!(lastSeq >= seen)) behind ??= `${seen} was seen when ${lastSeq} were stored`
            }),
          until: () => looks >= 12
        }
      )
      yield* Check.must(behind === undefined, String(behind))
    })
  ),
  Check.define(
    "a trace is a header and the log",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { text } = yield* Check.ask(200, { method: "GET", path: `/runs/${specimen.runId}/trace` })
      const [header = "", ...lines] = text.trimEnd().split("\n")
      yield* Check.must(
        lines.join("\n") === specimen.stream.frames.map(({ data }) => data).join("\n"),
        "its lines are not the log"
      )
      yield* Check.must(
        /^\{"format":"runlet-trace","version":1,"run":\{/.test(header),
        `its header is ${header.slice(0, 120)}`
      )
    })
  ),
  Check.define(
    "checkpoints are those of the log, and one says how the run stood there",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { json } = yield* Check.ask(200, { method: "GET", path: `/runs/${specimen.runId}/checkpoints` })
      const items = Check.field(json, "items")
      const listed = Array.isArray(items) ? items.map((item) => `${item.seq} ${item.kind}`) : []
      const logged = specimen.log.flatMap(({ event }) =>
        event.type === "checkpoint" ? [`${event.seq} ${event.checkpointKind}`] : []
      )
      yield* Check.must(listed.join() === logged.join(), `${listed.join(", ")} is not ${logged.join(", ")}`)
      const last = specimen.log.findLast(({ event }) => event.type === "checkpoint")?.seq ?? 0
      const one = yield* Check.ask(200, { method: "GET", path: `/runs/${specimen.runId}/checkpoints/${last}` })
      const state = RunState.reduceAll(RunState.empty(specimen.runId), specimen.log.slice(0, last))
      yield* Check.must(
        Check.field(one.json, "textLength") === state.textLength,
        `its textLength is ${String(Check.field(one.json, "textLength"))}, the log has ${state.textLength}`
      )
      yield* Check.refused(404, { method: "GET", path: `/runs/${specimen.runId}/checkpoints/999999` })
    })
  ),
  Check.define(
    "lists show the run as its snapshot does",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      const { conversationId, runId, snapshot } = specimen
      const { json } = yield* Check.ask(200, { method: "GET", path: `/runs?conversationId=${conversationId}` })
      const items = Check.field(json, "items")
      const [item] = Array.isArray(items) ? items : []
      yield* Check.must(Check.field(item, "runId") === runId, "the run is not in the list of its conversation")
      for (const name of ["status", "lastSeq", "usage", "assistantMessageId"] as const) {
        yield* Check.must(
          Json.canonical(Check.field(item, name)) === Json.canonical(snapshot[name]),
          `${name} is ${JSON.stringify(Check.field(item, name))} in the list`
        )
      }
      yield* Check.must(RunStatus.isEnded(snapshot.status), `it is ${snapshot.status}`)
      yield* Check.must(Snapshot.of(Snapshot.toView(snapshot)).text === snapshot.text, "its text is not its parts'")
    })
  )
]
