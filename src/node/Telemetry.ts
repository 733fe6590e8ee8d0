/**
 * Sending the spans of runs to a collector by OTLP over HTTP, as OpenTelemetry's environment variables say.
 *
 * A collector that is down or slow costs nothing but its spans: at most a few batches are on their way, and the rest is
 * dropped.
 *
 * @since 0.1.0
 */
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as EffectConfig from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { Secrets } from "../domain/Secrets.js"
import { ConfigError } from "./Config.js"

/**
 * Where spans go. `url` is that of traces; `timeoutMs` bounds one delivery.
 *
 * @since 0.1.0
 * @category models
 */
export interface Otlp {
  readonly url: string
  readonly headers: { readonly [name: string]: Redacted.Redacted }
  readonly protocol: "http/protobuf" | "http/json"
  readonly serviceName: string
  readonly timeoutMs: number
}

const text = (name: string) =>
  Effect.map(Effect.option(EffectConfig.string(name)), (value) =>
    Option.getOrUndefined(Option.filter(value, (_) => _.trim() !== ""))
  )

const wrong = (name: string, message: string) => new ConfigError({ message: `${name}: ${message}` })

const decoded = (value: string): string => {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** `name=value` pairs with commas between them, values in percent-encoding. */
const pairs = (name: string, list: string): Effect.Effect<Otlp["headers"], ConfigError> =>
  Effect.map(
    Effect.forEach(
      list.split(",").filter((pair) => pair.trim() !== ""),
      (pair) => {
        const at = pair.indexOf("=")
        const key = pair.slice(0, at).trim().toLowerCase()
        return at > 0 && /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(key)
          ? Effect.succeed([key, Redacted.make(decoded(pair.slice(at + 1).trim()))] as const)
          : Effect.fail(wrong(name, "must be name=value pairs with commas between them"))
      }
    ),
    Object.fromEntries
  )

/**
 * What the environment says; `undefined` when no spans are to be sent.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromEnvironment: Effect.Effect<Otlp | undefined, ConfigError> = Effect.gen(function* () {
  const base = yield* text("OTEL_EXPORTER_OTLP_ENDPOINT")
  const own = yield* text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
  const off = (yield* text("OTEL_SDK_DISABLED"))?.toLowerCase() === "true"
  const exporter = (yield* text("OTEL_TRACES_EXPORTER")) ?? "otlp"
  const url = own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/v1/traces`)
  if (url === undefined || off || exporter === "none") return undefined
  const source = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    return yield* wrong(source, "must be an http or https address")
  }
  const protocol = (yield* text("OTEL_EXPORTER_OTLP_PROTOCOL")) ?? "http/protobuf"
  if (protocol !== "http/protobuf" && protocol !== "http/json") {
    return yield* wrong("OTEL_EXPORTER_OTLP_PROTOCOL", "must be http/protobuf or http/json")
  }
  const timeout = (yield* text("OTEL_EXPORTER_OTLP_TIMEOUT")) ?? "10000"
  if (!/^[1-9]\d{0,7}$/.test(timeout)) {
    return yield* wrong("OTEL_EXPORTER_OTLP_TIMEOUT", "must be a number of milliseconds")
  }
  const headers = yield* pairs("OTEL_EXPORTER_OTLP_HEADERS", (yield* text("OTEL_EXPORTER_OTLP_HEADERS")) ?? "")
  const serviceName = (yield* text("OTEL_SERVICE_NAME")) ?? "runlet"
  return { url, headers, protocol, serviceName, timeoutMs: Number(timeout) }
})

/** Batches on their way; more of them are dropped. */
const maxUnderWay = 2

/** A client that a slow or silent collector can not fill the memory through. */
const bounded = (timeoutMs: number) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) => {
      let underWay = 0
      return HttpClient.transform(client, (answer, request) =>
        Effect.suspend(() => {
          if (underWay >= maxUnderWay) {
            return Effect.fail(new HttpClientError.RequestError({ request, reason: "Encode" }))
          }
          underWay++
          return answer.pipe(
            Effect.timeoutFail({
              duration: Duration.millis(timeoutMs),
              onTimeout: () => new HttpClientError.RequestError({ request, reason: "Transport" })
            }),
            Effect.ensuring(
              Effect.sync(() => {
                underWay--
              })
            )
          )
        })
      )
    })
  ).pipe(Layer.provide(NodeHttpClient.layerUndici))

/** Whatever spans of tools hold, no secret of the configuration leaves in them. */
const clean = (protocol: Otlp["protocol"]) =>
  Layer.effect(
    OtlpSerialization.OtlpSerialization,
    Effect.map(Effect.all([OtlpSerialization.OtlpSerialization, Secrets]), ([plain, { said }]) => ({
      ...plain,
      traces: (data: unknown) => plain.traces(said.json(data))
    }))
  ).pipe(Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf))

/**
 * Records spans and sends them; nothing without a target.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (otlp: Otlp | undefined): Layer.Layer<never> =>
  otlp === undefined
    ? Layer.empty
    : OtlpTracer.layer({
        url: otlp.url,
        headers: Record.map(otlp.headers, Redacted.value),
        resource: { serviceName: otlp.serviceName },
        exportInterval: "2 seconds",
        shutdownTimeout: "1 second"
      }).pipe(Layer.provide([clean(otlp.protocol), bounded(otlp.timeoutMs)]))
