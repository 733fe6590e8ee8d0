/** A proxy that remembers what it was asked and can cut every connection that it holds. */
import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Proxy {
  readonly url: string
  readonly requests: ReadonlyArray<{ readonly url: string; readonly headers: IncomingHttpHeaders }>
  readonly cut: () => void
  readonly stop: () => Promise<void>
}

export const start = async (target: string): Promise<Proxy> => {
  const requests: Array<{ url: string; headers: IncomingHttpHeaders }> = []
  const open = new Set<ServerResponse>()
  const server = createServer((incoming, outgoing) => {
    requests.push({ url: incoming.url ?? "", headers: incoming.headers })
    open.add(outgoing)
    const { host, ...headers } = incoming.headers
    const forwarded = request(
      new URL(incoming.url ?? "/", target),
      { method: incoming.method ?? "GET", headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        outgoing.flushHeaders()
        answer.pipe(outgoing)
      }
    )
    forwarded.on("error", () => outgoing.destroy())
    outgoing.on("close", () => {
      open.delete(outgoing)
      forwarded.destroy()
    })
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    cut: () => {
      for (const response of open) response.destroy()
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
