/**
 * A second model for when the first one does not answer.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import type { Model, ModelMessage, ModelPart, ModelRequest } from "./Model.js"
import * as ModelPrice from "./ModelPrice.js"

/** Which of the two made a turn, kept with what it wants back of it. */
type Maker = "model" | "fallback"

/** A finished turn costs what its maker costs, and what the maker wants back is kept under its name. */
const signed =
  (maker: Maker, { price }: Model) =>
  (part: ModelPart): ModelPart =>
    part.type === "finish"
      ? {
          ...part,
          usage: ModelPrice.priced(part.usage, price),
          ...(part.side !== undefined && { side: { maker, data: part.side } })
        }
      : part

/** A request without what the other one, or nobody known, wanted back. */
const addressed = (maker: Maker, request: ModelRequest): ModelRequest => ({
  ...request,
  messages: request.messages.map((message): ModelMessage => {
    if (message.role !== "assistant" || message.side === undefined) return message
    const { side, ...rest } = message
    const isOwn = Predicate.isRecord(side) && side.maker === maker && side.data !== undefined
    return isOwn ? { ...rest, side: side.data } : rest
  })
})

/**
 * Asks `fallback` when `model` fails before it has given out anything. What the two can do is taken from the first: a
 * prompt that fits it must fit the second. A turn costs what the one that made it costs. Each gets back only what it wanted kept of its own turns.
 *
 * @since 0.1.0
 * @category constructors
 */
export const withFallback = (model: Model, fallback: Model): Model => ({
  ...model,
  stream: (request) =>
    Stream.suspend(() => {
      let published = false
      return model.stream(addressed("model", request)).pipe(
        Stream.mapChunks((parts) => {
          published = true
          return Chunk.map(parts, signed("model", model))
        }),
        Stream.catchAll((error) =>
          published
            ? Stream.fail(error)
            : Stream.map(fallback.stream(addressed("fallback", request)), signed("fallback", fallback))
        )
      )
    })
})
