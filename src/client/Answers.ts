/**
 * What is said to the server and what it answers, of the shapes that the contract gives them.
 *
 * @since 0.1.0
 */
import type * as Schemas from "../http/RunsSchemas.js"

/**
 * What starts a run: a message, and where and how it is to be answered.
 *
 * @since 0.1.0
 * @category models
 */
export type StartBody = Omit<typeof Schemas.StartBody.Encoded, "background">
/**
 * The names of an accepted run.
 *
 * @since 0.1.0
 * @category models
 */
export type Accepted = typeof Schemas.Accepted.Encoded
/**
 * A person's answer to an approval request.
 *
 * @since 0.1.0
 * @category models
 */
export type DecideBody = typeof Schemas.DecideBody.Encoded
/**
 * The decision that stands.
 *
 * @since 0.1.0
 * @category models
 */
export type DecideResult = typeof Schemas.DecideResult.Encoded
/**
 * The state that a cancelled run is in.
 *
 * @since 0.1.0
 * @category models
 */
export type CancelResult = typeof Schemas.CancelResult.Encoded
/**
 * A run as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export type RunSummary = typeof Schemas.RunSummary.Encoded
