/**
 * A run's log as the AI SDK's UI message stream: a pure fold, `step(state, envelope)`, around the one fold of a run.
 * Nothing of it is stored; what a chunk says follows from the state before and the event.
 *
 * Law: whatever is cut away from a stream, `replay` of the state at the cut and the steps behind it make the same message.
 *
 * @since 0.1.0
 */
import type { AgentEvent, EventOf } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import type { Chunk, MessageMetadata, Version } from "./AiSdkChunks.js"

/**
 * Where a stream stands: the run, and whether the client has a step open. `broken` says that the client shows text or
 * calls that a new attempt has dropped and can not be told so: only a replay helps.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  readonly version: Version
  readonly run: RunState.RunState
  readonly stepOpen: boolean
  readonly broken: boolean
}

type Folded = readonly [state: State, chunks: ReadonlyArray<Chunk>]

/**
 * The state of a client that shows everything of the run up to here.
 *
 * @since 0.1.0
 * @category constructors
 */
export const behind = (run: RunState.RunState, version: Version = 6): State => ({
  version,
  run,
  stepOpen: run.open !== undefined,
  broken: false
})

/**
 * The run up to here as chunks that build the message anew, and the state behind them.
 *
 * @since 0.1.0
 * @category folding
 */
export const replay = (run: RunState.RunState, version: Version = 6): Folded => {
  const chunks: Array<Chunk> = run.start === undefined ? [] : [started(run, run.start)]
  for (const turn of RunState.turns(run)) {
    chunks.push({ type: "start-step" }, ...turnChunks(run, turn, version))
    if (turn !== run.open) chunks.push({ type: "finish-step" })
  }
  if (run.seq > 0) chunks.push({ type: "data-run-status", data: { status: run.status }, transient: true })
  return [behind(run, version), chunks]
}

/**
 * Folds one envelope in. What is at or below the state's seq says nothing.
 *
 * @since 0.1.0
 * @category folding
 */
export const step = (state: State, envelope: Envelope): Folded => {
  const before = state.run
  const run = RunState.reduce(before, envelope)
  if (run === before) return [state, []]
  const { event } = envelope
  if (event.type === "run-resumed") return resumed({ ...state, run }, before, event)
  const opens = before.open === undefined && run.open !== undefined && !state.stepOpen
  const chunks = eventChunks(before, run, event, state.version)
  const closes = event.type === "iteration-end" && state.stepOpen
  return [
    { ...state, run, stepOpen: closes ? false : state.stepOpen || opens },
    [
      ...(opens ? [{ type: "start-step" } as const] : []),
      ...chunks,
      ...(closes ? [{ type: "finish-step" } as const] : [])
    ]
  ]
}

/**
 * Whether the stream of a state has come to its end: the run has ended, or waits for a person.
 *
 * @since 0.1.0
 * @category folding
 */
export const isOver = ({ run }: State): boolean => run.end !== undefined || run.status === "waiting_approval"

/**
 * What a stream ends with. Nothing, when the run goes on: such a stream must be cut, not ended.
 *
 * @since 0.1.0
 * @category folding
 */
export const close = (state: State): ReadonlyArray<Chunk> => {
  const { run } = state
  if (!isOver(state)) return []
  const messageMetadata: Partial<MessageMetadata> = {
    seq: run.seq,
    status: run.status,
    usage: run.usage,
    ...(run.end?.type === "finish" && { finishReason: run.end.finishReason, timing: run.end.timing }),
    ...(run.end?.type === "error" && { error: { code: run.end.code, recoverable: run.end.recoverable } })
  }
  const rest: ReadonlyArray<Chunk> = [
    ...closePart(openPart(run)),
    ...(state.stepOpen ? [{ type: "finish-step" } as const] : [])
  ]
  switch (run.end?.type) {
    case undefined:
      return [...rest, { type: "finish", finishReason: "tool-calls", messageMetadata }]
    case "finish":
      return [...rest, { type: "finish", finishReason: reasons[run.end.finishReason], messageMetadata }]
    case "cancelled": {
      const reason = run.end.reason ?? run.end.by
      return [...rest, { type: "message-metadata", messageMetadata }, { type: "abort", reason }]
    }
    case "error":
      return [...rest, { type: "message-metadata", messageMetadata }, { type: "error", errorText: run.end.message }]
  }
}

const reasons = {
  stop: "stop",
  length: "length",
  content_filter: "content-filter",
  max_iterations: "tool-calls",
  budget: "other"
} as const

const started = (run: RunState.RunState, start: RunState.Said<"run-start", "type" | "seq">): Chunk => ({
  type: "start",
  messageId: start.assistantMessageId,
  messageMetadata: {
    runId: start.runId,
    conversationId: start.conversationId,
    model: start.model,
    createdAt: run.createdAt
  }
})

type TextPart = Extract<RunState.Part, { readonly type: "text" | "reasoning" }>

/** The piece that the next delta may belong to. */
const openPart = ({ open }: RunState.RunState): TextPart | undefined => {
  const last = open === undefined || open.ended !== undefined ? undefined : open.parts.at(-1)
  return last === undefined || last.type === "tool-call" ? undefined : last
}

const closePart = (part: TextPart | undefined): ReadonlyArray<Chunk> =>
  part === undefined ? [] : [{ type: `${part.type}-end`, id: part.id }]

const eventChunks = (
  before: RunState.RunState,
  run: RunState.RunState,
  event: Exclude<AgentEvent, EventOf<"run-resumed">>,
  version: Version
): ReadonlyArray<Chunk> => {
  switch (event.type) {
    case "run-start":
      return [started(run, event)]
    case "run-status": {
      const { reason, status } = event
      return [{ type: "data-run-status", data: { status, ...(reason !== undefined && { reason }) }, transient: true }]
    }
    case "text-delta":
    case "reasoning-delta": {
      const type = event.type === "text-delta" ? "text" : "reasoning"
      const part = openPart(before)
      const delta: Chunk = { type: event.type, id: event.id, delta: event.delta }
      return part !== undefined && part.type === type && part.id === event.id
        ? [delta]
        : [...closePart(part), { type: `${type}-start`, id: event.id }, delta]
    }
    case "tool-call-start":
      return [...closePart(openPart(before)), inputStart(event.toolCallId, event.toolName, event.kind, event.title)]
    case "model-end":
    // A state that comes from a snapshot does not know of an earlier `model-end`.
    case "iteration-end":
      return closePart(openPart(before))
    case "tool-call-delta":
      return known(run, event, () => [
        { type: "tool-input-delta", toolCallId: event.toolCallId, inputTextDelta: event.delta }
      ])
    case "tool-call-ready":
      return known(run, event, inputAvailable)
    case "tool-result-delta":
      return known(run, event, () => [progress(event.toolCallId, event.delta)])
    case "approval-request":
      return known(run, event, () => [approvalRequest(run.runId, event)])
    case "approval-decision":
      return known(run, event, (call) => decided(call, event, version))
    case "tool-call-result":
      return known(run, event, (call) => [settled(call, event)])
    case "model-retry": {
      const { code, delayMs, retry } = event
      return [{ type: "data-model-retry", data: { retry, delayMs, code }, transient: true }]
    }
    case "tool-start":
    case "tool-conflict":
    case "checkpoint":
    case "finish":
    case "cancelled":
    case "error":
      return []
  }
}

/** Chunks about a call that the client knows. */
const known = (
  run: RunState.RunState,
  { toolCallId }: { readonly toolCallId: string },
  chunks: (call: RunState.Call) => ReadonlyArray<Chunk>
): ReadonlyArray<Chunk> => {
  const call = run.open?.calls.find(({ id }) => id === toolCallId)
  return call === undefined ? [] : chunks(call)
}

/** A new attempt. Where it drops what the client shows, version 7 can be told, and version 6 must begin anew. */
const resumed = (state: State, before: RunState.RunState, event: EventOf<"run-resumed">): Folded => {
  const status: Chunk = { type: "data-run-status", data: { status: "running", reason: event.reason }, transient: true }
  const whole =
    event.textLength === before.textLength &&
    event.reasoningLength === before.reasoningLength &&
    event.droppedToolCallIds.length === 0
  if (whole) return [state, [status]]
  if (state.version === 6) return [{ ...state, broken: true }, []]
  const { open } = state.run
  const kept = open === undefined ? [] : turnChunks(state.run, open, state.version)
  return [state, [{ type: "reset-step" }, ...kept, status]]
}

const turnChunks = (run: RunState.RunState, turn: RunState.Turn, version: Version): ReadonlyArray<Chunk> => {
  const open = turn === run.open ? openPart(run) : undefined
  const chunks: Array<Chunk> = []
  const calls = new Map(turn.calls.map((call) => [call.id, call]))
  for (const part of turn.parts) {
    if (part.type === "tool-call") {
      const call = calls.get(part.toolCallId)
      if (call !== undefined) chunks.push(...callChunks(run.runId, call, version))
      continue
    }
    chunks.push({ type: `${part.type}-start`, id: part.id })
    if (part.text !== "") chunks.push({ type: `${part.type}-delta`, id: part.id, delta: part.text })
    if (part !== open) chunks.push(...closePart(part))
  }
  return chunks
}

const callChunks = (runId: string, call: RunState.Call, version: Version): ReadonlyArray<Chunk> => {
  const { approval, result } = call
  const chunks: Array<Chunk> = [inputStart(call.id, call.name, call.kind, call.title)]
  if (call.input !== undefined) chunks.push(...inputAvailable(call))
  else if (call.args !== "") chunks.push({ type: "tool-input-delta", toolCallId: call.id, inputTextDelta: call.args })
  if (approval !== undefined) {
    chunks.push(approvalRequest(runId, approval.request))
    if (approval.decision !== undefined) chunks.push(...decided(call, approval.decision, version))
  }
  if (result !== undefined) chunks.push(settled(call, result))
  else if (call.progress !== "") chunks.push(progress(call.id, call.progress))
  return chunks
}

const inputStart = (
  toolCallId: string,
  toolName: string,
  kind: RunState.Call["kind"],
  title: string | undefined
): Chunk => ({
  type: "tool-input-start",
  toolCallId,
  toolName,
  // The page must not try to run it.
  providerExecuted: true,
  toolMetadata: { kind },
  ...(title !== undefined && { title })
})

const inputAvailable = (call: RunState.Call): ReadonlyArray<Chunk> => [
  {
    type: "tool-input-available",
    toolCallId: call.id,
    toolName: call.name,
    input: call.input?.value,
    providerExecuted: true,
    ...(call.title !== undefined && { title: call.title })
  }
]

const progress = (toolCallId: string, text: string): Chunk => ({
  type: "data-tool-progress",
  data: { toolCallId, text },
  transient: true
})

const approvalRequest = (runId: string, request: RunState.Said<"approval-request">): Chunk => {
  const { approvalId, cause, expiresAt, input, preview, previewHash, reason, toolCallId } = request
  return {
    type: "tool-approval-request",
    approvalId,
    toolCallId,
    approvalDescriptor: { runId, reason, input, preview, previewHash, expiresAt, ...(cause !== undefined && { cause }) }
  }
}

/** A part that was decided must not ask any more, whoever decided. */
const decided = (
  call: RunState.Call,
  event: NonNullable<RunState.Approval["decision"]>,
  version: Version
): ReadonlyArray<Chunk> => {
  const { decision, reason } = event
  const approvalId = call.approval?.request.approvalId ?? ""
  if (version === 6 || decision === "edited") return inputAvailable(call)
  const approved = decision === "approved" || decision === "retry" || decision === "applied"
  return [{ type: "tool-approval-response", approvalId, approved, ...(reason !== undefined && { reason }) }]
}

const settled = (call: RunState.Call, result: RunState.Said<"tool-call-result">): Chunk => {
  const { toolCallId } = result
  if (result.ok) return { type: "tool-output-available", toolCallId, output: result.result }
  if ((result.state === "rejected" || result.state === "expired") && call.approval !== undefined) {
    return { type: "tool-output-denied", toolCallId }
  }
  const errorText = errorOf(result)
  return call.input === undefined
    ? { type: "tool-input-error", toolCallId, toolName: call.name, input: call.args, errorText, providerExecuted: true }
    : { type: "tool-output-error", toolCallId, errorText }
}

const errorOf = ({ result, state }: RunState.Said<"tool-call-result">): string => {
  if (typeof result === "object" && result !== null && "error" in result && typeof result.error === "string") {
    return result.error
  }
  return state === "interrupted"
    ? "The call was interrupted."
    : state === "in_doubt"
      ? "It is not known whether the call had an effect."
      : "The call failed."
}
