/**
 * Runs a plan: a stack in a world of its own, commands, clients and faults by plan, and in the end a quiet time in which
 * everything must come to rest. What was observed is for the laws.
 *
 * ```ts
 * import { Effect, FastCheck } from "effect"
 * import { Arbitraries, Simulation, Stores, Timeline } from "runlet/testing"
 *
 * const [plan] = FastCheck.sample(Arbitraries.plan, { numRuns: 1, seed: 1 })
 * const told =
 *   plan && Effect.map(Simulation.run(plan, { store: Stores.sqlite }), ({ observed }) => Timeline.timeline(observed))
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import type { DecideRequest, RunEngine } from "../engine/RunEngine.js"
import * as ResumePolicy from "../resume/ResumePolicy.js"
import type { RunRow, RunStore } from "../store/RunStore.js"
import * as Json from "../tool/Json.js"
import type { Tool } from "../tool/Tool.js"
import {
  type Moment,
  nothing,
  type Observed,
  type ObservedCheckpoint,
  type ObservedCommand,
  type ObservedSnapshot
} from "./Observed.js"
import * as Plan from "./Plan.js"
import * as Recorder from "./Recorder.js"
import type * as Stores from "./Stores.js"
import * as TestStack from "./TestStack.js"
import * as VirtualClient from "./VirtualClient.js"
import { VirtualTime } from "./VirtualTime.js"

/**
 * What came of a plan. `plan`: with the commands that were really given. `broken`: the simulation itself did not come to
 * its end, and why.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outcome {
  readonly plan: Plan.Plan
  readonly observed: Observed
  readonly broken: string | undefined
}

const secret = "canary-4f1d"
const user = "local"
const leaseTtlMs = 4_000

/** A case takes a few thousand tasks; more than this without an end are an endless loop. */
const maxTasks = 60_000

const policies = {
  "restart-iteration": ResumePolicy.layerRestartIteration,
  "continue-draft": ResumePolicy.layerContinueDraft,
  manual: ResumePolicy.layerManual
}

/** What the fibers of a simulation share. */
class Journal {
  readonly commands: Array<ObservedCommand> = []
  readonly snapshots: Array<ObservedSnapshot> = []
  readonly checkpoints: Array<ObservedCheckpoint> = []
  readonly clients: Array<VirtualClient.VirtualClient> = []
  readonly active: Array<Observed["active"][number]> = []
  readonly moments: Array<Moment> = []
  readonly issued: Array<Plan.Command> = []
  /** Accepted runs, in the order of their acceptance. */
  readonly runs: Array<{ readonly runId: string; readonly conversationId: string }> = []
  /** Commands that wait for their answer. */
  unanswered = 0
  private readonly waiters = new Map<number, Deferred.Deferred<string>>()

  constructor(readonly edit: Edit) {}

  accepted(run: { readonly runId: string; readonly conversationId: string }): void {
    if (this.runs.some((one) => one.runId === run.runId)) return
    this.runs.push({ runId: run.runId, conversationId: run.conversationId })
    const waiter = this.waiters.get(this.runs.length - 1)
    if (waiter !== undefined) Deferred.unsafeDone(waiter, Effect.succeed(run.runId))
  }

  run(n: number): string | undefined {
    return this.runs[n % Math.max(1, this.runs.length)]?.runId
  }

  /** The nth accepted run, when it has been accepted. */
  nth(n: number): Effect.Effect<string> {
    return Effect.suspend(() => {
      const known = this.runs[n]
      if (known !== undefined) return Effect.succeed(known.runId)
      return Effect.flatMap(Deferred.make<string>(), (waiter) => {
        this.waiters.set(n, waiter)
        return Deferred.await(waiter)
      })
    })
  }
}

type Stack = TestStack.TestStack["Type"]

const rowsOf = (archive: RunStore["Type"]): Effect.Effect<ReadonlyArray<RunRow>> =>
  Effect.map(Effect.orDie(archive.list({ userId: user, limit: 1000 })), (page) => page.items.toReversed())

const logOf = (archive: RunStore["Type"], row: Pick<RunRow, "key" | "runId">) =>
  Effect.orDie(archive.envelopes({ key: row.key, runId: row.runId, after: 0, limit: 100_000 }))

const pendingOf = (archive: RunStore["Type"]) =>
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

/** How everything stands. */
const lookAround = (stack: Stack, journal: Journal): Effect.Effect<void> =>
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

/** How many runs of each conversation are at work, as it stands now. */
const count = (stack: Stack, journal: Journal): Effect.Effect<void> =>
  Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const counts = new Map<string, number>()
    for (const row of yield* rowsOf(stack.archive)) {
      if (!RunStatus.isExecuting(row.status) && row.status !== "waiting_approval") continue
      counts.set(row.conversationId, (counts.get(row.conversationId) ?? 0) + 1)
    }
    for (const [conversationId, runs] of counts) journal.active.push({ at, conversationId, runs })
  })

/** Asks a process, and writes the answer down; a process that dies first gives none. */
const ask = <A, E extends { readonly _tag: string; readonly message: string }>(
  journal: Journal,
  process: TestStack.TestProcess,
  what: Omit<ObservedCommand, "at" | "process" | "answer">,
  call: (engine: RunEngine["Type"]) => Effect.Effect<A, E>
): Effect.Effect<Option.Option<A>> =>
  Effect.gen(function* () {
    const running = process.running()
    if (running === undefined) return Option.none()
    const at = yield* Clock.currentTimeMillis
    const note = (answer: ObservedCommand["answer"]) =>
      Effect.sync(() => {
        journal.commands.push({ at, process: running.name, ...what, answer })
      })
    const answered = call(running.engine).pipe(
      Effect.matchEffect({
        onSuccess: (value) => Effect.as(note({ _tag: "Ok", value }), Option.some(value)),
        onFailure: (error) =>
          Effect.as(note({ _tag: "Refused", error: error._tag, message: error.message }), Option.none<A>())
      })
    )
    const lost = Effect.zipRight(Deferred.await(running.dead), Effect.as(note({ _tag: "Lost" }), Option.none<A>()))
    journal.unanswered++
    return yield* Effect.ensuring(
      Effect.raceFirst(answered, lost),
      Effect.sync(() => {
        journal.unanswered--
      })
    )
  })

const start = (
  journal: Journal,
  process: TestStack.TestProcess,
  command: Extract<Plan.Command, { readonly do: "start" }>
) => {
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

const decide = (
  stack: Stack,
  journal: Journal,
  process: TestStack.TestProcess,
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

/** Somebody who answers whatever is asked the moment it is stored. */
const answerAtOnce = (stack: Stack, journal: Journal, { at, ...says }: NonNullable<Plan.Plan["hasty"]>) => {
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

const storedOf = (stack: Stack, runId: string): Effect.Effect<number> =>
  Effect.map(Effect.orDie(stack.archive.find({ runId, userId: user })), (row) =>
    Option.match(row, { onNone: () => 0, onSome: ({ lastSeq }) => lastSeq })
  )

const look = (stack: Stack, journal: Journal, process: TestStack.TestProcess, runId: string) =>
  Effect.gen(function* () {
    const found = yield* ask(journal, process, { name: "look", runId }, (engine) => engine.snapshot(runId))
    const stored = yield* storedOf(stack, runId)
    if (Option.isSome(found)) journal.snapshots.push({ runId, stored, snapshot: found.value })
  })

/** The first checkpoint of a run, the last one, and one between. */
const lookBack = (journal: Journal, process: TestStack.TestProcess, runId: string) =>
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

const carryOut = (stack: Stack, journal: Journal, command: Plan.Command): Effect.Effect<void> =>
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

/** How long the quiet time may last: longer than every limit of a run, several times over. */
const quietRounds = 120
const roundMs = 1_000
/** How often a run that failed recoverably is resumed in that time. */
const maxResumes = 2

/** No more faults: whoever is down comes up, whoever is asked answers, until every run has ended. */
const comeToRest = (stack: Stack, journal: Journal, time: VirtualTime, says: Plan.Answers) =>
  Effect.gen(function* () {
    for (const process of stack.processes) process.control.enabled = false
    const [first] = stack.processes
    const resumed = new Map<string, number>()
    for (let round = 0; round < quietRounds && first !== undefined; round++) {
      yield* Effect.forEach(stack.processes, (process) => Effect.forkDaemon(process.start), { discard: true })
      yield* time.advance(roundMs)
      yield* count(stack, journal)
      const rows = yield* rowsOf(stack.archive)
      if (journal.unanswered === 0 && rows.every((row) => RunStatus.isEnded(row.status))) {
        const failed = rows.filter((row) => row.recoverable === true && (resumed.get(row.runId) ?? 0) < maxResumes)
        if (failed.length === 0) return
        for (const { runId } of failed) {
          resumed.set(runId, (resumed.get(runId) ?? 0) + 1)
          yield* Effect.forkDaemon(ask(journal, first, { name: "resume", runId }, (engine) => engine.resume(runId)))
        }
      }
      const pending = yield* pendingOf(stack.archive)
      // Who always edits, or always says again, is never done.
      const answers: Plan.Answers =
        round <= 3
          ? says
          : {
              how: says.how === "other" ? "yes" : says.how,
              doubt: says.doubt === "retry" ? "applied" : says.doubt
            }
      for (let n = 0; n < pending.length; n++) {
        yield* Effect.forkDaemon(decide(stack, journal, first, n, answers, "none"))
      }
    }
  })

const observe = (stack: Stack, journal: Journal, limits: Plan.Plan["limits"]): Effect.Effect<Observed> =>
  Effect.gen(function* () {
    const rows = yield* rowsOf(stack.archive)
    const runs = yield* Effect.forEach(rows, (row) =>
      Effect.gen(function* () {
        const log = yield* logOf(stack.archive, row)
        const turns = yield* Effect.orDie(stack.archive.turns({ key: row.key }))
        return { runId: row.runId, conversationId: row.conversationId, log, turns }
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

/** The commands of a plan, one after the other. */
const listed = (commands: ReadonlyArray<Plan.Command>): Next => {
  let at = 0
  return () => commands[at++]
}

const program = (plan: Plan.Plan, time: VirtualTime, journal: Journal, next: Next) =>
  Effect.gen(function* () {
    const stack = yield* TestStack.TestStack
    yield* Effect.forEach(stack.processes, (process) => Effect.forkDaemon(process.start), { discard: true })
    yield* time.idle
    const fibers = yield* FiberSet.make<void, never>()
    for (const client of plan.clients) {
      yield* FiberSet.run(
        fibers,
        Effect.gen(function* () {
          const runId = yield* journal.nth(client.run)
          yield* Effect.sleep(client.after)
          const made = VirtualClient.make({
            runId,
            visits: client.visits,
            polls: client.polls,
            connect: () => stack.processes[client.at % stack.processes.length]?.running(),
            stored: storedOf(stack, runId)
          })
          journal.clients.push(made)
          yield* made.run
        })
      )
    }
    if (plan.hasty !== undefined) yield* FiberSet.run(fibers, answerAtOnce(stack, journal, plan.hasty))
    while (true) {
      const command = next(journal.moments.at(-1))
      if (command === undefined) break
      journal.issued.push(command)
      if (command.after > 0) yield* time.advance(command.after)
      yield* count(stack, journal)
      if (command.do === "wait") yield* lookAround(stack, journal)
      else yield* FiberSet.run(fibers, carryOut(stack, journal, command))
    }
    yield* comeToRest(stack, journal, time, plan.afterwards)
    // Whoever still watches learns of the end; whoever looks sees the same everywhere.
    for (const { runId } of journal.runs) {
      for (const process of stack.processes) yield* Effect.forkDaemon(look(stack, journal, process, runId))
      const [first] = stack.processes
      if (first !== undefined) yield* Effect.forkDaemon(lookBack(journal, first, runId))
    }
    yield* time.advance(1_500)
    yield* lookAround(stack, journal)
    return yield* observe(stack, journal, plan.limits)
  })

/**
 * Says what is done next, when it is known how everything stood when somebody last waited; `undefined`: nothing more.
 *
 * @since 0.1.0
 * @category models
 */
export type Next = (moment: Moment | undefined) => Plan.Command | undefined

/**
 * What a plan is run with.
 *
 * - `store`: by default one in memory
 * - `tools`: of one's own instead of the recording ones. One and the same for all processes, as the world they act on is
 * - `policy`: instead of the plan's
 * - `edit`: the new input when a person edits a call
 * - `next`: the commands, instead of the plan's
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly store?: Stores.Store | undefined
  readonly tools?: ReadonlyArray<Tool> | undefined
  readonly policy?: Layer.Layer<ResumePolicy.ResumePolicy> | undefined
  readonly edit?: Edit | undefined
  readonly next?: Next | undefined
}

type Edit = (toolName: string, input: unknown) => unknown

/**
 * Runs a plan to its end. The same plan has the same outcome.
 *
 * @since 0.1.0
 * @category running
 */
export const run = (plan: Plan.Plan, options: Options = {}): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    const time = new VirtualTime({ seed: plan.seed, shuffle: plan.shuffle, maxTasks })
    const journal = new Journal(options.edit ?? (() => ({ n: 99 })))
    const { checkpointEvery, maxAttempts, ...limits } = plan.limits
    const stack = TestStack.layer({
      script: Plan.script(plan, secret),
      store: options.store,
      processes: Math.max(1, plan.faults.length),
      faults: plan.faults,
      tools:
        options.tools &&
        (({ entries }, host) => (options.tools ?? []).map((tool) => Recorder.record(entries, host, tool))),
      policy: options.policy ?? policies[plan.policy],
      neighbours: plan.neighbours,
      model: { continuesDraft: plan.drafts },
      limits: { ...limits, toolTimeoutMs: 1_000, runTimeoutMs: 12_000, heartbeatMs: 3_000, shutdownGraceMs: 1_000 },
      resume: { leaseTtlMs, checkpointEvery, maxAttempts }
    })
    return program(plan, time, journal, options.next ?? listed(plan.commands)).pipe(
      Effect.scoped,
      Effect.provide(stack),
      Effect.provide(Logger.remove(Logger.defaultLogger)),
      (all) => time.run(all),
      Effect.map((exit): Outcome => {
        const little = { ...nothing, commands: journal.commands }
        const given: Plan.Plan = { ...plan, commands: journal.issued }
        if (Option.isNone(exit)) return { plan: given, observed: little, broken: "it does not come to an end" }
        return Exit.match(exit.value, {
          onSuccess: (observed): Outcome => ({ plan: given, observed, broken: undefined }),
          onFailure: (cause): Outcome => ({ plan: given, observed: little, broken: String(cause) })
        })
      })
    )
  })
