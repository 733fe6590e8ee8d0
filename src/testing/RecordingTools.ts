/**
 * Tools of every kind that write down what they are asked to do and what they do. How they behave stands in their
 * input, so that a script says it, and it shrinks with the script.
 *
 * The world they change is one for all processes: a keyed tool looks at its key before it looks at anything else. A
 * write without a key that is done again finds its target changed, by itself.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { RecordingTools, ScriptedModel, TestStack } from "runlet/testing"
 *
 * // The first commit has its effect, and its answer is lost.
 * const input: RecordingTools.Input = { n: 1, acts: ["doubt-after"] }
 * const stack = TestStack.layer({ script: [ScriptedModel.turn(ScriptedModel.call("save", input))] })
 *
 * const effects = TestStack.TestStack.pipe(
 *   Effect.map(({ ledger }) => ledger.entries.filter((entry) => entry.what === "effect")),
 *   Effect.provide(stack)
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Committed, type Tool, ToolConflict, type ToolContext, ToolFailure, ToolInDoubt } from "../tool/Tool.js"
import type { LedgerEntry } from "./Observed.js"
import * as Recorder from "./Recorder.js"

/**
 * What one call of a handler does.
 *
 * - `ok`, `slow` (takes `slowMs`, its effect in the middle), `progress` (says something first)
 * - `fail`, `throw`: before any effect. `hang`: never ends, without effect
 * - `doubt-after`, `throw-after`, `hang-after`: the effect happens, the answer is lost. `doubt-before`: it does not
 * - `conflict`: the target has changed
 * - `within`: a commit whose effect is part of the transaction of its result. `within-conflict`: one that fails there
 *
 * @since 0.1.0
 * @category models
 */
export type Behaviour =
  | "ok"
  | "slow"
  | "progress"
  | "fail"
  | "throw"
  | "hang"
  | "doubt-after"
  | "doubt-before"
  | "throw-after"
  | "hang-after"
  | "conflict"
  | "within"
  | "within-conflict"

/**
 * The input of every recording tool. `reads` is for `preview` and read-only calls, `acts` for the rest: the nth call of
 * a handler for a tool call behaves as the nth says, and `ok` beyond. `refuse`: the tool's check refuses this input.
 *
 * @since 0.1.0
 * @category models
 */
export interface Input {
  readonly n: number
  readonly reads?: ReadonlyArray<Behaviour> | undefined
  readonly acts?: ReadonlyArray<Behaviour> | undefined
  readonly refuse?: boolean | undefined
}

const slowMs = 120

interface Facts extends Pick<Tool, "name" | "kind" | "unattended" | "idempotent"> {
  readonly dryRun: boolean
  readonly probes: boolean
  readonly cacheable?: boolean
}

/**
 * The tools, by name: `look` and `look_cached` read; `save` (the same key twice is one effect), `file` (can be asked for a key),
 * `send` (neither) and `post` (no dry run) write; `pay` (keyed) and `mail` are effects that are asked for, `tick`
 * (keyed) and `ping` such that are not.
 *
 * @since 0.1.0
 * @category models
 */
export const facts: ReadonlyArray<Facts> = [
  { name: "look", kind: "readonly", dryRun: false, probes: false },
  { name: "look_cached", kind: "readonly", dryRun: false, probes: false, cacheable: true },
  { name: "save", kind: "write", dryRun: true, idempotent: true, probes: false },
  { name: "file", kind: "write", dryRun: true, probes: true },
  { name: "send", kind: "write", dryRun: true, probes: false },
  { name: "post", kind: "write", dryRun: false, probes: false },
  { name: "pay", kind: "effectful", dryRun: false, idempotent: true, probes: true },
  { name: "mail", kind: "effectful", dryRun: false, probes: false },
  { name: "tick", kind: "effectful", dryRun: false, idempotent: true, unattended: true, probes: false },
  { name: "ping", kind: "effectful", dryRun: false, unattended: true, probes: false }
]

/**
 * The world, and what was done to it.
 *
 * @since 0.1.0
 * @category models
 */
export class Ledger {
  readonly entries: Array<LedgerEntry> = []
  /** Results of effects by tool and key. */
  readonly applied = new Map<string, unknown>()
  private readonly calls = new Map<string, number>()

  /** How often this handler was called before. */
  count(context: ToolContext, reading: boolean): number {
    const id = `${context.runId} ${context.toolCallId} ${reading}`
    const n = this.calls.get(id) ?? 0
    this.calls.set(id, n + 1)
    return n
  }
}

const isInput = (value: unknown): value is Input =>
  typeof value === "object" && value !== null && "n" in value && typeof value.n === "number"

/**
 * All tools, as one process has them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (ledger: Ledger, host: Recorder.Host): ReadonlyArray<Tool> =>
  facts.map((one) => tool(ledger, host, one))

const tool = (ledger: Ledger, host: Recorder.Host, fact: Facts): Tool => {
  const keyed = fact.idempotent === true || fact.probes
  const note = (what: LedgerEntry["what"], input: unknown, context: Omit<ToolContext, "progress">) =>
    Recorder.note(ledger.entries, host, made, what, input, context)
  const handling = <A, E>(input: unknown, context: ToolContext, handler: Effect.Effect<A, E>) =>
    Recorder.handling(ledger.entries, host, made, input, context, handler)

  const place = (context: Omit<ToolContext, "progress">) => `${fact.name} ${context.idempotencyKey}`

  const act = (input: unknown, context: ToolContext) =>
    Effect.gen(function* () {
      const result = { did: isInput(input) ? input.n : null, key: context.idempotencyKey }
      const before = ledger.applied.get(place(context))
      if (before !== undefined && keyed) return before
      // A tool that does not know the key only sees that the target is not what it was: it changed it itself.
      if (before !== undefined && fact.kind === "write") return yield* new ToolConflict({ message: "It has changed." })
      yield* note("effect", input, context)
      ledger.applied.set(place(context), result)
      return result
    })

  const behave = (
    input: unknown,
    context: ToolContext,
    reading: boolean
  ): Effect.Effect<unknown, ToolFailure | ToolConflict | ToolInDoubt> =>
    handling(
      input,
      context,
      Effect.gen(function* () {
        const plan = isInput(input) ? (reading ? input.reads : input.acts) : undefined
        const behaviour = plan?.[ledger.count(context, reading)] ?? "ok"
        const does = reading ? Effect.succeed({ saw: isInput(input) ? input.n : null }) : act(input, context)
        const late = Effect.sleep(Duration.millis(slowMs / 2))
        if (keyed && !reading && ledger.applied.has(place(context))) return ledger.applied.get(place(context))
        switch (behaviour) {
          case "slow":
            return yield* Effect.zipLeft(Effect.zipRight(late, does), late)
          case "progress":
            yield* context.progress("half ")
            yield* late
            yield* context.progress("way 😀")
            return yield* does
          case "fail":
            return yield* new ToolFailure({ message: "It did not work." })
          case "throw":
            return yield* Effect.die(new Error("It broke."))
          case "hang":
            return yield* Effect.never
          case "doubt-before":
            return yield* new ToolInDoubt({ message: "No answer." })
          case "doubt-after":
            return yield* Effect.zipRight(does, new ToolInDoubt({ message: "No answer." }))
          case "throw-after":
            return yield* Effect.zipRight(does, Effect.die(new Error("It broke.")))
          case "hang-after":
            return yield* Effect.zipRight(does, Effect.never)
          case "conflict":
            return yield* reading || fact.kind !== "write"
              ? new ToolFailure({ message: "It has changed." })
              : new ToolConflict({ message: "It has changed." })
          default:
            return yield* does
        }
      })
    )

  // For a reading handler or an execution a conflict is a failure like any other.
  const plain = (input: unknown, context: ToolContext, reading: boolean) =>
    Effect.catchTag(behave(input, context, reading), "ToolConflict", () => new ToolFailure({ message: "Changed." }))

  const previewed = (input: unknown, context: ToolContext): Effect.Effect<unknown, ToolFailure> =>
    Effect.catchTag(plain(input, context, true), "ToolInDoubt", () => new ToolFailure({ message: "No answer." }))

  const commit = (
    input: unknown,
    context: ToolContext
  ): Effect.Effect<Committed, ToolFailure | ToolConflict | ToolInDoubt> => {
    const planned = isInput(input) ? input.acts?.[0] : undefined
    if (planned !== "within" && planned !== "within-conflict") {
      return Effect.map(behave(input, context, false), (result) => ({ result }))
    }
    const committed = Effect.sync(
      (): Committed => ({
        result: { key: context.idempotencyKey },
        within:
          planned === "within-conflict" && ledger.count(context, false) === 0
            ? Effect.fail(new ToolConflict({ message: "It has changed." }))
            : act(input, context)
      })
    )
    return handling(input, context, committed)
  }

  const made: Tool = {
    name: fact.name,
    description: `The ${fact.name} tool.`,
    kind: fact.kind,
    parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    check: (input) =>
      isInput(input) && input.refuse !== true ? Effect.succeed(input) : Effect.fail("The input must have a number n."),
    ...(fact.kind !== "write" && {
      execute: (input: unknown, context: ToolContext) => plain(input, context, fact.kind === "readonly")
    }),
    ...(fact.kind === "write" && { commit }),
    ...(fact.dryRun && { preview: previewed }),
    ...(fact.probes && {
      probe: (context: Omit<ToolContext, "progress">) =>
        Effect.map(note("probe", undefined, context), () => {
          const result = ledger.applied.get(place(context))
          return result === undefined ? { state: "absent" as const } : { state: "applied" as const, result }
        })
    }),
    ...(fact.idempotent === true && { idempotent: true }),
    ...(fact.unattended === true && { unattended: true }),
    ...(fact.cacheable === true && { cacheable: true })
  }
  return made
}

/**
 * Which handler runs in a phase of a tool of this kind: one that reads, or one that acts.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isReading = (entry: Pick<LedgerEntry, "kind" | "phase">): boolean =>
  entry.phase === "preview" || entry.kind === "readonly"
