/** Logs of any length that a run could have written: text, thinking, tools, people, and a crash. */
import type { AgentEvent } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import { RunId } from "../../../src/domain/Ids.js"

export const runId = RunId.make("run_01890000-0000-7000-8000-000000000001")

const words = "A run is one answer of an agent to one message and its log only grows, so nothing in it changes".split(
  " "
)
const usage = { inputTokens: 100, outputTokens: 40, totalTokens: 140 }

/** A turn of about `length` events. */
const turn = function* (n: number, length: number): Generator<AgentEvent> {
  const seqOfCheckpoint = 0
  yield { type: "run-status", status: "streaming" }
  for (let i = 0; i < Math.floor(length / 10); i++) {
    yield { type: "reasoning-delta", id: `${n}.reasoning`, delta: `${words[i % words.length]} ` }
  }
  for (let i = 0; i < Math.floor(length * 0.8); i++) {
    const end = i % 60 === 59 ? ".\n\n" : " "
    yield { type: "text-delta", id: `${n}.text`, delta: `${words[(i + n) % words.length]}${end}` }
    if (i % 64 === 63) yield { type: "checkpoint", runId, seq: seqOfCheckpoint, checkpointKind: "assistant_delta" }
  }
  const toolCallId = `call_${n}`
  const toolName = ["search", "read", "summarise"][n % 3] ?? "search"
  yield { type: "tool-call-start", toolCallId, toolName, kind: "readonly", title: "Searching…" }
  yield { type: "tool-call-delta", toolCallId, delta: '{"q":"durable"}' }
  yield { type: "tool-call-ready", toolCallId, toolName, input: { q: "durable" } }
  yield { type: "model-end", iteration: n, finishReason: "tool_calls", usage }
  yield { type: "run-status", status: "running" }
  yield { type: "tool-start", toolCallId, toolName, phase: "execute", idempotencyKey: toolCallId }
  for (let i = 0; i < 3; i++) yield { type: "tool-result-delta", toolCallId, delta: `${i}…` }
  yield {
    type: "tool-call-result",
    toolCallId,
    toolName,
    ok: n % 7 !== 0,
    state: "done",
    result: { hits: n },
    source: "executed",
    durationMs: 120
  }
  yield { type: "iteration-end", iteration: n }
  yield { type: "checkpoint", runId, seq: seqOfCheckpoint, checkpointKind: "iteration_completed" }
}

const events = function* (length: number, turnLength: number): Generator<AgentEvent> {
  yield {
    type: "run-start",
    runId,
    seq: 1,
    conversationId: "conv_01890000-0000-7000-8000-000000000001",
    userMessageId: "msg_01890000-0000-7000-8000-000000000001",
    assistantMessageId: "msg_01890000-0000-7000-8000-000000000002",
    model: "scripted",
    mode: "chat"
  }
  yield { type: "run-status", status: "queued" }
  yield { type: "run-status", status: "running" }
  for (let n = 1; ; n++) yield* turn(n, Math.min(turnLength, length))
}

/** A log of exactly so many events, an answer that is complete, with turns of about `turnLength` events. */
export const log = (length: number, turnLength = 2000): ReadonlyArray<Envelope> => {
  const envelopes: Array<Envelope> = []
  let at = 1767225600000
  for (const event of events(length - 4, turnLength)) {
    const seq = envelopes.length + 1
    if (seq === length) break
    // A quick model, and tools that take their time.
    at += event.type === "tool-call-result" ? 900 : event.type === "iteration-end" ? 300 : 12
    envelopes.push({ runId, seq, event: event.type === "checkpoint" ? { ...event, seq } : event, createdAt: at })
  }
  const last: AgentEvent = {
    type: "finish",
    finishReason: "stop",
    model: "scripted",
    usage,
    timing: { queuedMs: 3, timeToFirstTokenMs: 40, durationMs: at - 1767225600000 }
  }
  envelopes.push({ runId, seq: length, event: last, createdAt: at + 5 })
  return envelopes
}
