/**
 * Carries the commands of a plan out: each asks one process, as a client or a person would.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type * as RunState from "../../domain/RunState.js"
import type { DecideRequest } from "../../engine/RunEngine.js"
import * as Json from "../../tool/Json.js"
import type * as Plan from "../Plan.js"
import type { TestProcess } from "../TestStack.js"
import { pendingOf, rowsOf, type Stack, storedOf } from "./archive.js"
import { ask, type Edit, type Journal } from "./journal.js"

const start = (journal: Journal, process: TestProcess, command: Extract<Plan.Command, { readonly do: "start" }>) => {
  const into = command.conversation === undefined ? undefined : journal.runs[command.conversation % journal.runs.length]
  const body = {
    message: `script ${command.script}`,
    ...(into !== undefined && { conversationId: into.conversationId }),
    ...(command.onBusy !== undefined && { onBusy: command.onBusy }),
    ...(command.plan === true && { mode: "plan" as const }),
    ...(command.maxTokens !== undefined && { limits: { maxTokens: command.maxTokens } })
  }
  return Effect.map(
    ask(journal, process, { name: "start", runId: undefined, key: command.key, body: Json.canonical(body) }, (engine) =>
      engine.start({ ...body, ...(command.key !== undefined && { idempotencyKey: command.key }) })
    ),
    Option.map((run) => journal.accepted(run))
  )
}

const answerTo = (
  { input, reason, toolName }: RunState.Approval["request"],
  { doubt, how }: Plan.Answers,
  edit: Edit
): Pick<DecideRequest, "decision" | "input"> => {
  if (reason === "in_doubt") return { decision: doubt }
  if (how === "other") return { decision: "edit", input: edit(toolName, input) }
  return { decision: how === "yes" ? "approve" : "reject" }
}

/**
 * Decides about one of the approvals that are pending.
 *
 * @since 0.1.0
 * @category running
 */
export const decide = (
  stack: Stack,
  journal: Journal,
  process: TestProcess,
  which: number,
  says: Plan.Answers,
  hash: "none" | "wrong" | undefined
) =>
  Effect.gen(function* () {
    const pending = yield* pendingOf(stack.archive)
    const one = pending[which % Math.max(1, pending.length)]
    if (one === undefined) return
    const { approval, runId } = one
    yield* ask(
      journal,
      process,
      { name: "decide", runId, approvalId: approval.approvalId, mistaken: hash === "wrong" },
      (engine) =>
        engine.decide(runId, approval.approvalId, {
          ...answerTo(approval, says, journal.edit),
          ...(hash !== "none" && { previewHash: hash === "wrong" ? "0000" : approval.previewHash })
        })
    )
  })

/**
 * Somebody who answers whatever is asked the moment it is stored.
 *
 * @since 0.1.0
 * @category running
 */
export const answerAtOnce = (stack: Stack, journal: Journal, { at, ...says }: NonNullable<Plan.Plan["hasty"]>) => {
  const seen = new Set<string>()
  return Stream.runForEach(stack.archive.changes, () =>
    Effect.gen(function* () {
      const process = stack.processes[at % stack.processes.length]
      if (process?.running() === undefined) return
      const pending = yield* pendingOf(stack.archive)
      for (const [index, { approval }] of pending.entries()) {
        if (seen.has(approval.approvalId)) continue
        seen.add(approval.approvalId)
        yield* Effect.forkDaemon(decide(stack, journal, process, index, says, undefined))
      }
    })
  )
}

/**
 * Somebody who resumes each run once, the moment it has failed.
 *
 * @since 0.1.0
 * @category running
 */
export const resumeAtOnce = (stack: Stack, journal: Journal, { at }: NonNullable<Plan.Plan["stubborn"]>) => {
  const seen = new Set<string>()
  return Stream.runForEach(stack.archive.changes, () =>
    Effect.gen(function* () {
      const process = stack.processes[at % stack.processes.length]
      if (process?.running() === undefined) return
      for (const { recoverable, runId } of yield* rowsOf(stack.archive)) {
        if (recoverable !== true || seen.has(runId)) continue
        seen.add(runId)
        yield* Effect.forkDaemon(ask(journal, process, { name: "resume", runId }, (engine) => engine.resume(runId)))
      }
    })
  )
}

/**
 * Takes a snapshot, and writes down how far the log was stored afterwards.
 *
 * @since 0.1.0
 * @category running
 */
export const look = (stack: Stack, journal: Journal, process: TestProcess, runId: string) =>
  Effect.gen(function* () {
    const found = yield* ask(journal, process, { name: "look", runId }, (engine) => engine.snapshot(runId))
    const stored = yield* storedOf(stack, runId)
    if (Option.isSome(found)) journal.snapshots.push({ runId, stored, snapshot: found.value })
  })

/**
 * The first checkpoint of a run, the last one, and one between.
 *
 * @since 0.1.0
 * @category running
 */
export const lookBack = (journal: Journal, process: TestProcess, runId: string) =>
  Effect.gen(function* () {
    const asked = { name: "checkpoints", runId }
    const listed = yield* ask(journal, process, asked, (engine) => engine.checkpoints(runId))
    const seqs = Option.getOrElse(listed, () => []).map(({ seq }) => seq)
    const chosen = new Set([seqs[0], seqs[seqs.length >> 1], seqs.at(-1)])
    for (const seq of chosen) {
      if (seq === undefined) continue
      const found = yield* ask(journal, process, { name: "checkpoint", runId }, (engine) =>
        engine.checkpoint(runId, seq)
      )
      if (Option.isSome(found)) journal.checkpoints.push({ runId, checkpoint: found.value })
    }
  })

/**
 * Does what a command says.
 *
 * @since 0.1.0
 * @category running
 */
export const carryOut = (stack: Stack, journal: Journal, command: Plan.Command): Effect.Effect<void> =>
  Effect.suspend(() => {
    const process = stack.processes[command.at % stack.processes.length]
    if (process === undefined) return Effect.void
    switch (command.do) {
      case "start":
        return Effect.asVoid(start(journal, process, command))
      case "crash":
        return process.crash
      case "restart":
        return process.start
      case "stop":
        return process.stop
      case "wait":
        return Effect.void
      case "decide": {
        const once = decide(stack, journal, process, command.which, command.says, command.hash)
        return command.twice === true ? Effect.all([once, once], { concurrency: 2, discard: true }) : once
      }
      default: {
        const runId = journal.run(command.run)
        if (runId === undefined) return Effect.void
        switch (command.do) {
          case "cancel":
            return Effect.asVoid(ask(journal, process, { name: "cancel", runId }, (engine) => engine.cancel(runId)))
          case "resume":
            return Effect.asVoid(ask(journal, process, { name: "resume", runId }, (engine) => engine.resume(runId)))
          case "regenerate":
            return Effect.map(
              ask(journal, process, { name: "regenerate", runId }, (engine) => engine.regenerate(runId)),
              Option.map((run) => journal.accepted(run))
            )
          case "look":
            return look(stack, journal, process, runId)
        }
      }
    }
  })
