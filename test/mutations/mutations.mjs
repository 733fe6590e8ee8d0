/**
 * Small mistakes, one at a time. `find` must stand exactly once in `file`. Each breaks a rule that the laws are there to
 * protect, so some law must notice.
 */
const m = (name, file, find, replace) => ({ name, file: `src/${file}`, find, replace })

export const mutations = [
  m(
    "an edit is shown and not used",
    "agent/ToolTurn.ts",
    "ToolCatalog.check(tool, call.input?.value)",
    "ToolCatalog.check(tool, call.proposed?.value)"
  ),
  m(
    "one key for each call instead of each approval",
    "agent/NextStep.ts",
    "phase, key: decision.approvalId, again: false",
    "phase, key: `${slot}.c`, again: false"
  ),
  m(
    "a conflict with the own first try is believed",
    "domain/RunState.ts",
    "doubt: call.starts > 1 || call.doubt !== undefined ? (call.doubt ?? call.open) : undefined",
    "doubt: undefined"
  ),
  m(
    "a restart does not cut the text",
    "resume/ResumePolicy.ts",
    "checkpointSeq: turn.seq0,\n    textLength: turn.text0,",
    "checkpointSeq: turn.seq0,\n    textLength: state.textLength,"
  ),
  m(
    "a restart does not drop the calls",
    "resume/ResumePolicy.ts",
    "reasoningLength: turn.reasoning0,\n    droppedToolCallIds: turn.calls.map((call) => call.id)",
    "reasoningLength: turn.reasoning0,\n    droppedToolCallIds: []"
  ),
  m(
    "text behind a call is kept",
    "resume/ResumePolicy.ts",
    "const before = end === -1 ? turn.parts : turn.parts.slice(0, end)",
    "const before = turn.parts"
  ),
  m(
    "an unknown outcome is tried again blindly",
    "agent/NextStep.ts",
    "if (tool?.keyed === true && call.starts < maxStarts) {",
    'if (call.starts < maxStarts) {\n    if (tool?.keyed !== true) return { _tag: "Now", act: { _tag: "Run", call, phase: open.phase, key: open.key, again: false } }'
  ),
  m("provider data is lost", "engine/RunWriter.ts", "if (entry.side !== undefined) sides.push(entry.side)", ""),
  m(
    "parking without compare-and-set",
    "engine/RunDriver.ts",
    "current.seq === state.seq ? decisionOf(step, current, row, now) : undefined",
    "decisionOf(step, current, row, now)"
  ),
  m("no look at the lease before an effect", "agent/ToolTurn.ts", "    yield* setting.guard\n", ""),
  m(
    "no fence",
    "store/internal/memory.ts",
    "if (append.epoch !== undefined && append.epoch !== row.epoch) return fenced",
    ""
  ),
  m(
    "no compare-and-set in the store",
    "store/internal/memory.ts",
    "(append.expectedSeq !== undefined && append.expectedSeq !== row.lastSeq) ||",
    ""
  ),
  m(
    "a cancel of a failed run is ignored",
    "agent/Closing.ts",
    "RunStatus.isFinal(state)\n    ? undefined",
    "RunStatus.isEnded(state.status)\n    ? undefined"
  ),
  m(
    "published before stored",
    "engine/RunWriter.ts",
    "this.prepared = { append, state, deltas, frames, entries, decided }",
    "this.options.tails.publish(this.key, frames)\n    this.prepared = { append, state, deltas, frames, entries, decided }"
  ),
  m(
    "the cursor is off by one in the live tail",
    "engine/LiveTail.ts",
    "this.frames.slice(after + 1 - first)",
    "this.frames.slice(Math.max(0, after - first))"
  ),
  m(
    "the cursor is off by one in the store",
    "store/MemoryStore.ts",
    ".events.slice(after, after + limit)",
    ".events.slice(after + (after > 3 ? 1 : 0), after + limit)"
  ),
  m("two terminal events", "agent/Closing.ts", "    },\n    terminal\n  ]", "    },\n    terminal,\n    terminal\n  ]"),
  m(
    "an approval by tool instead of by id",
    "engine/Deciding.ts",
    "call.approval?.request.approvalId === approvalId &&\n      call.approval.decision",
    "call.approval !== undefined &&\n      call.approval.decision"
  ),
  m(
    "the hash of what was shown is not looked at",
    "engine/Deciding.ts",
    "request.previewHash !== undefined && request.previewHash !== waiting?.previewHash",
    'request.previewHash === "" && waiting === undefined'
  ),
  m(
    "two runs of a conversation at once",
    "store/internal/memory.ts",
    ".filter(({ row }) => !occupied.has(row.conversationId))",
    ""
  ),
  m(
    "a turn row with a later header",
    "engine/RunWriter.ts",
    "const { closed: _, open: __, ...header } = closed.state",
    "const { closed: _, open: __, ...header } = { ...closed.state, textLength: 0 }"
  ),
  m(
    "arguments go back to the model as they came",
    "agent/History.ts",
    'call.proposed === undefined ? "{}" : JSON.stringify(call.proposed.value)',
    "call.args"
  ),
  m("ids of calls are used twice in a prompt", "agent/History.ts", "return withUniqueIds(messages)", "return messages"),
  m(
    "calls without their answers in a prompt",
    "agent/History.ts",
    ", ...turn.calls.map(answer)]",
    ", ...turn.calls.slice(1).map(answer)]"
  ),
  m(
    "an append whose answer was lost is written twice",
    "engine/RunWriter.ts",
    "if (unsure === undefined ||",
    "if (unsure !== undefined || unsure === undefined) return\n    if (unsure === undefined ||"
  ),
  m(
    "an approval counts after its time",
    "engine/Deciding.ts",
    "if (waiting.expiresAt <= now) {",
    "if (waiting.expiresAt + 1e12 <= now) {"
  ),
  m(
    "a decision does not wake the run",
    "engine/Deciding.ts",
    'const onward = decision.decision === "edited" || others.length === 0 ? requeued(state) : []',
    "const onward: ReadonlyArray<AgentEvent> = []"
  ),
  m(
    "half characters are stored",
    "engine/Sanitizer.ts",
    'if ("delta" in event) return this.delta(event)',
    'if ("delta" in event) return [event]'
  ),
  m(
    "checkpoints do not know their place",
    "engine/Numbering.ts",
    'event.type === "checkpoint" ? { ...event, seq } : event',
    "event"
  ),
  m(
    "a model call is retried after its output was shown",
    "agent/ModelTurn.ts",
    "translator.published ? undefined : retryDelayMs",
    "retryDelayMs"
  ),
  m(
    "tools begin before their intent is stored",
    "agent/ToolTurn.ts",
    "Stream.fromEffect(Effect.map(intents, (events) => Emission.durable(events)))",
    "Stream.fromEffect(Effect.map(intents, (events) => Emission.events(events)))"
  ),
  m(
    "a rejection is taken for an approval",
    "agent/NextStep.ts",
    'case "approved": {',
    'case "rejected":\n    case "approved": {'
  ),
  m(
    "an expiry is taken for an approval",
    "agent/NextStep.ts",
    'case "approved": {',
    'case "approved":\n    case "expired": {'
  ),
  m(
    "an effect runs without asking",
    "agent/NextStep.ts",
    'tool.kind === "effectful" && tool.unattended',
    'tool.kind === "effectful"'
  ),
  m(
    "results are reused across a write",
    "agent/ToolCatalog.ts",
    'if (other.result?.state === "applied") found = undefined',
    ""
  ),
  m(
    "results of other inputs are reused",
    "agent/ToolCatalog.ts",
    "if (Json.canonical(other.input.value) !== wanted) continue",
    ""
  ),
  m(
    "an interrupted commit had no effect",
    "agent/Closing.ts",
    'state: inDoubt(call) ? "in_doubt" : "interrupted"',
    'state: "interrupted"'
  ),
  m("attempts are not counted", "engine/RunDriver.ts", "attempt: state.attempt + 1", "attempt: state.attempt"),
  m(
    "a failed commit is believed when its outcome is unknown",
    "tool/ToolRunner.ts",
    'effectful ? { _tag: "InDoubt", message } : failed',
    'effectful && message === "" ? { _tag: "InDoubt", message } : failed'
  ),
  m("a resume goes on beside a later run", "engine/Resuming.ts", "onlyIfLatest: true", "onlyIfLatest: false"),
  m(
    "leases are never looked at",
    "store/internal/memory.ts",
    "row.leaseExpiresAt <= now ||\n    (claim.dead?.includes(row.owner) ?? false)",
    "row.leaseExpiresAt === 0"
  )
]
