/**
 * A server of the Model Context Protocol on the SDK's own server side, as a process: over its standard streams, or over
 * HTTP when `PORT` is set. It tells what it does in a file, a line of JSON each.
 */
import { randomUUID } from "node:crypto"
import { appendFileSync, existsSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { CallToolRequestSchema, ListToolsRequestSchema, type Tool } from "@modelcontextprotocol/sdk/types.js"

const record = (line: object) => {
  const file = process.env.JOURNAL
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ pid: process.pid, ...line })}\n`)
}

const input = { type: "object" as const, properties: { q: { type: "string" } } }
const reading = { readOnlyHint: true }

const tools: Array<Tool> = [
  { name: "echo", title: "Echoing", description: "Says it again", inputSchema: input, annotations: reading },
  {
    name: "save",
    description: "Saves it",
    inputSchema: { ...input, required: ["q"] },
    annotations: { destructiveHint: false }
  },
  { name: "unsaid", description: "Does something", inputSchema: input },
  { name: "hang", description: "Never answers", inputSchema: input, annotations: reading },
  { name: "hang_write", description: "Never answers", inputSchema: input, annotations: { readOnlyHint: false } },
  { name: "die", description: "Ends in the middle", inputSchema: input, annotations: reading },
  { name: "die_write", description: "Ends in the middle", inputSchema: input, annotations: { destructiveHint: true } },
  { name: "count", description: "Tells its progress", inputSchema: input, annotations: reading },
  { name: "huge", description: "Says a lot", inputSchema: input, annotations: reading },
  { name: "fail", description: "Fails", inputSchema: input, annotations: reading },
  { name: "refuse", description: "Is refused", inputSchema: input, annotations: reading },
  { name: "mixed", description: "Text, a picture and data", inputSchema: input, annotations: reading },
  { name: "data", description: "Structured", inputSchema: input, annotations: reading },
  { name: "grow", description: "Adds a tool", inputSchema: input, annotations: reading },
  { name: "a name/with signs", description: "Odd", inputSchema: input, annotations: reading },
  {
    name: "broken",
    description: "Of no use",
    inputSchema: { type: "object", properties: { q: { type: "no type" } } },
    annotations: reading
  }
]
/** Far more than anybody would offer to a model. */
const many = Number(process.env.MANY ?? 0)
for (let n = 0; n < many; n++) {
  const properties = { ...input.properties, [`p${n}`]: { type: "integer" } }
  tools.push({
    name: `many_${n}`,
    description: "One of many".padEnd(Number(process.env.WORDY ?? 0), "."),
    inputSchema: { type: "object", properties },
    annotations: reading
  })
}
/** Schemas that take seconds to be compiled. */
for (let n = 0; n < Number(process.env.SLOW ?? 0); n++) {
  const anyOf = Array.from({ length: 20_000 }, () => ({ minimum: n }))
  tools.unshift({ name: `slow_${n}`, description: "Slow", inputSchema: { type: "object", anyOf } })
}
/** So that there are several pages. */
const pageSize = Number(process.env.PAGE ?? 5)

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] })
const secret = process.env.API_TOKEN ?? "none"

const make = () => {
  const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: { listChanged: true } } })
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const from = Number(params?.cursor ?? 0)
    const next = from + pageSize
    record({ listed: from })
    return { tools: tools.slice(from, next), ...(next < tools.length && { nextCursor: String(next) }) }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { sendNotification, signal, _meta }) => {
    const { name } = params
    const key = params._meta?.["runlet/idempotency-key"]
    record({ called: name, input: params.arguments, key })
    signal.addEventListener("abort", () => record({ cancelled: name }))
    switch (name) {
      case "save":
      case "unsaid":
        return text(`saved ${String(params.arguments?.q)}`)
      case "hang":
      case "hang_write":
        return new Promise(() => undefined)
      case "die":
      case "die_write":
        process.exit(1)
        break
      case "count": {
        const progressToken = _meta?.progressToken ?? 0
        for (let i = 1; i <= 3; i++) {
          const message = i === 3 ? { message: `nearly there, ${secret}` } : {}
          await sendNotification({
            method: "notifications/progress",
            params: { progressToken, progress: i, total: 3, ...message }
          })
        }
        return text("counted")
      }
      case "huge":
        return text("x".repeat(Number(params.arguments?.q ?? 1_000_000)))
      case "fail":
        return { ...text(`it does not work, ${secret}`), isError: true }
      case "refuse":
        throw new Error(`no such thing, ${secret}`)
      case "mixed":
        return {
          content: [
            { type: "text" as const, text: "look" },
            { type: "image" as const, data: Buffer.alloc(300).toString("base64"), mimeType: "image/png" },
            { type: "resource" as const, resource: { uri: "file:///a", text: "inside" } }
          ]
        }
      case "data":
        return { ...text("{}"), structuredContent: { level: 3, token: secret } }
      case "grow":
        tools.push({ name: "grown", description: "New", inputSchema: input, annotations: reading })
        await server.sendToolListChanged()
        return text("grown")
      default:
        return text(`echo ${String(params.arguments?.q)} ${secret}`)
    }
    return text("")
  })
  return server
}

record({ started: true })
process.on("SIGTERM", () => {
  if (process.env.STUBBORN === undefined) process.exit(0)
})

const serveHttp = (port: number) => {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const sockets = new WeakSet<object>()
  const http = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"]
    record({ [request.method ?? ""]: request.headers.authorization ?? null })
    if (!sockets.has(request.socket)) {
      sockets.add(request.socket)
      request.socket.on("close", () => record({ closed: true }))
    }
    const known = typeof id === "string" ? sessions.get(id) : undefined
    if (typeof id === "string" && known === undefined) {
      response.writeHead(404).end()
      return
    }
    if (known !== undefined) return known.handleRequest(request, response)
    if (process.env.STATELESS !== undefined) {
      if (request.method !== "POST") {
        response.writeHead(405).end()
        return
      }
      const once = new StreamableHTTPServerTransport({ enableJsonResponse: true })
      await make().connect(once as Parameters<Server["connect"]>[0])
      return once.handleRequest(request, response)
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => {
        sessions.set(session, transport)
      }
    })
    // The SDK's own types disagree about an absent field.
    await make().connect(transport as Parameters<Server["connect"]>[0])
    return transport.handleRequest(request, response)
  })
  http.listen(port, "127.0.0.1", () => {
    process.stdout.write(`${(http.address() as AddressInfo).port}\n`)
  })
}

if (process.env.FAIL_WHILE !== undefined && existsSync(process.env.FAIL_WHILE)) {
  process.stderr.write(`can not start with ${secret}\n`)
  process.exit(3)
}
if (process.env.STUBBORN !== undefined) setInterval(() => undefined, 1_000)
if (process.env.PORT !== undefined) serveHttp(Number(process.env.PORT))
else await make().connect(new StdioServerTransport())
