/**
 * A model-based test with the commands of fast-check: start, cancel, approve, reject, edit, resume, regenerate, crash,
 * restart, stop, and the passing of time, each only where it makes sense as far as somebody who looks from outside can
 * know. What they do is checked by the laws.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Commands } from "runlet/testing"
 *
 * it.prop(
 *   "runs keep the laws, whatever is commanded",
 *   [Commands.sequence()],
 *   ([sequence]) => Commands.hold(sequence),
 *   60_000
 * )
 * ```
 *
 * A sequence that fails shrinks to the commands that it takes, and is reported as a plan of exactly these.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as RunStatus from "../domain/RunStatus.js"
import * as Arbitraries from "./Arbitraries.js"
import * as Cases from "./Cases.js"
import type { Moment, RunAtMoment } from "./Observed.js"
import type * as Plan from "./Plan.js"
import type * as Simulation from "./Simulation.js"

/**
 * What is known from outside: how everything stood when the last command had been given its time.
 *
 * @since 0.1.0
 * @category models
 */
export class Model {
  moment: Moment = { at: 0, processes: [true], runs: [] }

  /** Requests that wait for a person. */
  get asked(): number {
    return this.moment.runs.reduce((sum, run) => sum + run.asked, 0)
  }

  /** The number of the nth run that is as wanted, counted in circles. */
  run(nth: number, wanted: (run: RunAtMoment) => boolean): number | undefined {
    const found = this.moment.runs.flatMap((run, index) => (wanted(run) ? [index] : []))
    return found[nth % Math.max(1, found.length)]
  }

  /** The number of the nth process that is up, or down. */
  process(nth: number, up: boolean): number | undefined {
    const found = this.moment.processes.flatMap((running, index) => (running === up ? [index] : []))
    return found[nth % Math.max(1, found.length)]
  }
}

/**
 * The system itself: `give` gives it a command.
 *
 * @since 0.1.0
 * @category models
 */
export interface Real {
  readonly give: (command: Plan.Command) => void
}

/**
 * A command as fast-check knows it. One of your own is made with `command`.
 *
 * @since 0.1.0
 * @category models
 */
export type Command = FastCheck.Command<Model, Real>

/**
 * A command: `plan` says what is done, or `undefined` where it makes no sense; then so many milliseconds pass. With 0,
 * the next one comes in the very same moment.
 *
 * @since 0.1.0
 * @category constructors
 */
export const command = (name: string, thenMs: number, plan: (model: Model) => Plan.Command | undefined): Command => ({
  check: (model) => plan(model) !== undefined,
  run: (model, { give }) => {
    const made = plan(model)
    if (made !== undefined) give(made)
    give({ do: "wait", at: 0, after: thenMs })
  },
  toString: () => `${name}, ${thenMs} ms`
})

const nat = FastCheck.nat(2)
const thenMs = FastCheck.constantFrom(1, 0, 15, 130, 700, 2_000)

/** A command about the nth thing of its kind, by way of a process that is up, if there is one. */
const about = (
  name: string,
  plan: (nth: number, at: number, model: Model) => Plan.Command | undefined
): FastCheck.Arbitrary<Command> =>
  FastCheck.tuple(nat, nat, thenMs).map(([nth, at, ms]) =>
    command(`${name} ${nth}`, ms, (model) => plan(nth, model.process(at, true) ?? 0, model))
  )

const aboutRun = (name: "cancel" | "resume" | "regenerate", wanted: (run: RunAtMoment) => boolean) =>
  about(name, (nth, at, model) => {
    const run = model.run(nth, wanted)
    return run === undefined ? undefined : { after: 0, at, do: name, run }
  })

const aboutProcess = (name: "crash" | "restart" | "stop", up: boolean) =>
  about(name, (nth, _, model) => {
    const at = model.process(nth, up)
    return at === undefined ? undefined : { after: 0, at, do: name }
  })

const deciding = (name: string, how: Plan.Answers["how"], doubt: Plan.Answers["doubt"]) =>
  about(name, (which, at, model) =>
    model.asked === 0 ? undefined : { after: 0, at, do: "decide", which, says: { how, doubt } }
  )

/**
 * A run is started, in a conversation of its own.
 *
 * @since 0.1.0
 * @category commands
 */
export const start = about("start", (script, at) => ({ after: 0, at, do: "start", script }))

/**
 * A run is started in the conversation of the nth one.
 *
 * @since 0.1.0
 * @category commands
 */
export const startAgain = FastCheck.constantFrom("enqueue" as const, "interrupt" as const, "reject" as const).chain(
  (onBusy) =>
    about(`start behind, ${onBusy},`, (nth, at, model) => {
      const conversation = model.run(nth, () => true)
      return conversation === undefined ? undefined : { after: 0, at, do: "start", script: nth, conversation, onBusy }
    })
)

/**
 * The nth run that has not ended is cancelled.
 *
 * @since 0.1.0
 * @category commands
 */
export const cancel = aboutRun("cancel", ({ status }) => !RunStatus.isEnded(status))

/**
 * The nth run that failed and may go on is resumed.
 *
 * @since 0.1.0
 * @category commands
 */
export const resume = aboutRun("resume", ({ recoverable, status }) => status === "failed" && recoverable)

/**
 * The nth run is regenerated.
 *
 * @since 0.1.0
 * @category commands
 */
export const regenerate = aboutRun("regenerate", () => true)

/**
 * The nth request is approved; an act whose outcome is unknown is called applied.
 *
 * @since 0.1.0
 * @category commands
 */
export const approve = deciding("approve", "yes", "applied")

/**
 * The nth request is rejected; an act whose outcome is unknown is given up.
 *
 * @since 0.1.0
 * @category commands
 */
export const reject = deciding("reject", "no", "abandon")

/**
 * The nth request is edited; an act whose outcome is unknown is tried again.
 *
 * @since 0.1.0
 * @category commands
 */
export const edit = deciding("edit", "other", "retry")

/**
 * The nth process that is up loses its power.
 *
 * @since 0.1.0
 * @category commands
 */
export const crash = aboutProcess("crash", true)

/**
 * The nth process that is down is started.
 *
 * @since 0.1.0
 * @category commands
 */
export const restart = aboutProcess("restart", false)

/**
 * The nth process that is up is told to stop, as for an update.
 *
 * @since 0.1.0
 * @category commands
 */
export const stop = aboutProcess("stop", true)

/**
 * Lets time pass: 20 milliseconds, or up to 20 seconds, which is longer than a lease.
 *
 * @since 0.1.0
 * @category commands
 */
export const advance: FastCheck.Arbitrary<Command> = FastCheck.constantFrom(20, 300, 5_000, 20_000).map((ms) =>
  command("advance", 0, () => ({ after: ms, at: 0, do: "wait" }))
)

/**
 * All of these.
 *
 * @since 0.1.0
 * @category commands
 */
export const all: ReadonlyArray<FastCheck.Arbitrary<Command>> = [
  start,
  startAgain,
  approve,
  edit,
  reject,
  resume,
  restart,
  crash,
  cancel,
  regenerate,
  stop,
  advance
]

/**
 * Commands, and the world in which they are given: a plan without any.
 *
 * @since 0.1.0
 * @category models
 */
export interface Sequence {
  readonly commands: Iterable<Command>
  readonly world: Plan.Plan
}

/**
 * A sequence of commands in a world. By default all commands, at most 25 of them, in the world of any plan; a world of
 * one's own is usually `Arbitraries.planOf(calls)`, for a model that makes such calls.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const sequence = (
  options: {
    readonly world?: FastCheck.Arbitrary<Plan.Plan> | undefined
    readonly commands?: ReadonlyArray<FastCheck.Arbitrary<Command>> | undefined
    readonly maxCommands?: number | undefined
  } = {}
): FastCheck.Arbitrary<Sequence> => {
  const { commands = all, maxCommands = 25, world = Arbitraries.plan } = options
  return FastCheck.record({
    commands: FastCheck.commands([...commands], { maxCommands, size: "max" }),
    world: world.map((plan): Plan.Plan => ({ ...plan, commands: [] }))
  })
}

/** Gives the commands one by one, each when it is known what came of those before. */
const given = ({ commands }: Sequence): Simulation.Next => {
  const model = new Model()
  const left = commands[Symbol.iterator]()
  const ready: Array<Plan.Command> = []
  return (moment) => {
    if (moment !== undefined) model.moment = moment
    while (ready.length === 0) {
      const next = left.next()
      if (next.done === true) return undefined
      if (next.value.check(model)) next.value.run(model, { give: (made) => ready.push(made) })
    }
    return ready.shift()
  }
}

/**
 * Gives a system the commands, and checks it.
 *
 * @since 0.1.0
 * @category checking
 */
export const check = (
  sequence: Sequence,
  options: Cases.Options = {}
): Effect.Effect<Simulation.Outcome, Cases.LawsBroken> =>
  Cases.check(sequence.world, { ...options, next: given(sequence) })

/**
 * The same, now; it throws `Cases.LawsBroken` when a law is broken.
 *
 * @since 0.1.0
 * @category checking
 */
export const hold = (sequence: Sequence, options: Cases.Options = {}): void =>
  Cases.hold(sequence.world, { ...options, next: given(sequence) })
