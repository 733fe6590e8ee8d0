/**
 * An event with its place in its run, as stored and as sent.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { AgentEvent } from "./AgentEvent.js"
import { RunId } from "./Ids.js"

/**
 * `seq` counts 1, 2, 3 … without holes in its run; `createdAt` is epoch milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export const Envelope = Schema.Struct({
  runId: RunId,
  seq: Schema.Int.pipe(Schema.positive()),
  event: AgentEvent,
  createdAt: Schema.NonNegativeInt
})
/**
 * @since 0.1.0
 * @category models
 */
export type Envelope = typeof Envelope.Type

/**
 * An envelope from any value; fails with a `ParseError`.
 *
 * @since 0.1.0
 * @category codecs
 */
export const decode = Schema.decodeUnknown(Envelope)
/**
 * An envelope from any value; throws a `ParseError`.
 *
 * @since 0.1.0
 * @category codecs
 */
export const decodeSync = Schema.decodeUnknownSync(Envelope)
const encodeEventSync = Schema.encodeSync(AgentEvent)
/**
 * The JSON text of an event, without unknown fields. Throws a `ParseError` for a value that is no event: a defect of
 * the caller, since events are made by typed code.
 *
 * @since 0.1.0
 * @category codecs
 */
export const encodeEvent = (event: AgentEvent): string => {
  // Nearly every event is one of these, and what the codec makes of them is just this.
  if (
    (event.type === "text-delta" || event.type === "reasoning-delta") &&
    typeof event.id === "string" &&
    typeof event.delta === "string"
  ) {
    return `{"type":"${event.type}","id":${JSON.stringify(event.id)},"delta":${JSON.stringify(event.delta)}}`
  }
  return JSON.stringify(encodeEventSync(event))
}

/**
 * Reads the JSON text of a stored event.
 *
 * @since 0.1.0
 * @category codecs
 */
export const decodeEvent = Schema.decodeUnknown(Schema.parseJson(AgentEvent))

/**
 * The JSON text of an envelope around the stored text of its event, so that an event is encoded once in its life.
 * `runId` must be a valid id, it is not escaped.
 *
 * @since 0.1.0
 * @category codecs
 */
export const splice = (runId: string, seq: number, eventJson: string, createdAt: number): string =>
  `{"runId":"${runId}","seq":${seq},"event":${eventJson},"createdAt":${createdAt}}`
