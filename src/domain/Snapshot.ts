/**
 * What a page needs to show a run, taken from the fold, and the way back. Pure, and free of runtime imports.
 *
 * Law: folding events n+1 … m into `toState(snapshot(n))` gives `snapshot(m)`.
 *
 * @since 0.1.0
 */
import type { EventOf, RunMode, TerminalEvent, ToolKind, ToolPhase, ToolResultState, Usage } from "./AgentEvent.js"
import * as RunState from "./RunState.js"
import type { RunStatus } from "./RunStatus.js"

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
 * The snapshot of a state. `queuePosition` and `expiresAt` are facts of the store and are added by it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const of = (state: RunState.RunState): Snapshot => {
  const parts: Array<SnapshotPart> = []
  const toolCalls: Array<SnapshotToolCall> = []
  for (const turn of RunState.turns(state)) {
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
    text: RunState.text(state),
    reasoning: RunState.text(state, "reasoning"),
    parts,
    toolCalls,
    pendingApprovals: RunState.pendingApprovals(state).map(({ type: _, ...request }) => request),
    usage: state.usage,
    ...(state.start?.regeneratedFrom !== undefined && { regeneratedFrom: state.start.regeneratedFrom }),
    createdAt: state.createdAt,
    updatedAt: state.updatedAt
  }
}

const ending = (end: TerminalEvent | undefined): Partial<Snapshot> => {
  switch (end?.type) {
    case undefined:
      return {}
    case "finish":
      return { finishReason: end.finishReason, timing: end.timing }
    case "cancelled":
      return { cancelled: { by: end.by, ...(end.reason !== undefined && { reason: end.reason }) } }
    case "error":
      return { error: { code: end.code, message: end.message } }
  }
}

const callState = (call: RunState.Call): ToolCallState => {
  if (call.result !== undefined) return call.result.state
  if (call.approval !== undefined && call.approval.decision === undefined) return "waiting"
  if (call.open !== undefined) return "running"
  return call.input === undefined ? "streaming" : "ready"
}

const toolCall = (call: RunState.Call, iteration: number): SnapshotToolCall => {
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

const snapshotApproval = ({ decision, request: { type: _, ...request } }: RunState.Approval): SnapshotApproval => {
  if (decision === undefined) return request
  const { approvalId: _1, toolCallId: _2, type: _3, ...rest } = decision
  return { ...request, decision: rest }
}

/**
 * The state that a snapshot shows, ready to fold further events in. What only the engine needs (open starts, doubts,
 * clocks) is not in a snapshot and therefore not in this state.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toState = (snapshot: Snapshot): RunState.RunState => {
  const { conversationId, userMessageId, assistantMessageId, model, mode, regeneratedFrom } = snapshot
  const { attempt, createdAt, iteration, recoverable, runId, status, updatedAt, usage } = snapshot
  const turns = turnsOf(snapshot)
  return {
    ...RunState.empty(runId),
    seq: snapshot.lastSeq,
    start: {
      type: "run-start",
      runId,
      seq: 1,
      conversationId,
      userMessageId,
      assistantMessageId,
      model,
      mode,
      ...(regeneratedFrom !== undefined && { regeneratedFrom })
    },
    status,
    recoverable,
    end: endOf(snapshot),
    attempt,
    textLength: snapshot.text.length,
    reasoningLength: snapshot.reasoning.length,
    usage,
    createdAt,
    updatedAt,
    iteration,
    open: snapshot.turnOpen ? turns.pop() : undefined,
    closed: turns
  }
}

const endOf = ({ cancelled, error, finishReason, model, recoverable = false, timing, usage }: Snapshot) => {
  if (error !== undefined) return { type: "error", ...error, recoverable, usage } as const
  if (cancelled !== undefined) return { type: "cancelled", ...cancelled, usage } as const
  return finishReason && timing && ({ type: "finish", finishReason, model, usage, timing } as const)
}

interface Written extends RunState.Turn {
  readonly parts: Array<RunState.Part>
  readonly calls: Array<RunState.Call>
}

const turnsOf = ({ iteration, parts, toolCalls, turnOpen, usage }: Snapshot): Array<RunState.Turn> => {
  const calls = new Map(toolCalls.map((call) => [call.toolCallId, call]))
  const turns: Array<RunState.Turn> = []
  const length = { text: 0, reasoning: 0 }
  let last: Written | undefined
  const turn = (n: number, ended?: RunState.Turn["ended"]): Written => {
    if (last?.n === n) return last
    last = { n, text0: length.text, reasoning0: length.reasoning, seq0: 0, parts: [], calls: [], ended }
    turns.push(last)
    return last
  }
  for (const part of parts) {
    if (part.type === "tool-call") {
      const call = calls.get(part.toolCallId)
      if (call === undefined) continue
      const { calls: made, parts } = turn(call.iteration)
      parts.push(part)
      made.push(callOf(call))
    } else {
      const { iteration: n, ...piece } = part
      turn(n).parts.push(piece)
      length[piece.type] += piece.text.length
    }
  }
  // A turn is opened by output. One that is open and shows none is complete without any, and stays when it is resumed.
  if (turnOpen) turn(iteration, { finishReason: "stop", usage })
  return turns
}

const isSettled = (call: SnapshotToolCall): call is SnapshotToolCall & EventOf<"tool-call-result"> => "ok" in call

const callOf = (call: SnapshotToolCall): RunState.Call => {
  const { approval, argumentsText = "", phase, progress = "", toolCallId, toolName } = call
  const input = "input" in call ? { value: call.input } : undefined
  const edited = "proposedInput" in call
  return {
    ...RunState.emptyCall(call),
    args: argumentsText,
    input,
    proposed: edited ? { value: call.proposedInput } : input,
    edited,
    open: call.state === "running" ? { phase: phase ?? "execute", key: "" } : undefined,
    phase,
    progress,
    approval: approval && approvalOf(approval),
    result: isSettled(call)
      ? {
          type: "tool-call-result",
          toolCallId,
          toolName,
          ok: call.ok,
          state: call.state,
          result: call.result,
          source: call.source,
          durationMs: call.durationMs
        }
      : undefined
  }
}

const approvalOf = ({ decision, ...request }: SnapshotApproval): RunState.Approval => {
  const { approvalId, toolCallId } = request
  return {
    request: { type: "approval-request", ...request },
    decision: decision && { type: "approval-decision", approvalId, toolCallId, ...decision }
  }
}
