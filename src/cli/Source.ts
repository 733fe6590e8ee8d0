/**
 * Where a command finds runs: at a server, or in a database file.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Envelope } from "../domain/Envelope.js"
import type { RunStatus } from "../domain/RunStatus.js"
import type { Snapshot } from "../domain/Snapshot.js"
import type { DecideRequest } from "../engine/RunEngine.js"
import type * as Schemas from "../http/RunsSchemas.js"
import type { Failure } from "./Failure.js"

/**
 * A run as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export type RunSummary = typeof Schemas.RunSummary.Type

/**
 * Which runs to list, newest first.
 *
 * @since 0.1.0
 * @category models
 */
export interface ListQuery {
  readonly conversationId?: string | undefined
  readonly status?: RunStatus | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/**
 * A page of runs; the last one has no `nextCursor`.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunPage {
  readonly items: ReadonlyArray<RunSummary>
  readonly nextCursor?: string | undefined
}

/**
 * Runs and what can be done to them. Failures are fit to be shown.
 *
 * - `events`: what is stored behind a seq, and then what happens, until the run has ended
 * - `trace`: the run so far, as the lines of a trace file
 * - `resume`: fails where nobody is there to execute a run
 *
 * @since 0.1.0
 * @category models
 */
export interface Source {
  readonly list: (query: ListQuery) => Effect.Effect<RunPage, Failure>
  readonly snapshot: (runId: string) => Effect.Effect<Snapshot, Failure>
  readonly events: (runId: string, after: number) => Stream.Stream<Envelope, Failure>
  readonly trace: (runId: string) => Stream.Stream<string, Failure>
  readonly cancel: (
    runId: string,
    reason: string | undefined
  ) => Effect.Effect<typeof Schemas.CancelResult.Type, Failure>
  readonly decide: (
    runId: string,
    approvalId: string,
    request: DecideRequest
  ) => Effect.Effect<typeof Schemas.DecideResult.Type, Failure>
  readonly resume: (runId: string) => Effect.Effect<typeof Schemas.Accepted.Type, Failure>
}
