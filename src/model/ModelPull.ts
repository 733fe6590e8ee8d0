/**
 * Streams of a model's parts that need no stream to be read: who wants the next parts asks for them by an effect. For a
 * stream that is made here and read here, each piece costs that effect and nothing else, where the channel of a stream
 * costs as much for every piece as all that is done with it. To everybody else it is a stream like others.
 *
 * @since 0.1.0
 */
import * as Channel from "effect/Channel"
import type * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelError, ModelPart } from "./Model.js"

/**
 * The next parts, or `undefined` when there are no more. It is not asked again after that, nor after an error.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelPull = Effect.Effect<Chunk.Chunk<ModelPart> | undefined, ModelError>

/** How the streams that were made here are opened. */
const opened = new WeakMap<object, Effect.Effect<ModelPull, ModelError, Scope.Scope>>()

/**
 * A stream of what a pull gives. It is opened anew whenever the stream is run, and what it holds is released with the
 * scope.
 *
 * @example
 * import * as Chunk from "effect/Chunk"
 * import * as Effect from "effect/Effect"
 * import { type Model, ModelPull } from "runlet"
 *
 * const parts: ReadonlyArray<Model.ModelPart> = [
 *   { type: "text-delta", id: "0", delta: "Hello" },
 *   { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
 * ]
 *
 * const model: Model.Model = {
 *   stream: () =>
 *     ModelPull.stream(
 *       Effect.sync(() => {
 *         const left = [...parts]
 *         return Effect.sync(() => {
 *           const next = left.shift()
 *           return next && Chunk.of(next)
 *         })
 *       })
 *     )
 * }
 *
 * @since 0.1.0
 * @category constructors
 */
export const stream = (
  open: Effect.Effect<ModelPull, ModelError, Scope.Scope>
): Stream.Stream<ModelPart, ModelError> => {
  const made = Stream.fromChannel(
    Channel.unwrapScoped(
      Effect.map(open, (pull) => {
        const loop: Channel.Channel<Chunk.Chunk<ModelPart>, unknown, ModelError> = Channel.flatMap(
          Channel.fromEffect(pull),
          (parts) => (parts === undefined ? Channel.void : Channel.flatMap(Channel.write(parts), () => loop))
        )
        return loop
      })
    )
  )
  opened.set(made, open)
  return made
}

/**
 * How any stream of parts is pulled; what it holds is released with the scope.
 *
 * @since 0.1.0
 * @category destructors
 */
export const of = (parts: Stream.Stream<ModelPart, ModelError>): Effect.Effect<ModelPull, ModelError, Scope.Scope> =>
  opened.get(parts) ??
  Effect.map(Channel.toPull(Stream.toChannel(parts)), (pull) =>
    Effect.map(pull, (given) => (Either.isRight(given) ? given.right : undefined))
  )
