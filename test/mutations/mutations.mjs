// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are pieces of sources
/**
 * Small mistakes, one at a time. `find` must stand exactly once in `file`, in `src`. Each breaks a rule that the kit is
 * there to protect, so something in it must notice: `by` says what looks at it, see `by/`.
 */
const edit = (file, find, replace) => ({ file, find, replace })

/** A mistake for the laws to notice, in simulations over memory. */
const m = (name, file, find, replace) => ({ name, by: "laws", edits: [edit(file, find, replace)] })

/** One that takes several edits, because two things keep the rule. */
const both = (name, ...edits) => ({ name, by: "laws", edits })

/** One for simulations over SQLite. */
const q = (name, file, find, replace) => ({ name, by: "sqlite", edits: [edit(file, find, replace)] })

/** One for a contract: of the store, of policies, of models. */
const c = (by, name, file, find, replace) => ({ name, by, edits: [edit(file, find, replace)] })

/** One for a check over HTTP whose name holds `only`. */
const h = (only, name, file, find, replace) => ({ name, by: "http", only, edits: [edit(file, find, replace)] })

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
    'phase, key: call.approval?.request.approvalId ?? "", again: false',
    "phase, key: `${slot}.c`, again: false"
  ),
  m(
    "a conflict with the own first try is believed",
    "domain/RunState.ts",
    "if (starts > 1) call.doubt ??= before?.open",
    "call.doubt = undefined"
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
    "provider data is stored in a later transaction",
    "engine/RunWriter.ts",
    "if (entry.side !== undefined) sides.push(entry.side)",
    "if (this.late !== undefined) sides.push(this.late)\n      this.late = entry.side"
  ),
  both(
    "a turn with calls counts as complete before its model-end",
    edit(
      "resume/ResumePolicy.ts",
      "state.open !== undefined && state.open.ended === undefined ? state.open : undefined",
      "state.open !== undefined && state.open.ended === undefined && state.open.calls.length === 0 ? state.open : undefined"
    ),
    edit(
      "agent/NextStep.ts",
      "if (turn.ended === undefined) return unfinished(turn)",
      "if (turn.ended === undefined && turn.calls.length === 0) return unfinished(turn)"
    )
  ),
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
    "store/internal/memory.ts",
    "run?.events.slice(from, from + limit)",
    "run?.events.slice(from + (from > 3 ? 1 : 0), from + limit)"
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
    "store/internal/memoryQueue.ts",
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
  both(
    "tools begin before their intent is stored",
    edit(
      "agent/ToolTurn.ts",
      "Stream.fromEffect(Effect.map(intents, (events) => Emission.durable(events)))",
      "Stream.fromEffect(Effect.map(intents, (events) => Emission.events(events)))"
    ),
    edit("engine/RunDriver.ts", "      yield* Effect.catchAll(writer.settled, () => Effect.never)\n", "")
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
    "if (other.settledAt === undefined || other.settledAt <= appliedAt) continue",
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
  c(
    "store",
    "more is taken over than was asked for",
    "store/internal/memoryQueue.ts",
    ".slice(0, claim.limit)\n    .map((run) => {",
    ".map((run) => {"
  ),
  m(
    "leases are never looked at",
    "store/internal/memoryQueue.ts",
    "row.leaseExpiresAt <= now ||\n    (claim.dead?.includes(row.owner) ?? false)",
    "row.leaseExpiresAt === 0"
  ),
  m(
    "an approval by the name of the tool",
    "engine/Deciding.ts",
    "call.approval?.request.approvalId === approvalId &&\n      call.approval.decision",
    "call.name === state.open?.calls.find((one) => one.approval?.request.approvalId === approvalId)?.name &&\n      call.approval !== undefined &&\n      call.approval.decision"
  ),
  m(
    "what is approved does not wait for the others of its turn",
    "agent/NextStep.ts",
    'if (waiting) return { _tag: "AwaitApproval" }\n  if (gated.length > 0)',
    'if (waiting && gated.length === 0) return { _tag: "AwaitApproval" }\n  if (gated.length > 0)'
  ),
  m(
    "turns are not counted",
    "agent/NextStep.ts",
    'return state.iteration >= limits.maxIterations ? "max_iterations" : undefined',
    "return undefined"
  ),
  both(
    "a run that crashes its process is recovered for ever",
    edit("engine/RunDriver.ts", "if (state.stale >= env.agent.resume.maxAttempts) {", "if (state.stale < 0) {"),
    edit("agent/NextStep.ts", "if (state.stale > facts.maxAttempts) {", "if (state.stale < 0) {")
  ),
  m(
    "all calls of a turn run at once",
    "agent/NextStep.ts",
    'if (now.length > 0) return { _tag: "RunTools", acts: now.slice(0, facts.maxToolConcurrency) }',
    'if (now.length > 0) return { _tag: "RunTools", acts: now }'
  ),
  m(
    "a request for an approval is open for too long",
    "agent/ToolTurn.ts",
    "expiresAt: now + setting.approvalTtlMs,",
    "expiresAt: now + setting.approvalTtlMs * 2,"
  ),
  m(
    "the hash does not cover the input",
    "agent/ToolTurn.ts",
    "previewHash: Json.hash({ toolName: call.name, input, preview: shown }),",
    "previewHash: Json.hash({ toolName: call.name, preview: shown }),"
  ),
  m(
    "a conflict is taken for a success",
    "agent/ToolTurn.ts",
    "return yield* mailbox.offer(Emission.durable([conflict(outcome.message)]))",
    'return yield* mailbox.offer(Emission.durable([yield* result({ ok: true, state: "applied", result: null })]))'
  ),
  m(
    "a key finds its run whatever is asked",
    "engine/Starting.ts",
    "{ key: idempotencyKey, bodyHash: Json.hash(body) }",
    '{ key: idempotencyKey, bodyHash: "" }'
  ),
  m(
    "a cancelled run has used nothing",
    "agent/Closing.ts",
    "        usage: state.usage\n",
    "        usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 }\n"
  ),
  m(
    "a checkpoint shows what came later",
    "engine/Reading.ts",
    "const state = yield* RunLog.load(env.store, row, seq)",
    "const state = yield* RunLog.load(env.store, row)"
  ),
  m(
    "the fold does not cut what is written again",
    "domain/RunView.ts",
    "const text = part.text.slice(0, left[part.type])",
    "const text = part.text"
  ),
  both(
    "the next step is taken on what is not stored yet",
    edit(
      "engine/RunDriver.ts",
      "const look = Effect.map(writer.settled, (state): Sight => {",
      "const look = Effect.map(\n      Effect.sync(() => writer.state),\n      (state): Sight => {"
    ),
    edit(
      "agent/ToolTurn.ts",
      "Emission.durable([event], {\n",
      "outcome.within === undefined ? Emission.events([event]) : Emission.durable([event], {\n"
    )
  ),
  m(
    "a failed run is not left behind when its conversation goes on",
    "engine/Supervisor.ts",
    'end(old, (state) => Closing.cancellation(state, "superseded"))',
    "end(old, () => undefined)"
  ),
  {
    name: "whoever polls is woken once too little",
    by: "tail",
    edits: [
      edit(
        "engine/LiveTail.ts",
        "    if (tail?.last !== after) return false\n",
        "    if (tail === undefined) return false\n"
      )
    ]
  },
  {
    name: "SQL lets a fenced writer go on with an answer",
    by: "store",
    edits: [edit("store/internal/sqlAppend.ts", "WHERE key = ? AND epoch = ? AND", "WHERE key = ? AND epoch >= ? AND")]
  },
  {
    name: "SQL stores a piece of an answer whose row was not moved",
    by: "store",
    edits: [edit("store/internal/sqlAppend.ts", "if (changes[index] === 1)", "if (changes[index] !== undefined)")]
  },
  {
    name: "no fence in SQLite",
    by: "store",
    edits: [
      edit(
        "store/internal/sqlAppend.ts",
        "(b.epoch IS NULL OR runs.epoch = b.epoch)\n      AND (b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)\n      AND runs.status NOT IN ('completed', 'cancelled')\n",
        "(b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)\n      AND runs.status NOT IN ('completed', 'cancelled')\n"
      ),
      edit(
        "store/internal/sqlAppend.ts",
        "(b.epoch IS NULL OR runs.epoch = b.epoch)\n      AND (b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)\n      AND runs.status NOT IN ('completed', 'cancelled', 'failed')",
        "(b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)\n      AND runs.status NOT IN ('completed', 'cancelled', 'failed')"
      )
    ]
  },
  q(
    "no compare-and-set in SQLite",
    "store/internal/sqlAppend.ts",
    "AND (b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)\n      AND runs.status NOT IN ('completed', 'cancelled')\n",
    "AND runs.status NOT IN ('completed', 'cancelled')\n"
  ),
  c(
    "store",
    "the cursor is off by one in SQLite",
    "store/SqlStore.ts",
    "WHERE run_key = ${key} AND seq > ${after} ORDER BY seq",
    "WHERE run_key = ${key} AND seq >= ${after} ORDER BY seq"
  ),
  c(
    "policy",
    "a restart keeps the reasoning",
    "resume/ResumePolicy.ts",
    "reasoningLength: turn.reasoning0,\n    droppedToolCallIds: turn.calls.map((call) => call.id)",
    "reasoningLength: state.reasoningLength + 1,\n    droppedToolCallIds: turn.calls.map((call) => call.id)"
  ),
  c(
    "policy",
    "a draft is kept for a model that can not go on with it",
    "resume/ResumePolicy.ts",
    "if (last === -1 || !facts.continuesDraft) return restart(facts)",
    "if (last === -1) return restart(facts)"
  ),
  c(
    "model",
    "an answer that broke off counts as complete",
    "model/OpenAiStream.ts",
    "      if (finishReason === undefined) {",
    '      finishReason ??= "stop"\n      if (finishReason === undefined) {'
  ),
  c(
    "model",
    "a fallback goes on where the first model has begun to speak",
    "model/Fallback.ts",
    "published = true",
    "published = false"
  ),
  h("what is no cursor", "a cursor may have leading zeros", "http/Cursor.ts", "/^(0|[1-9][0-9]*)$/", "/^[0-9]+$/"),
  h(
    "wins over ?after",
    "Last-Event-ID is not looked at",
    "http/Cursor.ts",
    'if (request.lastEventId !== undefined && request.lastEventId !== "") {',
    'if (request.lastEventId === "never") {'
  ),
  h(
    "there is nothing more",
    "a client at the end gets an empty stream",
    "http/HandlersRuns.ts",
    "if (view.ended && cursor === view.lastSeq) return",
    "if (view.ended && cursor > view.lastSeq) return"
  ),
  {
    name: "no heartbeats",
    by: "http",
    only: "never silent",
    edits: [
      edit(
        "http/LogBody.ts",
        "if (pulse && !response.writableNeedDrain) response.write(bytesOf(writer.heartbeat))",
        ""
      ),
      edit(
        "http/LogBody.ts",
        'else if (pull._tag === "idle" && this.write(response, bytesOf(writer.heartbeat))) this.look()',
        'else if (pull._tag === "idle") this.look()'
      )
    ]
  },
  h(
    "behind a cursor",
    "every stream begins at the beginning",
    "http/LogBody.ts",
    "this.cursor = after",
    "this.cursor = 0"
  ),
  h(
    "is the same run",
    "Idempotency-Key is not looked at",
    "http/HandlersChat.ts",
    'const key = request.headers["idempotency-key"]',
    "const key = undefined"
  ),
  h(
    "somebody else",
    "whoever knows the id of a run may read it",
    "engine/Reading.ts",
    "const found = yield* env.store.find({ runId, userId: user })\n    return",
    'const found = Option.orElse(yield* env.store.find({ runId, userId: user }), () => Option.none())\n    const other = yield* env.store.find({ runId, userId: user === "alice" ? "bob" : "alice" })\n    if (Option.isSome(other)) return other.value\n    return'
  )
]
