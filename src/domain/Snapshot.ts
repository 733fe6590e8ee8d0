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
  const turns = rebuildTurns(snapshot)
  const last = turns.at(-1)
  const open = snapshot.turnOpen && last !== undefined ? reopened(last) : undefined
  return {
    ...RunState.empty(snapshot.runId),
    seq: snapshot.lastSeq,
    start: {
      type: "run-start",
      runId: snapshot.runId,
      seq: 1,
      conversationId: snapshot.conversationId,
      userMessageId: snapshot.userMessageId,
      assistantMessageId: snapshot.assistantMessageId,
      model: snapshot.model,
      mode: snapshot.mode,
      ...(snapshot.regeneratedFrom !== undefined && { regeneratedFrom: snapshot.regeneratedFrom })
    },
    status: snapshot.status,
    recoverable: snapshot.recoverable,
    end: endOf(snapshot),
    attempt: snapshot.attempt,
    textLength: snapshot.text.length,
    reasoningLength: snapshot.reasoning.length,
    usage: snapshot.usage,
    createdAt: snapshot.createdAt,
    updatedAt: snapshot.updatedAt,
    iteration: snapshot.iteration,
    ...(open !== undefined && { open }),
    closed: open === undefined ? turns : turns.slice(0, -1)
  }
}

/** A turn is opened by output. One that is open and shows none is complete without any, and stays when it is resumed. */
const reopened = (turn: RunState.Turn): RunState.Turn =>
  turn.parts.length > 0
    ? turn
    : { ...turn, ended: { finishReason: "stop", usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 } } }

const endOf = (snapshot: Snapshot): TerminalEvent | undefined => {
  const usage = snapshot.usage
  if (snapshot.error !== undefined) {
    return { type: "error", ...snapshot.error, recoverable: snapshot.recoverable ?? false, usage }
  }
  if (snapshot.cancelled !== undefined) return { type: "cancelled", ...snapshot.cancelled, usage }
  if (snapshot.finishReason !== undefined && snapshot.timing !== undefined) {
    return {
      type: "finish",
      finishReason: snapshot.finishReason,
      model: snapshot.model,
      usage,
      timing: snapshot.timing
    }
  }
  return undefined
}

const rebuildTurns = (snapshot: Snapshot): ReadonlyArray<RunState.Turn> => {
  const calls = new Map(snapshot.toolCalls.map((call) => [call.toolCallId, call]))
  const turns: Array<{ -readonly [K in keyof RunState.Turn]: RunState.Turn[K] }> = []
  let text0 = 0
  let reasoning0 = 0
  for (const part of snapshot.parts) {
    const call = part.type === "tool-call" ? calls.get(part.toolCallId) : undefined
    const n = part.type === "tool-call" ? (call?.iteration ?? snapshot.iteration) : part.iteration
    let turn = turns.at(-1)
    if (turn?.n !== n) {
      turn = { n, text0, reasoning0, seq0: 0, parts: [], calls: [] }
      turns.push(turn)
    }
    if (part.type === "tool-call") {
      turn.parts = [...turn.parts, part]
      if (call !== undefined) turn.calls = [...turn.calls, rebuildCall(call)]
      continue
    }
    const { iteration: _, ...piece } = part
    turn.parts = [...turn.parts, piece]
    if (part.type === "text") text0 += part.text.length
    else reasoning0 += part.text.length
  }
  if (snapshot.turnOpen && turns.at(-1)?.n !== snapshot.iteration) {
    turns.push({ n: snapshot.iteration, text0, reasoning0, seq0: 0, parts: [], calls: [] })
  }
  return turns
}

const rebuildCall = (call: SnapshotToolCall): RunState.Call => {
  const { toolCallId, toolName } = call
  const input = "input" in call ? { value: call.input } : undefined
  return {
    id: toolCallId,
    name: toolName,
    kind: call.kind,
    title: call.title,
    args: call.argumentsText ?? "",
    proposed: "proposedInput" in call ? { value: call.proposedInput } : input,
    input,
    ...("proposedInput" in call && { edited: true }),
    open: call.state === "running" ? { phase: call.phase ?? "execute", key: "" } : undefined,
    phase: call.phase,
    starts: 0,
    asked: call.approval === undefined ? 0 : 1,
    progress: call.progress ?? "",
    approval: call.approval === undefined ? undefined : rebuildApproval(call.approval),
    result:
      call.ok === undefined ||
      call.state === "streaming" ||
      call.state === "ready" ||
      call.state === "running" ||
      call.state === "waiting"
        ? undefined
        : {
            type: "tool-call-result",
            toolCallId,
            toolName,
            ok: call.ok,
            state: call.state,
            result: call.result,
            source: call.source ?? "none",
            durationMs: call.durationMs ?? 0
          }
  }
}

const rebuildApproval = ({ decision, ...request }: SnapshotApproval): RunState.Approval => ({
  request: { type: "approval-request", ...request },
  decision:
    decision === undefined
      ? undefined
      : { type: "approval-decision", approvalId: request.approvalId, toolCallId: request.toolCallId, ...decision }
})
