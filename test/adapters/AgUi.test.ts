import { HttpAgent } from "@ag-ui/client"
import { EventSchemas } from "@ag-ui/core/schemas"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as AgUi from "../../src/adapters/AgUi.js"
import type * as Envelope from "../../src/domain/Envelope.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import * as EventArbitraries from "../../src/testing/EventArbitraries.js"

type Log = ReadonlyArray<Envelope.Envelope>

const names = { threadId: "thread", clientRunId: "run" }
const base: ReadonlyArray<AgUi.Message> = [{ id: "question", role: "user", content: "?" }]

const stateOf = (log: Log, seq: number) => {
  const run = RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log.slice(0, seq))
  return seq === 0 ? run : RunState.ofSnapshot(Snapshot.of(run))
}

const from = (log: Log, begin: AgUi.State): ReadonlyArray<AgUi.Event> => {
  let state = begin
  const events: Array<AgUi.Event> = []
  for (const envelope of log.slice(begin.run.seq)) {
    const [next, more] = AgUi.step(state, envelope)
    state = next
    events.push(...more)
  }
  return [...events, ...AgUi.close(state)]
}

/** The messages that the vendor's client makes of events, through its checks. Arguments are compared as JSON. */
const shown = async (events: ReadonlyArray<AgUi.Event>) => {
  for (const event of events) EventSchemas.parse(event)
  const agent = new HttpAgent({
    url: "http://nowhere",
    initialMessages: [{ id: "question", role: "user", content: "?" }],
    fetch: async () => new Response(AgUi.encode(events), { headers: { "content-type": "text/event-stream" } })
  })
  await agent.runAgent({ runId: "run" })
  return agent.messages
}

const ended = EventArbitraries.log.filter((log) => ["finish", "cancelled"].includes(log.at(-1)?.event.type ?? ""))

describe("a run as AG-UI events", () => {
  it.effect.prop(
    "passes the client's checks, and comes to the run's text and calls",
    [ended],
    ([log]) =>
      Effect.promise(async () => {
        const run = RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log)
        const begin = AgUi.behind({ ...names, base, run: stateOf(log, 0) })
        const messages = await shown([AgUi.begun(names), ...from(log, begin)])
        const text = messages.flatMap(({ content, role }) => (role === "assistant" ? [content ?? ""] : [])).join("")
        expect(text).toBe(RunState.text(run))
        const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
        const own = RunState.turns(run).flatMap((turn) => turn.calls.map(({ id }) => id))
        expect(calls.map(({ id }) => id).toSorted()).toEqual(own.toSorted())
      }),
    { fastCheck: { numRuns: 60, endOnFailure: true } }
  )

  it.effect.prop(
    "is taken up at any place, by a client that has nothing",
    [ended.chain((log) => FastCheck.tuple(FastCheck.constant(log), FastCheck.integer({ min: 1, max: log.length })))],
    ([[log, place]]) =>
      Effect.promise(async () => {
        const run = RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log)
        const [state, first] = AgUi.attach({ ...names, base, run: stateOf(log, place) })
        const messages = await shown([...first, ...from(log, state)])
        const text = messages.flatMap(({ content, role }) => (role === "assistant" ? [content ?? ""] : [])).join("")
        expect(text).toBe(RunState.text(run))
      }),
    { fastCheck: { numRuns: 60, endOnFailure: true } }
  )
})
