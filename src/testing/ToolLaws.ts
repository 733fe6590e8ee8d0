/**
 * Laws of calls, approvals and effects.
 *
 * @since 0.1.0
 */
import type { EventOf } from "../domain/AgentEvent.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Json from "../tool/Json.js"
import { forEvents, forRuns, type Law, runOf, stateAt, whole } from "./Law.js"
import type { LedgerEntry, Observed, ObservedRun } from "./Observed.js"
import { isReading } from "./RecordingTools.js"

/**
 * How the run stood when the entry was made. Of what was stored in the very same millisecond nobody can say which came
 * first, so each of these states will do.
 */
const statesAt = (observed: Observed, entry: LedgerEntry): ReadonlyArray<RunState.RunState> => {
  const run = runOf(observed, entry.runId)
  const states: Array<RunState.RunState> = []
  for (let seq = entry.seq; seq >= 0; seq--) {
    states.push(stateAt(run, seq))
    if ((run.log[seq - 1]?.createdAt ?? 0) < entry.at) break
  }
  return states
}

const named = (entry: LedgerEntry): string =>
  `${entry.runId}: ${entry.toolName} ${entry.toolCallId} ${entry.phase} ${entry.key}`

const forEntries = (
  name: string,
  wanted: (entry: LedgerEntry) => boolean,
  check: (entry: LedgerEntry, state: RunState.RunState, observed: Observed) => string | undefined
): Law => ({
  name,
  check: (observed) =>
    observed.ledger.filter(wanted).flatMap((entry) => {
      const violations = statesAt(observed, entry).map((state) => check(entry, state, observed))
      return violations.includes(undefined) ? [] : [`${named(entry)}: ${String(violations[0])}`]
    })
})

const begins = (entry: LedgerEntry): boolean => entry.what === "begin"
const acts = (entry: LedgerEntry): boolean => entry.what === "begin" && !isReading(entry)

/**
 * Every call is answered once, and only calls are.
 *
 * @since 0.1.0
 * @category laws
 */
export const oneResult = forRuns("every call is answered once, and only calls are", (run) => {
  const problems: Array<string> = []
  const calls = new Map<string, number>()
  for (const { event, seq } of run.log) {
    if (event.type === "tool-call-start") {
      if (calls.has(event.toolCallId)) problems.push(`${event.toolCallId} begins again at ${seq}`)
      calls.set(event.toolCallId, 0)
    }
    if (event.type !== "tool-call-result") continue
    const results = calls.get(event.toolCallId)
    if (results === undefined) problems.push(`a result of ${event.toolCallId} at ${seq} without its call`)
    else if (results > 0) problems.push(`a second result of ${event.toolCallId} at ${seq}`)
    calls.set(event.toolCallId, (results ?? 0) + 1)
  }
  const state = whole(run)
  const left = RunState.turns(state).flatMap((turn) => turn.calls.filter((call) => call.result === undefined))
  if (RunStatus.isEnded(state.status)) problems.push(...left.map((call) => `${call.id} has no result in the end`))
  return problems
})

/**
 * A call that was started is never dropped, and is started and settled only behind its turn's model-end.
 *
 * @since 0.1.0
 * @category laws
 */
export const startedAreKept = forEvents(
  "a call that was started is never dropped, and is started and settled only behind its turn's model-end",
  ({ before, event }) => {
    if (event.type === "run-resumed") {
      const dropped = event.droppedToolCallIds.find((id) => RunState.findCall(before, id)?.call.phase !== undefined)
      return dropped === undefined ? undefined : `${dropped} is dropped`
    }
    const found = "toolCallId" in event ? RunState.findCall(before, event.toolCallId) : undefined
    if (event.type === "tool-call-result" && event.state !== "interrupted") {
      return found?.turn.ended === undefined ? "before its model-end" : undefined
    }
    if (event.type !== "tool-start" && event.type !== "approval-request") return undefined
    if (found === undefined) return "without a call"
    if (found.turn.ended === undefined) return "before its model-end"
    return found.call.result === undefined ? undefined : "of a settled call"
  }
)

/**
 * What begins stands in the log before, in this phase and under this key.
 *
 * @since 0.1.0
 * @category laws
 */
export const intentFirst = forEntries(
  "what begins stands in the log before, in this phase and under this key",
  begins,
  (entry, state) => {
    const open = RunState.findCall(state, entry.toolCallId)?.call.open
    return open?.phase === entry.phase && open.key === entry.key ? undefined : `the log has ${JSON.stringify(open)}`
  }
)

/**
 * A completed call never runs again.
 *
 * @since 0.1.0
 * @category laws
 */
export const completedStay = forEntries("a completed call never runs again", begins, (entry, state) =>
  RunState.findCall(state, entry.toolCallId)?.call.result === undefined ? undefined : "it has a result"
)

/**
 * Nothing begins when the run does not execute.
 *
 * @since 0.1.0
 * @category laws
 */
export const nothingAfterAnEnd = forEntries("nothing begins when the run does not execute", begins, (_, state) =>
  RunStatus.isExecuting(state.status) ? undefined : `the run is ${state.status}`
)

/**
 * An effect begins only under the run's lease.
 *
 * @since 0.1.0
 * @category laws
 */
export const underLease: Law = {
  name: "an effect begins only under the run's lease",
  check: (observed) =>
    observed.ledger.flatMap((entry) => {
      if (!acts(entry) || entry.held) return []
      const states = statesAt(observed, entry)
      const [after] = states
      const before = states.at(-1)
      // It was lost in the very same millisecond.
      const justNow =
        after !== undefined &&
        before !== undefined &&
        RunStatus.isExecuting(before.status) &&
        (RunStatus.isEnded(after.status) || after.attempt > before.attempt)
      return justNow ? [] : [`${named(entry)}: its process does not hold the run`]
    })
}

/**
 * What needs an approval begins only after one for exactly this input, under its key.
 *
 * @since 0.1.0
 * @category laws
 */
export const approved = forEntries(
  "what needs an approval begins only after one for exactly this input, under its key",
  (entry) => acts(entry) && !entry.unattended,
  (entry, state) => {
    const call = RunState.findCall(state, entry.toolCallId)?.call
    const approval = latestApproval(state, entry, call)
    if (approval === undefined) return "there is none"
    const { approvalId, input, preview, previewHash, toolName } = approval
    if (Json.canonical(input) !== Json.canonical(entry.input)) return `it was for ${JSON.stringify(input)}`
    if (previewHash !== Json.hash({ toolName, input, preview })) return "its hash is not that of what was shown"
    return approvalId === entry.key ? undefined : `its id is ${approvalId}`
  }
)

/** The approval that an act relies on: its own, or for a retry of what is in doubt, the one behind the doubt. */
const latestApproval = (
  _: RunState.RunState,
  entry: LedgerEntry,
  call: RunState.Call | undefined
): RunState.Approval["request"] | undefined => {
  const approval = call?.approval
  if (approval === undefined) return undefined
  if (approval.request.reason !== "in_doubt") {
    return approval.decision?.decision === "approved" ? approval.request : undefined
  }
  // The doubt is about an act that was approved; its key says by which approval.
  return approval.decision?.decision === "retry" ? { ...approval.request, approvalId: entry.key } : undefined
}

const approvalsOf = (run: ObservedRun) =>
  run.log.flatMap(({ event }) => (event.type === "approval-decision" ? [event] : []))

/**
 * The key of an approved act is an approved approval of its call.
 *
 * @since 0.1.0
 * @category laws
 */
export const keysAreApprovals: Law = {
  name: "the key of an approved act is an approved approval of its call",
  check: (observed) =>
    observed.ledger
      .filter((entry) => acts(entry) && !entry.unattended)
      .flatMap((entry) => {
        const run = runOf(observed, entry.runId)
        const decisions = approvalsOf(run)
        const ok = decisions.some(
          (one) => one.approvalId === entry.key && one.toolCallId === entry.toolCallId && one.decision === "approved"
        )
        return ok ? [] : [named(entry)]
      })
}

/**
 * An act without a keyed tool is done once, unless a person says again.
 *
 * @since 0.1.0
 * @category laws
 */
export const oncePerKey: Law = {
  name: "an act without a keyed tool is done once, unless a person says again",
  check: (observed) => {
    const counts = new Map<string, { readonly entry: LedgerEntry; readonly times: number }>()
    for (const entry of observed.ledger) {
      if (!acts(entry) || entry.keyed) continue
      const id = `${entry.runId} ${entry.toolCallId} ${entry.key}`
      counts.set(id, { entry, times: (counts.get(id)?.times ?? 0) + 1 })
    }
    return [...counts.values()].flatMap(({ entry, times }) => {
      const run = runOf(observed, entry.runId)
      const retries = approvalsOf(run).filter(
        (one) => one.toolCallId === entry.toolCallId && one.decision === "retry"
      ).length
      return times > 1 + retries ? [`${named(entry)}: ${times} times, with ${retries} retries`] : []
    })
  }
}

/**
 * A call has its effect under one key.
 *
 * @since 0.1.0
 * @category laws
 */
export const oneKeyPerCall: Law = {
  name: "a call has its effect under one key",
  check: (observed) => {
    const first = new Map<string, LedgerEntry>()
    return observed.ledger.flatMap((entry) => {
      // What a process does after it has lost the run, no log can prevent; the key is for that.
      if (entry.what !== "effect" || !entry.held) return []
      const id = `${entry.runId} ${entry.toolCallId}`
      const before = first.get(id)
      if (before === undefined) first.set(id, entry)
      return before === undefined || before.key === entry.key ? [] : [`${named(entry)}: and under ${before.key}`]
    })
  }
}

const denied = new Set(["rejected", "expired", "interrupted", "invalid"])

/**
 * No result denies an effect that happened.
 *
 * @since 0.1.0
 * @category laws
 */
export const effectsAreTold: Law = {
  name: "no result denies an effect that happened",
  check: (observed) =>
    observed.ledger.flatMap((entry) => {
      if (entry.what !== "effect") return []
      const run = runOf(observed, entry.runId)
      const results = run.log.flatMap(({ event }) =>
        event.type === "tool-call-result" && event.toolCallId === entry.toolCallId ? [event] : []
      )
      return results
        .filter((one) => denied.has(one.state) || (one.state === "done" && !one.ok))
        .map((one) => `${named(entry)}: the result is ${one.state}, ok ${one.ok}`)
    })
}

/**
 * What is called applied has happened, unless a person says so.
 *
 * @since 0.1.0
 * @category laws
 */
export const appliedIsTrue = forEvents(
  "what is called applied has happened, unless a person says so",
  ({ event }, run, observed) => {
    if (event.type !== "tool-call-result" || event.state !== "applied" || event.source === "person") return undefined
    const happened = observed.ledger.some(
      (entry) => entry.what === "effect" && entry.runId === run.runId && entry.toolCallId === event.toolCallId
    )
    return happened ? undefined : event.toolCallId
  }
)

/**
 * An approval shows the input in force, under its hash.
 *
 * @since 0.1.0
 * @category laws
 */
export const requestsShowTheirInput = forEvents(
  "an approval shows the input in force, under its hash",
  ({ before, event }) => {
    if (event.type !== "approval-request") return undefined
    const call = RunState.findCall(before, event.toolCallId)?.call
    const { input, preview, previewHash, toolName } = event
    if (previewHash !== Json.hash({ toolName, input, preview })) return "it has another hash"
    if (Json.canonical(input) !== Json.canonical(call?.input?.value ?? null)) return "it shows another input"
    return call?.approval !== undefined && call.approval.decision === undefined ? "it overtakes one" : undefined
  }
)

/**
 * A decision belongs to the last request of its call, is the only one, and comes in time.
 *
 * @since 0.1.0
 * @category laws
 */
export const decisionsInTime = forEvents(
  "a decision belongs to the last request of its call, is the only one, and comes in time",
  ({ before, createdAt, event }) => {
    if (event.type !== "approval-decision") return undefined
    const approval = RunState.findCall(before, event.toolCallId)?.call.approval
    if (approval?.request.approvalId !== event.approvalId) return "it is about an older request"
    if (approval.decision !== undefined) return "it is a second one"
    const { expiresAt } = approval.request
    if (event.decision === "expired") return createdAt < expiresAt ? "it comes too early" : undefined
    return createdAt >= expiresAt ? "it comes too late" : undefined
  }
)

/**
 * What was approved begins when nothing else of its turn waits for a person.
 *
 * @since 0.1.0
 * @category laws
 */
export const gatedTogether = forEvents(
  "what was approved begins when nothing else of its turn waits for a person",
  ({ before, event }) => {
    if (event.type !== "tool-start" || event.phase === "preview") return undefined
    const found = RunState.findCall(before, event.toolCallId)
    // What has begun already is only looked after.
    if (found?.call.approval === undefined || found.call.open !== undefined) return undefined
    const waiting = found.turn.calls.find(({ approval }) => approval !== undefined && approval.decision === undefined)
    return waiting === undefined ? undefined : `${waiting.id} still waits`
  }
)

/**
 * A preview that was shown keeps its key, the next one has another.
 *
 * @since 0.1.0
 * @category laws
 */
export const previewKeys = forRuns("a preview that was shown keeps its key, the next one has another", (run) => {
  const asked = new Map<string, { readonly keys: Set<string>; shown: number }>()
  return run.log.flatMap(({ event, seq }): ReadonlyArray<string> => {
    if (event.type !== "approval-request" && event.type !== "tool-start") return []
    const call = asked.get(event.toolCallId) ?? { keys: new Set<string>(), shown: 0 }
    asked.set(event.toolCallId, call)
    if (event.type === "approval-request") call.shown++
    else if (event.phase === "preview") call.keys.add(event.idempotencyKey)
    return call.keys.size > call.shown + 1 ? [`${event.toolCallId} at ${seq}`] : []
  })
})

/**
 * A decision about something else than what is shown is refused.
 *
 * @since 0.1.0
 * @category laws
 */
export const mistakesAreRefused: Law = {
  name: "a decision about something else than what is shown is refused",
  check: (observed) =>
    observed.commands.flatMap(({ answer, approvalId, mistaken, runId }) =>
      mistaken === true && answer._tag === "Ok" ? [`${String(runId)}: ${String(approvalId)}`] : []
    )
}

/**
 * A reused result is that of an equal call, with no write applied since.
 *
 * @since 0.1.0
 * @category laws
 */
export const reuse = forRuns("a reused result is that of an equal call, with no write applied since", (run) => {
  const inputs = new Map<string, string>()
  const results: Array<EventOf<"tool-call-result">> = []
  return run.log.flatMap(({ event, seq }): ReadonlyArray<string> => {
    if (event.type === "tool-call-ready") inputs.set(event.toolCallId, Json.canonical([event.toolName, event.input]))
    if (event.type !== "tool-call-result") return []
    const before = results.slice(results.findLastIndex((one) => one.state === "applied") + 1)
    results.push(event)
    if (event.source !== "run") return []
    const found = before.some(
      (one) =>
        inputs.get(one.toolCallId) === inputs.get(event.toolCallId) &&
        Json.canonical(one.result) === Json.canonical(event.result)
    )
    return found ? [] : [`${event.toolCallId} at ${seq}`]
  })
})

/**
 * All of them.
 *
 * @since 0.1.0
 * @category laws
 */
export const all: ReadonlyArray<Law> = [
  oneResult,
  startedAreKept,
  intentFirst,
  completedStay,
  nothingAfterAnEnd,
  underLease,
  approved,
  keysAreApprovals,
  oncePerKey,
  oneKeyPerCall,
  effectsAreTold,
  appliedIsTrue,
  requestsShowTheirInput,
  decisionsInTime,
  gatedTogether,
  previewKeys,
  mistakesAreRefused,
  reuse
]

/**
 * Those that need to see nothing but logs.
 *
 * @since 0.1.0
 * @category laws
 */
export const ofLogs: ReadonlyArray<Law> = [
  oneResult,
  startedAreKept,
  requestsShowTheirInput,
  decisionsInTime,
  gatedTogether,
  previewKeys,
  reuse
]
