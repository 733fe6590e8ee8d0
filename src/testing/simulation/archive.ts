/**
 * What a simulation sees from outside all processes: the store as it stands behind every fault.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RunState from "../../domain/RunState.js"
import * as RunStatus from "../../domain/RunStatus.js"
import type { RunRow, RunStore } from "../../store/RunStore.js"
import type { Observed } from "../Observed.js"
import type * as Plan from "../Plan.js"
import type { TestStack } from "../TestStack.js"
import type { Journal } from "./journal.js"

/**
 * A stack of the world that a plan is run in.
 *
 * @since 0.1.0
 * @category models
 */
export type Stack = TestStack["Type"]

/**
 * Whose runs they are.
 *
 * @since 0.1.0
 * @category constants
 */
export const user = "local"

/**
 * What must never be seen: a tool says it, and it is configured as a secret.
 *
 * @since 0.1.0
 * @category constants
 */
export const secret = "canary-4f1d"

/**
 * All runs, in the order of their making.
 *
 * @since 0.1.0
 * @category looking
 */
export const rowsOf = (archive: RunStore["Type"]): Effect.Effect<ReadonlyArray<RunRow>> =>
  Effect.map(Effect.orDie(archive.list({ userId: user, limit: 1000 })), (page) => page.items.toReversed())

const logOf = (archive: RunStore["Type"], row: Pick<RunRow, "key" | "runId">) =>
  Effect.orDie(archive.envelopes({ key: row.key, runId: row.runId, after: 0, limit: 100_000 }))

/**
 * Every approval that somebody waits for.
 *
 * @since 0.1.0
 * @category looking
 */
export const pendingOf = (archive: RunStore["Type"]) =>
  Effect.gen(function* () {
    const pending: Array<{
      readonly runId: string
      readonly approval: ReturnType<typeof RunState.pendingApprovals>[number]
    }> = []
    for (const row of yield* rowsOf(archive)) {
      if (RunStatus.isEnded(row.status)) continue
      const state = RunState.reduceAll(RunState.empty(row.runId), yield* logOf(archive, row))
      for (const approval of RunState.pendingApprovals(state)) pending.push({ runId: row.runId, approval })
    }
    return pending
  })

/**
 * How far the log of a run is stored; 0 when there is none.
 *
 * @since 0.1.0
 * @category looking
 */
export const storedOf = (stack: Stack, runId: string): Effect.Effect<number> =>
  Effect.map(Effect.orDie(stack.archive.find({ runId, userId: user })), (row) =>
    Option.match(row, { onNone: () => 0, onSome: ({ lastSeq }) => lastSeq })
  )

/**
 * How everything stands.
 *
 * @since 0.1.0
 * @category looking
 */
export const lookAround = (stack: Stack, journal: Journal): Effect.Effect<void> =>
  Effect.gen(function* () {
    const rows = new Map((yield* rowsOf(stack.archive)).map((row) => [row.runId, row]))
    const pending = yield* pendingOf(stack.archive)
    journal.moments.push({
      at: yield* Clock.currentTimeMillis,
      processes: stack.processes.map((process) => process.running() !== undefined),
      runs: journal.runs.flatMap(({ runId }) => {
        const row = rows.get(runId)
        if (row === undefined) return []
        const { attempt, lastSeq: seq, recoverable = false, status } = row
        const asked = pending.filter((one) => one.runId === runId).length
        return [{ runId, status, recoverable, seq, attempt, asked }]
      })
    })
  })

/**
 * How many runs of each conversation are at work, as it stands now.
 *
 * @since 0.1.0
 * @category looking
 */
export const count = (stack: Stack, journal: Journal): Effect.Effect<void> =>
  Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const counts = new Map<string, number>()
    for (const row of yield* rowsOf(stack.archive)) {
      if (!RunStatus.isExecuting(row.status) && row.status !== "waiting_approval") continue
      counts.set(row.conversationId, (counts.get(row.conversationId) ?? 0) + 1)
    }
    for (const [conversationId, runs] of counts) journal.active.push({ at, conversationId, runs })
  })

/**
 * All that the laws look at.
 *
 * @since 0.1.0
 * @category looking
 */
export const observe = (stack: Stack, journal: Journal, limits: Plan.Plan["limits"]): Effect.Effect<Observed> =>
  Effect.gen(function* () {
    const rows = yield* rowsOf(stack.archive)
    const runs = yield* Effect.forEach(rows, (row) =>
      Effect.gen(function* () {
        const log = yield* logOf(stack.archive, row)
        const turns = yield* Effect.orDie(stack.archive.turns({ key: row.key }))
        const storedAt = stack.arrivals.get(row.runId)
        return { runId: row.runId, conversationId: row.conversationId, storedAt, log, turns }
      })
    )
    return {
      runs,
      snapshots: journal.snapshots,
      checkpoints: journal.checkpoints,
      clients: journal.clients.map((client) => client.observed()),
      ledger: stack.ledger.entries,
      requests: stack.requests,
      commands: journal.commands,
      active: journal.active,
      moments: journal.moments,
      secrets: [secret],
      limits
    }
  })
