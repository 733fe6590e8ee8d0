/** The AG-UI endpoints over one finished log, without a server: what a client is told, and connections that break. */
import * as AgUi from "../../../src/adapters/AgUi.js"
import { type Log, restored, stateOf } from "./Logs.js"

export const base: ReadonlyArray<AgUi.Message> = [{ id: "question", role: "user", content: "?" }]

/** What each request of a client for a log is answered with: up to where the run has ended or waits for a person. */
export const legs = (log: Log): ReadonlyArray<{ readonly from: number; readonly to: number }> => {
  const over = [false, ...log.map(({ seq }) => isOver(stateOf(log, seq)))]
  const stops = log.flatMap(({ seq }) => (over[seq] === true && over[seq - 1] === false ? [seq] : []))
  return stops.map((to, index) => ({ from: stops[index - 1] ?? 0, to }))
}

const isOver = (run: AgUi.State["run"]) => AgUi.isOver(AgUi.behind({ threadId: "", clientRunId: "", base, run }))

type Said = ReadonlyArray<readonly [seq: number, events: ReadonlyArray<AgUi.Event>]>

/** What follows a state, event by event, and what the stream ends with. */
export const rest = (log: Log, [begin, first]: readonly [AgUi.State, ReadonlyArray<AgUi.Event>], to: number): Said => {
  let state = begin
  const said: Array<Said[number]> = [[begin.run.seq, first]]
  for (const envelope of log.slice(begin.run.seq, to)) {
    const [next, events] = AgUi.step(state, envelope)
    state = next
    said.push([envelope.seq, events])
  }
  return [...said, [state.run.seq, AgUi.close(state)]]
}

/** The stream of one leg: a new run, the rest of one that asked something, or one that failed and goes on. */
export const stream = (log: Log, names: Names, { from, to }: { readonly from: number; readonly to: number }): Said => {
  const options = { ...names, base, run: restored(stateOf(log, from)) }
  if (from === 0) return rest(log, [AgUi.behind(options), [AgUi.begun(names)]], to)
  return rest(log, options.run.end === undefined ? AgUi.again(options) : AgUi.attach(options), to)
}

export const behind = (log: Log, names: Names, seq: number, to: number): Said =>
  rest(log, [AgUi.behind({ ...names, base, run: restored(stateOf(log, seq)) }), []], to)

export const attached = (log: Log, names: Names, seq: number, to: number): Said =>
  rest(log, AgUi.attach({ ...names, base, run: restored(stateOf(log, seq)) }), to)

interface Names {
  readonly threadId: string
  readonly clientRunId: string
}

export const eventsOf = (said: Said): ReadonlyArray<AgUi.Event> => said.flatMap(([, events]) => events)

export const textOf = (said: Said): string => said.map(([seq, events]) => AgUi.encode(events, seq)).join("")

const eventStream = { "content-type": "text/event-stream" }

/** Gives this many bytes of a text, then breaks, if there are more. */
const broken = (text: string, bytes: number, headers: Record<string, string>): Response => {
  const all = new TextEncoder().encode(text)
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(all.subarray(0, bytes))
      if (bytes >= all.length) controller.close()
    },
    pull: (controller) => controller.error(new TypeError("network error"))
  })
  return new Response(body, { headers: { ...eventStream, ...headers } })
}

/** A server of one log, whose n-th connection breaks after `cuts[n]` bytes. */
export const breaking = (log: Log, cuts: ReadonlyArray<number>) => {
  let connections = 0
  let legsServed = 0
  let to = 0
  return {
    connections: () => connections,
    fetch: async (url: string, init: RequestInit): Promise<Response> => {
      const most = cuts[connections++] ?? Number.POSITIVE_INFINITY
      if (init.method === "POST") {
        const leg = legs(log)[legsServed++]
        const { runId, threadId } = JSON.parse(String(init.body))
        if (leg === undefined) return new Response("", { status: 404 })
        to = leg.to
        return broken(textOf(stream(log, { threadId, clientRunId: runId }, leg)), most, { "x-run-id": "run" })
      }
      const { searchParams } = new URL(url)
      const names = {
        threadId: searchParams.get("threadId") ?? "",
        clientRunId: searchParams.get("clientRunId") ?? ""
      }
      const cursor = new Headers(init.headers).get("last-event-id")
      const said = cursor === null ? attached(log, names, to, to) : behind(log, names, Number(cursor), to)
      return broken(textOf(said), most, {})
    }
  }
}
