/**
 * Models behind a server that speaks streaming chat completions: DeepSeek, Ollama, vLLM, llama.cpp and the like.
 *
 * @since 0.1.0
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Channel from "effect/Channel"
import * as Chunk from "effect/Chunk"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Metrics from "../domain/Metrics.js"
import type { Model, ModelError, ModelPart, ModelRequest, Price } from "./Model.js"
import * as ModelPull from "./ModelPull.js"
import * as OpenAiErrors from "./OpenAiErrors.js"
import * as OpenAiRequest from "./OpenAiRequest.js"
import * as OpenAiStream from "./OpenAiStream.js"
import * as Refusal from "./Refusal.js"
import * as Silence from "./Silence.js"

/**
 * - `baseUrl`: without `/chat/completions`, for example `http://127.0.0.1:11434/v1`; a query is kept
 * - `apiKey`: sent as a bearer token; `headers`: sent as they are, and stronger than ours
 * - `firstChunkTimeoutMs`: silence until the first piece of output, `chunkTimeoutMs`: silence after it. Whatever the
 *   server sends ends a silence, headers and comments included
 * - `graceMs`: how long the usage may come after the finish reason; 250 by default
 * - `maxFrameChars`: bound of one frame of the stream; 16 Mi by default
 * - `maxResponseBytes`: bound of the whole answer; 64 MiB by default
 * - the rest: see `OpenAiRequest.RequestOptions` and `Model`
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends OpenAiRequest.RequestOptions {
  readonly baseUrl: string
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: { readonly [name: string]: string | Redacted.Redacted } | undefined
  readonly firstChunkTimeoutMs: number
  readonly chunkTimeoutMs: number
  readonly graceMs?: number | undefined
  readonly maxFrameChars?: number | undefined
  readonly maxResponseBytes?: number | undefined
  readonly price?: Price | undefined
  readonly contextWindow?: number | undefined
}

/**
 * How long the rest of an answer is awaited after its end marker, in milliseconds, so that the connection can be used
 * again.
 */
const drainMs = 100

/** OpenTelemetry's names for who serves at these hosts and below them. */
const providers: { readonly [host: string]: string } = {
  "api.openai.com": "openai",
  "deepseek.com": "deepseek",
  "groq.com": "groq",
  "mistral.ai": "mistral_ai",
  "moonshot.ai": "moonshot_ai",
  "moonshot.cn": "moonshot_ai",
  "openai.azure.com": "azure.ai.openai",
  "perplexity.ai": "perplexity",
  "x.ai": "x_ai"
}

const providerAt = (baseUrl: string): string => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  const known = Object.keys(providers).find((name) => host === name || host.endsWith(`.${name}`))
  return providers[known ?? ""] ?? "openai_compatible"
}

/**
 * A model of such a server. Redirects are not followed, and nothing that the server says enters a `ModelError`.
 *
 * Give it `NodeHttpClient.layerUndici`: other clients cut long silences by themselves.
 *
 * @example
 * import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
 * import * as Effect from "effect/Effect"
 * import { OpenAiCompatible } from "runlet"
 *
 * const model = OpenAiCompatible.make({
 *   model: "llama3.2",
 *   baseUrl: "http://127.0.0.1:11434/v1",
 *   firstChunkTimeoutMs: 180_000,
 *   chunkTimeoutMs: 60_000
 * }).pipe(Effect.provide(NodeHttpClient.layerUndici))
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Model, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const scoped = client.pipe(
      HttpClient.withScope,
      // Spans of the client would carry the headers, and its trace headers would go to a stranger.
      HttpClient.withTracerDisabledWhen(() => true),
      HttpClient.transformResponse(Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }))
    )
    const template = toTemplate(options)
    return {
      stream: (request) =>
        template === undefined
          ? Stream.fail(OpenAiErrors.misconfigured("The model's base URL is no valid http or https URL."))
          : ModelPull.stream(Effect.suspend(() => turn(scoped, template, options, request))),
      contextWindow: options.contextWindow,
      continuesDraft: options.draft !== undefined,
      provider: providerAt(options.baseUrl),
      name: options.model,
      price: options.price
    }
  })

const toTemplate = (options: Options): HttpClientRequest.HttpClientRequest | undefined => {
  const url = URL.canParse(options.baseUrl) ? new URL(options.baseUrl) : undefined
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`
  url.hash = ""
  const headers: Record<string, string> = { accept: "text/event-stream", "user-agent": "runlet" }
  if (options.apiKey !== undefined) headers.authorization = `Bearer ${Redacted.value(options.apiKey).trim()}`
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    headers[name.toLowerCase()] = typeof value === "string" ? value : Redacted.value(value)
  }
  return HttpClientRequest.post(url, { headers })
}

const turn = (
  client: HttpClient.HttpClient.With<HttpClientError.HttpClientError, Scope.Scope>,
  template: HttpClientRequest.HttpClientRequest,
  options: Options,
  request: ModelRequest
): Effect.Effect<ModelPull.ModelPull, ModelError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const body = OpenAiRequest.stringify(OpenAiRequest.toRequestBody(request, options))
    const connection = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.sequential)
    const silence = Silence.make(clock, Math.min(options.firstChunkTimeoutMs, options.chunkTimeoutMs))
    silence.begin(options.firstChunkTimeoutMs)
    const response = yield* client.execute(HttpClientRequest.bodyText(template, body, "application/json")).pipe(
      Scope.extend(connection),
      Effect.mapError(OpenAiErrors.connection),
      Effect.raceFirst(
        Effect.flatMap(silence.tooLong, () => {
          Metrics.limitReached("firstChunkTimeoutMs")
          return Effect.fail(OpenAiErrors.timedOut(options.firstChunkTimeoutMs, false))
        })
      )
    )
    silence.end()
    if (response.status !== 200) return yield* yield* Refusal.read(response, clock.unsafeCurrentTimeMillis())
    yield* Effect.forkScoped(Effect.zipRight(silence.tooLong, Scope.close(connection, Exit.void)))
    const pull = yield* Channel.toPull(Stream.toChannel(response.stream))
    return reader(pull, clock, silence, options)
  })

/** What became of a read: bytes, or why there are none. */
type Read = Chunk.Chunk<Uint8Array> | "end" | "broken" | "silent"

/** Gives the parts that the next bytes complete, again and again; `undefined` at the end. */
const reader = (
  pull: Effect.Effect<Either.Either<Chunk.Chunk<Uint8Array>, unknown>, HttpClientError.ResponseError>,
  clock: Clock.Clock,
  silence: Silence.Silence,
  options: Options
): ModelPull.ModelPull => {
  const { chunkTimeoutMs, firstChunkTimeoutMs, graceMs = 250, maxFrameChars = 16 * 1024 * 1024 } = options
  const decoder = OpenAiStream.make({
    price: options.price,
    keepReasoning: (options.reasoningInput ?? "never") !== "never",
    maxFrame: maxFrameChars
  })
  const { maxResponseBytes = 64 * 1024 * 1024 } = options
  const nowMs = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6
  let size = 0
  let graceUntil = 0
  let ended = false
  let failure: ModelError | undefined

  const bytes: Effect.Effect<Read> = Effect.match(pull, {
    onFailure: () => (silence.broken() ? "silent" : "broken"),
    onSuccess: (given) => (Either.isRight(given) ? given.right : "end")
  })
  const read: Effect.Effect<Read> = Effect.suspend(() => {
    if (decoder.phase() === "finishing") {
      return Effect.timeoutTo(bytes, {
        duration: Math.max(0, graceUntil - nowMs()),
        onSuccess: (got) => got,
        onTimeout: (): Read => "silent"
      })
    }
    silence.begin(decoder.phase() === "waiting" ? firstChunkTimeoutMs : chunkTimeoutMs)
    return bytes
  })
  const drained = Effect.ignore(Effect.timeoutOption(Effect.repeat(pull, { while: Either.isRight }), drainMs))

  const take = (got: Read): Array<ModelPart> => {
    const out: Array<ModelPart> = []
    const before = decoder.phase()
    silence.end()
    if (typeof got === "string") {
      ended = true
      if (got === "silent" && before !== "finishing") {
        Metrics.limitReached(before === "waiting" ? "firstChunkTimeoutMs" : "chunkTimeoutMs")
        failure = OpenAiErrors.timedOut(
          before === "waiting" ? firstChunkTimeoutMs : chunkTimeoutMs,
          before !== "waiting"
        )
        return out
      }
      failure = decoder.end(out)
      if (failure !== undefined && got === "broken" && before === "waiting") failure = OpenAiErrors.truncated()
      return out
    }
    for (const piece of got) {
      size += piece.length
      decoder.push(piece, out)
    }
    if (size > maxResponseBytes) {
      ended = true
      Metrics.limitReached("maxModelResponseBytes")
      failure = OpenAiErrors.tooLong(maxResponseBytes)
      return out
    }
    const after = decoder.phase()
    if (after === "done" || after === "failed") {
      ended = true
      failure = decoder.end(out)
    } else if (after === "finishing" && (before !== "finishing" || out.length > 0)) {
      // Keep-alives do not prolong what is over.
      graceUntil = nowMs() + graceMs
    }
    return out
  }

  return Effect.suspend(function next(): ModelPull.ModelPull {
    if (failure !== undefined) return Effect.fail(failure)
    if (ended) return Effect.as(decoder.phase() === "done" ? drained : Effect.void, undefined)
    return Effect.flatMap(read, (got) => {
      const out = take(got)
      return out.length > 0 ? Effect.succeed(Chunk.unsafeFromArray(out)) : next()
    })
  })
}
