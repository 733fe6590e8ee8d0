/** What must hold of every log, whatever happened to the processes that wrote it. */
import type { AgentEvent } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import * as Fold from "../../../src/domain/RunState.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"
import * as Snapshot from "../../../src/domain/Snapshot.js"
import type { Entry } from "./Ledger.js"

/** A request may have left just before its run was stopped, and is not noticed at once by a busy machine. */
const onItsWayMs = 500

const isTerminal = (event: AgentEvent): boolean =>
  event.type === "finish" || event.type === "cancelled" || event.type === "error"

/** Each leg has one terminal event, at its end; behind a final one there is nothing. */
export const legs = (log: ReadonlyArray<Envelope>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  let state = Fold.empty(log[0]?.runId ?? "")
  for (const [i, envelope] of log.entries()) {
    const { event, seq } = envelope
    if (seq !== i + 1) faults.push(`seq ${seq} stands in place ${i + 1}`)
    if (RunStatus.next(i === 0 ? undefined : state, event) === undefined) {
      faults.push(`${event.type} (seq ${seq}) may not follow ${state.status}`)
    }
    const previous = log[i - 1]?.event
    if (previous !== undefined && isTerminal(previous) && event.type !== "run-resumed") {
      if (!(event.type === "cancelled" && previous.type === "error" && previous.recoverable)) {
        faults.push(`${event.type} (seq ${seq}) follows the terminal event ${previous.type}`)
      }
    }
    state = Fold.reduce(state, envelope)
  }
  return faults
}

/** Every call that began is settled exactly once, and its events stand in their order. */
export const calls = (log: ReadonlyArray<Envelope>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const results = new Map<string, number>()
  const begun = new Set<string>()
  for (const { event, seq } of log) {
    switch (event.type) {
      case "run-resumed":
        for (const id of event.droppedToolCallIds) {
          if (begun.has(id)) faults.push(`the call ${id} was started and then dropped (seq ${seq})`)
        }
        break
      case "tool-start":
        begun.add(event.toolCallId)
        if (results.has(event.toolCallId)) faults.push(`the settled call ${event.toolCallId} begins again (seq ${seq})`)
        break
      case "tool-call-result":
        if (results.has(event.toolCallId)) faults.push(`the call ${event.toolCallId} has a second result (seq ${seq})`)
        results.set(event.toolCallId, seq)
        break
      default:
    }
  }
  const last = log.at(-1)?.event
  if (last !== undefined && isTerminal(last)) {
    for (const id of begun) if (!results.has(id)) faults.push(`the call ${id} has no result`)
  }
  return faults
}

interface Approved {
  readonly approvalId: string
  readonly input: unknown
  readonly seq: number
}

/**
 * What the outside world saw of a run against its log: nothing happened without an intent before it, no effect twice,
 * no write without a yes to exactly its input, nothing behind a result or the end.
 */
export const effects = (log: ReadonlyArray<Envelope>, entries: ReadonlyArray<Entry>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const requests = new Map<string, { readonly event: Extract<AgentEvent, { type: "approval-request" }> }>()
  const approved = new Map<string, Approved>()
  const starts = new Map<string, Array<{ readonly seq: number; readonly at: number }>>()
  const settledAt = new Map<string, number>()
  const permitted = new Map<string, string>()
  let endAt: number | undefined
  const slack = log.at(-1)?.event.type === "cancelled" ? onItsWayMs : 0
  const last = log.at(-1)
  if (last !== undefined && isTerminal(last.event)) endAt = last.createdAt
  for (const { createdAt, event, seq } of log) {
    switch (event.type) {
      case "approval-request":
        requests.set(event.approvalId, { event })
        break
      case "approval-decision": {
        const request = requests.get(event.approvalId)?.event
        if (request === undefined) faults.push(`a decision (seq ${seq}) answers no request`)
        else if (event.decision === "approved") {
          approved.set(event.approvalId, { approvalId: event.approvalId, input: request.input, seq })
        } else if (event.decision === "retry") permitted.set(event.toolCallId, `retry ${seq}`)
        break
      }
      case "tool-start": {
        const key = `${event.toolCallId} ${event.phase} ${event.idempotencyKey}`
        const before = starts.get(key) ?? []
        before.push({ seq, at: createdAt })
        starts.set(key, before)
        break
      }
      case "tool-call-result":
        settledAt.set(event.toolCallId, createdAt)
        break
      default:
    }
  }
  const effectsOf = new Map<string, Array<Entry>>()
  for (const entry of entries) {
    const name = `${entry.tool} ${entry.phase} of ${entry.toolCallId}`
    const intents = starts.get(`${entry.toolCallId} ${entry.phase} ${entry.key}`) ?? []
    if (!intents.some(({ at }) => at <= entry.at)) faults.push(`${name} ran without a tool-start before it`)
    const settled = settledAt.get(entry.toolCallId)
    if (settled !== undefined && entry.at > settled + slack)
      faults.push(`${name} ran ${entry.at - settled} ms after its result`)
    if (endAt !== undefined && entry.at > endAt + slack) faults.push(`${name} ran after the end of the run`)
    if (entry.phase === "commit") {
      const yes = approved.get(entry.key)
      if (yes === undefined) faults.push(`${name} was not approved`)
      else {
        if (JSON.stringify(yes.input) !== JSON.stringify(entry.input)) {
          faults.push(`${name} has another input than the approved one`)
        }
        if (!intents.some(({ seq }) => seq > yes.seq)) faults.push(`${name} began before it was approved`)
      }
    }
    if (entry.effectAt !== undefined && entry.phase !== "preview") {
      const all = effectsOf.get(entry.toolCallId) ?? []
      all.push(entry)
      effectsOf.set(entry.toolCallId, all)
    }
  }
  for (const [id, all] of effectsOf) {
    const name = all[0]?.tool ?? ""
    if (all.length > 1 && !readonly.has(name)) faults.push(`${name} took effect ${all.length} times for ${id}`)
  }
  return faults
}

/** Tools that may run again when their first try has no result. */
const readonly: ReadonlySet<string> = new Set(["lookup", "slow_lookup"])

/**
 * A tool that knows no keys is never sent the same act again unless a person said so in between.
 */
export const neverBlindly = (log: ReadonlyArray<Envelope>, blind: ReadonlySet<string>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const open = new Map<string, boolean>()
  for (const { event, seq } of log) {
    if (event.type === "tool-start" && event.phase !== "preview" && blind.has(event.toolName)) {
      if (open.get(event.toolCallId) === true) faults.push(`${event.toolName} was repeated blindly (seq ${seq})`)
      open.set(event.toolCallId, true)
    }
    if (event.type === "approval-decision" && (event.decision === "retry" || event.decision === "approved")) {
      open.set(event.toolCallId, false)
    }
  }
  return faults
}

/** The snapshot that a reader's fold gives, without what only the store knows. */
export const folded = (state: Fold.RunState): unknown => JSON.parse(JSON.stringify(Snapshot.of(state)))

/** The snapshot of a server, without what only the store knows. */
export const shown = ({ expiresAt: _, queuePosition: __, ...rest }: Record<string, unknown>): unknown => rest
