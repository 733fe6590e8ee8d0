import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { HttpAgent, type Message } from "@ag-ui/client"
import { EventSchemas } from "@ag-ui/core/schemas"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as AgUi from "../../src/adapters/AgUi.js"
import { resumableFetch } from "../../src/adapters/ResumableFetch.js"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import { RunId } from "../../src/domain/Ids.js"
import * as RunState from "../../src/domain/RunState.js"
import * as EventArbitraries from "../../src/testing/EventArbitraries.js"
import * as Server from "./support/AgUiServer.js"
import { golden, type Log, restored, stateOf } from "./support/Logs.js"

const names = { threadId: "thread", clientRunId: "run" }

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** What the vendor's client makes of some runs, through its checks. What it is asked it answers with the next one. */
const shown = async (fetch: Fetch, runs = 1) => {
  const agent = new HttpAgent({
    url: "http://nowhere",
    threadId: names.threadId,
    initialMessages: [{ id: "question", role: "user", content: "?" }],
    fetch
  })
  const failures: Array<string> = []
  for (let run = 0; run < runs; run++) {
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "cancelled" as const }))
    const asked = { runId: names.clientRunId, ...(resume.length > 0 && { resume }) }
    await agent.runAgent(asked).catch((error: Error) => failures.push(error.message))
  }
  // An empty thought says that others are gone; whoever has seen none of them is not told.
  return { messages: agent.messages.filter(({ id }) => !id.endsWith(".none")), failures }
}

/** What must be the same for whoever came late: results stand where they came, and arguments that were not seen in pieces are told anew. */
const known = ({ failures, messages }: Awaited<ReturnType<typeof shown>>) => ({
  failures,
  messages: Object.fromEntries(
    messages.map((message) => [message.id, message.role === "assistant" ? message.content : message])
  ),
  calls: callsOf(messages).map(({ id }) => id)
})

const whole = (log: Log, fetch: Fetch) => shown(fetch, Server.legs(log).length)

const textOf = (messages: ReadonlyArray<Message>, role = "assistant") =>
  messages.flatMap((message) => (message.role === role ? [message.content ?? ""] : [])).join("")

const callsOf = (messages: ReadonlyArray<Message>) =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))

/** A log that comes to an end or a question at least once, and a place in it. */
const logs = EventArbitraries.log.filter((log) => Server.legs(log).length > 0)
const places = logs.chain((log) =>
  FastCheck.tuple(FastCheck.constant(log), FastCheck.integer({ min: 0, max: Server.legs(log).at(-1)?.to ?? 0 }))
)

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

const settled = (toolCallId: string, ok: boolean): AgentEvent => ({
  type: "tool-call-result",
  toolCallId,
  toolName: "read",
  ok,
  state: ok ? "done" : "invalid",
  result: {},
  source: "executed",
  durationMs: 1
})

const runId = RunId.make("run_01890000-0000-7000-8000-000000000001")

const logOf = (events: ReadonlyArray<AgentEvent>): Log =>
  events.map((event, index) => ({ runId, seq: index + 1, event, createdAt: index }))

/** A call that never became ready, with others behind it that did: the run recovers, and the first is settled last. */
const unready: Log = logOf([
  {
    type: "run-start",
    runId,
    seq: 1,
    conversationId: "conversation",
    userMessageId: "question",
    assistantMessageId: "answer",
    model: "m",
    mode: "chat"
  },
  { type: "run-status", status: "running" },
  { type: "run-status", status: "streaming" },
  { type: "text-delta", id: "t0", delta: "a" },
  { type: "tool-call-start", toolCallId: "id0", toolName: "read", kind: "readonly" },
  { type: "tool-call-delta", toolCallId: "id0", delta: "{}" },
  { type: "reasoning-delta", id: "r0", delta: "b" },
  { type: "text-delta", id: "t1", delta: "c" },
  { type: "tool-call-start", toolCallId: "id1", toolName: "read", kind: "readonly" },
  { type: "tool-call-delta", toolCallId: "id1", delta: "{}" },
  { type: "tool-call-ready", toolCallId: "id1", toolName: "read", input: {} },
  { type: "reasoning-delta", id: "r1", delta: "d" },
  { type: "reasoning-delta", id: "r1", delta: "e" },
  { type: "model-end", iteration: 1, finishReason: "tool_calls", usage },
  { type: "run-status", status: "running" },
  {
    type: "run-resumed",
    attempt: 2,
    reason: "recovery",
    checkpointSeq: 15,
    textLength: 2,
    reasoningLength: 3,
    droppedToolCallIds: []
  },
  { type: "tool-start", toolCallId: "id1", toolName: "read", phase: "execute", idempotencyKey: "k" },
  settled("id1", true),
  settled("id0", false),
  { type: "iteration-end", iteration: 1 },
  {
    type: "finish",
    finishReason: "stop",
    model: "m",
    usage,
    timing: { queuedMs: 0, timeToFirstTokenMs: 1, durationMs: 2 }
  }
])

/** The contents of thoughts by their ids, and the ids of all else that the assistant said, in order. */
const outline = (messages: ReadonlyArray<Pick<Message, "id" | "role" | "content">>) => ({
  thoughts: Object.fromEntries(
    messages.flatMap(({ content, id, role }) => (role === "reasoning" ? [[id, content]] : []))
  ),
  order: messages.flatMap(({ id, role }) => (role === "assistant" ? [id] : []))
})

/** Whoever comes at a place, with nothing or with what was told before it, comes to the run's messages in their order. */
const takenUp = async (log: Log, place: number) => {
  const to = Server.legs(log).find((leg) => leg.to >= place)?.to ?? 0
  const run = stateOf(log, to)
  const all = AgUi.messagesOf({ ...run, open: undefined, closed: RunState.turns(run) })
  const before = Server.attached(log, names, 0, place).slice(0, -1)
  const behind = Server.attached(log, names, place, to)
  for (const told of [[behind], [before, behind]]) {
    const texts = told.map(Server.textOf)
    const fetch = async () => new Response(texts.shift(), { headers: { "content-type": "text/event-stream" } })
    const { failures, messages } = await shown(fetch, told.length)
    expect(failures).toEqual([])
    expect(textOf(messages)).toBe(RunState.text(run))
    expect(outline(messages)).toEqual(outline(all))
  }
}

describe("a run as AG-UI events", () => {
  it.effect.prop(
    "passes the client's checks, and comes to the run's text and calls",
    [logs],
    ([log]) =>
      Effect.promise(async () => {
        for (const leg of Server.legs(log)) {
          for (const event of Server.eventsOf(Server.stream(log, names, leg))) EventSchemas.parse(event)
        }
        const { failures, messages } = await whole(log, Server.breaking(log, []).fetch)
        expect(failures).toEqual([])
        const run = stateOf(log, Server.legs(log).at(-1)?.to ?? 0)
        expect(textOf(messages)).toBe(RunState.text(run))
        expect(textOf(messages, "reasoning")).toBe(RunState.text(run, "reasoning"))
        const own = RunState.turns(run).flatMap((turn) => turn.calls.map(({ id }) => id))
        expect(callsOf(messages).map(({ id }) => id)).toEqual(own)
      }),
    { fastCheck: { numRuns: 20, endOnFailure: true } }
  )

  it.effect.prop(
    "goes on behind any event as if it had not been cut",
    [EventArbitraries.log],
    ([log]) =>
      Effect.sync(() => {
        let state = AgUi.behind({ ...names, base: Server.base, run: stateOf(log, 0) })
        for (const envelope of log) {
          state = AgUi.step(state, envelope)[0]
          const known = AgUi.behind({ ...names, base: Server.base, run: restored(stateOf(log, envelope.seq)) })
          const open = ({ calls, step, text }: AgUi.State) => ({ calls, step, text })
          expect(open(state)).toEqual(open(known))
          expect(AgUi.close(state)).toEqual(AgUi.close(known))
          expect(AgUi.messagesOf(state.run)).toEqual(AgUi.messagesOf(known.run))
        }
      }),
    { fastCheck: { numRuns: 60 } }
  )

  it.effect.prop(
    "is taken up at any place, by a client that has nothing, or what came before",
    [places],
    ([[log, place]]) => Effect.promise(() => takenUp(log, place)),
    { fastCheck: { numRuns: 20, endOnFailure: true } }
  )

  it.effect.prop(
    "is the same for its client, wherever its connections break",
    [logs, FastCheck.array(FastCheck.nat(4000), { minLength: 1, maxLength: 5 })],
    ([log, cuts]) =>
      Effect.promise(async () => {
        const server = Server.breaking(log, cuts)
        const survived = await whole(log, resumableFetch({ fetch: server.fetch, delayMs: 0 }))
        expect(known(survived)).toEqual(known(await whole(log, Server.breaking(log, []).fetch)))
      }),
    { fastCheck: { numRuns: 20, endOnFailure: true, examples: [[unready, [8]]] } }
  )

  it("keeps the order of its turn where a piece is still being written and others behind it are not", async () => {
    const once = logOf(unready.map(({ event }) => event).filter(({ type }) => type !== "run-resumed"))
    for (const log of [unready, once]) for (const { seq } of log) await takenUp(log, seq)
  })

  it.each(golden)("is told once, at whatever byte its connection breaks: %s", async (_, log) => {
    const request = { method: "POST", body: JSON.stringify({ threadId: names.threadId, runId: names.clientRunId }) }
    const [leg] = Server.legs(log)
    const text = leg === undefined ? "" : Server.textOf(Server.stream(log, names, leg))
    const { length } = new TextEncoder().encode(text)
    const begun = text.indexOf("\n\n") + 2
    for (let bytes = begun; bytes < length; bytes += 41) {
      const server = Server.breaking(log, [bytes])
      const response = await resumableFetch({ fetch: server.fetch, delayMs: 0 })("http://nowhere", request)
      expect(await response.text()).toBe(text)
      expect(server.connections()).toBe(2)
    }
  })

  it.each(golden)("looks as it always did: %s", async (name, log) => {
    const events = Server.legs(log).flatMap((leg) => Server.eventsOf(Server.stream(log, names, leg)))
    for (const event of events) EventSchemas.parse(event)
    const file = join(__dirname, "golden", `${name}.ag-ui.jsonl`)
    const text = events.map((event) => `${JSON.stringify(event)}\n`).join("")
    if (process.env.RUNLET_GOLDEN === "update") writeFileSync(file, text)
    expect(text).toBe(readFileSync(file, "utf8"))
    const { failures, messages } = await whole(log, Server.breaking(log, []).fetch)
    expect([failures, textOf(messages)]).toEqual([[], RunState.text(stateOf(log, log.length))])
  })
})
