/**
 * What the checks of one server share: what its model can do, and one finished run that many of them look at.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Envelope } from "../../domain/Envelope.js"
import type { Snapshot } from "../../domain/Snapshot.js"
import type { Watched } from "./Target.js"

/**
 * A run that was started as a stream and has ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface Specimen {
  readonly runId: string
  readonly conversationId: string
  readonly stream: Watched
  readonly log: ReadonlyArray<Envelope>
  readonly snapshot: Snapshot
}

/**
 * `demo`: the model is the one that is built in, whose words make it do anything; `short` and `long` are what to ask for
 * a short answer, and for one that takes some seconds.
 *
 * @since 0.1.0
 * @category services
 */
export class Session extends Context.Tag("runlet/testing/Session")<
  Session,
  {
    readonly demo: boolean
    readonly short: string
    readonly long: string
    readonly specimen: Specimen
    /** Conversations to remove in the end. */
    readonly made: Set<string>
  }
>() {}
