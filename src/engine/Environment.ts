/**
 * What the parts of the engine share.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { AgentDefinition } from "../agent/Agent.js"
import type { OpenDocuments } from "../agent/Documents.js"
import type { IdGenerator } from "../domain/Ids.js"
import type { Secrets } from "../domain/Secrets.js"
import type { ResumePolicy } from "../resume/ResumePolicy.js"
import type { Census, RunStore, StoreError } from "../store/RunStore.js"
import type { LiveTails } from "./LiveTail.js"
import type { Process } from "./Process.js"
import type { ResultCache } from "./ResultCache.js"
import type { Recorder } from "./Spans.js"

/**
 * `now` is the store's clock, by which leases and approvals run out; `retention` is how long events and runs are kept
 * after the end, in milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface Environment {
  readonly store: RunStore["Type"]
  readonly agent: AgentDefinition
  readonly policy: ResumePolicy["Type"]
  readonly ids: IdGenerator["Type"]
  readonly process: Process["Type"]
  readonly tails: LiveTails
  readonly cache: ResultCache
  readonly documents: OpenDocuments["Type"]
  readonly secrets: Secrets["Type"]
  readonly now: Effect.Effect<number>
  /** How much is stored, as it was a moment ago. */
  readonly size: Effect.Effect<Pick<Census, "bytes" | "freeBytes">, StoreError>
  /** Who records spans, if anybody does. */
  readonly recorder: Recorder | undefined
  /** Whether the limits per user apply. */
  readonly limitUsers: boolean
  readonly retention: { readonly eventsMs: number; readonly runsMs: number }
}
