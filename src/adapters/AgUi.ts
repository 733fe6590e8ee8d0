/**
 * A run's log as events of AG-UI 1.0: a pure fold, `step(state, envelope)`, around the one fold of a run. Ids of messages
 * follow from the run and the place of a piece in it, so that a stream goes on behind any event with the same ids.
 *
 * @since 0.1.0
 */
import type { AgentEvent } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"

/**
 * One event, by AG-UI's names.
 *
 * @since 0.1.0
 * @category models
 */
export interface Event {
  readonly type: string
  readonly [field: string]: unknown
}

/**
 * A message of a thread, as AG-UI keeps it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Message {
  readonly id: string
  readonly role: "user" | "assistant" | "reasoning" | "tool"
  readonly content?: string
  readonly toolCallId?: string
  readonly toolCalls?: ReadonlyArray<{
    readonly id: string
    readonly type: "function"
    readonly function: { readonly name: string; readonly arguments: string }
  }>
}

interface OpenText {
  readonly type: "text" | "reasoning"
  readonly partId: string
  readonly messageId: string
}

/**
 * Where a stream stands: the thread and the run by the client's names, the messages before this run (`base`), the run, and
 * what the client has open.
 *
 * Law: the state behind any event is `behind` of the run up to it, which may come from its snapshot. So a stream that was
 * cut goes on as if it had not been.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  readonly threadId: string
  readonly clientRunId: string
  readonly base: ReadonlyArray<Message>
  readonly run: RunState.RunState
  readonly step: string | undefined
  readonly text: OpenText | undefined
  readonly calls: ReadonlyArray<string>
}

type Folded = readonly [state: State, events: ReadonlyArray<Event>]

/**
 * The state of a client that knows the run up to here.
 *
 * @since 0.1.0
 * @category constructors
 */
export const behind = (options: Pick<State, "threadId" | "clientRunId" | "base" | "run">): State => {
  const { open } = options.run
  if (open === undefined) return { ...options, step: undefined, text: undefined, calls: [] }
  const step = stepName(open.n)
  if (isWritten(open)) return { ...options, step, text: undefined, calls: [] }
  const last = open.parts.at(-1)
  return {
    ...options,
    step,
    text:
      last === undefined || last.type === "tool-call"
        ? undefined
        : { type: last.type, partId: last.id, messageId: pieceId(options.run, open, open.parts.length - 1) },
    calls: open.calls.filter(isWriting).map(({ id }) => id)
  }
}

/**
 * What a stream begins with for a client that comes without a cursor: the run's start and all messages of the thread, then
 * what is still being written.
 *
 * @since 0.1.0
 * @category folding
 */
export const attach = (options: Pick<State, "threadId" | "clientRunId" | "base" | "run">): Folded => {
  const state = behind(options)
  return [state, [begun(options), snapshot(state), ...restored(state)]]
}

/**
 * What a new run of the client begins with when it has the messages already and goes on with a run of the server.
 *
 * @since 0.1.0
 * @category folding
 */
export const again = (options: Pick<State, "threadId" | "clientRunId" | "base" | "run">): Folded => {
  const state = behind(options)
  return [state, [begun(options), ...restored(state)]]
}

/** The first piece of the open turn that is still being written: what lies behind it is told behind it. */
const firstOpen = ({ calls, run, text }: State): number => {
  const parts = run.open?.parts ?? []
  const last = text === undefined ? parts.length : parts.length - 1
  const call = parts.findIndex((part) => part.type === "tool-call" && calls.includes(part.toolCallId))
  return call === -1 ? last : call
}

/** What is still being written, opened anew, and the pieces behind it, in the order of the turn. */
const restored = (state: State): ReadonlyArray<Event> => {
  const { calls, run, step, text } = state
  const { open } = run
  if (open === undefined || step === undefined) return []
  const first = firstOpen(state)
  const pieces = open.parts.slice(first).flatMap((part, index) => {
    if (part.type !== "tool-call") {
      const piece = { type: part.type, partId: part.id, messageId: pieceId(run, open, first + index) }
      const closed = piece.messageId === text?.messageId ? undefined : piece
      return [...openText(piece), ...delta(piece, part.text), ...closeText(closed)]
    }
    const call = open.calls.find(({ id }) => id === part.toolCallId)
    if (call === undefined) return []
    const args = argumentsOf(call)
    return [
      callStart(call.id, call.name),
      ...(args === "" ? [] : [{ type: "TOOL_CALL_ARGS", toolCallId: call.id, delta: args }]),
      ...closeCalls(calls.includes(call.id) ? [] : [call.id])
    ]
  })
  return [{ type: "STEP_STARTED", stepName: step }, ...pieces]
}

/**
 * What every stream of a new run of the client begins with.
 *
 * @since 0.1.0
 * @category folding
 */
export const begun = ({ clientRunId, threadId }: Pick<State, "threadId" | "clientRunId">): Event => ({
  type: "RUN_STARTED",
  threadId,
  runId: clientRunId
})

/**
 * Folds one envelope in. What is at or below the state's seq says nothing.
 *
 * @since 0.1.0
 * @category folding
 */
export const step = (state: State, envelope: Envelope): Folded => {
  const run = RunState.reduce(state.run, envelope)
  if (run === state.run) return [state, []]
  const { event } = envelope
  const opens = state.step === undefined && run.open !== undefined ? stepName(run.open.n) : undefined
  const [next, events] = fold({ ...state, run, step: state.step ?? opens }, event)
  return [next, opens === undefined ? events : [{ type: "STEP_STARTED", stepName: opens }, ...events]]
}

/**
 * Whether the stream of a state has come to its end: the run has ended, or waits for a person.
 *
 * @since 0.1.0
 * @category folding
 */
export const isOver = ({ run }: State): boolean =>
  run.end !== undefined || (run.status === "waiting_approval" && RunState.pendingApprovals(run).length > 0)

/**
 * What a stream ends with. Nothing, when the run goes on: such a stream must be cut, not ended.
 *
 * @since 0.1.0
 * @category folding
 */
export const close = (state: State): ReadonlyArray<Event> => {
  if (!isOver(state)) return []
  const { clientRunId, run, threadId } = state
  const [, closing] = closeAll(state)
  if (run.end?.type === "error")
    return [...closing, { type: "RUN_ERROR", message: run.end.message, code: run.end.code }]
  const outcome =
    run.end === undefined
      ? { type: "interrupt", interrupts: RunState.pendingApprovals(run).map(interrupt) }
      : { type: run.end.type === "cancelled" ? "cancelled" : "success" }
  return [...closing, { type: "RUN_FINISHED", threadId, runId: clientRunId, outcome }]
}

/**
 * The messages that a run has come to so far, up to the first piece that is still being written.
 *
 * @since 0.1.0
 * @category conversions
 */
export const messagesOf = (run: RunState.RunState): ReadonlyArray<Message> => {
  const messages: Array<Message> = []
  const first = firstOpen(behind({ threadId: "", clientRunId: "", base: [], run }))
  for (const turn of RunState.turns(run)) {
    for (const [index, part] of turn.parts.entries()) {
      if (turn === run.open && index >= first) break
      if (part.type !== "tool-call") {
        const role = part.type === "text" ? "assistant" : "reasoning"
        messages.push({ id: pieceId(run, turn, index), role, content: part.text })
        continue
      }
      const call = turn.calls.find(({ id }) => id === part.toolCallId)
      if (call === undefined) continue
      messages.push({
        id: call.id,
        role: "assistant",
        toolCalls: [{ id: call.id, type: "function", function: { name: call.name, arguments: argumentsOf(call) } }]
      })
      if (call.result !== undefined) messages.push(resultMessage(call.result))
    }
  }
  return messages
}

const argumentsOf = ({ args, proposed }: RunState.Call): string =>
  proposed === undefined ? args : JSON.stringify(proposed.value)

/**
 * Whether the model has said all of a turn: only then something happens to its calls. A snapshot tells no more about it.
 */
const isWritten = ({ calls }: RunState.Turn): boolean =>
  calls.some(({ approval, phase, result }) => (phase ?? approval ?? result) !== undefined)

const isWriting = (call: RunState.Call): boolean => call.input === undefined && call.result === undefined

const stepName = (n: number): string => `iteration ${n}`

const pieceId = (run: RunState.RunState, turn: RunState.Turn, index: number): string =>
  `${run.start?.assistantMessageId ?? run.runId}.${turn.n}.${index}`

/**
 * All messages. Clients keep the reasoning that they have, unless a snapshot brings some: once a new attempt may have
 * dropped some, or some is told anew, an empty piece says that nothing else is left.
 */
const snapshot = ({ base, run }: State): Event => {
  const messages = [...base, ...messagesOf(run)]
  const nothing = { id: `${run.start?.assistantMessageId ?? run.runId}.none`, role: "reasoning", content: "" }
  const thought = run.attempt > 1 || RunState.text(run, "reasoning") !== ""
  const silent = thought && !messages.some(({ role }) => role === "reasoning")
  return { type: "MESSAGES_SNAPSHOT", messages: silent ? [...messages, nothing] : messages }
}

const callStart = (toolCallId: string, toolCallName: string): Event => ({
  type: "TOOL_CALL_START",
  toolCallId,
  toolCallName
})

const openText = ({ messageId, type }: OpenText): ReadonlyArray<Event> =>
  type === "text"
    ? [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }]
    : [
        { type: "REASONING_START", messageId },
        { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" }
      ]

const closeText = (text: OpenText | undefined): ReadonlyArray<Event> => {
  if (text === undefined) return []
  const { messageId, type } = text
  return type === "text"
    ? [{ type: "TEXT_MESSAGE_END", messageId }]
    : [
        { type: "REASONING_MESSAGE_END", messageId },
        { type: "REASONING_END", messageId }
      ]
}

/** AG-UI knows no empty delta. */
const delta = ({ messageId, type }: OpenText, text: string): ReadonlyArray<Event> =>
  text === ""
    ? []
    : [{ type: type === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT", messageId, delta: text }]

const closeCalls = (calls: ReadonlyArray<string>): ReadonlyArray<Event> =>
  calls.map((toolCallId) => ({ type: "TOOL_CALL_END", toolCallId }))

const closeAll = (state: State): Folded => [
  { ...state, text: undefined, calls: [], step: undefined },
  [
    ...closeText(state.text),
    ...closeCalls(state.calls),
    ...(state.step === undefined ? [] : [{ type: "STEP_FINISHED", stepName: state.step }])
  ]
]

const custom = (name: string, value: unknown): ReadonlyArray<Event> => [{ type: "CUSTOM", name, value }]

/** One event of the run; `state.run` is the run behind it. */
const fold = (state: State, event: AgentEvent): Folded => {
  const { run, text } = state
  switch (event.type) {
    case "text-delta":
    case "reasoning-delta": {
      const type = event.type === "text-delta" ? "text" : "reasoning"
      if (text !== undefined && text.type === type && text.partId === event.id) return [state, delta(text, event.delta)]
      if (run.open === undefined) return [state, []]
      const next = { type, partId: event.id, messageId: pieceId(run, run.open, run.open.parts.length - 1) } as const
      return [{ ...state, text: next }, [...closeText(text), ...openText(next), ...delta(next, event.delta)]]
    }
    case "tool-call-start": {
      const calls = [...state.calls, event.toolCallId]
      return [{ ...state, text: undefined, calls }, [...closeText(text), callStart(event.toolCallId, event.toolName)]]
    }
    case "tool-call-delta":
      return state.calls.includes(event.toolCallId) && event.delta !== ""
        ? [state, [{ type: "TOOL_CALL_ARGS", toolCallId: event.toolCallId, delta: event.delta }]]
        : [state, []]
    case "tool-call-ready": {
      const closed = state.calls.filter((id) => id === event.toolCallId)
      return [{ ...state, calls: state.calls.filter((id) => id !== event.toolCallId) }, closeCalls(closed)]
    }
    case "tool-start":
    case "approval-request":
      return written(state, [])
    case "tool-call-result":
      return written(state, [toolResult(event)])
    case "iteration-end":
      return closeAll(state)
    case "run-status":
      return [state, custom("runlet.status", { status: event.status, reason: event.reason })]
    case "tool-result-delta":
      return [state, custom("runlet.tool-progress", { toolCallId: event.toolCallId, text: event.delta })]
    case "run-resumed": {
      const [, events] = closeAll(state)
      const next = behind(state)
      return [
        next,
        [...events, snapshot(next), ...restored(next), ...custom("runlet.attempt", { attempt: event.attempt })]
      ]
    }
    default:
      return [state, []]
  }
}

const written = (state: State, more: ReadonlyArray<Event>): Folded => [
  { ...state, text: undefined, calls: [] },
  [...closeText(state.text), ...closeCalls(state.calls), ...more]
]

const resultMessage = ({ result, toolCallId }: RunState.Said<"tool-call-result">) =>
  ({ id: `${toolCallId}.result`, role: "tool", toolCallId, content: JSON.stringify(result ?? null) }) as const

const toolResult = (event: RunState.Said<"tool-call-result">): Event => {
  const { content, id, role, toolCallId } = resultMessage(event)
  return { type: "TOOL_CALL_RESULT", messageId: id, role, toolCallId, content }
}

const interrupt = (request: RunState.Said<"approval-request">) => {
  const { approvalId, expiresAt, input, preview, previewHash, reason, toolCallId, toolName } = request
  return {
    id: approvalId,
    reason,
    message: `${toolName}: ${reason === "in_doubt" ? "it is not known whether it was done" : "may it be done?"}`,
    toolCallId,
    expiresAt: new Date(expiresAt).toISOString(),
    responseSchema: {
      type: "object",
      properties: { approved: { type: "boolean" }, reason: { type: "string" }, editedArgs: { type: "object" } },
      required: ["approved"]
    },
    metadata: { runlet: { toolName, input, preview, previewHash } }
  }
}

/**
 * The text of events as server-sent events. The id stands with the last of them: whoever has it has all.
 *
 * @since 0.1.0
 * @category encoding
 */
export const encode = (events: ReadonlyArray<Event>, seq?: number): string =>
  events
    .map((event, index) => {
      const id = seq !== undefined && index === events.length - 1 ? `id: ${seq}\n` : ""
      return `${id}data: ${JSON.stringify(event)}\n\n`
    })
    .join("")
