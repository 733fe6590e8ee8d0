/** A proxy that breaks one rule of the protocol on the way, as a careless server would. */
import { createServer, type IncomingHttpHeaders, request } from "node:http"
import type { AddressInfo } from "node:net"

export interface Asked {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

/**
 * - `asking`: changes a request
 * - `instead`: an answer of the proxy's own
 * - `frame`: what becomes of one block of a stream, without its empty line; none: it is dropped
 * - `answer`: changes the body of any other answer
 */
export interface Breach {
  readonly asking?: (asked: Asked) => void
  readonly instead?: (asked: Asked) => { readonly status: number; readonly json: unknown } | undefined
  readonly frame?: (block: string) => ReadonlyArray<string>
  readonly answer?: (body: string, asked: Asked) => string
}

export interface Breaker {
  readonly url: string
  readonly stop: () => Promise<void>
}

export const start = async (target: string, breach: Breach): Promise<Breaker> => {
  const server = createServer((incoming, outgoing) => {
    const pieces: Array<Buffer> = []
    incoming.on("data", (piece) => pieces.push(piece))
    incoming.on("end", () => {
      const { "content-length": _, host: __, ...headers } = incoming.headers
      const asked: Asked = {
        method: incoming.method ?? "GET",
        url: incoming.url ?? "/",
        headers,
        body: Buffer.concat(pieces).toString("utf8")
      }
      breach.asking?.(asked)
      const instead = breach.instead?.(asked)
      if (instead !== undefined) {
        outgoing.writeHead(instead.status, { "content-type": "application/json" })
        outgoing.end(JSON.stringify(instead.json))
        return
      }
      const forwarded = request(
        new URL(asked.url, target),
        {
          method: asked.method,
          headers: { ...asked.headers, ...(asked.body !== "" && { "content-length": Buffer.byteLength(asked.body) }) }
        },
        (answer) => {
          const { "content-length": _, "transfer-encoding": __, ...kept } = answer.headers
          outgoing.writeHead(answer.statusCode ?? 502, kept)
          outgoing.flushHeaders()
          const isStream = answer.headers["content-type"]?.startsWith("text/event-stream") === true
          let rest = ""
          answer.setEncoding("utf8")
          answer.on("data", (text: string) => {
            rest += text
            if (!isStream) return
            const blocks = rest.split("\n\n")
            rest = blocks.pop() ?? ""
            for (const block of blocks) {
              for (const one of breach.frame?.(block) ?? [block]) outgoing.write(`${one}\n\n`)
            }
          })
          answer.on("end", () => outgoing.end(isStream ? rest : (breach.answer?.(rest, asked) ?? rest)))
          answer.on("error", () => outgoing.destroy())
        }
      )
      forwarded.on("error", () => outgoing.destroy())
      outgoing.on("close", () => forwarded.destroy())
      forwarded.end(asked.body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
