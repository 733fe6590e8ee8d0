/**
 * Failures of a chat-completions server, in our own words. Nothing that a server says is repeated, apart from a few
 * well-known words: what it says may hold our key.
 *
 * @since 0.1.0
 */
import { ModelError } from "./Model.js"

interface Kind {
  readonly code: string
  readonly text: string
  readonly retryable: boolean
  readonly recoverable: boolean
}

const kinds = {
  rateLimited: { code: "rate_limited", text: "limits requests right now", retryable: true, recoverable: true },
  overloaded: { code: "overloaded", text: "is overloaded", retryable: true, recoverable: true },
  serverError: { code: "server_error", text: "failed", retryable: true, recoverable: true },
  timeout: { code: "timeout", text: "took too long", retryable: true, recoverable: true },
  quota: { code: "quota_exceeded", text: "reports a used-up quota or balance", retryable: false, recoverable: true },
  unauthorized: {
    code: "unauthorized",
    text: "does not accept the configured credential",
    retryable: false,
    recoverable: false
  },
  notFound: {
    code: "model_not_found",
    text: "does not know the configured model or address",
    retryable: false,
    recoverable: false
  },
  contextLength: {
    code: "context_length",
    text: "can not hold a conversation of this length",
    retryable: false,
    recoverable: false
  },
  contentFilter: {
    code: "content_filter",
    text: "declined the request by its content rules",
    retryable: false,
    recoverable: false
  },
  badRequest: { code: "bad_request", text: "refused the request as invalid", retryable: false, recoverable: false },
  noStream: {
    code: "invalid_response",
    text: "answered with no stream",
    retryable: true,
    recoverable: true
  },
  redirect: {
    code: "invalid_response",
    text: "answered with a redirect, which is not followed",
    retryable: false,
    recoverable: true
  },
  upstream: { code: "upstream_error", text: "reported an error", retryable: true, recoverable: true }
} as const satisfies Record<string, Kind>

/** The words that servers use for what went wrong, in `error.code` or `error.type`. */
const words: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ["overloaded_error", kinds.overloaded],
  ["overloaded", kinds.overloaded],
  ["engine_overloaded", kinds.overloaded],
  ["engine_overloaded_error", kinds.overloaded],
  ["service_unavailable", kinds.overloaded],
  ["service_unavailable_error", kinds.overloaded],
  ["unavailable_error", kinds.overloaded],
  ["capacity_exceeded", kinds.overloaded],
  ["rate_limit_error", kinds.rateLimited],
  ["rate_limit_exceeded", kinds.rateLimited],
  ["rate_limit_reached_error", kinds.rateLimited],
  ["too_many_requests", kinds.rateLimited],
  ["resource_exhausted", kinds.rateLimited],
  ["insufficient_quota", kinds.quota],
  ["insufficient_balance", kinds.quota],
  ["exceeded_current_quota_error", kinds.quota],
  ["billing_hard_limit_reached", kinds.quota],
  ["billing_error", kinds.quota],
  ["authentication_error", kinds.unauthorized],
  ["invalid_authentication_error", kinds.unauthorized],
  ["invalid_api_key", kinds.unauthorized],
  ["permission_error", kinds.unauthorized],
  ["permission_denied", kinds.unauthorized],
  ["model_not_found", kinds.notFound],
  ["not_found_error", kinds.notFound],
  ["context_length_exceeded", kinds.contextLength],
  ["request_too_large", kinds.contextLength],
  ["exceed_context_size_error", kinds.contextLength],
  ["content_filter", kinds.contentFilter],
  ["content_policy_violation", kinds.contentFilter],
  ["invalid_request_error", kinds.badRequest],
  ["invalid_request", kinds.badRequest],
  ["bad_request", kinds.badRequest],
  ["badrequesterror", kinds.badRequest],
  ["timeout", kinds.timeout],
  ["timeout_error", kinds.timeout],
  ["server_error", kinds.serverError],
  ["internal_server_error", kinds.serverError],
  ["internal_error", kinds.serverError],
  ["api_error", kinds.serverError]
])

const ofStatus = (status: number): Kind => {
  if (status < 300) return kinds.noStream
  if (status < 400) return kinds.redirect
  switch (status) {
    case 401:
    case 403:
      return kinds.unauthorized
    case 402:
      return kinds.quota
    case 404:
    case 410:
      return kinds.notFound
    case 408:
    case 504:
      return kinds.timeout
    case 429:
      return kinds.rateLimited
    case 409:
    case 425:
    case 503:
    case 529:
      return kinds.overloaded
  }
  return status >= 500 ? kinds.serverError : kinds.badRequest
}

/** Servers without a word for it say so in a sentence. */
const isTooLong = (status: number, body: unknown): boolean => {
  const error = errorOf(body)
  const message = typeof error === "object" && error !== null && "message" in error ? error.message : undefined
  return (
    (status === 400 || status === 413 || status === 422) &&
    typeof message === "string" &&
    /prompt is too long|maximum context length|context window/i.test(message)
  )
}

/** Words that say more than these statuses do; for the rest the status is the better witness. */
const refines = (status: number, kind: Kind): boolean =>
  status === 429
    ? kind === kinds.quota
    : (status === 400 || status === 413 || status === 422) &&
      (kind === kinds.contextLength || kind === kinds.contentFilter || kind === kinds.quota)

const make = (kind: Kind, detail: string, retryAfterMs?: number | undefined): ModelError =>
  new ModelError({
    code: kind.code,
    message: `The model server ${kind.text}${detail === "" ? "" : ` (${detail})`}.`,
    retryable: kind.retryable,
    recoverable: kind.recoverable,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  })

/** A well-known word of an error body, and what it means. */
const wordOf = (body: unknown): { readonly word: string; readonly kind: Kind } | undefined => {
  const error = errorOf(body)
  if (typeof error !== "object" || error === null) return undefined
  for (const value of ["code" in error && error.code, "type" in error && error.type]) {
    if (typeof value !== "string") continue
    const word = value.toLowerCase()
    const kind = words.get(word)
    if (kind !== undefined) return { word, kind }
  }
  return undefined
}

const statusOf = (body: unknown): number | undefined => {
  const error = errorOf(body)
  if (typeof error !== "object" || error === null) return undefined
  const code = "code" in error ? error.code : "status" in error ? error.status : undefined
  const status = typeof code === "string" && /^\d{3}$/.test(code) ? Number(code) : code
  return typeof status === "number" && status >= 400 && status < 600 ? status : undefined
}

/**
 * The error that a body or frame holds: `error` of an object, or the object itself where a server says
 * `{ "object": "error" }`. `undefined` when there is none.
 *
 * @since 0.1.0
 * @category accessors
 */
export const errorOf = (body: unknown): unknown => {
  if (typeof body !== "object" || body === null) return undefined
  if ("error" in body && body.error !== null && body.error !== undefined && body.error !== false) return body.error
  return "object" in body && body.object === "error" ? body : undefined
}

/**
 * An answer with a status other than 200. `body` is its parsed JSON, if it has any.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromStatus = (status: number, body: unknown, retryAfterMs: number | undefined): ModelError => {
  const byStatus = isTooLong(status, body) ? kinds.contextLength : ofStatus(status)
  const said = wordOf(body)
  const detail = said === undefined ? `HTTP ${status}` : `HTTP ${status}, ${said.word}`
  return make(said !== undefined && refines(status, said.kind) ? said.kind : byStatus, detail, retryAfterMs)
}

/**
 * An error inside an answer with status 200.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromBody = (body: unknown): ModelError => {
  const said = wordOf(body)
  if (said !== undefined) return make(said.kind, said.word)
  const status = statusOf(body)
  return status === undefined ? make(kinds.upstream, "") : make(ofStatus(status), `code ${status}`)
}

/**
 * The answer is of a form that can not be used, for example a web page.
 *
 * @since 0.1.0
 * @category constructors
 */
export const invalidResponse = (message: string, retryable: boolean): ModelError =>
  new ModelError({ code: "invalid_response", message, retryable, recoverable: true })

/**
 * The answer does not end where answers do.
 *
 * @since 0.1.0
 * @category constructors
 */
export const tooLong = (maxBytes: number): ModelError =>
  new ModelError({
    code: "too_long",
    message: `The model server's answer is longer than ${maxBytes} bytes and was given up.`,
    retryable: false,
    recoverable: false
  })

/**
 * The answer broke off before the model had finished.
 *
 * @since 0.1.0
 * @category constructors
 */
export const truncated = (): ModelError =>
  new ModelError({
    code: "truncated",
    message: "The model's answer broke off before its end.",
    retryable: true,
    recoverable: true
  })

/**
 * The server ended the turn itself because something went wrong there. `word` is its finish reason.
 *
 * @since 0.1.0
 * @category constructors
 */
export const abandoned = (word: "insufficient_system_resource" | "error" | "abort"): ModelError =>
  make(word === "insufficient_system_resource" ? kinds.overloaded : kinds.serverError, word)

/**
 * Nothing came for `limitMs`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const timedOut = (limitMs: number, begun: boolean): ModelError =>
  new ModelError({
    code: "timeout",
    message: begun
      ? `The model server fell silent for ${limitMs} ms in the middle of its answer.`
      : `The model server did not begin to answer within ${limitMs} ms.`,
    retryable: true,
    recoverable: true
  })

/**
 * No connection, or none that held until the answer's headers. `cause` is what the HTTP client failed with.
 *
 * @since 0.1.0
 * @category constructors
 */
export const connection = (cause: unknown): ModelError => {
  const code = causeCode(cause)
  const certificate = /CERT|SIGNATURE|ERR_TLS/.test(code)
  return new ModelError({
    code: "connection",
    message: certificate
      ? "The model server's TLS certificate could not be verified."
      : code === "ECONNREFUSED"
        ? "The model server refused the connection."
        : code === "ENOTFOUND" || code === "EAI_AGAIN"
          ? "The model server's host name could not be resolved."
          : "The connection to the model server failed.",
    retryable: !certificate,
    recoverable: true
  })
}

/**
 * The request can not be made at all, because of the configuration.
 *
 * @since 0.1.0
 * @category constructors
 */
export const misconfigured = (message: string): ModelError =>
  new ModelError({ code: "bad_request", message, retryable: false, recoverable: false })

const causeCode = (cause: unknown): string => {
  let current = cause
  for (let depth = 0; depth < 4; depth++) {
    if (typeof current !== "object" || current === null) return ""
    if ("code" in current && typeof current.code === "string") return current.code
    current = "cause" in current ? current.cause : undefined
  }
  return ""
}

/**
 * The wait that an answer's headers ask for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a
 * date.
 *
 * @since 0.1.0
 * @category accessors
 */
export const retryAfterMs = (
  headers: { readonly [name: string]: string | undefined },
  nowMs: number
): number | undefined => {
  const exact = Number(headers["retry-after-ms"]?.trim() || Number.NaN)
  if (exact >= 0 && Number.isFinite(exact)) return Math.round(exact)
  const after = headers["retry-after"]?.trim()
  if (after === undefined || after === "") return undefined
  const seconds = Number(after)
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.round(seconds * 1000) : undefined
  const date = Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
