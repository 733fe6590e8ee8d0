/**
 * From what the store says to what a caller can act on.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metrics from "../domain/Metrics.js"
import { NotFound, Unavailable } from "../domain/RunError.js"
import type { StoreError } from "../store/RunStore.js"
import * as Faults from "./Faults.js"

/**
 * The run does not exist or belongs to somebody else; a caller can not tell which.
 *
 * @since 0.1.0
 * @category errors
 */
export const noRun = new NotFound({ message: "There is no such run, or it is not yours. Check the id." })

/**
 * The conversation does not exist or belongs to somebody else; a caller can not tell which.
 *
 * @since 0.1.0
 * @category errors
 */
export const noConversation = new NotFound({
  message: "There is no such conversation, or it is not yours. Leave conversationId out to begin a new one."
})

/**
 * The store's troubles are logged, with the run that was asked for, and told to the caller without their cause.
 *
 * @since 0.1.0
 * @category errors
 */
export const available = <A, E, R>(
  effect: Effect.Effect<A, E | StoreError, R>,
  runId?: string
): Effect.Effect<A, Exclude<E, StoreError> | Unavailable, R> =>
  Effect.catchAll(
    effect,
    (error): Effect.Effect<never, Exclude<E, StoreError> | Unavailable> =>
      isStoreError(error)
        ? Effect.zipRight(
            Effect.sync(() => Metrics.storeFailed(error.reason)),
            Faults.log("The store did not answer", error, runId)
          ).pipe(
            Effect.zipRight(
              Effect.fail(
                error.reason === "corrupt"
                  ? // Only a person can help, who restores a backup.
                    new Unavailable({
                      message: "What is stored of this is damaged and can not be read. Tell whoever runs this server."
                    })
                  : new Unavailable({
                      message: "The server's storage does not answer. Try again in a moment.",
                      retryAfterMs: 1000
                    })
              )
            )
          )
        : Effect.fail(error as Exclude<E, StoreError>)
  )

const isStoreError = (error: unknown): error is StoreError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "StoreError"
