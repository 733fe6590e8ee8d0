/** A client of the HTTP interface that hides nothing. */
import { createParser } from "eventsource-parser"
import type { AgentEvent, EventOf } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import type { Snapshot } from "../../../src/domain/Snapshot.js"
import { eventually } from "./Waiting.js"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of an answer is checked by the test
  readonly body: any
}

export interface Control {
  readonly type: "resume-start" | "resume-unavailable"
  readonly runId: string
  readonly fromSeq?: number
  readonly replayedCount?: number
  readonly reason?: string
  readonly recoverable?: boolean
}

/** One streamed response while it is read. `times` and `comments` hold when things arrived, epoch milliseconds. */
export interface Reading {
  readonly status: number
  readonly headers: Headers
  readonly envelopes: ReadonlyArray<Envelope>
  readonly ids: ReadonlyArray<string | undefined>
  readonly times: ReadonlyArray<number>
  readonly comments: ReadonlyArray<number>
  readonly controls: ReadonlyArray<Control>
  readonly raw: () => string
  /** The first envelope whose event satisfies the predicate. */
  readonly until: (what: string, wanted: (event: AgentEvent) => boolean) => Promise<Envelope>
  /** Everything, once the server has closed the stream. */
  readonly ended: Promise<ReadonlyArray<Envelope>>
  readonly close: () => void
}

/** A run that was accepted. */
export interface Accepted {
  readonly runId: string
  readonly conversationId: string
  readonly assistantMessageId: string
  readonly status: string
}

type Body = string | Record<string, unknown>
type HeaderList = Record<string, string>

export interface Client {
  readonly call: (method: string, path: string, body?: unknown, headers?: HeaderList) => Promise<Answer>
  readonly open: (
    path: string,
    options?: { readonly method?: string; readonly body?: unknown; readonly headers?: HeaderList }
  ) => Promise<Reading>
  /** Starts a run in the background; a text is the message. */
  readonly start: (body: Body, headers?: HeaderList) => Promise<Accepted>
  /** Starts a run and reads it. */
  readonly chat: (body: Body, headers?: HeaderList) => Promise<Reading>
  readonly events: (runId: string, after?: number) => Promise<Reading>
  /** The whole log of an ended run, or what there is of another one. */
  readonly log: (runId: string) => Promise<ReadonlyArray<Envelope>>
  readonly snapshot: (runId: string) => Promise<Snapshot>
  /** Waits until the snapshot is as wanted. */
  readonly until: (runId: string, what: string, wanted: (snapshot: Snapshot) => boolean) => Promise<Snapshot>
  /** Waits until nothing more happens: ended, or waiting for a person. */
  readonly settled: (runId: string) => Promise<Snapshot>
  readonly waiting: (runId: string) => Promise<Snapshot["pendingApprovals"][number]>
  readonly decide: (runId: string, approvalId: string, decision: string, more?: object) => Promise<Answer>
  readonly cancel: (runId: string) => Promise<Answer>
  readonly resume: (run: { readonly runId: string }, lastAppliedSeq: number, more?: object) => Promise<Reading>
}

const restful = new Set(["completed", "cancelled", "failed", "waiting_approval"])

export const make = (url: () => string, token?: string): Client => {
  const headersOf = (body: unknown, headers: HeaderList): HeaderList => ({
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { "content-type": "application/json" }),
    ...headers
  })
  const encoded = (body: unknown) =>
    body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }

  const call: Client["call"] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url()}${path}`, {
      method,
      headers: headersOf(body, headers),
      ...encoded(body)
    })
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.includes("application/json") === true
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== "" ? JSON.parse(text) : undefined
    }
  }

  const open: Client["open"] = async (path, options = {}) => {
    const { body, headers = {}, method = body === undefined ? "GET" : "POST" } = options
    const abort = new AbortController()
    const response = await fetch(`${url()}${path}`, {
      method,
      headers: headersOf(body, headers),
      signal: abort.signal,
      ...encoded(body)
    })
    return read(response, abort)
  }

  const bodyOf = (body: Body) => (typeof body === "string" ? { message: body } : body)
  const start: Client["start"] = async (body, headers) => {
    const answer = await call("POST", "/chat", { ...bodyOf(body), background: true }, headers)
    if (answer.status !== 202) throw new Error(`not accepted: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const snapshot: Client["snapshot"] = async (runId) => {
    const answer = await call("GET", `/runs/${runId}`)
    if (answer.status !== 200) throw new Error(`no snapshot: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const until: Client["until"] = async (runId, what, wanted) => {
    let last: Snapshot | undefined
    try {
      return await eventually(`run ${runId} to be ${what}`, async () => {
        last = await snapshot(runId)
        return wanted(last) ? last : undefined
      })
    } catch (error) {
      throw new Error(`${String(error)}: ${JSON.stringify(last)}`)
    }
  }
  return {
    call,
    open,
    start,
    chat: (body, headers) => open("/chat", { body: bodyOf(body), ...(headers !== undefined && { headers }) }),
    events: (runId, after) => open(`/runs/${runId}/events${after === undefined ? "" : `?after=${after}`}`),
    log: async (runId) => {
      const answer = await call("GET", `/runs/${runId}/trace`)
      if (answer.status !== 200) throw new Error(`no trace: ${answer.status} ${answer.text}`)
      const [, ...lines] = answer.text.trimEnd().split("\n")
      return lines.map((line) => JSON.parse(line))
    },
    snapshot,
    until,
    settled: (runId) => until(runId, "settled", ({ status }) => restful.has(status)),
    waiting: async (runId) => {
      const { pendingApprovals } = await until(
        runId,
        "waiting for a person",
        (found) => found.status === "waiting_approval" && found.pendingApprovals.length > 0
      )
      const [pending] = pendingApprovals
      if (pending === undefined) throw new Error("nothing is pending")
      return pending
    },
    decide: (runId, approvalId, decision, more) =>
      call("POST", `/runs/${runId}/approvals/${approvalId}`, { decision, ...more }),
    cancel: (runId) => call("POST", `/runs/${runId}/cancel`),
    resume: ({ runId }, lastAppliedSeq, more) => open("/chat", { body: { resume: { runId, lastAppliedSeq, ...more } } })
  }
}

const read = (response: Response, abort: AbortController): Reading => {
  const envelopes: Array<Envelope> = []
  const ids: Array<string | undefined> = []
  const times: Array<number> = []
  const comments: Array<number> = []
  const controls: Array<Control> = []
  const decoder = new TextDecoder()
  let raw = ""
  let over = false
  const parser = createParser({
    onComment: () => comments.push(Date.now()),
    onEvent: ({ data, id }) => {
      const value = JSON.parse(data)
      if (!("event" in value)) return void controls.push(value)
      envelopes.push(value)
      ids.push(id)
      times.push(Date.now())
    }
  })
  const pump = async () => {
    const reader = response.body?.getReader()
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      const text = decoder.decode(next.value, { stream: true })
      raw += text
      parser.feed(text)
    }
  }
  const ended = pump().then(
    () => {
      over = true
      return envelopes
    },
    (error) => {
      over = true
      throw error
    }
  )
  ended.catch(() => undefined)
  return {
    status: response.status,
    headers: response.headers,
    envelopes,
    ids,
    times,
    comments,
    controls,
    raw: () => raw,
    until: (what, wanted) =>
      eventually(what, () => {
        const found = envelopes.find(({ event }) => wanted(event))
        if (found === undefined && over) throw new Error(`the stream ended without ${what}: ${raw.slice(-2000)}`)
        return found
      }),
    ended,
    close: () => abort.abort()
  }
}

/** The events of one type. */
export const ofType = <Type extends AgentEvent["type"]>(
  envelopes: ReadonlyArray<Envelope>,
  type: Type
): ReadonlyArray<EventOf<Type>> =>
  envelopes.flatMap(({ event }) => (event.type === type ? [event as EventOf<Type>] : []))

export const typesOf = (envelopes: ReadonlyArray<Envelope>): ReadonlyArray<string> =>
  envelopes.map(({ event }) => event.type)
