/**
 * A proxy for bytes between a client and a server: it can cut what is open, swallow what is sent without a word, cut
 * after so many bytes, refuse, and follow a server that comes back elsewhere.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net"

export interface Request {
  readonly method: string
  /** The path with its query. */
  readonly url: string
  readonly at: number
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  swallowed: boolean
  left: number
}

export interface Proxy {
  readonly url: string
  /** Every request that a client sent, also those that were swallowed. */
  readonly requests: ReadonlyArray<Request>
  /** Connections that are open on the client's side. */
  readonly open: () => number
  /** Breaks every connection. */
  readonly cut: () => void
  /** Swallows everything on the connections that are open now, in both directions, and keeps them open. */
  readonly blackHole: () => void
  /** New connections, and what is open, are cut after so many bytes of answers; `Infinity` to stop that. */
  readonly cutAfter: (bytes: number) => void
  /** While it refuses, new connections are broken at once. */
  readonly refuse: (refused: boolean) => void
  /** Leads new connections to another server. */
  readonly retarget: (url: string) => void
  readonly stop: () => Promise<void>
}

export const start = async (target: string): Promise<Proxy> => {
  const requests: Array<Request> = []
  const pairs = new Set<Pair>()
  let to = new URL(target)
  let refused = false
  let limit = Number.POSITIVE_INFINITY

  const drop = (pair: Pair) => {
    pairs.delete(pair)
    pair.client.destroy()
    pair.server.destroy()
  }

  const listener = createServer((client) => {
    if (refused) return void client.destroy()
    const server = connect(Number(to.port), to.hostname)
    const pair: Pair = { client, server, swallowed: false, left: limit }
    pairs.add(pair)
    client.on("data", (bytes) => {
      for (const [, method, url] of bytes
        .toString("latin1")
        .matchAll(/(?:^|\r\n)(GET|POST|DELETE|PATCH) (\S+) HTTP/g)) {
        requests.push({ method: method ?? "", url: url ?? "", at: Date.now() })
      }
      if (!pair.swallowed) server.write(bytes)
    })
    server.on("data", (bytes) => {
      if (pair.swallowed) return
      const piece = bytes.subarray(0, pair.left)
      pair.left -= piece.length
      if (pair.left > 0) return void client.write(piece)
      client.write(piece, () => drop(pair))
    })
    const closed = () => {
      // A black hole does not say that the other side is gone.
      if (!pair.swallowed) drop(pair)
    }
    for (const socket of [client, server]) socket.on("error", closed).on("close", closed)
    client.on("close", () => drop(pair))
  })
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
  const { port } = listener.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    open: () => pairs.size,
    cut: () => {
      for (const pair of pairs) drop(pair)
    },
    blackHole: () => {
      for (const pair of pairs) pair.swallowed = true
    },
    cutAfter: (bytes) => {
      limit = bytes
      for (const pair of pairs) pair.left = bytes
    },
    refuse: (now) => {
      refused = now
    },
    retarget: (url) => {
      to = new URL(url)
    },
    stop: () =>
      new Promise((resolve) => {
        listener.close(() => resolve())
        for (const pair of pairs) drop(pair)
      })
  }
}
