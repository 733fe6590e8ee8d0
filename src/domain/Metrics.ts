/**
 * What is measured of runs, under the names that an operator sees. No label holds an id or anything that a user, a model
 * or a tool has said; each has few values.
 *
 * The figures belong to this process. They are counted where something was stored, once for each commit and never for
 * each piece of text.
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import type { AgentEvent } from "./AgentEvent.js"
import type { RunState } from "./RunState.js"

/** More values of a label than this are counted together: a table of figures must not grow without bound. */
const maxValues = 100

/** A metric for each value of a label, made once. */
const by = <Type, In, Out>(label: string, metric: Metric.Metric<Type, In, Out>) => {
  const made = new Map<string, Metric.Metric<Type, In, Out>>()
  return (value: string): Metric.Metric<Type, In, Out> => {
    const name = made.has(value) || made.size < maxValues ? value : "other"
    const found = made.get(name)
    if (found !== undefined) return found
    const tagged = Metric.tagged(metric, label, name)
    made.set(name, tagged)
    return tagged
  }
}

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

const seconds = (name: string, description: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(name, MetricBoundaries.fromIterable(boundaries), description)

const count = <Type, Out>(metric: Metric.Metric<Type, number, Out>, n = 1): void => metric.unsafeUpdate(n, [])

const waits = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]

const runsStarted = counter("runlet_runs_started_total", "Runs that this process accepted.")
const runsEnded = by("status", counter("runlet_runs_ended_total", "Runs that this process ended, by how."))
const runErrors = by("code", counter("runlet_run_errors_total", "Runs that ended with an error, by its code."))
const runLimits = by(
  "limit",
  counter("runlet_run_limits_total", "Runs that a limit of iterations, tokens, cost or time ended, by which.")
)
const runsResumed = counter("runlet_runs_resumed_total", "Attempts that took up a run again.")
const runSeconds = seconds("runlet_run_seconds", "Execution of a run, without waiting for people.", [
  ...waits,
  300,
  900
])
const firstToken = by(
  "model",
  seconds("runlet_time_to_first_token_seconds", "From the acceptance of a run to its first output.", waits)
)
const tokens = by("kind", counter("runlet_tokens_total", "Tokens of model calls."))
const cost = by("model", counter("runlet_cost_usd_total", "Cost of model calls in US dollars, where prices are known."))
const modelRetries = by("code", counter("runlet_model_retries_total", "Model calls that were tried again, by why."))
const toolCalls = by("state", counter("runlet_tool_calls_total", "Tool calls that were settled, by how."))
const toolSeconds = seconds("runlet_tool_seconds", "Execution of a tool call.", waits)
const approvals = by("reason", counter("runlet_approvals_asked_total", "Questions to people, by why."))
const events = counter("runlet_events_total", "Events that this process stored.")
const commits = seconds(
  "runlet_commit_seconds",
  "From the beginning of a transaction of events to its end, retries included.",
  [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]
)
const refused = by("outcome", counter("runlet_appends_refused_total", "Appends that the store refused, by why."))
const storeErrors = by("reason", counter("runlet_store_errors_total", "Requests that the store's troubles failed."))
const storeLocked = counter("runlet_store_lock_waits_total", "Waits for a lock that another process held.")
const logsCompacted = counter("runlet_logs_compacted_total", "Logs that retention replaced by what they came to.")
const runsExpired = counter("runlet_runs_expired_total", "Runs that retention removed.")
const limits = by("limit", counter("runlet_limits_reached_total", "Requests that a limit refused, by which."))
const viewers = Metric.gauge("runlet_viewers", { description: "Open streams of events." })
const behind = Metric.histogram(
  "runlet_viewer_lag_events",
  MetricBoundaries.fromIterable([1, 10, 100, 1000, 10_000]),
  "How far behind a run of this process a viewer was when it had to read the store."
)

/**
 * A run was accepted.
 *
 * @since 0.1.0
 * @category recording
 */
export const started = (): void => count(runsStarted)

const limitOf = (after: RunState): string | undefined => {
  switch (after.end?.type) {
    case "finish":
      return after.end.finishReason === "budget" || after.end.finishReason === "max_iterations"
        ? after.end.finishReason
        : undefined
    case "cancelled":
      return after.end.by === "limit" ? "time" : undefined
    default:
      return undefined
  }
}

const ended = (after: RunState): void => {
  count(runsEnded(after.status))
  count(runSeconds, after.activeMs / 1000)
  if (after.end?.type === "error") count(runErrors(after.end.code))
  const limit = limitOf(after)
  if (limit !== undefined) count(runLimits(limit))
}

const used = (before: RunState, after: RunState): void => {
  count(tokens("input"), after.usage.inputTokens - before.usage.inputTokens)
  count(tokens("output"), after.usage.outputTokens - before.usage.outputTokens)
  const costUsd = (after.usage.costUsd ?? 0) - (before.usage.costUsd ?? 0)
  if (costUsd > 0) count(cost(after.start?.model ?? ""), costUsd)
}

/**
 * This process has stored events that took a run from one state to another. Compares a few fields: cheap enough for
 * every commit.
 *
 * @since 0.1.0
 * @category recording
 */
export const transition = (before: RunState, after: RunState): void => {
  if (after.firstTokenAt !== undefined && before.firstTokenAt === undefined) {
    count(firstToken(after.start?.model ?? ""), (after.firstTokenAt - after.createdAt) / 1000)
  }
  if (after.usage !== before.usage) used(before, after)
  if (after.attempt !== before.attempt) count(runsResumed)
  if (after.end !== undefined && after.end !== before.end) ended(after)
}

/**
 * This process has stored events that a step of a run waits for: those that happen seldom enough to be looked at one by
 * one.
 *
 * @since 0.1.0
 * @category recording
 */
export const stored = (all: ReadonlyArray<AgentEvent>): void => {
  for (const event of all) {
    if (event.type === "model-retry") count(modelRetries(event.code))
    if (event.type === "approval-request") count(approvals(event.reason))
    if (event.type === "tool-call-result") {
      count(toolCalls(event.ok || event.state !== "done" ? event.state : "failed"))
      if (event.source === "executed") count(toolSeconds, event.durationMs / 1000)
    }
  }
}

/**
 * A transaction of so many events took so many seconds.
 *
 * @since 0.1.0
 * @category recording
 */
export const committed = (eventCount: number, took: number): void => {
  count(events, eventCount)
  count(commits, took)
}

/**
 * The store refused an append.
 *
 * @since 0.1.0
 * @category recording
 */
export const appendRefused = (outcome: string): void => count(refused(outcome))

/**
 * The store failed somebody's request.
 *
 * @since 0.1.0
 * @category recording
 */
export const storeFailed = (reason: string): void => count(storeErrors(reason))

/**
 * The store is locked by another process and waits.
 *
 * @since 0.1.0
 * @category recording
 */
export const lockAwaited = (): void => count(storeLocked)

/**
 * A limit refused a request.
 *
 * @since 0.1.0
 * @category recording
 */
export const limitReached = (limit: string): void => count(limits(limit))

/**
 * A viewer came (1) or left (-1).
 *
 * @since 0.1.0
 * @category recording
 */
export const viewer = (change: 1 | -1): void => viewers.unsafeModify(change, [])

/**
 * A viewer of a run of this process was so many events behind that it had to read the store.
 *
 * @since 0.1.0
 * @category recording
 */
export const viewerBehind = (eventCount: number): void => count(behind, eventCount)

/**
 * Retention has compacted a log.
 *
 * @since 0.1.0
 * @category recording
 */
export const compacted = (): void => count(logsCompacted)

/**
 * Retention has removed a run.
 *
 * @since 0.1.0
 * @category recording
 */
export const expired = (): void => count(runsExpired)

/**
 * From now on every figure is there whose labels are known beforehand, if only as zero. A counter that came with its first
 * event would hide that event from every rate over it.
 *
 * @since 0.1.0
 * @category recording
 */
export const register = (): void => {
  const all: ReadonlyArray<{ readonly unsafeValue: (labels: readonly []) => unknown }> = [
    ...[runsStarted, runsResumed, events, storeLocked, logsCompacted, runsExpired, viewers],
    ...[runSeconds, toolSeconds, commits, behind],
    ...["completed", "cancelled", "failed"].map(runsEnded),
    ...["internal", "store_corrupt", "store_unavailable", "recovery_exhausted"].map(runErrors),
    ...["max_iterations", "budget", "time"].map(runLimits),
    ...["input", "output"].map(tokens),
    ...["done", "failed", "applied", "rejected", "interrupted", "in_doubt", "invalid", "expired"].map(toolCalls),
    ...["write", "effectful", "in_doubt"].map(approvals),
    ...["Fenced", "Moved", "Rejected"].map(refused),
    ...["unavailable", "corrupt"].map(storeErrors)
  ]
  for (const metric of all) metric.unsafeValue([])
}
