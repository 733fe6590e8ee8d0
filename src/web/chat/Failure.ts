/**
 * What is said when something did not work: which text, and what a person can do about it. Pure.
 *
 * @since 0.1.0
 */

import { RunletError } from "../../client/RunletError.js"
import type { Snapshot } from "../../domain/Snapshot.js"
import type { Texts } from "../i18n/en.js"

type Plain = { readonly [Key in keyof Texts]: Texts[Key] extends string ? Key : never }[keyof Texts]

/**
 * A text of the table, and what the server said itself, where that tells more.
 *
 * @since 0.1.0
 * @category models
 */
export interface Failure {
  readonly text: Plain
  readonly detail?: string | undefined
}

const codes: { readonly [code: string]: Plain } = {
  rate_limited: "run.failed.busy",
  overloaded: "run.failed.busy",
  server_error: "run.failed.model",
  upstream_error: "run.failed.model",
  invalid_response: "run.failed.model",
  model_unavailable: "run.failed.unavailable",
  model_not_found: "run.failed.unavailable",
  unauthorized: "run.failed.access",
  quota_exceeded: "run.failed.quota",
  timeout: "run.failed.silent",
  connection: "run.failed.connection",
  truncated: "run.failed.broken",
  context_length: "run.failed.long",
  content_filter: "run.failed.filter",
  recovery_exhausted: "run.failed.crash",
  interrupted: "run.failed.interrupted"
}

/**
 * Why a run failed.
 *
 * @since 0.1.0
 * @category texts
 */
export const ofRun = ({ code, message }: NonNullable<Snapshot["error"]>): Failure => ({
  text: codes[code] ?? "run.failed",
  detail: message
})

/**
 * How a run ended, unless it failed or came to a good end.
 *
 * @since 0.1.0
 * @category texts
 */
export const ofEnding = ({ cancelled, finishReason }: Snapshot): Failure | undefined => {
  switch (cancelled?.by) {
    case "user":
      return { text: "run.stopped", detail: cancelled.reason }
    case "superseded":
      return { text: "run.superseded" }
    case "limit":
      return { text: "run.limit", detail: cancelled.reason }
  }
  switch (finishReason) {
    case "length":
      return { text: "run.ended.length" }
    case "max_iterations":
      return { text: "run.ended.steps" }
    case "budget":
      return { text: "run.ended.budget" }
    case "content_filter":
      return { text: "run.ended.filter" }
  }
  return undefined
}

const refusals: { readonly [tag in RunletError["_tag"]]?: Plain } = {
  Unreachable: "refused.unreachable",
  NotFound: "refused.missing",
  Conflict: "refused.conflict",
  LimitReached: "refused.limit",
  Unavailable: "refused.unavailable",
  PayloadTooLarge: "refused.large",
  Unauthorized: "refused.signedOut",
  Forbidden: "refused.forbidden"
}

/** Where the text says all there is to say. */
const enough = new Set<string>(["Unreachable", "NotFound", "Unauthorized"])

/**
 * Why a call was refused.
 *
 * @since 0.1.0
 * @category texts
 */
export const ofError = (error: unknown): Failure => {
  if (!(error instanceof RunletError)) {
    return { text: "refused.other", detail: error instanceof Error ? error.message : undefined }
  }
  return {
    text: refusals[error._tag] ?? "refused.other",
    detail: enough.has(error._tag) ? undefined : error.message
  }
}
