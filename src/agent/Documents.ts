/**
 * What the agent knows of the document that a user has open.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/**
 * Describes a document by id for a user: its present title and content hash, or nothing when it does not exist or is
 * not the user's.
 *
 * @since 0.1.0
 * @category services
 */
export class OpenDocuments extends Context.Reference<OpenDocuments>()("runlet/OpenDocuments", {
  defaultValue: () => ({
    describe: (_: {
      readonly id: string
      readonly user: string
    }): Effect.Effect<Option.Option<{ readonly title: string; readonly contentHash: string }>> =>
      Effect.succeed(Option.none())
  })
}) {}
