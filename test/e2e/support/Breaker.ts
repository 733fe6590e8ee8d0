/** A proxy that breaks one rule of the protocol on the way, as a careless server would. */
import { createServer, type IncomingHttpHeaders, request } from "node:http"
import type { AddressInfo } from "node:net"

export interface Asked {
  /** 1, 2, 3 … in the order in which the requests came. */
  readonly n: number
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

/**
 * - `asking`: changes a request
 * - `instead`: an answer of the proxy's own
 * - `status`, `headers`: change those of an answer
 * - `frame`: what becomes of one block of a stream without its empty line, or of one line of NDJSON; none: it is dropped
 * - `answer`: changes the body of any other answer
 * - `left`: a client went away from a stream; gives what the server is then asked
 */
export interface Breach {
  readonly asking?: (asked: Asked) => void
  readonly instead?: (asked: Asked) => { readonly status: number; readonly json: unknown } | undefined
  readonly status?: (status: number, asked: Asked) => number
  readonly headers?: (headers: IncomingHttpHeaders) => void
  readonly frame?: (block: string, asked: Asked) => ReadonlyArray<string>
  readonly answer?: (body: string, asked: Asked) => string
  readonly left?: (asked: Asked, runId: string) => Pick<Asked, "method" | "url"> | undefined
}

export interface Breaker {
  readonly url: string
  readonly stop: () => Promise<void>
}

const bearer = ({ headers }: Asked): Record<string, string> => ({ authorization: headers.authorization ?? "" })

export const start = async (target: string, breach: Breach): Promise<Breaker> => {
  let count = 0
  const server = createServer((incoming, outgoing) => {
    const pieces: Array<Buffer> = []
    incoming.on("data", (piece) => pieces.push(piece))
    incoming.on("end", () => {
      const { "content-length": _, host: __, ...headers } = incoming.headers
      const asked: Asked = {
        n: ++count,
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
          breach.headers?.(kept)
          const status = answer.statusCode ?? 502
          outgoing.writeHead(breach.status?.(status, asked) ?? status, kept)
          outgoing.flushHeaders()
          const end = { "text/event-stream": "\n\n", "application/x-ndjson": "\n" }[
            answer.headers["content-type"]?.split(";")[0] ?? ""
          ]
          let rest = ""
          answer.setEncoding("utf8")
          answer.on("data", (text: string) => {
            rest += text
            if (end === undefined) return
            const blocks = rest.split(end)
            rest = blocks.pop() ?? ""
            for (const block of blocks) {
              for (const one of breach.frame?.(block, asked) ?? [block]) outgoing.write(`${one}${end}`)
            }
          })
          answer.on("end", () => outgoing.end(end === undefined ? (breach.answer?.(rest, asked) ?? rest) : rest))
          outgoing.on("close", () => {
            const left = outgoing.writableFinished ? undefined : breach.left?.(asked, String(kept["x-run-id"]))
            if (left !== undefined) void fetch(new URL(left.url, target), { ...left, headers: bearer(asked) })
          })
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
