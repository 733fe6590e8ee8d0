/**
 * The outside world of the tools: an HTTP server in the test's own process that counts what really happened, so that it
 * survives every kill. A tool honours the key of a request before anything else, as tools should, unless it is one of
 * those that know no keys.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Entry {
  readonly tool: string
  readonly phase: string
  readonly key: string
  readonly runId: string
  readonly toolCallId: string
  readonly input: Record<string, unknown>
  /** Epoch milliseconds: arrived, took effect, was answered. */
  readonly at: number
  effectAt?: number
  answeredAt?: number
  /** Nothing happens any more for this request. */
  settled: boolean
  conflict?: boolean
}

export type Point = "received" | "effect" | "answered"

export interface Delays {
  readonly beforeMs: number
  readonly afterMs: number
}

export interface Behaviour {
  /** Whether a second request with a key that took effect is answered without another effect. */
  readonly keyed: boolean
  readonly delays: Delays
  /** Gives up before its effect when the caller is gone. */
  readonly givesUp?: boolean
}

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

export class Ledger {
  readonly entries: Array<Entry> = []
  /** Keys that the status address was asked for. */
  readonly asked: Array<string> = []
  private readonly listeners = new Set<(point: Point, entry: Entry) => void>()
  private readonly server: Server

  private constructor(private readonly behaviours: Record<string, Behaviour>) {
    this.server = createServer((request, response) => {
      response.on("error", () => undefined)
      void this.serve(request, response)
    })
  }

  static async start(behaviours: Record<string, Behaviour>): Promise<Ledger> {
    const ledger = new Ledger(behaviours)
    await new Promise<void>((done) => ledger.server.listen(0, "127.0.0.1", done))
    return ledger
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  stop(): Promise<void> {
    this.server.closeAllConnections()
    return new Promise((done) => this.server.close(() => done()))
  }

  on(listener: (point: Point, entry: Entry) => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** What took effect for a call, in order. */
  effects(runId: string, toolCallId?: string): ReadonlyArray<Entry> {
    return this.entries.filter(
      (entry) =>
        entry.effectAt !== undefined &&
        entry.runId === runId &&
        (toolCallId === undefined || entry.toolCallId === toolCallId)
    )
  }

  of(runId: string): ReadonlyArray<Entry> {
    return this.entries.filter((entry) => entry.runId === runId)
  }

  /** Waits until nothing is under way for a call. */
  async quiet(runId: string, toolCallId: string): Promise<void> {
    while (this.entries.some((entry) => entry.runId === runId && entry.toolCallId === toolCallId && !entry.settled)) {
      await sleep(5)
    }
  }

  private tell(point: Point, entry: Entry): void {
    for (const listener of this.listeners) listener(point, entry)
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost")
    if (request.method === "GET") return this.status(url.searchParams.get("key") ?? "", response)
    let text = ""
    request.setEncoding("utf8")
    for await (const piece of request) text += piece
    const body = JSON.parse(text) as {
      phase: string
      input: Record<string, unknown>
      toolCallId: string
      runId: string
      idempotencyKey: string
    }
    const tool = url.pathname.slice(1)
    const entry: Entry = {
      tool,
      phase: body.phase,
      key: body.idempotencyKey,
      runId: body.runId,
      toolCallId: body.toolCallId,
      input: body.input,
      at: Date.now(),
      settled: false
    }
    if (request.headers["idempotency-key"] !== entry.key) throw new Error("The header has another key than the body")
    this.entries.push(entry)
    this.tell("received", entry)
    const behaviour = this.behaviours[tool] ?? { keyed: false, delays: { beforeMs: 0, afterMs: 0 } }
    await this.act(entry, behaviour, response)
    entry.settled = true
  }

  private async act(entry: Entry, behaviour: Behaviour, response: ServerResponse): Promise<void> {
    const delays = { ...behaviour.delays, ...(entry.input.delays as Partial<Delays> | undefined) }
    await sleep(delays.beforeMs)
    const gone = response.destroyed || response.socket?.destroyed === true
    if (gone && (behaviour.givesUp === true || entry.input.givesUp === true)) return
    const done = this.entries.find((other) => other.key === entry.key && other.effectAt !== undefined)
    if (entry.phase === "preview") return this.answer(entry, response, { would: entry.input })
    if (behaviour.keyed && done !== undefined) return this.answer(entry, response, resultOf(done))
    if (entry.phase === "commit" && this.changed(entry)) {
      entry.conflict = true
      response.writeHead(409, { "content-type": "application/json" })
      response.end(JSON.stringify({ message: "It was changed since." }))
      return
    }
    entry.effectAt = Date.now()
    this.tell("effect", entry)
    await sleep(delays.afterMs)
    this.answer(entry, response, resultOf(entry))
  }

  /** The target of an input with `conflict` has changed for everybody who comes with the first key. */
  private changed(entry: Entry): boolean {
    if (entry.input.conflict !== true) return false
    const first = this.entries.find((other) => other.toolCallId === entry.toolCallId && other.phase === "commit")
    return first?.key === entry.key
  }

  private answer(entry: Entry, response: ServerResponse, result: unknown): void {
    if (response.destroyed) return
    response.writeHead(200, { "content-type": "application/json" })
    response.end(JSON.stringify(result))
    entry.answeredAt = Date.now()
    this.tell("answered", entry)
  }

  private status(key: string, response: ServerResponse): void {
    this.asked.push(key)
    const done = this.entries.find((entry) => entry.key === key && entry.effectAt !== undefined)
    response.writeHead(200, { "content-type": "application/json" })
    response.end(
      JSON.stringify(done === undefined ? { state: "absent" } : { state: "applied", result: resultOf(done) })
    )
  }
}

const resultOf = (entry: Entry): unknown => ({ tool: entry.tool, input: entry.input, key: entry.key })
