/**
 * Arbitrary events and logs. `event` is any event at all, `log` is one that a run could have written.
 *
 * @since 0.1.0
 */
import * as FastCheck from "effect/FastCheck"
import type { AgentEvent, ToolKind, Usage } from "../domain/AgentEvent.js"
import type { Envelope } from "../domain/Envelope.js"
import { RunId } from "../domain/Ids.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as ResumePolicy from "../resume/ResumePolicy.js"
import { Dice } from "./Dice.js"

/**
 * Plain JSON data.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const json: FastCheck.Arbitrary<unknown> = FastCheck.jsonValue({ maxDepth: 2 }).map(
  // What comes out of JSON has no negative zero.
  (value): unknown => JSON.parse(JSON.stringify(value))
)

/**
 * Any sequence of UTF-16 code units, with a liking for surrogates, paired and unpaired.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const utf16: FastCheck.Arbitrary<string> = FastCheck.array(
  FastCheck.oneof(
    { arbitrary: FastCheck.constantFrom("a", "\n", "é", "語", "😀", "\uD83D", "\uDE00"), weight: 5 },
    { arbitrary: FastCheck.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), weight: 1 }
  ),
  { maxLength: 24 }
).map((units) => units.join(""))

const name = FastCheck.constantFrom("a", "b", "call_1", "read", "")
const text = FastCheck.constantFrom("", "a", "bc", "語", "😀")
const count = FastCheck.nat(1000)
const bool = FastCheck.boolean()
const some = <A>(arbitrary: FastCheck.Arbitrary<A>) => FastCheck.option(arbitrary, { nil: undefined })
const one = FastCheck.constantFrom

const usage: FastCheck.Arbitrary<Usage> = FastCheck.record(
  {
    inputTokens: count,
    outputTokens: count,
    totalTokens: count,
    reasoningTokens: count,
    cachedInputTokens: count,
    costUsd: count
  },
  { requiredKeys: ["inputTokens", "outputTokens", "totalTokens"] }
)

/** A record in which `undefined` fields are absent, as they are in JSON. */
const make = <Type extends AgentEvent["type"]>(
  type: Type,
  fields: {
    readonly [K in Exclude<keyof Extract<AgentEvent, { readonly type: Type }>, "type">]-?: FastCheck.Arbitrary<
      Extract<AgentEvent, { readonly type: Type }>[K]
    >
  }
): FastCheck.Arbitrary<AgentEvent> => {
  const arbitraries: Readonly<Record<string, FastCheck.Arbitrary<unknown>>> = fields
  return FastCheck.record(arbitraries).map((record) => {
    const present = Object.entries(record).filter(([, value]) => value !== undefined)
    // The fields are those of this type, by the parameter's own type.
    return Object.fromEntries([["type", type], ...present]) as unknown as AgentEvent
  })
}

/**
 * Any event, whatever came before it.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const event: FastCheck.Arbitrary<AgentEvent> = FastCheck.oneof(
  make("run-start", {
    runId: name,
    seq: FastCheck.constant(1 as const),
    conversationId: name,
    userMessageId: name,
    assistantMessageId: name,
    model: name,
    mode: one("chat" as const, "plan"),
    regeneratedFrom: some(name),
    trace: some(name)
  }),
  make("run-status", {
    status: one("queued" as const, "running", "streaming", "waiting_approval"),
    reason: some(name)
  }),
  make("run-resumed", {
    attempt: count,
    reason: one("recovery" as const, "resume"),
    checkpointSeq: count,
    textLength: FastCheck.nat(6),
    reasoningLength: FastCheck.nat(6),
    droppedToolCallIds: FastCheck.array(name, { maxLength: 2 }),
    trace: some(name)
  }),
  make("text-delta", { id: name, delta: text }),
  make("reasoning-delta", { id: name, delta: text }),
  make("tool-call-start", {
    toolCallId: name,
    toolName: name,
    kind: one("readonly" as const, "write", "effectful"),
    title: some(name)
  }),
  make("tool-call-delta", { toolCallId: name, delta: text }),
  make("tool-call-ready", { toolCallId: name, toolName: name, input: json }),
  make("model-end", {
    iteration: count,
    finishReason: one("stop" as const, "length", "tool_calls", "content_filter"),
    usage
  }),
  make("tool-start", {
    toolCallId: name,
    toolName: name,
    phase: one("execute" as const, "preview", "commit"),
    idempotencyKey: name
  }),
  make("tool-result-delta", { toolCallId: name, delta: text }),
  make("tool-call-result", {
    toolCallId: name,
    toolName: name,
    ok: bool,
    state: one("done" as const, "applied", "rejected", "interrupted", "in_doubt", "invalid", "expired"),
    result: json,
    source: one("executed" as const, "run", "cache", "person", "none"),
    durationMs: count
  }),
  make("approval-request", {
    approvalId: name,
    toolCallId: name,
    toolName: name,
    reason: one("write" as const, "effectful", "in_doubt"),
    input: json,
    preview: json,
    previewHash: name,
    expiresAt: count,
    supersedes: some(name),
    cause: some(one("edit" as const, "conflict", "retry"))
  }),
  make("approval-decision", {
    approvalId: name,
    toolCallId: name,
    decision: one("approved" as const, "rejected", "edited", "expired", "retry", "applied", "abandoned"),
    by: name,
    reason: some(name),
    input: some(json)
  }),
  make("tool-conflict", { toolCallId: name, message: some(name) }),
  make("model-retry", { iteration: count, retry: count, delayMs: count, code: name }),
  make("iteration-end", { iteration: count }),
  make("checkpoint", { runId: name, seq: count, checkpointKind: one("run_started" as const, "run_failed") }),
  make("finish", {
    finishReason: one("stop" as const, "length", "max_iterations", "budget", "content_filter"),
    model: name,
    usage,
    timing: FastCheck.record({ queuedMs: count, timeToFirstTokenMs: count, durationMs: count })
  }),
  make("cancelled", { by: one("user" as const, "superseded", "limit"), reason: some(name), usage }),
  make("error", { code: name, message: name, recoverable: bool, usage })
)

const runId = RunId.make("run_01890000-0000-7000-8000-000000000001")

/** Writes a log by the rules of the run model, one throw of the dice at a time. */
class Writer {
  readonly envelopes: Array<Envelope> = []
  state = RunState.empty(runId)
  private ids = 0

  constructor(readonly dice: Dice) {}

  id(): string {
    return `id${this.ids++}`
  }

  add(event: AgentEvent): void {
    const seq = this.state.seq + 1
    const envelope: Envelope = { runId, seq, event, createdAt: this.state.updatedAt + this.dice.below(5) }
    this.envelopes.push(envelope)
    this.state = RunState.reduce(this.state, envelope)
  }

  status(status: "queued" | "running" | "streaming" | "waiting_approval"): void {
    if (this.state.status !== status) this.add({ type: "run-status", status })
  }

  /** A process dies here and another one goes on, with one policy or the other. */
  crash(): void {
    const decide = this.dice.chance(2) ? ResumePolicy.keepDraft : ResumePolicy.restart
    this.resume(decide({ state: this.state, reason: "recovery", continuesDraft: true }), "recovery")
  }

  resume(decision: ResumePolicy.ResumeDecision, reason: "recovery" | "resume"): void {
    if (decision._tag === "Refuse") return
    const { _tag: _, ...lengths } = decision
    this.add({ type: "run-resumed", attempt: this.state.attempt + 1, reason, ...lengths })
  }

  settle(
    call: RunState.Call,
    state: Extract<AgentEvent, { readonly type: "tool-call-result" }>["state"],
    ok: boolean
  ): void {
    this.add({
      type: "tool-call-result",
      toolCallId: call.id,
      toolName: call.name,
      ok,
      state,
      result: { n: this.ids },
      source: "executed",
      durationMs: 1
    })
  }
}

const usageOf = (n: number): Usage => ({ inputTokens: n, outputTokens: 1, totalTokens: n + 1 })

const modelTurn = (w: Writer): void => {
  w.status("streaming")
  const { dice } = w
  const parts = dice.below(5)
  const unready: Array<string> = []
  for (let i = 0; i < parts; i++) {
    switch (dice.below(3)) {
      case 0:
        w.add({ type: "text-delta", id: `t${dice.below(2)}`, delta: dice.pick(["a", "bc", "語😀"]) })
        break
      case 1:
        w.add({ type: "reasoning-delta", id: `r${dice.below(2)}`, delta: dice.pick(["x", "yz"]) })
        break
      default: {
        const toolCallId = w.id()
        const kind = dice.pick<ToolKind>(["readonly", "write", "effectful"])
        w.add({ type: "tool-call-start", toolCallId, toolName: kind, kind })
        w.add({ type: "tool-call-delta", toolCallId, delta: "{}" })
        unready.push(toolCallId)
      }
    }
  }
  if (dice.chance(5)) {
    w.crash()
    modelTurn(w)
    return
  }
  for (const call of w.state.open?.calls ?? []) {
    if (call.input === undefined && !dice.chance(6)) {
      w.add({ type: "tool-call-ready", toolCallId: call.id, toolName: call.name, input: { n: dice.below(2) } })
    }
  }
  w.add({ type: "model-end", iteration: w.state.iteration || 1, finishReason: "stop", usage: usageOf(parts) })
  w.status("running")
}

const ask = (w: Writer, call: RunState.Call, reason: "write" | "effectful" | "in_doubt"): void => {
  const approvalId = w.id()
  w.add({
    type: "approval-request",
    approvalId,
    toolCallId: call.id,
    toolName: call.name,
    reason,
    input: call.input?.value,
    preview: {},
    previewHash: approvalId,
    expiresAt: 1000,
    ...(call.approval !== undefined && { supersedes: call.approval.request.approvalId })
  })
  w.status("waiting_approval")
  const decision = w.dice.pick(
    reason === "in_doubt" ? (["applied", "retry", "abandoned"] as const) : (["approved", "edited", "rejected"] as const)
  )
  w.add({
    type: "approval-decision",
    approvalId,
    toolCallId: call.id,
    decision,
    by: "local",
    ...(decision === "edited" && { input: { edited: w.dice.below(2) } })
  })
  w.status("queued")
  w.status("running")
}

const start = (w: Writer, call: RunState.Call, phase: "execute" | "preview" | "commit", key: string): void => {
  w.add({ type: "tool-start", toolCallId: call.id, toolName: call.name, phase, idempotencyKey: key })
  if (w.dice.chance(3)) w.add({ type: "tool-result-delta", toolCallId: call.id, delta: "…" })
}

/** One move for a call that has no result yet. */
const move = (w: Writer, call: RunState.Call) => {
  const { dice } = w
  const decision = call.approval?.decision?.decision
  if (call.input === undefined) return w.settle(call, "invalid", false)
  if (dice.chance(8)) return w.crash()
  if (call.open !== undefined && call.open.phase !== "preview" && call.kind !== "readonly" && dice.chance(3)) {
    return ask(w, call, "in_doubt")
  }
  if (call.kind === "readonly") {
    start(w, call, "execute", "k")
    return dice.chance(4) ? w.crash() : w.settle(call, "done", !dice.chance(3))
  }
  switch (decision) {
    case "applied":
      return w.settle(call, "applied", true)
    case "abandoned":
      return w.settle(call, "in_doubt", false)
    case "rejected":
      return w.settle(call, "rejected", false)
    case "approved":
    case "retry":
      start(w, call, call.kind === "write" ? "commit" : "execute", call.approval?.request.approvalId ?? "")
      if (dice.chance(5)) return w.crash()
      if (dice.chance(4) && call.kind === "write") return w.add({ type: "tool-conflict", toolCallId: call.id })
      return w.settle(call, "applied", true)
    default:
      if (call.kind === "write") start(w, call, "preview", `p${call.asked}`)
      return dice.chance(6) ? w.crash() : ask(w, call, call.kind === "write" ? "write" : "effectful")
  }
}

const tools = (w: Writer): void => {
  for (let moves = 0; moves < 24; moves++) {
    const open = w.state.open?.calls.filter((call) => call.result === undefined) ?? []
    const call = open[w.dice.below(open.length)]
    if (call === undefined) return
    move(w, call)
  }
  for (const call of w.state.open?.calls ?? []) if (call.result === undefined) w.settle(call, "interrupted", false)
}

const end = (w: Writer) => {
  const { dice, state } = w
  for (const call of state.open?.calls ?? []) if (call.result === undefined) w.settle(call, "interrupted", false)
  switch (dice.below(3)) {
    case 0:
      return w.add({
        type: "finish",
        finishReason: "stop",
        model: "m",
        usage: state.usage,
        timing: { queuedMs: 0, timeToFirstTokenMs: 1, durationMs: 2 }
      })
    case 1:
      return w.add({ type: "cancelled", by: "user", usage: state.usage })
    default:
      w.add({ type: "error", code: "broken", message: "It broke.", recoverable: dice.chance(2), usage: state.usage })
      if (w.state.recoverable !== true || dice.chance(2)) return
      w.resume(ResumePolicy.restart({ state: w.state, reason: "resume", continuesDraft: false }), "resume")
      turns(w)
  }
}

const turns = (w: Writer): void => {
  const wanted = w.dice.below(4)
  for (let i = 0; i < wanted; i++) {
    if (w.state.open?.ended === undefined) modelTurn(w)
    if (w.dice.chance(6)) w.crash()
    tools(w)
    w.add({ type: "iteration-end", iteration: w.state.iteration })
  }
  if (w.dice.chance(4)) {
    w.status("streaming")
    w.add({ type: "text-delta", id: "last", delta: "cut sho" })
    if (w.dice.chance(2)) w.add({ type: "tool-call-start", toolCallId: w.id(), toolName: "readonly", kind: "readonly" })
  }
  if (!RunStatus.isEnded(w.state.status) && !w.dice.chance(6)) end(w)
}

/**
 * A log that a run could have written: several turns, tools of each kind, people, conflicts, crashes and resumes.
 *
 * @since 0.1.0
 * @category arbitraries
 */
export const log: FastCheck.Arbitrary<ReadonlyArray<Envelope>> = Dice.arbitrary.map((throws) => {
  const w = new Writer(new Dice(throws))
  w.add({
    type: "run-start",
    runId,
    seq: 1,
    conversationId: "conv",
    userMessageId: "msg1",
    assistantMessageId: "msg2",
    model: "m",
    mode: "chat"
  })
  w.add({ type: "run-status", status: "queued" })
  if (w.dice.chance(12)) return w.envelopes
  w.status("running")
  turns(w)
  return w.envelopes
})
