/**
 * The server's calls, typed by its own contract. Failures are thrown as `RunletError`. Calls that begin work answer as
 * soon as it is accepted; watching it is a call of its own.
 *
 * @since 0.1.0
 */
import type { Snapshot } from "../domain/Snapshot.js"
import type * as Schemas from "../http/RunsSchemas.js"
import { type ErrorBody, RunletError, unreachable } from "./RunletError.js"

/**
 * What starts a run: a message, and where and how it is to be answered.
 *
 * @since 0.1.0
 * @category models
 */
export type StartBody = Omit<typeof Schemas.StartBody.Encoded, "background">
/**
 * The names of an accepted run.
 *
 * @since 0.1.0
 * @category models
 */
export type Accepted = typeof Schemas.Accepted.Encoded
/**
 * A person's answer to an approval request.
 *
 * @since 0.1.0
 * @category models
 */
export type DecideBody = typeof Schemas.DecideBody.Encoded
/**
 * The decision that stands.
 *
 * @since 0.1.0
 * @category models
 */
export type DecideResult = typeof Schemas.DecideResult.Encoded
/**
 * The state that a cancelled run is in.
 *
 * @since 0.1.0
 * @category models
 */
export type CancelResult = typeof Schemas.CancelResult.Encoded
/**
 * A run as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export type RunSummary = typeof Schemas.RunSummary.Encoded
/**
 * A model that a run may ask for.
 *
 * @since 0.1.0
 * @category models
 */
export type Model = typeof Schemas.ModelItem.Encoded
/**
 * A conversation as lists show it.
 *
 * @since 0.1.0
 * @category models
 */
export type Conversation = typeof Schemas.ConversationItem.Encoded
/**
 * A message of a conversation.
 *
 * @since 0.1.0
 * @category models
 */
export type Message = typeof Schemas.MessageItem.Encoded
/**
 * A page of a list, newest first; the last one has no `nextCursor`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor?: string | undefined
}
/**
 * Which page of a list.
 *
 * @since 0.1.0
 * @category models
 */
export interface Paging {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/**
 * Calls a function after so many milliseconds, unless the returned one is called before.
 *
 * @since 0.1.0
 * @category options
 */
export type Timer = (callback: () => void, milliseconds: number) => () => void

/**
 * - `baseUrl`: where the server is; by default the page's own origin
 * - `token`: the bearer token, asked for at every request; without one, cookies of the same origin go along
 * - `credentials`: which cookies go along, `same-origin` by default
 * - `heartbeatMs`: how often the server says that it lives (15,000). What is silent for two and a half times as long
 *   is taken for dead, what is not answered at all after that time itself
 * - `fetch`, `timer`: for tests and other platforms
 *
 * @since 0.1.0
 * @category options
 */
export interface ApiOptions {
  readonly baseUrl?: string | undefined
  readonly token?: (() => string | undefined | Promise<string | undefined>) | undefined
  readonly credentials?: RequestCredentials | undefined
  readonly heartbeatMs?: number | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly timer?: Timer | undefined
}

/**
 * The calls. `key` is an idempotency key: the same key and body are the same run, however often they are sent.
 * `events` gives each piece of a run's stream behind a cursor to `onBytes`, and says whether there was a stream: there
 * is none behind the last event of an ended run. Nothing more is read once `onBytes` gives `true`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Api {
  readonly start: (body: StartBody, key?: string) => Promise<Accepted>
  readonly regenerate: (
    runId: string,
    body?: { readonly modelId?: string | undefined },
    key?: string
  ) => Promise<Accepted>
  readonly resume: (
    runId: string,
    body?: { readonly lastAppliedSeq?: number | undefined; readonly assistantMessageId?: string | undefined }
  ) => Promise<Accepted>
  readonly cancel: (runId: string, reason?: string) => Promise<CancelResult>
  readonly decide: (runId: string, approvalId: string, body: DecideBody) => Promise<DecideResult>
  readonly run: (runId: string, signal?: AbortSignal) => Promise<Snapshot>
  readonly runs: (
    query?: Paging & { readonly conversationId?: string | undefined; readonly status?: string | undefined }
  ) => Promise<Page<RunSummary>>
  readonly models: () => Promise<{ readonly items: ReadonlyArray<Model> }>
  readonly removeRun: (runId: string) => Promise<void>
  readonly conversations: (query?: Paging) => Promise<Page<Conversation>>
  readonly conversation: (
    conversationId: string
  ) => Promise<{ readonly conversationId: string; readonly title: string; readonly messages: ReadonlyArray<Message> }>
  readonly rename: (conversationId: string, title: string) => Promise<void>
  readonly removeConversation: (conversationId: string) => Promise<void>
  readonly signIn: (token: string) => Promise<void>
  readonly signOut: () => Promise<void>
  readonly events: (
    runId: string,
    after: number,
    onBytes: (bytes: Uint8Array) => unknown,
    signal?: AbortSignal
  ) => Promise<boolean>
}

/**
 * The timer of the platform.
 *
 * @since 0.1.0
 * @category options
 */
export const platformTimer: Timer = (callback, milliseconds) => {
  const timer = setTimeout(callback, milliseconds)
  return () => clearTimeout(timer)
}

/**
 * The calls of one server.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeApi = (options: ApiOptions = {}): Api => {
  const { baseUrl = "", credentials = "same-origin", heartbeatMs = 15_000, timer = platformTimer, token } = options
  const fetch = options.fetch ?? ((url: string, init: RequestInit) => globalThis.fetch(url, init))

  /** One request. It is given up when its caller says so, or when nothing of its answer came for too long. */
  const send = async <A>(
    method: string,
    path: string,
    read: (response: Response, beat: () => void, stop: () => void) => Promise<A>,
    accept: string,
    signal?: AbortSignal,
    body?: unknown,
    key?: string
  ): Promise<A> => {
    const abort = new AbortController()
    const stop = () => abort.abort()
    // What only reads is answered at once; when it is not, the connection was dead before it was used.
    let rest = timer(stop, heartbeatMs * (method === "GET" ? 1 : 2.5))
    const beat = () => {
      rest()
      rest = timer(stop, heartbeatMs * 2.5)
    }
    try {
      const bearer = await token?.()
      const response = await fetch(baseUrl + path, {
        method,
        credentials,
        cache: "no-store",
        signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
        headers: {
          accept,
          prefer: "respond-async",
          ...(bearer && { authorization: `Bearer ${bearer}` }),
          ...(key && { "idempotency-key": key }),
          ...(body !== undefined && { "content-type": "application/json" })
        },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
      if (response.ok) return await read(response, beat, stop)
      const refusal: Partial<ErrorBody> | null = await response.json().catch(() => null)
      throw refusal?._tag && refusal.message
        ? new RunletError(response.status, refusal as ErrorBody)
        : unreachable(undefined, response.status)
    } catch (error) {
      throw unreachable(error)
    } finally {
      rest()
    }
  }

  const call = <A>(method: string, path: string, body?: unknown, key?: string, signal?: AbortSignal): Promise<A> =>
    send(
      method,
      path,
      // The answers of a server are of the shape that its contract gives them.
      async (response) => JSON.parse((await response.text()) || "null") as A,
      "application/json",
      signal,
      body,
      key
    )

  const path = (...names: ReadonlyArray<string>) => names.map((name) => `/${encodeURIComponent(name)}`).join("")
  const list = <A>(name: string, parameters: object = {}) => {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
    return call<A>("GET", `/${name}?${new URLSearchParams(given)}`)
  }

  return {
    start: (body, key) => call("POST", "/chat", body, key),
    regenerate: (runId, body = {}, key) => call("POST", path("runs", runId, "regenerate"), body, key),
    resume: (runId, body = {}) => call("POST", path("runs", runId, "resume"), body),
    cancel: (runId, reason) => call("POST", path("runs", runId, "cancel"), { reason }),
    decide: (runId, approvalId, body) => call("POST", path("runs", runId, "approvals", approvalId), body),
    run: (runId, signal) => call("GET", path("runs", runId), undefined, undefined, signal),
    runs: (parameters) => list("runs", parameters),
    models: () => call("GET", "/models"),
    removeRun: (runId) => call("DELETE", path("runs", runId)),
    conversations: (parameters) => list("conversations", parameters),
    conversation: (conversationId) => call("GET", path("conversations", conversationId)),
    rename: (conversationId, title) => call("PATCH", path("conversations", conversationId), { title }),
    removeConversation: (conversationId) => call("DELETE", path("conversations", conversationId)),
    signIn: (value) => call("POST", "/session", { token: value }),
    signOut: () => call("DELETE", "/session"),
    events: (runId, after, onBytes, signal) =>
      send(
        "GET",
        `${path("runs", runId, "events")}?after=${after}`,
        async (response, beat, stop) => {
          const reader = response.status === 204 ? undefined : response.body?.getReader()
          if (!reader) return false
          for (;;) {
            const { done, value } = await reader.read()
            if (done) return true
            beat()
            if (onBytes(value) === true) {
              stop()
              return true
            }
          }
        },
        "text/event-stream",
        signal
      )
  }
}
