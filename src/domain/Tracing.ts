/**
 * Spans that say what happened and when, and never what was said: their attributes are names, counts and ids, and a
 * failed one ends with a word instead of a cause, because causes hold messages.
 *
 * The names are those of OpenTelemetry's conventions for generative AI
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/), or begin with `runlet.`
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Tracer from "effect/Tracer"
import * as TraceLink from "./TraceLink.js"

/**
 * The span that a W3C `traceparent` names; `undefined` for anything else.
 *
 * @since 0.1.0
 * @category propagation
 */
export const parse = (text: string | undefined): Tracer.ExternalSpan | undefined => {
  const names = TraceLink.read(text)
  return names && Tracer.externalSpan(names)
}

/**
 * The W3C `traceparent` of a span. One that nobody records has none.
 *
 * @since 0.1.0
 * @category propagation
 */
export const traceparent = (span: Tracer.AnySpan | undefined): string | undefined => {
  if (span === undefined || !span.sampled) return undefined
  const text = `00-${span.traceId}-${span.spanId}-01`
  return TraceLink.read(text) && text
}

/**
 * Attributes by their names; those that are `undefined` are not set.
 *
 * @since 0.1.0
 * @category models
 */
export type Attributes = Readonly<Record<string, string | number | boolean | ReadonlyArray<string> | undefined>>

/**
 * Sets attributes of a span.
 *
 * @since 0.1.0
 * @category spans
 */
export const annotate = (span: Tracer.Span, attributes: Attributes): void => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
}

/**
 * Ends a span: as failed with a word that says what kind of failure it was (`error.type`), as interrupted, or well.
 *
 * @since 0.1.0
 * @category spans
 */
export const end = (
  span: Tracer.Span,
  exit: Exit.Exit<unknown, unknown>,
  failure: string | undefined
): Effect.Effect<void> =>
  Effect.clockWith((clock) =>
    Effect.sync(() => {
      const interrupted = Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
      const word = failure ?? (Exit.isFailure(exit) && !interrupted ? "internal" : undefined)
      if (word !== undefined) span.attribute("error.type", word)
      span.end(
        clock.unsafeCurrentTimeNanos(),
        word !== undefined ? Exit.fail(word) : interrupted ? Exit.failCause(Cause.interrupt(FiberId.none)) : Exit.void
      )
    })
  )

/**
 * Runs an effect in a span of its own, below the present one unless the options name another parent. `failure` names the
 * kind of failure that a result is.
 *
 * @since 0.1.0
 * @category spans
 */
export const spanned = <A, E, R>(
  name: string,
  options: Omit<Tracer.SpanOptions, "attributes" | "captureStackTrace"> & { readonly attributes: Attributes },
  use: (span: Tracer.Span) => Effect.Effect<A, E, R>,
  failure: (exit: Exit.Exit<A, E>) => string | undefined = () => undefined
): Effect.Effect<A, E, R> => {
  const { attributes, ...rest } = options
  return Effect.acquireUseRelease(
    Effect.tap(Effect.makeSpan(name, { ...rest, captureStackTrace: false }), (span) =>
      Effect.sync(() => annotate(span, attributes))
    ),
    (span) => Effect.withParentSpan(use(span), span),
    (span, exit) => end(span, exit, failure(exit))
  )
}
