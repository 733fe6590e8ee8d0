/**
 * Laws of calls, approvals and effects.
 *
 * @since 0.1.0
 */
import type { EventOf } from "../domain/AgentEvent.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Json from "../tool/Json.js"
import type { Law, LedgerEntry, Observed, ObservedRun } from "./Observed.js"

const isReading = (entry: Pick<LedgerEntry, "kind" | "phase">): boolean =>
  entry.phase === "preview" || entry.kind === "readonly"

/**
 * How the run stood when the entry was made. Of what was stored in the very same millisecond nobody can say which came
 * first, so each of these states will do.
 */
const statesAt = (observed: Observed, entry: LedgerEntry): ReadonlyArray<RunState.RunState> => {
  const log = observed.runs.find((run) => run.runId === entry.runId)?.log ?? []
  const states: Array<RunState.RunState> = []
  for (let seq = entry.seq; seq >= 0; seq--) {
    states.push(RunState.reduceAll(RunState.empty(entry.runId), log.slice(0, seq)))
    if ((log[seq - 1]?.createdAt ?? 0) < entry.at) break
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

const oneResult: Law = {
  name: "every call is answered once, and only calls are",
  check: (observed) =>
    observed.runs.flatMap((run) => {
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
      const state = RunState.reduceAll(RunState.empty(run.runId), run.log)
      const left = RunState.turns(state).flatMap((turn) => turn.calls.filter((call) => call.result === undefined))
      if (RunStatus.isEnded(state.status)) problems.push(...left.map((call) => `${call.id} has no result in the end`))
      return problems.map((text) => `${run.runId}: ${text}`)
    })
}

const startedAreKept: Law = {
  name: "a call that was started is never dropped, and starts only behind its turn's model-end",
  check: (observed) =>
    observed.runs.flatMap((run) => {
      let state = RunState.empty(run.runId)
      return run.log.flatMap((envelope): ReadonlyArray<string> => {
        const { event, seq } = envelope
        const before = state
        state = RunState.reduce(state, envelope)
        if (event.type === "run-resumed") {
          return event.droppedToolCallIds
            .filter((id) => RunState.findCall(before, id)?.call.phase !== undefined)
            .map((id) => `${run.runId}: ${id} is dropped at ${seq}`)
        }
        if (event.type !== "tool-start" && event.type !== "approval-request") return []
        const found = RunState.findCall(before, event.toolCallId)
        if (found === undefined) return [`${run.runId}: ${event.type} at ${seq} without a call`]
        if (found.turn.ended === undefined) return [`${run.runId}: ${event.type} at ${seq} before its model-end`]
        return found.call.result === undefined ? [] : [`${run.runId}: ${event.type} at ${seq} of a settled call`]
      })
    })
}

const intentFirst = forEntries(
  "what begins stands in the log before, in this phase and under this key",
  begins,
  (entry, state) => {
    const open = RunState.findCall(state, entry.toolCallId)?.call.open
    return open?.phase === entry.phase && open.key === entry.key ? undefined : `the log has ${JSON.stringify(open)}`
  }
)

const completedStay = forEntries("a completed call never runs again", begins, (entry, state) =>
  RunState.findCall(state, entry.toolCallId)?.call.result === undefined ? undefined : "it has a result"
)

const nothingAfterAnEnd = forEntries("nothing begins when the run does not execute", begins, (_, state) =>
  RunStatus.isExecuting(state.status) ? undefined : `the run is ${state.status}`
)

const underLease: Law = {
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

const approved = forEntries(
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
): EventOf<"approval-request"> | undefined => {
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

const keysAreApprovals: Law = {
  name: "the key of an approved act is an approved approval of its call",
  check: (observed) =>
    observed.ledger
      .filter((entry) => acts(entry) && !entry.unattended)
      .flatMap((entry) => {
        const run = observed.runs.find((one) => one.runId === entry.runId)
        const decisions = run === undefined ? [] : approvalsOf(run)
        const ok = decisions.some(
          (one) => one.approvalId === entry.key && one.toolCallId === entry.toolCallId && one.decision === "approved"
        )
        return ok ? [] : [named(entry)]
      })
}

const oncePerKey: Law = {
  name: "an act without a keyed tool is done once, unless a person says again",
  check: (observed) => {
    const counts = new Map<string, { readonly entry: LedgerEntry; readonly times: number }>()
    for (const entry of observed.ledger) {
      if (!acts(entry) || entry.keyed) continue
      const id = `${entry.runId} ${entry.toolCallId} ${entry.key}`
      counts.set(id, { entry, times: (counts.get(id)?.times ?? 0) + 1 })
    }
    return [...counts.values()].flatMap(({ entry, times }) => {
      const run = observed.runs.find((one) => one.runId === entry.runId)
      const retries = (run === undefined ? [] : approvalsOf(run)).filter(
        (one) => one.toolCallId === entry.toolCallId && one.decision === "retry"
      ).length
      return times > 1 + retries ? [`${named(entry)}: ${times} times, with ${retries} retries`] : []
    })
  }
}

const oneKeyPerCall: Law = {
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

const effectsAreTold: Law = {
  name: "no result denies an effect that happened",
  check: (observed) =>
    observed.ledger.flatMap((entry) => {
      if (entry.what !== "effect") return []
      const run = observed.runs.find((one) => one.runId === entry.runId)
      const results = (run?.log ?? []).flatMap(({ event }) =>
        event.type === "tool-call-result" && event.toolCallId === entry.toolCallId ? [event] : []
      )
      return results
        .filter((one) => denied.has(one.state) || (one.state === "done" && !one.ok))
        .map((one) => `${named(entry)}: the result is ${one.state}, ok ${one.ok}`)
    })
}

const appliedIsTrue: Law = {
  name: "what is called applied has happened, unless a person says so",
  check: (observed) =>
    observed.runs.flatMap((run) =>
      run.log.flatMap(({ event }) => {
        if (event.type !== "tool-call-result" || event.state !== "applied" || event.source === "person") return []
        const happened = observed.ledger.some(
          (entry) => entry.what === "effect" && entry.runId === run.runId && entry.toolCallId === event.toolCallId
        )
        return happened ? [] : [`${run.runId}: ${event.toolCallId}`]
      })
    )
}

const requestsShowTheirInput: Law = {
  name: "an approval shows the input in force, under its hash, and a decision belongs to the last request",
  check: (observed) =>
    observed.runs.flatMap((run) => {
      let state = RunState.empty(run.runId)
      return run.log.flatMap((envelope): ReadonlyArray<string> => {
        const { event, seq } = envelope
        const before = state
        state = RunState.reduce(state, envelope)
        const problem = (text: string) => [`${run.runId}: ${event.type} at ${seq} ${text}`]
        if (event.type === "approval-decision") {
          const until = RunState.findCall(before, event.toolCallId)?.call.approval?.request.expiresAt ?? 0
          if (event.decision !== "expired" && envelope.createdAt > until) return problem("comes too late")
          if (event.decision === "expired" && envelope.createdAt < until) return problem("comes too early")
          const call = RunState.findCall(before, event.toolCallId)?.call
          if (call?.approval?.request.approvalId !== event.approvalId) return problem("is about an older request")
          return call.approval.decision === undefined ? [] : problem("is a second one")
        }
        if (event.type !== "approval-request") return []
        const call = RunState.findCall(before, event.toolCallId)?.call
        const { input, preview, previewHash, toolName } = event
        if (previewHash !== Json.hash({ toolName, input, preview })) return problem("has another hash")
        if (Json.canonical(input) !== Json.canonical(call?.input?.value ?? null)) return problem("shows another input")
        return call?.approval !== undefined && call.approval.decision === undefined ? problem("overtakes one") : []
      })
    })
}

const previewKeys: Law = {
  name: "a preview that was shown keeps its key, the next one has another",
  check: (observed) =>
    observed.runs.flatMap((run) => {
      const asked = new Map<string, Set<string>>()
      return run.log.flatMap(({ event, seq }): ReadonlyArray<string> => {
        if (event.type !== "tool-start" || event.phase !== "preview") return []
        const used = asked.get(event.toolCallId) ?? new Set<string>()
        asked.set(event.toolCallId, used)
        const shown = run.log
          .slice(0, seq - 1)
          .filter((one) => one.event.type === "approval-request" && one.event.toolCallId === event.toolCallId).length
        used.add(event.idempotencyKey)
        return used.size > shown + 1 ? [`${run.runId}: ${event.idempotencyKey} at ${seq}`] : []
      })
    })
}

const mistakesAreRefused: Law = {
  name: "a decision about something else than what is shown is refused",
  check: (observed) =>
    observed.commands.flatMap(({ answer, approvalId, mistaken, runId }) =>
      mistaken === true && answer._tag === "Ok" ? [`${String(runId)}: ${String(approvalId)}`] : []
    )
}

const reuse: Law = {
  name: "a reused result is that of an equal call, with no write applied since",
  check: (observed) =>
    observed.runs.flatMap((run) => {
      const inputs = new Map<string, string>()
      const results: Array<EventOf<"tool-call-result">> = []
      return run.log.flatMap(({ event, seq }): ReadonlyArray<string> => {
        if (event.type === "tool-call-ready")
          inputs.set(event.toolCallId, Json.canonical([event.toolName, event.input]))
        if (event.type !== "tool-call-result") return []
        const before = results.slice(results.findLastIndex((one) => one.state === "applied") + 1)
        results.push(event)
        if (event.source !== "run") return []
        const found = before.some(
          (one) =>
            inputs.get(one.toolCallId) === inputs.get(event.toolCallId) &&
            Json.canonical(one.result) === Json.canonical(event.result)
        )
        return found ? [] : [`${run.runId}: ${event.toolCallId} at ${seq}`]
      })
    })
}

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
  previewKeys,
  mistakesAreRefused,
  reuse
]
