/**
 * What a page needs to show a run, taken from the fold, and the way back. Pure, and free of runtime imports.
 *
 * Law: folding events n+1 … m into `toView(snapshot(n))` gives `snapshot(m)`.
 *
 * @since 0.1.0
 */
import type { EventOf, RunMode, TerminalEvent, ToolKind, ToolPhase, ToolResultState, Usage } from "./AgentEvent.js"
import type { RunStatus } from "./RunStatus.js"
import * as RunView from "./RunView.js"

/**
 * Where a call stands: being written, complete, running, waiting for a person, or the state of its result.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolCallState = "streaming" | "ready" | "running" | "waiting" | ToolResultState

/**
 * What a call asks a person, and the answer once there is one.
 *
 * @since 0.1.0
 * @category models
 */
export interface SnapshotApproval extends Omit<EventOf<"approval-request">, "type"> {
  readonly decision?: Omit<EventOf<"approval-decision">, "type" | "approvalId" | "toolCallId"> | undefined
}

/**
 * A tool call as it stands. `proposedInput` is what the model asked for, where a person has changed it.
 *
 * @since 0.1.0
 * @category models
 */
export interface SnapshotToolCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly title?: string | undefined
  readonly kind: ToolKind
  readonly iteration: number
  readonly state: ToolCallState
  readonly argumentsText?: string | undefined
  readonly input?: unknown
  readonly proposedInput?: unknown
  readonly phase?: ToolPhase | undefined
  readonly progress?: string | undefined
  readonly approval?: SnapshotApproval | undefined
  readonly result?: unknown
  readonly ok?: boolean | undefined
  readonly source?: EventOf<"tool-call-result">["source"] | undefined
  readonly durationMs?: number | undefined
}

/**
 * A piece of the answer in the order of its making: text, reasoning, or the place of a tool call. `startedAt` and
 * `endedAt` are the times of its first and last delta.
 *
 * @since 0.1.0
 * @category models
 */
export type SnapshotPart =
  | {
      readonly type: "text" | "reasoning"
      readonly id: string
      readonly iteration: number
      readonly text: string
      readonly startedAt: number
      readonly endedAt: number
    }
  | { readonly type: "tool-call"; readonly toolCallId: string }

/**
 * A run as `GET /runs/{id}` shows it. Times are epoch milliseconds. `turnOpen` says whether further output belongs to
 * `iteration` or begins the next one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Snapshot {
  readonly runId: string
  readonly conversationId: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly status: RunStatus
  readonly recoverable?: boolean | undefined
  readonly error?: { readonly code: string; readonly message: string } | undefined
  readonly finishReason?: EventOf<"finish">["finishReason"] | undefined
  readonly cancelled?: { readonly by: EventOf<"cancelled">["by"]; readonly reason?: string | undefined } | undefined
  readonly model: string
  readonly mode: RunMode
  readonly attempt: number
  readonly iteration: number
  readonly turnOpen: boolean
  readonly lastSeq: number
  readonly text: string
  readonly reasoning: string
  readonly parts: ReadonlyArray<SnapshotPart>
  readonly toolCalls: ReadonlyArray<SnapshotToolCall>
  readonly pendingApprovals: ReadonlyArray<Omit<EventOf<"approval-request">, "type">>
  readonly usage: Usage
  readonly timing?: EventOf<"finish">["timing"] | undefined
  readonly queuePosition?: number | undefined
  readonly regeneratedFrom?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt?: number | undefined
}

/**
 * The snapshot of a view. `queuePosition` and `expiresAt` are facts of the store and are added by it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const of = (state: RunView.RunView): Snapshot => {
  const parts: Array<SnapshotPart> = []
  const toolCalls: Array<SnapshotToolCall> = []
  for (const turn of RunView.turns(state)) {
    for (const part of turn.parts) {
      parts.push(part.type === "tool-call" ? part : { ...part, iteration: turn.n })
    }
    for (const call of turn.calls) toolCalls.push(toolCall(call, turn.n))
  }
  return {
    runId: state.runId,
    conversationId: state.start?.conversationId ?? "",
    userMessageId: state.start?.userMessageId ?? "",
    assistantMessageId: state.start?.assistantMessageId ?? "",
    status: state.status,
    ...(state.recoverable !== undefined && { recoverable: state.recoverable }),
    ...ending(state.end),
    model: state.start?.model ?? "",
    mode: state.start?.mode ?? "chat",
    attempt: state.attempt,
    iteration: state.iteration,
    turnOpen: state.open !== undefined,
    lastSeq: state.seq,
    text: RunView.text(state),
    reasoning: RunView.text(state, "reasoning"),
    parts,
    toolCalls,
    pendingApprovals: RunView.pendingApprovals(state).map(({ type: _, ...request }) => request),
    usage: state.usage,
    ...(state.start?.regeneratedFrom !== undefined && { regeneratedFrom: state.start.regeneratedFrom }),
    createdAt: state.createdAt,
    updatedAt: state.updatedAt
  }
}

const ending = (end: RunView.Ending | undefined): Partial<Snapshot> => {
  if (end === undefined) return {}
  if ("code" in end) return { error: { code: end.code, message: end.message } }
  if ("by" in end) return { cancelled: { by: end.by, ...(end.reason !== undefined && { reason: end.reason }) } }
  return { finishReason: end.finishReason, timing: end.timing }
}

const callState = (call: RunView.Call): ToolCallState => {
  if (call.result !== undefined) return call.result.state
  if (call.approval !== undefined && call.approval.decision === undefined) return "waiting"
  if (call.open !== undefined) return "running"
  return call.input === undefined ? "streaming" : "ready"
}

const toolCall = (call: RunView.Call, iteration: number): SnapshotToolCall => {
  const { approval, result } = call
  return {
    toolCallId: call.id,
    toolName: call.name,
    ...(call.title !== undefined && { title: call.title }),
    kind: call.kind,
    iteration,
    state: callState(call),
    ...(call.input === undefined && { argumentsText: call.args }),
    ...(call.input !== undefined && { input: call.input.value }),
    ...(call.edited === true && call.proposed !== undefined && { proposedInput: call.proposed.value }),
    ...(call.phase !== undefined && { phase: call.phase }),
    ...(call.progress !== "" && { progress: call.progress }),
    ...(approval !== undefined && { approval: snapshotApproval(approval) }),
    ...(result !== undefined && {
      result: result.result,
      ok: result.ok,
      source: result.source,
      durationMs: result.durationMs
    })
  }
}

const snapshotApproval = ({ decision, request: { type: _, ...request } }: RunView.Approval): SnapshotApproval => {
  if (decision === undefined) return request
  const { approvalId: _1, toolCallId: _2, type: _3, ...rest } = decision
  return { ...request, decision: rest }
}

/**
 * What a snapshot shows, ready to fold further events in. Of the start, of approvals and of results it says the same
 * as the log, in the same fields.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toView = (snapshot: Snapshot): RunView.RunView => {
  const { attempt, cancelled, createdAt, error, finishReason, iteration, lastSeq, recoverable } = snapshot
  const { runId, status, timing, turnOpen, updatedAt, usage } = snapshot
  const turns = turnsOf(snapshot)
  return {
    runId,
    seq: lastSeq,
    start: snapshot,
    status,
    recoverable,
    end: error ?? cancelled ?? (finishReason && timing && { finishReason, timing }),
    attempt,
    usage,
    createdAt,
    updatedAt,
    iteration,
    open: turnOpen ? turns.pop() : undefined,
    closed: turns
  }
}

/**
 * How a run ended, as the event that said so.
 *
 * @since 0.1.0
 * @category conversions
 */
export const endOf = (snapshot: Snapshot): TerminalEvent | undefined => {
  const { cancelled, error, finishReason, model, recoverable = false, timing, usage } = snapshot
  if (error) return { type: "error", ...error, recoverable, usage }
  if (cancelled) return { type: "cancelled", ...cancelled, usage }
  return finishReason && timing && { type: "finish", finishReason, model, usage, timing }
}

const turnsOf = ({ iteration, parts, toolCalls, usage }: Snapshot): Array<RunView.Turn> => {
  const made = new Map(toolCalls.map((call) => [call.toolCallId, call.iteration]))
  return Array.from({ length: iteration }, (_, before) => {
    const n = before + 1
    const own = parts.filter((part) => n === (part.type === "tool-call" ? made.get(part.toolCallId) : part.iteration))
    return {
      n,
      parts: own,
      calls: toolCalls.filter((call) => n === call.iteration).map(callOf),
      // A turn is opened by output. One that shows none is complete without any, and stays when it is resumed.
      ended: own.length ? undefined : { finishReason: "stop", usage }
    }
  })
}

const isSettled = (call: SnapshotToolCall): call is SnapshotToolCall & RunView.Said<"tool-call-result"> => "ok" in call

const callOf = (call: SnapshotToolCall): RunView.Call => {
  const { approval, argumentsText = "", phase, progress = "" } = call
  const input = "input" in call ? { value: call.input } : undefined
  const edited = "proposedInput" in call
  return {
    ...RunView.emptyCall(call),
    args: argumentsText,
    input,
    proposed: edited ? { value: call.proposedInput } : input,
    edited,
    open: phase && call.state === "running" ? { phase, key: "" } : undefined,
    phase,
    progress,
    approval: approval && { request: approval, decision: approval.decision },
    result: isSettled(call) ? call : undefined
  }
}

/**
 * A snapshot without what the events say anyway: the header of a trace.
 *
 * @since 0.1.0
 * @category conversions
 */
export const header = (
  snapshot: Snapshot
): Omit<Snapshot, "parts" | "pendingApprovals" | "reasoning" | "text" | "toolCalls" | "turnOpen"> => {
  const { parts: _1, pendingApprovals: _2, reasoning: _3, text: _4, toolCalls: _5, turnOpen: _6, ...rest } = snapshot
  return rest
}
