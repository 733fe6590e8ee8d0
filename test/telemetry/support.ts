import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import { type ReadableSpan, SimpleSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** What an SDK has recorded, the layer by which it does, and a wait for so many ended spans of a name. */
export interface Recording {
  readonly spans: () => ReadonlyArray<ReadableSpan>
  readonly layer: Layer.Layer<never>
  readonly ended: (name: string, count: number) => Effect.Effect<void>
}

export const recording = (): Recording => {
  const all: Array<ReadableSpan> = []
  const waiting = new Set<() => void>()
  const exporter: SpanExporter = {
    export: (spans, done) => {
      all.push(...spans)
      for (const look of waiting) look()
      done({ code: 0 })
    },
    shutdown: () => Promise.resolve()
  }
  return {
    spans: () => all,
    layer: NodeSdk.layer(() => ({
      resource: { serviceName: "test" },
      spanProcessor: new SimpleSpanProcessor(exporter)
    })),
    ended: (name, count) =>
      Effect.async<void>((resume) => {
        const look = () => {
          if (named(all, name).length >= count) resume(Effect.void)
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      }).pipe(
        Effect.timeoutFail({ duration: "5 seconds", onTimeout: () => `No ${count} spans of ${name}` }),
        Effect.orDie
      )
  }
}

const idOf = (span: ReadableSpan): string => span.spanContext().spanId

/** Lines of indented names, children below their parents in the order of their beginning. */
export const outline = (spans: ReadonlyArray<ReadableSpan>): ReadonlyArray<string> => {
  const known = new Set(spans.map(idOf))
  const began = ({ startTime: [seconds, nanos] }: ReadableSpan) => seconds * 1e9 + nanos
  const sorted = spans.map((span, index) => ({ span, index })).sort((a, b) => began(a.span) - began(b.span))
  const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
    sorted
      .filter(({ span }) => {
        const id = span.parentSpanContext?.spanId
        return parent === undefined ? id === undefined || !known.has(id) : id === parent
      })
      .flatMap(({ span }) => [`${"  ".repeat(depth)}${span.name}`, ...below(idOf(span), depth + 1)])
  return below(undefined, 0)
}

export const named = (spans: ReadonlyArray<ReadableSpan>, name: string): ReadonlyArray<ReadableSpan> =>
  spans.filter((span) => span.name === name)

/** The traceparent of a span. */
export const traceparent = (span: ReadableSpan | undefined): string =>
  span === undefined ? "" : `00-${span.spanContext().traceId}-${idOf(span)}-01`
