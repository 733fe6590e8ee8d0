/** The MCP SDK's streamable HTTP transport with its example event store: a run is a tool call, a delta a notification. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { type Plan, Source, type Subject } from "../Plan.js"

interface Transport {
  readonly handleRequest: (request: Http.IncomingMessage, response: Http.ServerResponse) => Promise<void>
}
interface Extra {
  readonly sendNotification: (notification: object) => Promise<void>
}
interface Modules {
  readonly Server: new (
    info: object,
    options: object
  ) => {
    readonly setRequestHandler: (schema: unknown, handler: (request: unknown, extra: Extra) => Promise<object>) => void
    readonly connect: (transport: Transport) => Promise<void>
  }
  readonly StreamableHTTPServerTransport: new (options: object) => Transport
  readonly InMemoryEventStore: new () => object
  readonly CallToolRequestSchema: unknown
}

const load = async (): Promise<Modules> => {
  const sdk = "@modelcontextprotocol/sdk"
  return {
    ...(await import(`${sdk}/server/index.js`)),
    ...(await import(`${sdk}/server/streamableHttp.js`)),
    ...(await import(`${sdk}/examples/shared/inMemoryEventStore.js`)),
    ...(await import(`${sdk}/types.js`))
  }
}

export const make = async (): Promise<Subject> => {
  const { CallToolRequestSchema, InMemoryEventStore, Server, StreamableHTTPServerTransport } = await load()
  const transports = new Map<string, Transport>()

  const call = async (plan: Plan, { sendNotification }: Extra): Promise<object> => {
    const source = new Source(plan)
    while (true) {
      const texts = await new Promise<ReadonlyArray<string> | undefined>((resolve) => source.pull(resolve))
      if (texts === undefined) return { content: [] }
      for (const data of texts)
        await sendNotification({ method: "notifications/message", params: { level: "info", data } })
    }
  }
  const open = async (path: string, plan: Plan): Promise<void> => {
    const server = new Server({ name: "bench", version: "1.0.0" }, { capabilities: { tools: {}, logging: {} } })
    server.setRequestHandler(CallToolRequestSchema, (_, extra) => call(plan, extra))
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      eventStore: new InMemoryEventStore()
    })
    await server.connect(transport)
    transports.set(path, transport)
  }
  const server = Http.createServer((request, response) => {
    const transport = transports.get(request.url ?? "")
    if (transport === undefined) return void response.writeHead(404).end()
    void transport.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    port: (server.address() as AddressInfo).port,
    start: async (plan, runs) => {
      const views: Array<Awaited<ReturnType<Subject["start"]>>[number]> = []
      for (let i = 0; i < runs; i++) {
        const path = `/mcp/${transports.size}`
        await open(path, plan)
        views.push({
          runId: path,
          path,
          method: "POST",
          headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "run", arguments: {} } })
        })
      }
      return views
    }
  }
}
