/**
 * A second model for when the first one does not answer.
 *
 * @since 0.1.0
 */
import * as Stream from "effect/Stream"
import type { Model } from "./Model.js"

/**
 * Asks `fallback` when `model` fails before it has given out anything. What the two can do and cost is taken from the
 * first: a prompt that fits it must fit the second.
 *
 * @since 0.1.0
 * @category constructors
 */
export const withFallback = (model: Model, fallback: Model): Model => ({
  ...model,
  stream: (request) =>
    Stream.suspend(() => {
      let published = false
      return model.stream(request).pipe(
        Stream.mapChunks((parts) => {
          published = true
          return parts
        }),
        Stream.catchAll((error) => (published ? Stream.fail(error) : fallback.stream(request)))
      )
    })
})
