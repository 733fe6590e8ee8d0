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

/**
 * What is looked through as one text: that of a call, or all text or all reasoning of the run, since it is shown as one
 * whatever parts it has. `last` is the part that was written to last, and owns what is held back.
 */
interface Source {
  readonly stream: SecretStream
  last: Part | undefined
}

/** A part that is being written. `high` is the first half of a pair, `event` the delta that came last. */
interface Part {
  readonly source: Source
  high: string
  event: Delta
}

const surrogate = /[\uD800-\uDFFF]/

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

const isText = (name: string): boolean => name === "text-delta" || name === "reasoning-delta"

const partId = (event: Delta): string => ("toolCallId" in event ? event.toolCallId : event.id)

/**
 * One for each writer.
 *
 * @since 0.1.0
 * @category models
 */
export class Sanitizer {
  private readonly sources = new Map<string, Source>()
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
      // What a text of the next turn goes on with may have begun in this one.
      for (const name of this.sources.keys()) {
        if (event.type === "run-resumed" || !isText(name)) this.sources.delete(name)
      }
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
    const { current } = this
    if (current !== undefined && current.event.type === event.type && partId(current.event) === partId(event)) {
      return this.write(current, event)
    }
    // What is held back of a text comes before what is shown behind it.
    const out =
      current !== undefined && isText(current.event.type) && current.source.stream.holds ? this.rest(current) : []
    const part = this.partOf(event)
    this.current = part
    part.source.last = part
    out.push(...this.write(part, event))
    return out
  }

  private write(part: Part, event: Delta): ReadonlyArray<AgentEvent> {
    part.event = event
    const clean = part.source.stream.push(event.delta)
    if (part.high === "" && clean === event.delta && !surrogate.test(clean)) return [event]
    const text = part.high + clean
    const cut = isHigh(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length
    part.high = text.slice(cut)
    return cut === 0 ? [] : [{ ...event, delta: wellFormed(text.slice(0, cut)) }]
  }

  private partOf(event: Delta): Part {
    const name = event.type + partId(event)
    const part = this.parts.get(name) ?? {
      source: this.sourceOf(isText(event.type) ? event.type : name, event),
      high: "",
      event
    }
    this.parts.set(name, part)
    return part
  }

  private sourceOf(name: string, event: Delta): Source {
    const cleaner = event.type === "tool-result-delta" ? this.secrets.told : this.secrets.said
    const source = this.sources.get(name) ?? { stream: cleaner.stream(), last: undefined }
    this.sources.set(name, source)
    return source
  }

  /** What a part still held, when nothing more of it comes for now. */
  private rest(part: Part): Array<AgentEvent> {
    const { last, stream } = part.source
    const text = part.high + (last === part && stream.holds ? stream.end() : "")
    part.high = ""
    return text === "" ? [] : [{ ...part.event, delta: wellFormed(text) }]
  }

  private release(): Array<AgentEvent> {
    const out: Array<AgentEvent> = []
    for (const part of this.parts.values()) out.push(...this.rest(part))
    return out
  }
}
