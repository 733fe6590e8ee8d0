/**
 * Laws of runs, as values: each looks at what was observed and says, in words, where it was broken. A law of your own
 * is one more value of this shape, see `Law`.
 *
 * ```ts
 * import { Effect, FastCheck } from "effect"
 * import { Arbitraries, Laws, Simulation } from "runlet/testing"
 *
 * const [plan] = FastCheck.sample(Arbitraries.plan, { numRuns: 1, seed: 1 })
 * const violations =
 *   plan && Effect.map(Simulation.run(plan), ({ observed }) => Laws.check(observed, [Laws.denseSeq, Laws.oneEnd]))
 * ```
 *
 * @since 0.1.0
 */
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as RunView from "../domain/RunView.js"
import * as Snapshot from "../domain/Snapshot.js"
import * as Json from "../tool/Json.js"
import { all as histories, ofLogs as historyLogs } from "./HistoryLaws.js"
import { forEvents, forRuns, type Law, runOf, stateAt, whole } from "./Law.js"
import { all as limits } from "./LimitLaws.js"
import type { Observed } from "./Observed.js"
import { ofLogs as toolLogs, all as tools } from "./ToolLaws.js"

const isTerminal = (type: string): boolean => type === "finish" || type === "cancelled" || type === "error"

/** What `queuePosition` and `expiresAt` say is no fold of the log. */
const shown = ({ expiresAt: _, queuePosition: __, ...snapshot }: Snapshot.Snapshot): string => Json.canonical(snapshot)

/**
 * Seqs count 1, 2, 3 … without a hole.
 *
 * @since 0.1.0
 * @category laws
 */
export const denseSeq = forRuns("seqs count 1, 2, 3 …", (run) =>
  run.log.flatMap((envelope, index) =>
    envelope.seq === index + 1 && envelope.runId === run.runId ? [] : [`at place ${index + 1} stands ${envelope.seq}`]
  )
)

/**
 * What is seen is stored, and stays as it was seen.
 *
 * @since 0.1.0
 * @category laws
 */
export const persistedBeforeSeen: Law = {
  name: "what is seen is stored, and stays as it was seen",
  check: (observed) =>
    observed.clients.flatMap((client) => {
      const { log } = runOf(observed, client.runId)
      return client.sessions.flatMap((session) =>
        session.frames.flatMap(({ envelope, stored }) => {
          if (envelope.seq > stored) return [`${client.runId}: ${envelope.seq} was seen when ${stored} were stored`]
          return Json.canonical(log[envelope.seq - 1]) === Json.canonical(envelope)
            ? []
            : [`${client.runId}: ${envelope.seq} was seen as ${JSON.stringify(envelope)}`]
        })
      )
    })
}

/**
 * A leg has one terminal event, and nothing follows an end.
 *
 * @since 0.1.0
 * @category laws
 */
export const oneEnd = forRuns("a leg has one terminal event, and nothing follows an end", (run) =>
  run.log.flatMap(({ event, seq }, index) => {
    const next = run.log[index + 1]?.event
    if (!isTerminal(event.type) || next === undefined) return []
    const recoverable = event.type === "error" && event.recoverable
    if (recoverable && (next.type === "run-resumed" || next.type === "cancelled")) return []
    return [`${event.type} at ${seq} is followed by ${next.type}`]
  })
)

/**
 * Every event may follow what stands before it.
 *
 * @since 0.1.0
 * @category laws
 */
export const legalTransitions = forEvents("every event may follow what stands before it", ({ before, event }) =>
  RunStatus.next(before.seq === 0 ? undefined : before, event) === undefined ? `in status ${before.status}` : undefined
)

/**
 * A connection behind a cursor gets the log behind that cursor.
 *
 * @since 0.1.0
 * @category laws
 */
export const attachIsTheRest: Law = {
  name: "a connection behind a cursor gets the log behind that cursor, without a hole",
  check: (observed) =>
    observed.clients.flatMap((client) => {
      const { log } = runOf(observed, client.runId)
      return client.sessions.flatMap((session) => {
        const seqs = session.frames.map((frame) => frame.envelope.seq)
        const expected = seqs.map((_, index) => session.after + index + 1)
        if (seqs.join() !== expected.join()) {
          return [`${client.runId}: behind ${session.after} came ${seqs.join(" ")}`]
        }
        const last = log[session.after + seqs.length - 1]?.event
        return session.ended && !isTerminal(last?.type ?? "")
          ? [`${client.runId}: it was closed behind ${last?.type ?? "nothing"}`]
          : []
      })
    })
}

/**
 * A client's fold, the log's fold and the snapshot are the same.
 *
 * @since 0.1.0
 * @category laws
 */
export const sameFold: Law = {
  name: "a client's fold, the log's fold and the snapshot are the same",
  check: (observed) => [
    ...observed.clients.flatMap((client) => {
      let state = RunState.empty(client.runId)
      for (const session of client.sessions) {
        for (const { envelope } of session.frames) state = RunState.reduce(state, envelope)
      }
      const expected = stateAt(runOf(observed, client.runId), state.seq)
      return Json.canonical(state) === Json.canonical(expected)
        ? []
        : [`${client.runId}: at ${state.seq} a client differs`]
    }),
    ...observed.snapshots.flatMap(({ runId, snapshot, stored }) => {
      if (snapshot.lastSeq > stored)
        return [`${runId}: a snapshot shows ${snapshot.lastSeq} of ${stored} stored events`]
      const expected = shown(Snapshot.of(stateAt(runOf(observed, runId), snapshot.lastSeq)))
      return shown(snapshot) === expected
        ? []
        : [`${runId}: at ${snapshot.lastSeq} ${shown(snapshot)} is not ${expected}`]
    })
  ]
}

/**
 * A checkpoint holds what its log holds up to it, so that with the rest of the log it is the whole.
 *
 * @since 0.1.0
 * @category laws
 */
export const checkpointsHoldTheirLog: Law = {
  name: "a checkpoint holds what its log holds up to it",
  check: (observed) =>
    observed.checkpoints.flatMap(({ checkpoint, runId }) => {
      const run = runOf(observed, runId)
      const state = stateAt(run, checkpoint.seq)
      const calls = RunState.turns(state).flatMap((turn) => turn.calls)
      const settled = calls.filter((call) => call.result !== undefined)
      const { event } = run.log[checkpoint.seq - 1] ?? {}
      const expected = {
        kind: event?.type === "checkpoint" ? event.checkpointKind : undefined,
        lengths: [state.textLength, state.reasoningLength, state.iteration],
        draft: [RunState.text(state), RunState.text(state, "reasoning")],
        settled: settled.map((call) => [call.id, call.name, Json.hash(call.result?.result)]),
        pending: calls.filter((call) => call.result === undefined).map((call) => call.id)
      }
      const { assistantDraft, toolResults } = checkpoint.resumeState
      const held = {
        kind: checkpoint.kind,
        lengths: [checkpoint.textLength, checkpoint.reasoningLength, checkpoint.lastIteration],
        draft: [assistantDraft.text, assistantDraft.reasoning ?? ""],
        settled: toolResults.map((one) => [one.toolCallId, one.toolName, Json.hash(one.result)]),
        pending: checkpoint.pendingToolCallIds
      }
      return Json.canonical(held) === Json.canonical(expected)
        ? []
        : [`${runId}: at ${checkpoint.seq} ${JSON.stringify(held)} is not ${JSON.stringify(expected)}`]
    })
}

/**
 * A snapshot goes on as its log does.
 *
 * @since 0.1.0
 * @category laws
 */
export const snapshotGoesOn: Law = {
  name: "a snapshot goes on as its log does",
  check: (observed) =>
    observed.snapshots.flatMap(({ runId, snapshot }) => {
      const run = runOf(observed, runId)
      const resumed = run.log.slice(snapshot.lastSeq).reduce(RunView.reduce, Snapshot.toView(snapshot))
      return shown(Snapshot.of(resumed)) === shown(Snapshot.of(whole(run)))
        ? []
        : [`${runId}: from ${snapshot.lastSeq} on`]
    })
}

/**
 * Turn rows and the events behind them come to the whole fold.
 *
 * @since 0.1.0
 * @category laws
 */
export const turnRowsAreTheFold = forRuns("turn rows and the events behind them come to the whole fold", (run) =>
  run.turns.flatMap((row, index) => {
    const state: RunState.RunState = {
      ...row.header,
      closed: run.turns.slice(0, index + 1).map((one) => one.turn)
    }
    const from = RunState.reduceAll(state, run.log.slice(row.seq))
    return Json.canonical(from) === Json.canonical(whole(run)) ? [] : [`from turn ${row.n} on`]
  })
)

/**
 * When nothing disturbs them any more, runs end.
 *
 * @since 0.1.0
 * @category laws
 */
export const endsSomewhere = forRuns("when nothing disturbs them any more, runs end", (run) => {
  const state = whole(run)
  return RunStatus.isEnded(state.status) ? [] : [`it is ${state.status} at ${state.seq}`]
})

/**
 * Checkpoints name their own place, and an end has its last one.
 *
 * @since 0.1.0
 * @category laws
 */
export const checkpointsInPlace = forRuns("checkpoints name their own place, and an end has its last one", (run) =>
  run.log.flatMap(({ event, seq }, index) => {
    if (event.type === "checkpoint" && event.seq !== seq) return [`the checkpoint at ${seq} says ${event.seq}`]
    if (!isTerminal(event.type)) return []
    const before = run.log[index - 1]?.event
    if (before?.type === "error") return []
    const kind = event.type === "error" ? "run_failed" : "run_finished"
    return before?.type === "checkpoint" && before.checkpointKind === kind ? [] : [`${event.type} at ${seq} has none`]
  })
)

/**
 * Attempts and iterations count up by one.
 *
 * @since 0.1.0
 * @category laws
 */
export const countsUp = forEvents("attempts and iterations count up by one", ({ after, before, event }) => {
  switch (event.type) {
    case "run-resumed":
      return event.attempt === before.attempt + 1 ? undefined : `attempt ${event.attempt}`
    case "model-end":
      return event.iteration === after.iteration ? undefined : `iteration ${event.iteration}`
    case "iteration-end":
      if (event.iteration !== before.iteration) return `iteration ${event.iteration}`
      return before.open?.calls.some((call) => call.result === undefined) ? "with an unsettled call" : undefined
    default:
      return undefined
  }
})

/**
 * At most one run of a conversation executes or waits for a person.
 *
 * @since 0.1.0
 * @category laws
 */
export const oneRunAtATime: Law = {
  name: "at most one run of a conversation executes or waits for a person",
  check: (observed) =>
    observed.active.flatMap(({ at, conversationId, runs }) => (runs > 1 ? [`${conversationId}: ${runs} at ${at}`] : []))
}

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/**
 * An answer to a command agrees with the log.
 *
 * @since 0.1.0
 * @category laws
 */
export const answersAreTrue: Law = {
  name: "an answer to a command agrees with the log",
  check: (observed) =>
    observed.commands.flatMap(({ answer, approvalId, name, runId }) => {
      if (answer._tag !== "Ok" || runId === undefined) return []
      const run = runOf(observed, runId)
      const { log } = run
      if (name === "cancel") {
        const at = Number(field(answer.value, "lastSeq"))
        const state = stateAt(run, at)
        const status = field(answer.value, "status")
        return RunStatus.isFinal(state) && state.status === status && at === log.length
          ? []
          : [`${runId}: a cancel was answered with ${String(status)} at ${at} of ${log.length}`]
      }
      if (name !== "decide") return []
      const event = log[Number(field(answer.value, "seq")) - 1]?.event
      return event?.type === "approval-decision" &&
        event.approvalId === approvalId &&
        event.decision === field(answer.value, "decision")
        ? []
        : [`${runId}: a decision was answered with ${JSON.stringify(answer.value)}, there stands ${event?.type}`]
    })
}

/**
 * The same key and body is the same run; another body under the same key is none.
 *
 * @since 0.1.0
 * @category laws
 */
export const keysAreRuns: Law = {
  name: "the same key and body is the same run, and another body under that key is none",
  check: (observed) => {
    const first = new Map<string, { readonly body: string | undefined; readonly runId: unknown }>()
    return observed.commands.flatMap(({ answer, body, key }) => {
      if (answer._tag !== "Ok" || key === undefined) return []
      const runId = field(answer.value, "runId")
      const before = first.get(key)
      if (before === undefined) first.set(key, { body, runId })
      if (before === undefined || (before.body === body && before.runId === runId)) return []
      return [`${key}: ${String(before.runId)} for ${before.body}, ${String(runId)} for ${body}`]
    })
  }
}

/**
 * A run is not resumed beside a later one of its conversation.
 *
 * @since 0.1.0
 * @category laws
 */
export const noResumeBehind = forEvents(
  "a run is not resumed beside a later one of its conversation",
  ({ createdAt, event }, run, { runs }) => {
    if (event.type !== "run-resumed" || event.reason !== "resume") return undefined
    const later = runs
      .slice(runs.indexOf(run) + 1)
      .find(
        (other) =>
          other.conversationId === run.conversationId &&
          (other.storedAt ?? other.log[0]?.createdAt ?? createdAt) < createdAt
      )
    return later === undefined ? undefined : `${later.runId} was there already`
  }
)

/**
 * A run that failed is left behind for good when a later one of its conversation begins.
 *
 * @since 0.1.0
 * @category laws
 */
export const leftBehind = forRuns(
  "a run that failed is left behind for good when a later one of its conversation begins",
  (run, { runs }) => {
    const { recoverable, status } = whole(run)
    if (status !== "failed" || recoverable !== true) return []
    const later = runs
      .slice(runs.indexOf(run) + 1)
      .find((other) => other.conversationId === run.conversationId && whole(other).startedAt !== undefined)
    return later === undefined ? [] : [`${later.runId} has begun, and it is still ${status}`]
  }
)

/**
 * From one moment to the next no run goes back, and nothing happens that nobody has asked for.
 *
 * @since 0.1.0
 * @category laws
 */
export const momentsFollow: Law = {
  name: "from one moment to the next no run goes back, and nothing happens that nobody has asked for",
  check: ({ commands, moments }) =>
    moments.flatMap(({ at, runs }, index): ReadonlyArray<string> => {
      const asked = commands.filter((command) => command.at <= at)
      const resumed = new Set(asked.flatMap(({ name, runId }) => (name === "resume" ? [runId] : [])))
      const made = asked.filter(({ name }) => name === "start" || name === "regenerate").length
      const changes = (moments[index - 1]?.runs ?? []).flatMap((then) => {
        const now = runs.find(({ runId }) => runId === then.runId)
        if (now === undefined) return [`${then.runId}: it is gone at ${at}`]
        if (now.seq < then.seq || now.attempt < then.attempt) return [`${then.runId}: it goes back at ${at}`]
        if (!RunStatus.isEnded(then.status) || now.seq === then.seq) return []
        if (then.recoverable && (now.status === "cancelled" || resumed.has(then.runId))) return []
        return [`${then.runId}: it was ${then.status}, and is ${now.status} at ${at}`]
      })
      return runs.length > made ? [...changes, `there are ${runs.length} runs of ${made} at ${at}`] : changes
    })
}

/**
 * What stands behind in a log is not older than what stands before.
 *
 * @since 0.1.0
 * @category laws
 */
export const timeGoesOn = forRuns("what stands behind in a log is not older than what stands before", (run) =>
  run.log.flatMap(({ createdAt, seq }, index) => {
    const before = run.log[index - 1]?.createdAt ?? createdAt
    return before <= createdAt ? [] : [`${seq} is ${before - createdAt} ms older`]
  })
)

/**
 * An end tells what all turns together have used.
 *
 * @since 0.1.0
 * @category laws
 */
export const usageAddsUp = forEvents("an end tells what all turns together have used", ({ before, event }) =>
  (event.type === "finish" || event.type === "cancelled" || event.type === "error") &&
  Json.canonical(event.usage) !== Json.canonical(before.usage)
    ? `${JSON.stringify(event.usage)} is not ${JSON.stringify(before.usage)}`
    : undefined
)

/**
 * No secret stands in any event, snapshot, answer or turn.
 *
 * @since 0.1.0
 * @category laws
 */
export const noSecret: Law = {
  name: "no secret in any event, snapshot, answer or turn",
  check: (observed) => {
    const places: ReadonlyArray<readonly [string, unknown]> = [
      ["a log", observed.runs.map((run) => run.log)],
      ["a turn row", observed.runs.map((run) => run.turns)],
      ["a snapshot", observed.snapshots],
      ["a checkpoint", observed.checkpoints],
      ["an answer", observed.commands],
      ["a client's frame", observed.clients]
    ]
    return places.flatMap(([place, value]) => {
      const text = JSON.stringify(value)
      return observed.secrets.filter((secret) => text.includes(secret)).map(() => `in ${place}`)
    })
  }
}

/**
 * The laws that need to see nothing but logs, such as those that come from a server.
 *
 * @since 0.1.0
 * @category laws
 */
export const ofLogs: ReadonlyArray<Law> = [
  denseSeq,
  oneEnd,
  legalTransitions,
  checkpointsInPlace,
  countsUp,
  timeGoesOn,
  usageAddsUp,
  ...toolLogs,
  ...historyLogs
]

/**
 * Every law of runs and their clients.
 *
 * @since 0.1.0
 * @category laws
 */
export const all: ReadonlyArray<Law> = [
  denseSeq,
  persistedBeforeSeen,
  oneEnd,
  legalTransitions,
  attachIsTheRest,
  sameFold,
  snapshotGoesOn,
  turnRowsAreTheFold,
  endsSomewhere,
  checkpointsInPlace,
  checkpointsHoldTheirLog,
  countsUp,
  timeGoesOn,
  usageAddsUp,
  oneRunAtATime,
  noResumeBehind,
  leftBehind,
  answersAreTrue,
  keysAreRuns,
  momentsFollow,
  noSecret,
  ...limits,
  ...tools,
  ...histories
]

/**
 * Every violation of these laws, each with the law's name.
 *
 * @since 0.1.0
 * @category checking
 */
export const check = (observed: Observed, laws: ReadonlyArray<Law> = all): ReadonlyArray<string> =>
  laws.flatMap((law) => law.check(observed).map((violation) => `${law.name}: ${violation}`))
