/**
 * Stored events as viewers are sent them.
 *
 * @since 0.1.0
 */
import { isTerminal } from "../domain/AgentEvent.js"
import { splice } from "../domain/Envelope.js"
import type { ToldEvent } from "../store/RunStore.js"
import type { Frame } from "./RunEngine.js"

/**
 * An event of a run (its public id) as a frame.
 *
 * @since 0.1.0
 * @category conversions
 */
export const frameOf = (runId: string, { createdAt, json, seq, type }: ToldEvent): Frame => ({
  seq,
  json: splice(runId, seq, json, createdAt),
  terminal: isTerminal(type)
})
