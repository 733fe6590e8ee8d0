/**
 * What happens to every event before it gets its seq. A pair of surrogates that a provider split over two deltas is
 * held back until its second half arrives, so that no delta ends inside a character.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import { wellFormed } from "../tool/Json.js"

type Delta = Extract<AgentEvent, { readonly delta: string }>

const surrogate = /[\uD800-\uDFFF]/

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

const partOf = (event: Delta): string => `${event.type}:${"id" in event ? event.id : event.toolCallId}`

/**
 * One for each writer. Holds at most one code unit for each part that is being written.
 *
 * @since 0.1.0
 * @category models
 */
export class Sanitizer {
  private readonly held = new Map<string, Delta>()

  /** The events that may be stored now that this one has come. */
  push(event: AgentEvent): ReadonlyArray<AgentEvent> {
    if ("delta" in event) return this.delta(event)
    if (this.held.size === 0) return [event]
    const released = [...this.held.values()].map((held) => ({ ...held, delta: "\uFFFD" }))
    this.held.clear()
    return [...released, event]
  }

  private delta(event: Delta): ReadonlyArray<AgentEvent> {
    if (this.held.size === 0 && !surrogate.test(event.delta)) return [event]
    const part = partOf(event)
    const text = (this.held.get(part)?.delta ?? "") + event.delta
    this.held.delete(part)
    const cut = text.length > 0 && isHigh(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length
    if (cut < text.length) this.held.set(part, { ...event, delta: text.slice(cut) })
    return cut === 0 ? [] : [{ ...event, delta: wellFormed(text.slice(0, cut)) }]
  }
}
