/**
 * From a log to the trace of its run, in whatever shows traces.
 *
 * @since 0.1.0
 */

/**
 * What a W3C `traceparent` says.
 *
 * @since 0.1.0
 * @category models
 */
export interface Traceparent {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const form = /^00-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/

/**
 * Reads a W3C `traceparent`; `undefined` for anything else.
 *
 * @since 0.1.0
 * @category reading
 */
export const read = (text: string | undefined): Traceparent | undefined => {
  const [, traceId, spanId, flags] = form.exec(text ?? "") ?? []
  return traceId === undefined || spanId === undefined || flags === undefined
    ? undefined
    : { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/**
 * Whether a text is an address of traces: of http or https, with `{traceId}` where the id of the trace belongs. The id of
 * the span may have a place too, `{spanId}`.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTemplate = (text: string): boolean => {
  const filled = text.replaceAll("{traceId}", "0").replaceAll("{spanId}", "0")
  return text.includes("{traceId}") && URL.canParse(filled) && /^https?:$/.test(new URL(filled).protocol)
}

/**
 * The address of the trace that a `traceparent` names; `undefined` without either.
 *
 * @since 0.1.0
 * @category reading
 */
export const to = (template: string | undefined, traceparent: string | undefined): string | undefined => {
  const names = read(traceparent)
  if (template === undefined || names === undefined) return undefined
  return template.replaceAll("{traceId}", names.traceId).replaceAll("{spanId}", names.spanId)
}
