/**
 * What happens to every event before it gets its seq: secrets are replaced, and no delta ends inside a character. What a
 * provider split over two deltas, a secret or a pair of surrogates, is held back until the rest of it arrives.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { SecretStream } from "../domain/SecretStream.js"
import type { Secrets } from "../domain/Secrets.js"
import { wellFormed } from "../tool/Json.js"

type Delta = Extract<AgentEvent, { readonly delta: string }>

/** One text that is being written. `high` is the first half of a pair, `event` the delta that came last. */
interface Part {
  readonly stream: SecretStream
  high: string
  event: Delta
}

const surrogate = /[\uD800-\uDFFF]/

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

const partId = (event: Delta): string => ("toolCallId" in event ? event.toolCallId : event.id)

/**
 * One for each writer.
 *
 * @since 0.1.0
 * @category models
 */
export class Sanitizer {
  private readonly parts = new Map<string, Part>()
  private current: Part | undefined

  constructor(private readonly secrets: Secrets["Type"]) {}

  /** The events that may be stored now that this one has come. */
  push(event: AgentEvent): ReadonlyArray<AgentEvent> {
    if ("delta" in event) return this.delta(event)
    const out = this.release()
    out.push(this.clean(event))
    if (event.type === "model-end" || event.type === "iteration-end" || event.type === "run-resumed") {
      this.parts.clear()
      this.current = undefined
    }
    return out
  }

  private clean(event: AgentEvent): AgentEvent {
    const { said, told } = this.secrets
    switch (event.type) {
      case "approval-request":
        // The input is the model's, and the same as where the call was made.
        return { ...told.json(event), input: said.json(event.input) }
      case "tool-call-result":
      case "tool-conflict":
      case "error":
        return told.json(event)
      default:
        return said.json(event)
    }
  }

  private delta(event: Delta): ReadonlyArray<AgentEvent> {
    const part = this.partOf(event)
    part.event = event
    const clean = part.stream.push(event.delta)
    if (part.high === "" && clean === event.delta && !surrogate.test(clean)) return [event]
    const text = part.high + clean
    const cut = isHigh(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length
    part.high = text.slice(cut)
    return cut === 0 ? [] : [{ ...event, delta: wellFormed(text.slice(0, cut)) }]
  }

  private partOf(event: Delta): Part {
    const { current } = this
    if (current !== undefined && current.event.type === event.type && partId(current.event) === partId(event)) {
      return current
    }
    const name = event.type + partId(event)
    const cleaner = event.type === "tool-result-delta" ? this.secrets.told : this.secrets.said
    const part = this.parts.get(name) ?? { stream: cleaner.stream(), high: "", event }
    this.parts.set(name, part)
    this.current = part
    return part
  }

  /** What a part still held, when nothing more of it comes for now. */
  private rest(part: Part): Array<AgentEvent> {
    if (part.high === "" && !part.stream.holds) return []
    const text = part.high + part.stream.end()
    part.high = ""
    return text === "" ? [] : [{ ...part.event, delta: wellFormed(text) }]
  }

  private release(): Array<AgentEvent> {
    const out: Array<AgentEvent> = []
    for (const part of this.parts.values()) out.push(...this.rest(part))
    return out
  }
}
