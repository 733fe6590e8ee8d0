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
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as RunStatus from "../domain/RunStatus.js"
import * as ResumePolicy from "../resume/ResumePolicy.js"
import type { Tool } from "../tool/Tool.js"
import { type Moment, nothing, type Observed } from "./Observed.js"
import * as Plan from "./Plan.js"
import * as Recorder from "./Recorder.js"
import type * as Stores from "./Stores.js"
import { count, lookAround, observe, pendingOf, rowsOf, type Stack, secret, storedOf } from "./simulation/archive.js"
import { answerAtOnce, carryOut, decide, look, lookBack, resumeAtOnce } from "./simulation/commands.js"
import { ask, type Edit, Journal } from "./simulation/journal.js"
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

const leaseTtlMs = 4_000

/** A case takes a few thousand tasks; more than this without an end are an endless loop. */
const maxTasks = 60_000

const policies = {
  "restart-iteration": ResumePolicy.layerRestartIteration,
  "continue-draft": ResumePolicy.layerContinueDraft,
  manual: ResumePolicy.layerManual
}

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
    if (plan.stubborn !== undefined) yield* FiberSet.run(fibers, resumeAtOnce(stack, journal, plan.stubborn))
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
