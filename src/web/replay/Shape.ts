/**
 * What an envelope looks like, for readers of files: a file may come from anywhere, and the schema that says the same is
 * twenty times as large as this. A test holds the two together.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../../domain/AgentEvent.js"
import type { Envelope } from "../../domain/Envelope.js"

type Check = (value: unknown) => boolean

/** What each field must be. A name with a question mark may be left out. */
interface Fields {
  readonly [name: string]: Check
}

const text: Check = (value) => typeof value === "string"
const number: Check = (value) => typeof value === "number"
const integer: Check = Number.isSafeInteger
const count: Check = (value) => integer(value) && Number(value) >= 0
const flag: Check = (value) => typeof value === "boolean"
const anything: Check = () => true
const one =
  (...allowed: ReadonlyArray<unknown>): Check =>
  (value) =>
    allowed.includes(value)
const texts: Check = (value) => Array.isArray(value) && value.every(text)
const record = (fields: Fields): Check => {
  const wrong = wrongIn(fields)
  return (value) => isRecord(value) && wrong(value) === undefined
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Names the first field that is not as it must be. */
const wrongIn = (fields: Fields) => {
  const all = Object.entries(fields).map(([name, check]) => ({
    name: name.replace("?", ""),
    optional: name.endsWith("?"),
    check
  }))
  return (value: { readonly [name: string]: unknown }): string | undefined => {
    for (const { check, name, optional } of all) {
      const field = value[name]
      if (!(optional && field === undefined) && !check(field)) return name
    }
    return undefined
  }
}

const usage = record({
  inputTokens: count,
  outputTokens: count,
  "reasoningTokens?": count,
  "cachedInputTokens?": count,
  totalTokens: count,
  "costUsd?": number
})
const phase = one("execute", "preview", "commit")

const events: { readonly [Type in AgentEvent["type"]]: Fields } = {
  "run-start": {
    runId: text,
    seq: one(1),
    conversationId: text,
    userMessageId: text,
    assistantMessageId: text,
    model: text,
    mode: one("chat", "plan"),
    "regeneratedFrom?": text,
    "trace?": text
  },
  "run-status": { status: one("queued", "running", "streaming", "waiting_approval"), "reason?": text },
  "run-resumed": {
    attempt: integer,
    reason: one("recovery", "resume"),
    checkpointSeq: count,
    textLength: count,
    reasoningLength: count,
    droppedToolCallIds: texts,
    "trace?": text
  },
  "text-delta": { id: text, delta: text },
  "reasoning-delta": { id: text, delta: text },
  "tool-call-start": {
    toolCallId: text,
    toolName: text,
    kind: one("readonly", "write", "effectful"),
    "title?": text
  },
  "tool-call-delta": { toolCallId: text, delta: text },
  "tool-call-ready": { toolCallId: text, toolName: text, input: anything },
  "model-end": { iteration: count, finishReason: one("stop", "length", "tool_calls", "content_filter"), usage },
  "tool-start": { toolCallId: text, toolName: text, phase, idempotencyKey: text },
  "tool-result-delta": { toolCallId: text, delta: text },
  "tool-call-result": {
    toolCallId: text,
    toolName: text,
    ok: flag,
    state: one("done", "applied", "rejected", "interrupted", "in_doubt", "invalid", "expired"),
    result: anything,
    source: one("executed", "run", "cache", "person", "none"),
    durationMs: number
  },
  "approval-request": {
    approvalId: text,
    toolCallId: text,
    toolName: text,
    reason: one("write", "effectful", "in_doubt"),
    input: anything,
    preview: anything,
    previewHash: text,
    expiresAt: number,
    "supersedes?": text,
    "cause?": one("edit", "conflict", "retry")
  },
  "approval-decision": {
    approvalId: text,
    toolCallId: text,
    decision: one("approved", "rejected", "edited", "expired", "retry", "applied", "abandoned"),
    by: text,
    "reason?": text,
    "input?": anything
  },
  "tool-conflict": { toolCallId: text, "message?": text },
  "model-retry": { iteration: count, retry: count, delayMs: number, code: text },
  "iteration-end": { iteration: count },
  checkpoint: {
    runId: text,
    seq: count,
    checkpointKind: one(
      "run_started",
      "assistant_delta",
      "tool_call_started",
      "tool_call_arguments_completed",
      "tool_call_result_persisted",
      "iteration_completed",
      "run_finished",
      "run_failed"
    )
  },
  finish: {
    finishReason: one("stop", "length", "max_iterations", "budget", "content_filter"),
    model: text,
    usage,
    timing: record({ queuedMs: number, timeToFirstTokenMs: number, durationMs: number })
  },
  cancelled: { by: one("user", "superseded", "limit"), "reason?": text, usage },
  error: { code: text, message: text, recoverable: flag, usage }
}

const envelope = wrongIn({
  runId: (value) => typeof value === "string" && runId.test(value),
  seq: (value) => count(value) && Number(value) > 0,
  event: isRecord,
  createdAt: count
})
const runId = /^run_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const eventFields = new Map<unknown, (event: { readonly [name: string]: unknown }) => string | undefined>(
  Object.entries(events).map(([type, fields]) => [type, wrongIn(fields)])
)

/**
 * Every type of event, in the order of the vocabulary.
 *
 * @since 0.1.0
 * @category vocabulary
 */
export const eventTypes: ReadonlyArray<string> = Object.keys(events)

/**
 * What a value is found to be: an envelope, an event of a type that this version does not know, or something else, with
 * the path of the field that is missing or wrong.
 *
 * @since 0.1.0
 * @category reading
 */
export type Reading =
  | { readonly is: "envelope"; readonly envelope: Envelope }
  | { readonly is: "unknown-event"; readonly type: string }
  | { readonly is: "wrong"; readonly field: string }

/**
 * Reads a value as an envelope.
 *
 * @since 0.1.0
 * @category reading
 */
export const read = (value: unknown): Reading => {
  if (!isRecord(value)) return { is: "wrong", field: "" }
  const field = envelope(value)
  if (field !== undefined) return { is: "wrong", field }
  const { event } = value
  if (!isRecord(event) || typeof event.type !== "string") return { is: "wrong", field: "event.type" }
  const wrong = eventFields.get(event.type)
  if (wrong === undefined) return { is: "unknown-event", type: event.type }
  const inEvent = wrong(event)
  if (inEvent !== undefined) return { is: "wrong", field: `event.${inEvent}` }
  // Every field was looked at.
  return { is: "envelope", envelope: value as unknown as Envelope }
}
