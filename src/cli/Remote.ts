/**
 * Runs at a server.
 *
 * @since 0.1.0
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { calls, type WatchError, type WatchOptions, watch } from "../client/effect.js"
import type { Envelope } from "../domain/Envelope.js"
import type * as Schemas from "../http/RunsSchemas.js"
import { Failure, ofCode } from "./Failure.js"
import type { Source } from "./Source.js"

/**
 * A server, and who asks.
 *
 * @since 0.1.0
 * @category models
 */
export interface Server {
  readonly url: string
  readonly token: Redacted.Redacted | undefined
}

/**
 * What can be done at a server beyond what a database allows.
 *
 * - `start`: begins a run. The same key and body are the same run, so it is asked again while there is no answer
 * - `models`: what a run may ask for
 * - `watch`: like `events`, and tells when the connection is lost and found
 *
 * @since 0.1.0
 * @category models
 */
export interface Remote extends Source {
  readonly start: (
    body: Omit<typeof Schemas.StartBody.Type, "background">,
    key: string
  ) => Effect.Effect<typeof Schemas.Accepted.Type, Failure>
  readonly models: Effect.Effect<ReadonlyArray<typeof Schemas.ModelItem.Type>, Failure>
  readonly watch: (runId: string, options: Pick<WatchOptions, "after" | "onLink">) => Stream.Stream<Envelope, Failure>
}

/** How long an answer is waited for. A cancel takes as long as the run needs to stop. */
const patience = Duration.seconds(40)

const statusOf = (error: unknown): number =>
  Predicate.hasProperty(error, "response") &&
  Predicate.hasProperty(error.response, "status") &&
  typeof error.response.status === "number"
    ? error.response.status
    : 0

const noServer = (url: string): Failure =>
  new Failure({
    message: `No server answers at ${url}. Start one with \`runlet serve\`, or name another with --url`,
    exitCode: 1,
    refusal: "Unreachable"
  })

const stranger = (url: string): Failure =>
  ofCode(1, `What answers at ${url} is no server of Runlet, or one of another version. Name the right one with --url`)

const explain =
  ({ token, url }: Server) =>
  (error: unknown): Failure => {
    const tag = Predicate.hasProperty(error, "_tag") ? error._tag : undefined
    switch (tag) {
      case "Failure":
        return error instanceof Failure ? error : stranger(url)
      case "RequestError":
      case "TimeoutException":
        return noServer(url)
      case "ResponseError": {
        const status = statusOf(error)
        return status >= 500 ? ofCode(1, `The server at ${url} failed (${status}). Its log says why`) : stranger(url)
      }
      case "Unauthorized":
        return new Failure({
          message:
            token === undefined
              ? `The server at ${url} wants a token. Set RUNLET_TOKEN, or name a file that holds it with --token-file`
              : `The server at ${url} does not accept the token. Check RUNLET_TOKEN, or the file of --token-file`,
          exitCode: 1,
          refusal: tag
        })
      case "ParseError":
      case "HttpApiDecodeError":
        return stranger(url)
      default:
        return Predicate.hasProperty(error, "message") && typeof error.message === "string" && typeof tag === "string"
          ? new Failure({ message: error.message, exitCode: 1, refusal: tag })
          : stranger(url)
    }
  }

/**
 * The runs of a server that its token may see. Nothing is asked before something is wanted.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (server: Server): Effect.Effect<Remote, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const { token, url } = server
    const plain = yield* HttpClient.HttpClient
    const client =
      token === undefined ? plain : HttpClient.mapRequest(plain, HttpClientRequest.bearerToken(Redacted.value(token)))
    const api = yield* Effect.provideService(calls({ baseUrl: url }), HttpClient.HttpClient, client)
    const told = explain(server)
    const asked = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, Failure> =>
      Effect.mapError(Effect.timeout(call, patience), told)
    const accepted = (answer: typeof Schemas.Accepted.Type | string | undefined) =>
      typeof answer === "object" ? Effect.succeed(answer) : Effect.fail(stranger(url))

    const watching: Remote["watch"] = (runId, options) =>
      watch(runId, { baseUrl: url, ...options }).pipe(
        Stream.provideService(HttpClient.HttpClient, client),
        Stream.mapError((error: WatchError) => told(error))
      )
    return {
      list: ({ limit, ...query }) =>
        asked(api.runs.list({ urlParams: { ...query, ...(limit !== undefined && { limit: String(limit) }) } })),
      snapshot: (runId) => asked(api.runs.get({ path: { runId } })),
      events: (runId, after) => watching(runId, { after }),
      watch: watching,
      trace: (runId) =>
        Stream.unwrap(
          asked(
            Effect.flatMap(
              // The contract's own call would hold the whole of it in memory.
              client.execute(HttpClientRequest.get(`${url}/runs/${encodeURIComponent(runId)}/trace`)),
              (response) =>
                response.status === 200
                  ? Effect.succeed(response.stream)
                  : Effect.flatMap(
                      Effect.orElseSucceed(response.json, () => undefined),
                      (body) => Effect.fail(told(body))
                    )
            )
          )
        ).pipe(Stream.decodeText(), Stream.splitLines, Stream.mapError(told)),
      cancel: (runId, reason) => asked(api.runs.cancel({ path: { runId }, payload: { reason } })),
      decide: (runId, approvalId, { decision, input, previewHash, reason }) =>
        asked(api.runs.decide({ path: { runId, approvalId }, payload: { decision, input, previewHash, reason } })),
      resume: (runId) =>
        asked(
          Effect.flatMap(
            api.runs.resume({ path: { runId }, headers: { prefer: "respond-async" }, payload: {} }),
            accepted
          )
        ),
      start: (body, key) =>
        asked(
          Effect.flatMap(
            api.chat.chat({ payload: { ...body, background: true }, headers: { "idempotency-key": key } }),
            accepted
          )
        ),
      models: Effect.map(asked(api.chat.models()), ({ items }) => items)
    }
  })
