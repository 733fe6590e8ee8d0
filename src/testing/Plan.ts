/**
 * A case of the simulation, as plain JSON: what the model says, how tools behave, what breaks, what people do. A plan
 * and its seed say everything, so a printed one can be run again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { StartRequest } from "../engine/RunEngine.js"
import { ModelError } from "../model/Model.js"
import type { Fault } from "./FaultyStore.js"
import * as Script from "./ScriptedModel.js"
import type { Visit } from "./VirtualClient.js"

/**
 * One thing that the model does. `pause`: milliseconds of silence before each piece of it, also between the halves of a
 * character. `raw` arguments stand for what a model may send and should not.
 *
 * @since 0.1.0
 * @category models
 */
export type Move =
  | { readonly text: string; readonly pause?: number | undefined }
  | { readonly reasoning: string; readonly pause?: number | undefined }
  | { readonly call: string; readonly input: unknown; readonly id?: string | undefined }
  | { readonly call: string; readonly raw: string; readonly id?: string | undefined }
  | { readonly sleep: number }
  | { readonly end: "hang" | "truncate" | "retryable" | "recoverable" | "final" | "throw" }

/**
 * A turn: the nth time it is asked for it goes as the nth of `tries` says, and as the last one beyond.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  readonly tries: ReadonlyArray<ReadonlyArray<Move>>
  readonly reason?: "length" | "content_filter" | undefined
}

/**
 * What somebody does, `after` so many milliseconds, by way of process `at`. Runs, approvals and processes are named by
 * number, modulo how many there are. Who does `wait` looks at how everything stands then.
 *
 * @since 0.1.0
 * @category models
 */
export type Command = {
  readonly after: number
  readonly at: number
} & (
  | {
      readonly do: "start"
      readonly conversation?: number | undefined
      readonly script: number
      readonly onBusy?: StartRequest["onBusy"]
      readonly key?: string | undefined
      readonly plan?: boolean | undefined
      readonly maxTokens?: number | undefined
    }
  | { readonly do: "cancel" | "resume" | "regenerate" | "look"; readonly run: number }
  | {
      readonly do: "decide"
      readonly which: number
      readonly says: Answers
      /** The hash of what was shown is sent along, unless `none` or a `wrong` one is. */
      readonly hash?: "none" | "wrong" | undefined
      readonly twice?: boolean | undefined
    }
  | { readonly do: "crash" | "restart" | "stop" | "wait" }
)

/**
 * A client of the nth run: through which process, when it comes first, and how it reads.
 *
 * @since 0.1.0
 * @category models
 */
export interface Client {
  readonly run: number
  readonly at: number
  readonly after: number
  readonly polls?: boolean | undefined
  readonly visits: ReadonlyArray<Visit>
}

/**
 * What a person says to what is asked: `how` to a request for an approval (`other`: edits it), `doubt` to one about an
 * unknown outcome.
 *
 * @since 0.1.0
 * @category models
 */
export interface Answers {
  readonly how: "yes" | "no" | "other"
  readonly doubt: "applied" | "abandon" | "retry"
}

/**
 * - `policy`: the resume policy, unless the simulation is given one
 * - `shuffle`: whether fibers that are ready run in random order
 * - `drafts`: whether the model continues drafts
 * - `hasty`: somebody answers every request at once, by way of process `at`
 * - `stubborn`: somebody resumes each run once, the moment it has failed, by way of process `at`
 * - `afterwards`: how the people answer who are asked when all is over
 *
 * @since 0.1.0
 * @category models
 */
export interface Plan {
  readonly seed: number
  readonly shuffle: boolean
  readonly policy: "restart-iteration" | "continue-draft" | "manual"
  readonly drafts: boolean
  readonly neighbours: boolean
  readonly limits: {
    readonly maxIterations: number
    readonly maxToolConcurrency: number
    readonly checkpointEvery: number
    readonly maxAttempts: number
    readonly approvalTtlMs: number
  }
  /** Scripts, of which each started run follows one. */
  readonly scripts: ReadonlyArray<ReadonlyArray<Turn>>
  /** For each process, what its store does to it. */
  readonly faults: ReadonlyArray<ReadonlyArray<Fault>>
  readonly clients: ReadonlyArray<Client>
  readonly commands: ReadonlyArray<Command>
  readonly hasty?: ({ readonly at: number } & Answers) | undefined
  readonly stubborn?: { readonly at: number } | undefined
  readonly afterwards: Answers
}

const fails = {
  retryable: { retryable: true, recoverable: true },
  recoverable: { retryable: false, recoverable: true },
  final: { retryable: false, recoverable: false }
}

const moveOf = (move: Move, secret: string): Script.Move => {
  if ("text" in move) return { _tag: "text", pieces: pieces(move.text), pauseMs: move.pause }
  if ("reasoning" in move) return { _tag: "reasoning", pieces: pieces(move.reasoning), pauseMs: move.pause }
  if ("raw" in move) return Script.call(move.call, move.raw, move.id)
  if ("call" in move) return Script.call(move.call, move.input, move.id)
  if ("sleep" in move) return Script.sleep(move.sleep)
  switch (move.end) {
    case "hang":
      return Script.hang
    case "truncate":
      return Script.truncate
    case "throw":
      return {
        _tag: "wait",
        effect: Effect.die(new Error(`The provider broke, and says ${secret}.`))
      }
    default:
      return {
        _tag: "fail",
        error: new ModelError({ code: "overloaded", message: "The model is busy.", ...fails[move.end] })
      }
  }
}

/** A delta a word, and one for each half of a character beyond the first plane: there is something to break between. */
const pieces = (text: string): ReadonlyArray<string> =>
  text.match(/[\uD800-\uDBFF]|[^\s\uD800-\uDBFF]+\s*|\s+/g) ?? [text]

/**
 * The script of a plan. Which of its scripts a run follows stands in its user message, as `script 0`. The provider's
 * own data of every turn is `secret`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const script = (plan: Plan, secret: string): Script.Script => {
  const asked = new Map<string, number>()
  return (request) => {
    const question = request.messages.findLast((message) => message.role === "user")?.content ?? ""
    const number = Number(/script (\d+)/.exec(String(question))?.[1] ?? 0)
    const turn = plan.scripts[number % Math.max(1, plan.scripts.length)]?.[request.iteration - 1]
    if (turn === undefined) return { moves: [Script.text("The end.")], side: { signature: secret } }
    const id = `${request.runId} ${request.iteration}`
    const n = asked.get(id) ?? 0
    asked.set(id, n + 1)
    const moves = turn.tries[Math.min(n, turn.tries.length - 1)] ?? []
    return {
      moves: moves.map((move) => moveOf(move, secret)),
      side: { signature: secret },
      ...(turn.reason !== undefined && { reason: turn.reason })
    }
  }
}
