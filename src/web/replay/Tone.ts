/**
 * How good something is, which colours show.
 *
 * @since 0.1.0
 */
import type { RunStatus } from "../../domain/RunStatus.js"

/**
 * What is over well, badly, waits for somebody, is on its way, or is none of these.
 *
 * @since 0.1.0
 * @category models
 */
export type Tone = "good" | "bad" | "warn" | "soft" | "busy"

const tones: { readonly [Status in RunStatus]: Tone } = {
  queued: "soft",
  running: "busy",
  streaming: "busy",
  waiting_approval: "warn",
  completed: "good",
  cancelled: "soft",
  failed: "bad"
}

/**
 * The tone of a run's state.
 *
 * @since 0.1.0
 * @category reading
 */
export const ofStatus = (status: RunStatus): Tone => tones[status]
