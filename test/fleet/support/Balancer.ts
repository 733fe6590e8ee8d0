/**
 * A proxy in front of several servers: each request goes to the next of them that takes it. It gives up a request whose
 * server dies while it answers, as proxies do.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Balancer {
  readonly url: string
  /** How many requests each target has taken, by its address. */
  readonly taken: ReadonlyMap<string, number>
  readonly stop: () => Promise<void>
}

const bodyOf = async (incoming: IncomingMessage): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  for await (const piece of incoming) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

export const start = async (targets: () => ReadonlyArray<string>): Promise<Balancer> => {
  const taken = new Map<string, number>()
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })
  let turn = 0

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer, left: number): void => {
    const all = targets()
    const target = all[turn++ % Math.max(1, all.length)]
    if (target === undefined || left === 0) return void outgoing.destroy()
    const { host, "transfer-encoding": _, ...headers } = incoming.headers
    const forwarded = request(
      new URL(incoming.url ?? "/", target),
      {
        agent,
        method: incoming.method ?? "GET",
        headers: { ...headers, ...(body.length > 0 && { "content-length": body.length }) }
      },
      (answer) => {
        taken.set(target, (taken.get(target) ?? 0) + 1)
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        outgoing.flushHeaders()
        answer.on("error", () => outgoing.destroy())
        answer.on("aborted", () => outgoing.destroy())
        answer.pipe(outgoing)
      }
    )
    forwarded.on("error", (error: NodeJS.ErrnoException) => {
      // Nobody has heard of the request yet.
      if (error.code === "ECONNREFUSED") forward(incoming, outgoing, body, left - 1)
      else outgoing.destroy()
    })
    outgoing.on("close", () => forwarded.destroy())
    forwarded.end(body)
  }

  const server = createServer((incoming, outgoing) => {
    void bodyOf(incoming).then(
      (body) => forward(incoming, outgoing, body, Math.max(1, targets().length)),
      () => outgoing.destroy()
    )
  })
  // It is the client who closes what it does not need: the proxy might do so just when a request comes.
  server.keepAliveTimeout = 600_000
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    taken,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
