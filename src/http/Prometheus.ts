/**
 * Figures in the text format that Prometheus reads (version 0.0.4 of its exposition format,
 * https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 * @since 0.1.0
 */
import * as MetricKeyType from "effect/MetricKeyType"
import type * as MetricPair from "effect/MetricPair"
import * as MetricState from "effect/MetricState"
import * as Option from "effect/Option"

/**
 * The content type of the text.
 *
 * @since 0.1.0
 * @category constants
 */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/**
 * One figure. `suffix` is added to the name of its family, as `_bucket` is.
 *
 * @since 0.1.0
 * @category models
 */
export interface Sample {
  readonly suffix?: string | undefined
  readonly labels: ReadonlyArray<readonly [name: string, value: string]>
  readonly value: number
}

/**
 * Figures under one name.
 *
 * @since 0.1.0
 * @category models
 */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge" | "histogram" | "summary"
  readonly samples: ReadonlyArray<Sample>
}

/**
 * A family with one figure for each value of a label, or with a single one.
 *
 * @since 0.1.0
 * @category constructors
 */
export const family = (
  type: "counter" | "gauge" | "summary",
  name: string,
  help: string,
  values: number | { readonly label: string; readonly of: Readonly<Record<string, number>> }
): Family => ({
  name,
  help,
  type,
  samples:
    typeof values === "number"
      ? [{ labels: [], value: values }]
      : Object.entries(values.of).map(([value, n]) => ({ labels: [[values.label, value]], value: n }))
})

const typeOf = (key: MetricPair.MetricPair.Untyped["metricKey"]): Family["type"] | undefined => {
  if (MetricKeyType.isCounterKey(key.keyType)) return "counter"
  if (MetricKeyType.isGaugeKey(key.keyType)) return "gauge"
  return MetricKeyType.isHistogramKey(key.keyType) ? "histogram" : undefined
}

const samplesOf = ({ metricKey, metricState }: MetricPair.MetricPair.Untyped): ReadonlyArray<Sample> => {
  const labels = metricKey.tags.map(({ key, value }) => [key, value] as const)
  if (MetricState.isCounterState(metricState)) return [{ labels, value: Number(metricState.count) }]
  if (MetricState.isGaugeState(metricState)) return [{ labels, value: Number(metricState.value) }]
  if (!MetricState.isHistogramState(metricState)) return []
  const { buckets, count, sum } = metricState
  return [
    ...[...buckets]
      .filter(([bound]) => Number.isFinite(bound))
      .map(([bound, value]) => ({ suffix: "_bucket", labels: [...labels, ["le", String(bound)] as const], value })),
    { suffix: "_bucket", labels: [...labels, ["le", "+Inf"]], value: count },
    { suffix: "_sum", labels, value: sum },
    { suffix: "_count", labels, value: count }
  ]
}

/**
 * The families of Effect's metrics whose names begin with `prefix`. Kinds that the format does not have are left out.
 *
 * @since 0.1.0
 * @category conversions
 */
export const fromPairs = (pairs: Iterable<MetricPair.MetricPair.Untyped>, prefix: string): ReadonlyArray<Family> => {
  const families = new Map<string, Family & { readonly samples: Array<Sample> }>()
  for (const pair of pairs) {
    const { description, name } = pair.metricKey
    const type = typeOf(pair.metricKey)
    if (type === undefined || !name.startsWith(prefix)) continue
    const help = Option.getOrElse(description, () => "")
    const known = families.get(name) ?? { name, help, type, samples: [] }
    known.samples.push(...samplesOf(pair))
    families.set(name, known)
  }
  return [...families.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" }

const labelText = (labels: Sample["labels"]): string =>
  labels.length === 0
    ? ""
    : `{${labels.map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (_) => escapes[_] ?? _)}"`).join(",")}}`

const numberText = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf"

/**
 * The text of families. Each name must come once.
 *
 * @since 0.1.0
 * @category conversions
 */
export const render = (families: ReadonlyArray<Family>): string =>
  families
    .flatMap(({ help, name, samples, type }) => [
      `# HELP ${name} ${help.replace(/[\\\n]/g, (_) => escapes[_] ?? _)}`,
      `# TYPE ${name} ${type}`,
      ...samples.map(({ labels, suffix = "", value }) => `${name}${suffix}${labelText(labels)} ${numberText(value)}`)
    ])
    .map((line) => `${line}\n`)
    .join("")
