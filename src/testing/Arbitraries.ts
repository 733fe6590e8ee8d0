/**
 * Arbitrary plans for the simulation, and their parts. All of them shrink to what is simple: no faults, one process,
 * one run that says one word.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { FastCheck } from "effect"
 * import { Arbitraries, Cases } from "runlet/testing"
 *
 * const call = FastCheck.record({ call: FastCheck.constant("look"), input: FastCheck.record({ n: FastCheck.nat(9) }) })
 *
 * it.prop("a model that only looks", [Arbitraries.planOf(call)], ([plan]) => Cases.hold(plan), 60_000)
 * ```
 *
 * @since 0.1.0
 */
import * as FastCheck from "effect/FastCheck"
import type * as FaultyStore from "./FaultyStore.js"
import type * as Plan from "./Plan.js"
import * as RecordingTools from "./RecordingTools.js"
import type * as VirtualClient from "./VirtualClient.js"

/** Of any length up to the greatest; on its own the library would make mostly short ones. */
const few = <A>(arbitrary: FastCheck.Arbitrary<A>, maxLength: number) => some(arbitrary, 0, maxLength)

const weighted = <A>(...options: ReadonlyArray<readonly [number, FastCheck.Arbitrary<A>]>): FastCheck.Arbitrary<A> =>
  FastCheck.oneof({ withCrossShrink: true }, ...options.map(([weight, arbitrary]) => ({ weight, arbitrary })))

/** There once in `n` times. */
const optional = <A>(arbitrary: FastCheck.Arbitrary<A>, n = 3): FastCheck.Arbitrary<A | undefined> =>
  weighted<A | undefined>([n - 1, FastCheck.constant(undefined)], [1, arbitrary])

const some = <A>(arbitrary: FastCheck.Arbitrary<A>, minLength: number, maxLength: number) =>
  FastCheck.array(arbitrary, { minLength, maxLength, size: "max" })

const constant = FastCheck.constant
const from = FastCheck.constantFrom

/**
 * How a handler behaves that reads.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const reading: FastCheck.Arbitrary<RecordingTools.Behaviour> = from(
  "ok",
  "slow",
  "progress",
  "fail",
  "throw",
  "hang"
)

/**
 * How a handler behaves that acts.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const acting: FastCheck.Arbitrary<RecordingTools.Behaviour> = from(
  "ok",
  "slow",
  "progress",
  "fail",
  "throw",
  "hang",
  "conflict",
  "doubt-before",
  "doubt-after",
  "throw-after",
  "hang-after",
  "within",
  "within-conflict"
)

/**
 * The input of a recording tool.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const input: FastCheck.Arbitrary<RecordingTools.Input> = FastCheck.record({
  n: FastCheck.nat(2),
  reads: optional(some(reading, 1, 2), 4),
  acts: optional(some(acting, 1, 3), 2),
  refuse: optional(constant(true), 12)
}).map(({ acts, n, reads, refuse }) => ({
  n,
  ...(reads !== undefined && reads.length > 0 && { reads }),
  ...(acts !== undefined && acts.length > 0 && { acts }),
  ...(refuse !== undefined && { refuse })
}))

const word = from("one ", "two three four ", "é語😀 ", "five six seven eight.")
const toolName = from(...RecordingTools.facts.map((fact) => fact.name))

/** Words, now and then so slowly that each piece of them is stored by itself. */
const said = FastCheck.tuple(word, optional(constant(20), 6)).map(([said, pause]) => ({
  said,
  ...(pause !== undefined && { pause })
}))

const text: FastCheck.Arbitrary<Plan.Move> = said.map(({ said, ...slowly }) => ({ text: said, ...slowly }))
const reasoning: FastCheck.Arbitrary<Plan.Move> = said.map(({ said, ...slowly }) => ({ reasoning: said, ...slowly }))
const sleep: FastCheck.Arbitrary<Plan.Move> = from(1, 20, 300).map((sleep) => ({ sleep }))

/**
 * A call that the model makes: of which tool, with which input (any JSON).
 *
 * @since 0.1.0
 * @category models
 */
export interface Call {
  readonly call: string
  readonly input: unknown
}

/**
 * A call of a recording tool.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const call: FastCheck.Arbitrary<Call> = FastCheck.record({ call: toolName, input })

const withId = (call: FastCheck.Arbitrary<Call>): FastCheck.Arbitrary<Plan.Move> =>
  FastCheck.tuple(call, optional(from("c1", "c2"))).map(([call, id]) => ({ ...call, ...(id !== undefined && { id }) }))
const badCall: FastCheck.Arbitrary<Plan.Move> = weighted<Plan.Move>(
  [1, from("null", "[1]", "{", '"x"', "", "{}").map((raw) => ({ call: "look", raw }))],
  [1, from("nothing", "constructor", "__proto__", "").map((call) => ({ call, raw: '{"n":1}' }))]
)
const end = from<Plan.Move>(
  { end: "recoverable" },
  { end: "recoverable" },
  { end: "recoverable" },
  { end: "retryable" },
  { end: "truncate" },
  { end: "final" },
  { end: "hang" },
  { end: "throw" }
)

const talk = weighted([4, text], [1, reasoning], [2, sleep])

/** A call that was made before in the script, once more: by number, among those of earlier turns. */
interface Again {
  readonly again: number
}

type Draft = ReadonlyArray<Plan.Move | Again>

/** A turn of a model; it may fail some times before it succeeds. */
const turn = (calls: FastCheck.Arbitrary<Call>) => {
  const called = weighted<Plan.Move | Again>([3, withId(calls)], [1, FastCheck.nat(5).map((again) => ({ again }))])
  const moves = weighted<Draft>(
    [3, some(talk, 1, 4)],
    [7, FastCheck.tuple(few(talk, 2), some(called, 1, 3), few(talk, 1)).map((all) => all.flat())],
    [1, few(weighted<Plan.Move | Again>([1, talk], [1, called], [1, badCall]), 5)]
  )
  const broken = FastCheck.tuple(moves, end).map(([all, last]): Draft => [...all, last])
  return FastCheck.record({
    tries: FastCheck.tuple(
      weighted([3, constant([])], [1, some(broken, 1, 3)]),
      weighted([12, moves], [1, broken])
    ).map(([failures, last]): ReadonlyArray<Draft> => [...failures, last]),
    reason: optional(from("length" as const, "content_filter" as const), 20)
  })
}

const isCall = (move: Plan.Move): move is Plan.Move & Call => "call" in move && "input" in move

/**
 * What a run's model says, turn by turn. Its calls are such as `calls` makes (by default of the recording tools); some
 * are made again later.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const script = (calls: FastCheck.Arbitrary<Call> = call): FastCheck.Arbitrary<ReadonlyArray<Plan.Turn>> =>
  some(turn(calls), 1, 4).map((drafts) => {
    const made: Array<Call> = []
    return drafts.map(({ reason, tries }): Plan.Turn => {
      const before = [...made]
      const plain = tries.map((moves) =>
        moves.flatMap((move): ReadonlyArray<Plan.Move> => {
          if (!("again" in move)) return [move]
          const earlier = before[move.again % Math.max(1, before.length)]
          return earlier === undefined ? [] : [{ call: earlier.call, input: earlier.input }]
        })
      )
      made.push(...plain.flat().filter(isCall))
      return { tries: plain, ...(reason !== undefined && { reason }) }
    })
  })

const soon = weighted([3, FastCheck.integer({ min: 1, max: 12 })], [1, FastCheck.integer({ min: 13, max: 60 })])
const crash = from("crash-before" as const, "crash-after" as const)
const trouble = from("fail" as const, "lose" as const, "delay" as const, "late" as const, "hang" as const)

/**
 * One fault of a store.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const fault: FastCheck.Arbitrary<FaultyStore.Fault> = weighted<FaultyStore.Fault>(
  [
    5,
    FastCheck.record({
      operation: constant("append" as const),
      nth: soon,
      kind: crash
    })
  ],
  [
    4,
    FastCheck.record({
      operation: constant("append" as const),
      nth: soon,
      kind: trouble,
      ms: from(10, 300, 5_000),
      times: from(1, 1, 2, 12)
    })
  ],
  // So late that the lease has run out meanwhile.
  [
    3,
    FastCheck.record({
      operation: constant("append" as const),
      nth: soon,
      kind: from("late" as const, "delay" as const, "freeze" as const, "freeze" as const),
      ms: constant(5_000)
    })
  ],
  [
    3,
    FastCheck.record({
      operation: from("create" as const, "claimQueued", "claimAbandoned", "renew", "release"),
      nth: FastCheck.integer({ min: 1, max: 8 }),
      kind: weighted<FaultyStore.FaultKind>([1, crash], [1, trouble]),
      ms: from(10, 300, 5_000)
    })
  ],
  [
    3,
    FastCheck.record({
      operation: constant("read" as const),
      nth: FastCheck.integer({ min: 1, max: 200 }),
      kind: weighted<FaultyStore.FaultKind>([1, crash], [2, trouble]),
      ms: from(10, 300, 5_000),
      times: from(1, 1, 3, 30)
    })
  ]
)

/**
 * What a store does to one process.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const faults: FastCheck.Arbitrary<ReadonlyArray<FaultyStore.Fault>> = few(fault, 4)

const visit: FastCheck.Arbitrary<VirtualClient.Visit> = FastCheck.record({
  take: FastCheck.nat(12),
  pauseMs: from(0, 10, 700),
  back: from(0, 0, 2)
})

/**
 * A client's comings and goings.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const client: FastCheck.Arbitrary<Plan.Client> = FastCheck.record({
  run: FastCheck.nat(2),
  at: FastCheck.nat(2),
  after: from(0, 5, 500),
  polls: FastCheck.boolean(),
  visits: few(visit, 5)
})

const after = weighted(
  [3, constant(0)],
  [2, from(1, 15)],
  [3, from(60, 130)],
  [2, from(500, 1_500)],
  [1, constant(6_000)]
)
const at = FastCheck.nat(2)
const run = FastCheck.nat(2)

const withTime = <A extends object>(arbitrary: FastCheck.Arbitrary<A>) =>
  FastCheck.tuple(after, at, arbitrary).map(([after, at, rest]) => ({ after, at, ...rest }))

const begin: FastCheck.Arbitrary<Plan.Command> = withTime(
  FastCheck.record(
    {
      do: constant("start" as const),
      script: FastCheck.nat(2),
      conversation: FastCheck.nat(1),
      onBusy: from("enqueue" as const, "reject" as const, "interrupt" as const),
      key: from("k1", "k2"),
      plan: constant(true),
      maxTokens: from(20, 40)
    },
    { requiredKeys: ["do" as const, "script" as const] }
  )
)

/** Another message in a conversation that may well be busy. */
const again: FastCheck.Arbitrary<Plan.Command> = withTime(
  FastCheck.record({
    do: constant("start" as const),
    script: FastCheck.nat(2),
    conversation: FastCheck.nat(1),
    onBusy: from("enqueue" as const, "enqueue" as const, "interrupt" as const)
  })
)

const doubt = from("applied" as const, "abandon" as const, "retry" as const)

/**
 * What a person says to what is asked.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const answers: FastCheck.Arbitrary<Plan.Answers> = FastCheck.record({
  how: from("yes" as const, "yes" as const, "no" as const, "other" as const),
  doubt
})

/**
 * What people and operators do.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const command: FastCheck.Arbitrary<Plan.Command> = weighted<Plan.Command>(
  [4, withTime(FastCheck.record({ do: constant("look" as const), run }))],
  [
    8,
    withTime(
      FastCheck.record(
        {
          do: constant("decide" as const),
          which: FastCheck.nat(2),
          says: answers,
          hash: weighted([5, constant("none" as const)], [1, constant("wrong" as const)]),
          twice: FastCheck.boolean()
        },
        { requiredKeys: ["do" as const, "which" as const, "says" as const] }
      )
    )
  ],
  [3, begin],
  [3, again],
  [2, withTime(FastCheck.record({ do: constant("cancel" as const), run }))],
  [3, withTime(FastCheck.record({ do: constant("resume" as const), run }))],
  [2, withTime(FastCheck.record({ do: constant("regenerate" as const), run }))],
  [4, withTime(FastCheck.record({ do: constant("crash" as const) }))],
  [6, withTime(FastCheck.record({ do: constant("restart" as const) }))],
  [2, withTime(FastCheck.record({ do: constant("stop" as const) }))]
)

const first: FastCheck.Arbitrary<Plan.Command> = FastCheck.nat(2).map((script) => ({
  after: 0,
  at: 0,
  do: "start",
  script
}))

/**
 * A whole plan, of a model that makes such calls. In some of them the next message is there before the first answer is, and
 * somebody resumes whatever fails.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const planOf = (calls?: FastCheck.Arbitrary<Call>): FastCheck.Arbitrary<Plan.Plan> =>
  FastCheck.record({
    seed: FastCheck.nat(0xffff),
    shuffle: FastCheck.boolean(),
    policy: from("restart-iteration" as const, "continue-draft" as const, "manual" as const),
    drafts: FastCheck.boolean(),
    neighbours: FastCheck.boolean(),
    limits: FastCheck.record({
      maxIterations: from(8, 2),
      maxToolConcurrency: from(8, 1, 2),
      checkpointEvery: from(64, 2),
      maxAttempts: from(5, 1),
      approvalTtlMs: weighted([4, constant(86_400_000)], [1, constant(1_000)])
    }),
    scripts: some(script(calls), 1, 3),
    faults: some(faults, 1, 3),
    clients: few(client, 3),
    commands: FastCheck.tuple(first, few(command, 14)).map(
      ([one, rest]): ReadonlyArray<Plan.Command> => [one, ...rest]
    ),
    hasty: optional(
      FastCheck.record({ at: FastCheck.nat(2), how: from("yes" as const, "yes" as const, "no" as const), doubt }),
      4
    ),
    afterwards: answers,
    impatient: optional(FastCheck.record({ at: FastCheck.nat(2), next: again }), 3)
  }).map(({ impatient, ...plan }): Plan.Plan => {
    if (impatient === undefined) return plan
    const [one, ...rest] = plan.commands
    const commands = one === undefined ? [] : [one, impatient.next, ...rest]
    return { ...plan, commands, stubborn: { at: impatient.at } }
  })

/**
 * A whole plan, of a model that calls the recording tools.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const plan: FastCheck.Arbitrary<Plan.Plan> = planOf()
