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
 * Frames wait in the live tail in large numbers, where each string of one would be moved about by the collector. So it
 * keeps the text that is stored, and makes the envelope around it when it is sent.
 */
class StoredFrame implements Frame {
  readonly seq: number
  readonly terminal: boolean
  private readonly event: string
  private readonly createdAt: number

  constructor(
    private readonly runId: string,
    { createdAt, json, seq, type }: ToldEvent
  ) {
    this.seq = seq
    this.terminal = isTerminal(type)
    this.event = json
    this.createdAt = createdAt
  }

  get chars(): number {
    return this.event.length
  }

  get json(): string {
    return splice(this.runId, this.seq, this.event, this.createdAt)
  }
}

/**
 * An event of a run (its public id) as a frame.
 *
 * @since 0.1.0
 * @category conversions
 */
export const frameOf = (runId: string, event: ToldEvent): Frame => new StoredFrame(runId, event)
