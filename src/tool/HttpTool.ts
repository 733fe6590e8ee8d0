/**
 * Tools that another program serves over HTTP, defined by configuration alone.
 *
 * Each phase is one `POST` of JSON to the tool's `url`, with the key of the act in the header `Idempotency-Key`. A 2xx
 * answer is the result: JSON, or else its text; an empty one is `null`. Any other status is a failure; `409` to a
 * `commit` says that the target changed and nothing was applied. Whether an act of unknown outcome happened can be
 * asked at `statusUrl`.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ToolKind, type ToolPhase } from "../domain/AgentEvent.js"
import * as Secrets from "../domain/Secrets.js"
import { ofHeader } from "../domain/SecretValues.js"
import * as Json from "./Json.js"
import * as JsonSchema from "./JsonSchema.js"
import * as JsonText from "./JsonText.js"
import { isNeverSent } from "./NeverSent.js"
import { type Probed, type Tool, ToolConflict, type ToolContext, ToolFailure, ToolInDoubt } from "./Tool.js"

const Url = Schema.String.pipe(
  Schema.filter((text) => /^https?:\/\//i.test(text) && URL.canParse(text), {
    message: () => "Expected an http or https URL"
  })
)

/**
 * A tool in the configuration. `parameters` is a JSON Schema; what is left out means: any object, no title, the
 * default time limit, and none of the permissions.
 *
 * @since 0.1.0
 * @category models
 */
export const HttpToolConfig = Schema.Struct({
  name: Schema.String.pipe(
    Schema.pattern(/^[a-zA-Z0-9_-]{1,64}$/, {
      message: () => "Expected a name of 1 to 64 letters, digits, _ or -"
    })
  ),
  description: Schema.String,
  title: Schema.optional(Schema.String),
  kind: ToolKind,
  parameters: Schema.optionalWith(Schema.Unknown, { default: (): unknown => ({ type: "object" }) }),
  url: Url,
  statusUrl: Schema.optional(Url),
  timeoutMs: Schema.optional(Schema.Int.pipe(Schema.positive())),
  cacheable: Schema.optional(Schema.Boolean),
  unattended: Schema.optional(Schema.Boolean),
  idempotent: Schema.optional(Schema.Boolean),
  headers: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Redacted(Schema.String) }))
})
/**
 * @since 0.1.0
 * @category models
 */
export type HttpToolConfig = typeof HttpToolConfig.Type

/**
 * `maxResponseBytes`: where reading an answer stops; what is behind it is lost. At most 64 MiB, 1 MiB unless said.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly maxResponseBytes?: number | undefined
}

const hardCapBytes = 64 * 1024 * 1024
const defaultCapBytes = 1024 * 1024
const maxRedirects = 3
const maxDetailChars = 500

/** Whether a phase may change the world, so that silence about it is not failure. */
const hasEffect = (kind: ToolKind, phase: ToolPhase): boolean =>
  phase === "commit" || (phase === "execute" && kind !== "readonly")

interface Answer {
  readonly status: number
  readonly text: string
  /** Longer than what was read. */
  readonly cut: boolean
}

const readBody = (
  response: HttpClientResponse.HttpClientResponse,
  maxBytes: number
): Effect.Effect<Answer, HttpClientError.ResponseError> =>
  Effect.gen(function* () {
    const pieces: Array<Uint8Array> = []
    let size = 0
    yield* Stream.runForEachWhile(response.stream, (piece) =>
      Effect.sync(() => {
        pieces.push(piece)
        size += piece.length
        return size <= maxBytes
      })
    )
    const bytes = Buffer.concat(pieces)
    const cut = size > maxBytes
    // A cut may fall inside a character: the decoder in streaming mode keeps its beginning back.
    const text = new TextDecoder().decode(cut ? bytes.subarray(0, maxBytes) : bytes, { stream: cut })
    return { status: response.status, text, cut }
  })

const parse = (text: string): Option.Option<unknown> => {
  try {
    return Option.some(JSON.parse(text))
  } catch {
    return Option.none()
  }
}

const resultOf = ({ cut, text }: Answer, maxBytes: number): unknown => {
  if (cut) {
    return Json.truncated(text, maxBytes)
  }
  if (text.trim() === "") return null
  // What reading would lose something of stays as it was written.
  return Option.getOrElse(
    Option.filter(parse(text), () => JsonText.lossOf(text) === undefined),
    () => text
  )
}

/**
 * What a refusal says about the request. Answers of a broken or unwilling server (5xx, 401, 403) are not repeated: they
 * tend to hold what nobody should read.
 */
const detailOf = ({ cut, status, text }: Answer): string | undefined => {
  if (cut || status >= 500 || ![400, 404, 409, 410, 412, 413, 422, 428, 429].includes(status)) {
    return undefined
  }
  const body = Option.getOrUndefined(parse(text))
  if (typeof body !== "object" || body === null) {
    return undefined
  }
  const said = "message" in body ? body.message : "error" in body ? body.error : undefined
  return typeof said === "string" && said !== "" ? said.slice(0, maxDetailChars) : undefined
}

const reasons: { readonly [status: number]: string } = {
  400: "the request was not understood",
  401: "access was denied",
  403: "access was denied",
  404: "not found",
  408: "the request took too long",
  409: "it contradicts what is there",
  413: "the input is too large",
  422: "the input was refused",
  429: "too many requests",
  500: "the tool's server failed",
  502: "the tool's server is not reachable",
  503: "the tool's server is not available",
  504: "the tool's server did not answer in time"
}

const refusal = (answer: Answer): string => {
  const reason = reasons[answer.status]
  const detail = detailOf(answer)
  return `The tool answered with status ${answer.status}${reason === undefined ? "" : ` (${reason})`}${
    detail === undefined ? "." : `: ${detail}`
  }`
}

/** The values of the configured headers must not come back in a result or a message. */
const cleanerOf = (headers: { readonly [name: string]: Redacted.Redacted }): ((text: string) => string) =>
  Secrets.make(Object.entries(headers).flatMap(([name, value]) => ofHeader(name, Redacted.value(value)))).said.text

/** The address of a redirect that may be followed: the same origin, and a status that keeps method and body. */
const followed = (response: HttpClientResponse.HttpClientResponse, url: string): string | undefined => {
  const location = response.headers.location
  if ((response.status !== 307 && response.status !== 308) || location === undefined || !URL.canParse(location, url)) {
    return undefined
  }
  const target = new URL(location, url)
  return target.origin === new URL(url).origin ? target.href : undefined
}

const isRedirect = (status: number): boolean => status >= 300 && status < 400

/** Sends a request and reads its answer, following redirects within the host. Interruption closes the connection. */
const exchange = (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
  maxBytes: number,
  redirects = maxRedirects
): Effect.Effect<Answer, HttpClientError.HttpClientError> =>
  Effect.flatMap(client.execute(request), (response) => {
    const target = redirects > 0 ? followed(response, request.url) : undefined
    return target === undefined
      ? readBody(response, maxBytes)
      : Effect.zipRight(
          Stream.runDrain(Stream.take(response.stream, 1)),
          exchange(client, HttpClientRequest.setUrl(request, target), maxBytes, redirects - 1)
        )
  })

const StatusAnswer = Schema.Struct({
  state: Schema.Literal("applied", "absent"),
  result: Schema.optional(Schema.Unknown)
})
const decodeStatus = Schema.decodeUnknownOption(Schema.parseJson(StatusAnswer))

/**
 * A tool from its configuration. The client comes from outside; it must neither follow redirects by itself nor cut
 * silent connections short (undici's does neither).
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  config: HttpToolConfig,
  options: Options = {}
): Effect.Effect<Tool, JsonSchema.ToolConfigError, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const check = yield* JsonSchema.compile(config.name, config.parameters)
    // Spans of the client would carry the configured headers and address.
    const client = HttpClient.withTracerDisabledWhen(yield* HttpClient.HttpClient, () => true)
    const maxBytes = Math.min(options.maxResponseBytes ?? defaultCapBytes, hardCapBytes)
    const { kind } = config
    const { headers = {} } = config
    const clean = cleanerOf(headers)
    const sent = () => Record.map(headers, Redacted.value)

    const lost = (phase: ToolPhase, error: HttpClientError.HttpClientError): ToolFailure | ToolInDoubt => {
      if (error._tag === "RequestError" && isNeverSent(error.cause)) {
        return new ToolFailure({ message: "The tool's server could not be reached; nothing was sent." })
      }
      const message = "The connection to the tool's server was lost before it answered."
      return hasEffect(kind, phase) ? new ToolInDoubt({ message }) : new ToolFailure({ message })
    }

    const post = (input: unknown, context: ToolContext) =>
      HttpClientRequest.post(config.url).pipe(
        HttpClientRequest.setHeaders(sent()),
        HttpClientRequest.setHeaders({ accept: "application/json", "idempotency-key": context.idempotencyKey }),
        HttpClientRequest.bodyUnsafeJson({
          phase: context.phase,
          input,
          toolCallId: context.toolCallId,
          runId: context.runId,
          conversationId: context.conversationId,
          idempotencyKey: context.idempotencyKey,
          ...(context.currentDocument === null ? {} : { currentDocument: context.currentDocument })
        })
      )

    const call = (
      input: unknown,
      context: ToolContext
    ): Effect.Effect<unknown, ToolFailure | ToolConflict | ToolInDoubt> =>
      Effect.suspend(() => exchange(client, post(input, context), maxBytes)).pipe(
        Effect.mapError((error) => lost(context.phase, error)),
        Effect.map((answer) => ({ ...answer, text: clean(answer.text) })),
        Effect.flatMap((answer): Effect.Effect<unknown, ToolFailure | ToolConflict | ToolInDoubt> => {
          const { status } = answer
          if (status >= 200 && status < 300) {
            return Effect.succeed(resultOf(answer, maxBytes))
          }
          if (status === 409 && context.phase === "commit") {
            const message = detailOf(answer)
            return Effect.fail(new ToolConflict(message === undefined ? {} : { message }))
          }
          // A gateway says so when the server behind it may well have done its work.
          if ((status === 502 || status === 504) && hasEffect(kind, context.phase)) {
            return Effect.fail(new ToolInDoubt({ message: refusal(answer) }))
          }
          return Effect.fail(
            new ToolFailure({
              message: isRedirect(status)
                ? `The tool answered with a redirect (${status}) that is not followed; correct its url.`
                : refusal(answer)
            })
          )
        })
      )

    const noConflict = (error: ToolFailure | ToolConflict | ToolInDoubt): ToolFailure | ToolInDoubt =>
      error._tag === "ToolConflict" ? new ToolFailure({ message: error.message ?? "The target changed." }) : error
    const onlyFailure = (error: ToolFailure | ToolConflict | ToolInDoubt): ToolFailure =>
      error._tag === "ToolFailure" ? error : new ToolFailure({ message: error.message ?? "The preview failed." })

    const probe =
      (statusUrl: string) =>
      (context: Omit<ToolContext, "progress">): Effect.Effect<Probed> =>
        HttpClientRequest.get(statusUrl).pipe(
          HttpClientRequest.setHeaders(sent()),
          HttpClientRequest.setHeaders({ accept: "application/json" }),
          HttpClientRequest.setUrlParam("key", context.idempotencyKey),
          (request) => exchange(client, request, maxBytes),
          Effect.map((answer): Probed => {
            const said =
              answer.cut || answer.status < 200 || answer.status > 299
                ? Option.none()
                : decodeStatus(clean(answer.text))
            return Option.getOrElse(said, (): Probed => ({ state: "unknown" }))
          }),
          Effect.orElseSucceed((): Probed => ({ state: "unknown" }))
        )

    return {
      name: config.name,
      description: config.description,
      title: config.title,
      parameters: config.parameters,
      kind,
      check,
      ...(kind === "write"
        ? {
            preview: (input: unknown, context: ToolContext) => Effect.mapError(call(input, context), onlyFailure),
            commit: (input: unknown, context: ToolContext) => Effect.map(call(input, context), (result) => ({ result }))
          }
        : {
            execute: (input: unknown, context: ToolContext) => Effect.mapError(call(input, context), noConflict)
          }),
      ...(config.statusUrl === undefined ? {} : { probe: probe(config.statusUrl) }),
      idempotent: config.idempotent,
      unattended: config.unattended,
      cacheable: config.cacheable,
      timeoutMs: config.timeoutMs
    }
  })
