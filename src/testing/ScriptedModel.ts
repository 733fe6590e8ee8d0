/**
 * A model that says what a script tells it: complete turns, failures, truncations, stalls and silence, by turn and by
 * attempt. It records what it was asked.
 *
 * ```ts
 * import { ScriptedModel } from "runlet/testing"
 *
 * const { call, fail, make, text, truncate, turn } = ScriptedModel
 *
 * // The first turn calls a tool; the second one is cut off, and said whole in the next attempt.
 * const model = make((request) => {
 *   if (request.iteration === 1) return turn(text("Let me see."), call("look", { n: 1 }))
 *   return request.attempt === 1 ? turn(text("It i"), truncate) : turn(text("It is ", "one."))
 * })
 *
 * const busy = make([turn(fail("overloaded"))])
 * ```
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ModelFinishReason, Usage } from "../domain/AgentEvent.js"
import { type Model, ModelError, type ModelPart, type ModelRequest } from "../model/Model.js"

/**
 * One thing that a scripted turn does.
 *
 * - `text`, `reasoning`: one delta a piece, `pauseMs` before each; `call`: a tool call, its arguments in one piece or in
 *   `pieces`
 * - `sleep`: milliseconds of silence; `hang`: silence for ever; `wait`: until the effect is done
 * - `fail`: the turn fails; `truncate`: the stream ends without a finish
 *
 * @since 0.1.0
 * @category models
 */
export type Move =
  | {
      readonly _tag: "text" | "reasoning"
      readonly pieces: ReadonlyArray<string>
      readonly pauseMs?: number | undefined
    }
  | {
      readonly _tag: "call"
      readonly id?: string | undefined
      readonly name: string
      readonly args: string | ReadonlyArray<string>
    }
  | { readonly _tag: "sleep"; readonly ms: number }
  | { readonly _tag: "wait"; readonly effect: Effect.Effect<void> }
  | { readonly _tag: "hang" }
  | { readonly _tag: "truncate" }
  | { readonly _tag: "fail"; readonly error: ModelError }

/**
 * A turn: its moves, and how it finishes when they do not say otherwise.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScriptedTurn {
  readonly moves: ReadonlyArray<Move>
  readonly reason?: ModelFinishReason | undefined
  readonly usage?: Usage | undefined
  readonly side?: unknown
}

/**
 * Says text, one delta a piece.
 *
 * @since 0.1.0
 * @category constructors
 */
export const text = (...pieces: ReadonlyArray<string>): Move => ({ _tag: "text", pieces })
/**
 * Thinks aloud, one delta a piece.
 *
 * @since 0.1.0
 * @category constructors
 */
export const reasoning = (...pieces: ReadonlyArray<string>): Move => ({ _tag: "reasoning", pieces })
/**
 * Calls a tool. An input that is a string is taken for the arguments as they are, valid or not.
 *
 * @since 0.1.0
 * @category constructors
 */
export const call = (name: string, input: unknown, id?: string): Move => ({
  _tag: "call",
  name,
  args: typeof input === "string" ? input : JSON.stringify(input),
  id
})
/**
 * Says nothing for some milliseconds.
 *
 * @since 0.1.0
 * @category constructors
 */
export const sleep = (ms: number): Move => ({ _tag: "sleep", ms })
/**
 * Says nothing until the effect is done.
 *
 * @since 0.1.0
 * @category constructors
 */
export const wait = (effect: Effect.Effect<void>): Move => ({ _tag: "wait", effect })
/**
 * Says nothing any more.
 *
 * @since 0.1.0
 * @category constructors
 */
export const hang: Move = { _tag: "hang" }
/**
 * Ends without a finish, as a broken connection does.
 *
 * @since 0.1.0
 * @category constructors
 */
export const truncate: Move = { _tag: "truncate" }
/**
 * Fails with this code; by default not retryable, and recoverable.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fail = (
  code: string,
  options?: { readonly retryable?: boolean; readonly recoverable?: boolean }
): Move => ({
  _tag: "fail",
  error: new ModelError({
    code,
    message: `The model failed: ${code}.`,
    retryable: options?.retryable ?? false,
    recoverable: options?.recoverable ?? true
  })
})
/**
 * A turn of these moves.
 *
 * @since 0.1.0
 * @category constructors
 */
export const turn = (...moves: ReadonlyArray<Move>): ScriptedTurn => ({ moves })

/**
 * Which turn a request gets; by default by its iteration, whatever the attempt.
 *
 * @since 0.1.0
 * @category models
 */
export type Script = ReadonlyArray<ScriptedTurn> | ((request: ModelRequest) => ScriptedTurn)

const defaultUsage: Usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }

const endOfScript: ScriptedTurn = turn(text("(end of script)"))

const partsOf = (move: Move, index: number): Stream.Stream<ModelPart, ModelError> => {
  switch (move._tag) {
    case "text":
    case "reasoning": {
      const { pauseMs } = move
      const parts = Stream.fromIterable(
        move.pieces.map((delta): ModelPart => ({ type: `${move._tag}-delta`, id: String(index), delta }))
      ).pipe(Stream.rechunk(1))
      return pauseMs === undefined ? parts : Stream.tap(parts, () => Effect.sleep(Duration.millis(pauseMs)))
    }
    case "call": {
      const name = String(index)
      const pieces = typeof move.args === "string" ? [move.args] : move.args
      return Stream.fromChunk(
        Chunk.fromIterable<ModelPart>([
          {
            type: "tool-call-start",
            call: name,
            toolName: move.name,
            ...(move.id !== undefined && { toolCallId: move.id })
          },
          ...pieces.map((delta): ModelPart => ({ type: "tool-call-delta", call: name, delta }))
        ])
      )
    }
    case "sleep":
      return Stream.execute(Effect.sleep(Duration.millis(move.ms)))
    case "wait":
      return Stream.execute(move.effect)
    case "hang":
      return Stream.never
    case "truncate":
      return Stream.empty
    case "fail":
      return Stream.fail(move.error)
  }
}

const stepsOf = ({ moves, reason, side, usage }: ScriptedTurn): Stream.Stream<ModelPart, ModelError> => {
  const calls = moves.some((move) => move._tag === "call")
  const finish: Stream.Stream<ModelPart> = moves.some((move) => move._tag === "truncate")
    ? Stream.empty
    : Stream.succeed({
        type: "finish",
        reason: reason ?? (calls ? "tool_calls" : "stop"),
        usage: usage ?? defaultUsage,
        ...(side !== undefined && { side })
      })
  return Stream.concat(Stream.flatten(Stream.fromIterable(moves.map(partsOf))), finish)
}

/**
 * A scripted model and the requests it has seen.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScriptedModel extends Model {
  readonly requests: ReadonlyArray<ModelRequest>
}

/**
 * A model by a script. Behind its last turn it says that the script has ended.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (script: Script, options?: Partial<Omit<Model, "stream">>): ScriptedModel => {
  const requests: Array<ModelRequest> = []
  return {
    ...options,
    requests,
    stream: (request) =>
      Stream.suspend(() => {
        requests.push(request)
        return stepsOf(typeof script === "function" ? script(request) : (script[request.iteration - 1] ?? endOfScript))
      })
  }
}
