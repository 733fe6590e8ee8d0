import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { HttpAgent, type Message } from "@ag-ui/client"
import { EventSchemas } from "@ag-ui/core/schemas"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as AgUi from "../../src/adapters/AgUi.js"
import { resumableFetch } from "../../src/adapters/ResumableFetch.js"
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
        expect(
          callsOf(messages)
            .map(({ id }) => id)
            .toSorted()
        ).toEqual(own.toSorted())
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
    "is taken up at any place, by a client that has nothing",
    [places],
    ([[log, place]]) =>
      Effect.promise(async () => {
        const to = Server.legs(log).find((leg) => leg.to >= place)?.to ?? 0
        const text = Server.textOf(Server.attached(log, names, place, to))
        const fetch = async () => new Response(text, { headers: { "content-type": "text/event-stream" } })
        const { failures, messages } = await shown(fetch)
        expect(failures).toEqual([])
        expect(textOf(messages)).toBe(RunState.text(stateOf(log, to)))
      }),
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
    { fastCheck: { numRuns: 20, endOnFailure: true } }
  )

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
