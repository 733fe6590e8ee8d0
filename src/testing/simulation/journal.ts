/**
 * What a simulation writes down while it runs: the commands and their answers, and what was looked at.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { RunEngine } from "../../engine/RunEngine.js"
import type { Moment, Observed, ObservedCheckpoint, ObservedCommand, ObservedSnapshot } from "../Observed.js"
import type * as Plan from "../Plan.js"
import type { TestProcess } from "../TestStack.js"
import type { VirtualClient } from "../VirtualClient.js"

/**
 * The new input of a call when a person edits it.
 *
 * @since 0.1.0
 * @category models
 */
export type Edit = (toolName: string, input: unknown) => unknown

/**
 * What the fibers of a simulation share.
 *
 * @since 0.1.0
 * @category models
 */
export class Journal {
  readonly commands: Array<ObservedCommand> = []
  readonly snapshots: Array<ObservedSnapshot> = []
  readonly checkpoints: Array<ObservedCheckpoint> = []
  readonly clients: Array<VirtualClient> = []
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

/**
 * Asks a process, and writes the answer down; a process that dies first gives none.
 *
 * @since 0.1.0
 * @category running
 */
export const ask = <A, E extends { readonly _tag: string; readonly message: string }>(
  journal: Journal,
  process: TestProcess,
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
