/** A server of tools that counts what it really did. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { eventually } from "./Waiting.js"

/** One call as it arrived. `closedAt`: when its answer was over, or its socket closed. */
export interface ToolRequest {
  readonly tool: string
  readonly phase: string
  readonly input: Record<string, unknown>
  readonly toolCallId: string
  readonly runId: string
  readonly conversationId: string
  readonly key: string
  readonly header: string | undefined
  readonly at: number
  closedAt: number | undefined
  aborted: boolean
}

export type Handler = (request: ToolRequest, response: ServerResponse) => void | Promise<void>

export interface ToolServer {
  readonly url: string
  /** Everything that was asked, in order. */
  readonly ledger: ReadonlyArray<ToolRequest>
  /** The calls of a run, of one phase if given. */
  readonly of: (runId: string, phase?: string) => ReadonlyArray<ToolRequest>
  /** How a tool answers calls whose input holds this text. */
  readonly on: (tool: string, mark: string, handler: Handler) => void
  readonly received: (tool: string, mark: string) => Promise<ToolRequest>
  readonly closed: (tool: string, mark: string) => Promise<ToolRequest>
  readonly stop: () => Promise<void>
}

export const send = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(value === undefined ? "" : JSON.stringify(value))
}

/** Never answers. */
export const hang: Handler = () => undefined

const answer: Handler = ({ input, phase, tool }, response) => {
  if (phase === "preview") return send(response, { would: tool, input })
  if (phase === "commit") return send(response, { saved: input })
  send(response, { tool, found: input })
}

const read = async (incoming: IncomingMessage): Promise<Record<string, unknown>> => {
  const pieces: Array<Buffer> = []
  for await (const piece of incoming) pieces.push(piece as Buffer)
  return JSON.parse(Buffer.concat(pieces).toString("utf8"))
}

export const start = async (): Promise<ToolServer> => {
  const ledger: Array<ToolRequest> = []
  const handlers: Array<{ readonly tool: string; readonly mark: string; readonly handler: Handler }> = []
  const matches = (request: ToolRequest, tool: string, mark: string) =>
    request.tool === tool && JSON.stringify(request.input).includes(mark)

  const server = createServer(async (incoming, response) => {
    const url = new URL(incoming.url ?? "/", "http://localhost")
    if (incoming.method === "GET") {
      const done = ledger.some((request) => request.phase === "commit" && request.key === url.searchParams.get("key"))
      return send(response, { state: done ? "applied" : "absent" })
    }
    const body = await read(incoming)
    const request: ToolRequest = {
      tool: url.pathname.slice(1),
      phase: String(body.phase),
      input: body.input as Record<string, unknown>,
      toolCallId: String(body.toolCallId),
      runId: String(body.runId),
      conversationId: String(body.conversationId),
      key: String(body.idempotencyKey),
      header: incoming.headers["idempotency-key"] as string | undefined,
      at: Date.now(),
      closedAt: undefined,
      aborted: false
    }
    response.on("close", () => {
      request.closedAt = Date.now()
      request.aborted = !response.writableFinished
    })
    response.on("error", () => undefined)
    ledger.push(request)
    const own = handlers.findLast(({ mark, tool }) => matches(request, tool, mark))
    await (own?.handler ?? answer)(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const wait = (tool: string, mark: string, wanted: (request: ToolRequest) => boolean) =>
    eventually(`a call of ${tool} with ${mark}`, () =>
      ledger.find((request) => matches(request, tool, mark) && wanted(request))
    )
  return {
    url: `http://127.0.0.1:${port}`,
    ledger,
    of: (runId, phase) =>
      ledger.filter((request) => request.runId === runId && (phase === undefined || request.phase === phase)),
    on: (tool, mark, handler) => void handlers.push({ tool, mark, handler }),
    received: (tool, mark) => wait(tool, mark, () => true),
    closed: (tool, mark) => wait(tool, mark, (request) => request.closedAt !== undefined),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
