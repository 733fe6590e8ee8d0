/** Logs that tell a story: what a test wants to see on a page. */
import type { AgentEvent } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import { RunId } from "../../../src/domain/Ids.js"

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
const timing = { queuedMs: 1, timeToFirstTokenMs: 20, durationMs: 500 }

/** The id of this number. */
export const id = (prefix: string, n: number) => `${prefix}_01890000-0000-7000-8000-${String(n).padStart(12, "0")}`

interface Telling {
  /** Which run it is; its conversation and message are those of `thread`. */
  readonly n: number
  readonly thread?: number
  readonly stepMs?: number
}

/** The events as a log: between `run-start` and the state events that need not be told. */
export const tell = (
  { n, stepMs = 40, thread = n }: Telling,
  events: ReadonlyArray<AgentEvent>
): ReadonlyArray<Envelope> => {
  const runId = RunId.make(id("run", n))
  const all: ReadonlyArray<AgentEvent> = [
    {
      type: "run-start",
      runId,
      seq: 1,
      conversationId: id("conv", thread),
      userMessageId: id("msg", thread),
      assistantMessageId: id("msg", 500 + thread),
      model: "told",
      mode: "chat"
    },
    { type: "run-status", status: "queued" },
    { type: "run-status", status: "running" },
    { type: "run-status", status: "streaming" },
    ...events
  ]
  return all.map((event, index) => ({
    runId,
    seq: index + 1,
    event: event.type === "checkpoint" ? { ...event, runId, seq: index + 1 } : event,
    createdAt: 1767225600000 + n * 3_600_000 + index * stepMs
  }))
}

/** Text in pieces of a word. */
export const text = (words: string, part = "1.text"): ReadonlyArray<AgentEvent> =>
  (words.match(/\s*\S+\s*$|\s*\S+/g) ?? []).map((delta) => ({ type: "text-delta", id: part, delta }))

export const thought = (words: string): ReadonlyArray<AgentEvent> => [
  { type: "reasoning-delta", id: "1.reasoning", delta: words }
]

export const checkpoint = (
  checkpointKind: Extract<AgentEvent, { type: "checkpoint" }>["checkpointKind"]
): AgentEvent => ({
  type: "checkpoint",
  runId: "",
  seq: 0,
  checkpointKind
})

/** A call of a tool that only reads, and its result. */
export const call = (toolName: string, input: unknown, result: unknown, title?: string): ReadonlyArray<AgentEvent> => {
  const toolCallId = `call_${toolName.length}`
  return [
    { type: "tool-call-start", toolCallId, toolName, kind: "readonly", ...(title !== undefined && { title }) },
    { type: "tool-call-ready", toolCallId, toolName, input },
    { type: "model-end", iteration: 1, finishReason: "tool_calls", usage },
    { type: "run-status", status: "running" },
    { type: "tool-start", toolCallId, toolName, phase: "execute", idempotencyKey: "k" },
    {
      type: "tool-call-result",
      toolCallId,
      toolName,
      ok: true,
      state: "done",
      result,
      source: "executed",
      durationMs: 5
    },
    { type: "iteration-end", iteration: 1 },
    checkpoint("iteration_completed"),
    { type: "run-status", status: "streaming" }
  ]
}

/** The end of a run that went well. */
export const done = (iteration = 1): ReadonlyArray<AgentEvent> => [
  { type: "model-end", iteration, finishReason: "stop", usage },
  { type: "run-status", status: "running" },
  { type: "iteration-end", iteration },
  checkpoint("run_finished"),
  { type: "finish", finishReason: "stop", model: "told", usage, timing }
]
