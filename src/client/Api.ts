/**
 * All calls of the server, typed by its own contract. Failures are thrown as `RunletError`. Calls that begin work answer
 * as soon as it is accepted; watching it is a call of its own.
 *
 * @since 0.1.0
 */

import type { Snapshot } from "../domain/Snapshot.js"
import type * as Schemas from "../http/RunsSchemas.js"
import type { Accepted, CancelResult, DecideBody, DecideResult, RunSummary, StartBody } from "./Answers.js"
import { type ApiOptions, makeCall, runPath } from "./Call.js"

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
  readonly events: (
    runId: string,
    after: number,
    onBytes: (bytes: Uint8Array) => unknown,
    signal?: AbortSignal
  ) => Promise<boolean>
  readonly runs: (
    query?: Paging & { readonly conversationId?: string | undefined; readonly status?: string | undefined }
  ) => Promise<Page<RunSummary>>
  readonly removeRun: (runId: string) => Promise<void>
  readonly models: () => Promise<{ readonly items: ReadonlyArray<Model> }>
  readonly conversations: (query?: Paging) => Promise<Page<Conversation>>
  readonly conversation: (
    conversationId: string
  ) => Promise<{ readonly conversationId: string; readonly title: string; readonly messages: ReadonlyArray<Message> }>
  readonly rename: (conversationId: string, title: string) => Promise<void>
  readonly removeConversation: (conversationId: string) => Promise<void>
  /** Trades a token for the cookie of the page; a client is told of it by its `signedIn`. */
  readonly signIn: (token: string) => Promise<void>
  readonly signOut: () => Promise<void>
}

/**
 * The calls of one server.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeApi = (options: ApiOptions = {}): Api => {
  const call = makeCall(options)
  const conversationPath = (conversationId: string) => `/conversations/${encodeURIComponent(conversationId)}`
  const list = <A>(name: string, parameters: object = {}) => {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
    return call<A>("GET", `/${name}?${new URLSearchParams(given)}`)
  }

  return {
    start: (body, key) => call("POST", "/chat", { body, key }),
    regenerate: (runId, body = {}, key) => call("POST", runPath(runId, "/regenerate"), { body, key }),
    resume: (runId, body = {}) => call("POST", runPath(runId, "/resume"), { body }),
    cancel: (runId, reason) => call("POST", runPath(runId, "/cancel"), { body: { reason } }),
    decide: (runId, approvalId, body) =>
      call("POST", runPath(runId, `/approvals/${encodeURIComponent(approvalId)}`), { body }),
    run: (runId, signal) => call("GET", runPath(runId), { signal }),
    events: (runId, after, onBytes, signal) =>
      call("GET", runPath(runId, `/events?after=${after}`), { onBytes, signal }),
    runs: (parameters) => list("runs", parameters),
    removeRun: (runId) => call("DELETE", runPath(runId)),
    models: () => call("GET", "/models"),
    conversations: (parameters) => list("conversations", parameters),
    conversation: (conversationId) => call("GET", conversationPath(conversationId)),
    rename: (conversationId, title) => call("PATCH", conversationPath(conversationId), { body: { title } }),
    removeConversation: (conversationId) => call("DELETE", conversationPath(conversationId)),
    signIn: (token) => call("POST", "/session", { body: { token } }),
    signOut: () => call("DELETE", "/session")
  }
}
