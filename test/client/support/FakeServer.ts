/** A server in memory behind `fetch`: it keeps logs, shows them as streams, and can be cut, silenced and taken down. */
import type { AgentEvent } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import * as RunState from "../../../src/domain/RunState.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"
import * as RunView from "../../../src/domain/RunView.js"
import * as Snapshot from "../../../src/domain/Snapshot.js"
import * as Sse from "../../../src/http/Sse.js"

export interface Request {
  readonly method: string
  readonly path: string
  readonly after: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** One open stream. `cursor` is the last seq written to it. */
export interface Connection {
  readonly runId: string
  cursor: number
  /** What is written to a mute one is swallowed without a word. */
  mute: boolean
  readonly write: (text: string | Uint8Array) => void
  /** Ends it in good order. */
  readonly end: () => void
  /** Breaks it off. */
  readonly cut: () => void
}

export type Answer = (request: Request) => Response | undefined | Promise<Response | undefined>

const encoder = new TextEncoder()

export const json = (status: number, body: unknown): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } })

export const refusal = (status: number, _tag: string, more: object = {}): Response =>
  json(status, { _tag, message: `${_tag}: do something about it`, ...more })

export class FakeServer {
  readonly logs = new Map<string, Array<Envelope>>()
  readonly requests: Array<Request> = []
  readonly connections = new Set<Connection>()
  /** The most streams that were open at once. */
  mostOpen = 0
  /** Answers before the server does; `undefined` leaves it to the server. */
  intercept: Answer = () => undefined
  /** While it is down, no request is answered. */
  down = false

  constructor() {
    this.fetch = this.fetch.bind(this)
  }

  get streams(): ReadonlyArray<Request> {
    return this.requests.filter(({ path }) => path.endsWith("/events"))
  }

  log(runId: string): ReadonlyArray<Envelope> {
    return this.logs.get(runId) ?? []
  }

  state(runId: string): RunState.RunState {
    return RunState.reduceAll(RunState.empty(runId), this.log(runId))
  }

  /** What a client that has heard everything shows. */
  view(runId: string): RunView.RunView {
    return this.log(runId).reduce(RunView.reduce, RunView.empty(runId))
  }

  create(runId: string, conversationId = "conv_1"): void {
    this.logs.set(runId, [])
    this.append(runId, {
      type: "run-start",
      runId,
      seq: 1,
      conversationId,
      userMessageId: `user_${runId}`,
      assistantMessageId: `answer_${runId}`,
      model: "m",
      mode: "chat"
    })
  }

  append(runId: string, ...events: ReadonlyArray<AgentEvent>): void {
    const log = this.logs.get(runId)
    if (log === undefined) throw new Error(`There is no run ${runId}`)
    for (const event of events)
      log.push({ runId: runId as Envelope["runId"], seq: log.length + 1, event, createdAt: 1 })
    for (const connection of this.connections) if (connection.runId === runId) this.flush(connection)
  }

  say(runId: string, ...words: ReadonlyArray<string>): void {
    this.append(runId, ...words.map((delta) => ({ type: "text-delta" as const, id: "t", delta })))
  }

  /** A run that has begun to answer. */
  begin(runId: string, conversationId?: string): void {
    this.create(runId, conversationId)
    this.append(runId, { type: "run-status", status: "running" }, { type: "run-status", status: "streaming" })
  }

  finish(runId: string): void {
    this.append(runId, {
      type: "finish",
      finishReason: "stop",
      model: "m",
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      timing: { queuedMs: 0, timeToFirstTokenMs: 0, durationMs: 1 }
    })
  }

  fail(runId: string, recoverable = true): void {
    this.append(runId, {
      type: "error",
      code: "upstream",
      message: "The model broke off.",
      recoverable,
      usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
    })
  }

  beat(): void {
    for (const connection of this.connections) connection.write(Sse.heartbeat)
  }

  cut(): void {
    for (const connection of this.connections) connection.cut()
  }

  /** The network swallows what is sent on the connections that are open now. */
  blackHole(): void {
    for (const connection of this.connections) connection.mute = true
  }

  private flush(connection: Connection): void {
    if (connection.mute) return
    const log = this.log(connection.runId)
    for (const envelope of log.slice(connection.cursor)) {
      connection.write(Sse.frame(envelope.seq, JSON.stringify(envelope)))
      connection.cursor = envelope.seq
    }
    if (RunStatus.isEnded(this.state(connection.runId).status)) connection.end()
  }

  async fetch(input: string | URL | globalThis.Request, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input), "http://server")
    const after = url.searchParams.get("after")
    const request: Request = {
      method: init.method ?? "GET",
      path: url.pathname,
      after: after === null ? undefined : Number(after),
      headers: Object.fromEntries(new Headers(init.headers)),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined
    }
    this.requests.push(request)
    init.signal?.throwIfAborted()
    if (this.down) throw new TypeError("fetch failed")
    const signal = init.signal ?? undefined
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")))
    })
    return (await Promise.race([this.intercept(request), aborted])) ?? this.answer(request, url, signal)
  }

  private answer({ after, method, path }: Request, url: URL, signal: AbortSignal | undefined): Response {
    const [, root, runId = "", action] = path.split("/")
    if (root === "runs" && runId === "") {
      const conversationId = url.searchParams.get("conversationId")
      const items = [...this.logs.keys()]
        .map((id) => Snapshot.of(this.state(id)))
        .filter((snapshot) => conversationId === null || snapshot.conversationId === conversationId)
        .reverse()
      return json(200, { items: items.slice(0, Number(url.searchParams.get("limit") ?? 50)) })
    }
    if (root !== "runs" || !this.logs.has(runId)) return refusal(404, "NotFound")
    const state = this.state(runId)
    if (action === undefined && method === "GET") return json(200, Snapshot.of(state))
    if (action === "events") return this.stream(runId, after ?? 0, signal)
    return refusal(404, "NotFound")
  }

  private stream(runId: string, after: number, signal: AbortSignal | undefined): Response {
    const state = this.state(runId)
    if (after > state.seq) return refusal(400, "InvalidCursor")
    if (RunStatus.isEnded(state.status) && after === state.seq) return new Response(null, { status: 204 })
    const open = this.connections
    const opened = (connection: Connection) => {
      open.add(connection)
      this.mostOpen = Math.max(this.mostOpen, open.size)
      connection.write(Sse.preamble(1000))
      this.flush(connection)
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const closing = (close: () => void) => () => {
          if (open.delete(connection)) close()
        }
        const connection: Connection = {
          runId,
          cursor: after,
          mute: false,
          write: (text) => {
            if (!connection.mute) controller.enqueue(typeof text === "string" ? encoder.encode(text) : text)
          },
          end: closing(() => controller.close()),
          cut: closing(() => controller.error(new TypeError("terminated")))
        }
        signal?.addEventListener(
          "abort",
          closing(() => controller.error(new DOMException("aborted", "AbortError")))
        )
        opened(connection)
      }
    })
    return new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } })
  }
}
