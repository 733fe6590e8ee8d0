/**
 * Which connections of a server wait for an answer. Node's own `closeIdleConnections` overlooks connections that never
 * asked anything, and cuts those whose answer is complete but not yet sent.
 *
 * @since 0.1.0
 */
import { readFileSync } from "node:fs"
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Metrics from "../domain/Metrics.js"

/**
 * The open connections of a server, to be closed in good order.
 *
 * @since 0.1.0
 * @category models
 */
export interface Connections {
  /** From now on, connections that are silent close. Those that open later may still ask once. */
  readonly retire: Effect.Effect<void>
  /** Closes every connection that waits for nothing, and counts the rest. */
  readonly sweep: Effect.Effect<number>
  /** Closes all of them. */
  readonly close: Effect.Effect<void>
}

/** The part of the process's file descriptors that clients may have; models, tools and the store need the others. */
const share = 0.75

/**
 * How many connections the process can bear with the file descriptors that the system lets it have. Beyond that no
 * model and no tool could be reached any more.
 *
 * @since 0.1.0
 * @category accessors
 */
export const bearable: Effect.Effect<number> = Effect.sync(() => {
  try {
    const descriptors = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
    return descriptors === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(descriptors) * share)
  } catch {
    // Where the system does not tell, the configured limit has to do.
    return Number.POSITIVE_INFINITY
  }
})

interface Connection {
  asked: number
  spent: boolean
  answer: ServerResponse | undefined
}

/** What node's parser refuses by itself, and the limit that it stands for. */
const refusals: { readonly [code: string]: { readonly status: string; readonly limit: string } } = {
  HPE_HEADER_OVERFLOW: { status: "431 Request Header Fields Too Large", limit: "maxHeaderBytes" },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: "413 Payload Too Large", limit: "maxBodyBytes" },
  ERR_HTTP_REQUEST_TIMEOUT: { status: "408 Request Timeout", limit: "requestTimeoutMs" }
}

/**
 * Begins to watch the connections of a server.
 *
 * @since 0.1.0
 * @category constructors
 */
export const watch = (server: Server): Connections => {
  const open = new Map<Socket, Connection>()
  server.on("connection", (socket) => {
    open.set(socket, { asked: 0, spent: false, answer: undefined })
    socket.once("close", () => open.delete(socket))
  })
  server.on("request", ({ socket }, response) => {
    const connection = open.get(socket)
    if (connection === undefined) return
    connection.asked += 1
    connection.answer = response
    // Emitted when the last byte was handed to the system, or when the connection broke.
    response.once("close", () => {
      connection.asked -= 1
      connection.spent = true
    })
  })
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const refusal = refusals[error.code ?? ""]
    if (refusal !== undefined) Metrics.limitReached(refusal.limit)
    // An answer that has begun must not get another one into its middle.
    const answer = open.get(socket)?.answer
    const begun = answer?.headersSent === true && !answer.writableFinished
    if (socket.writable && !begun) {
      socket.write(`HTTP/1.1 ${refusal?.status ?? "400 Bad Request"}\r\nConnection: close\r\n\r\n`)
    }
    socket.destroy(error)
  })
  return {
    retire: Effect.sync(() => {
      for (const connection of open.values()) connection.spent = true
    }),
    sweep: Effect.sync(() => {
      for (const [socket, { asked, spent }] of open) {
        if (asked === 0 && spent) socket.destroy()
      }
      return open.size
    }),
    close: Effect.sync(() => {
      server.closeAllConnections()
      for (const socket of open.keys()) socket.destroy()
    })
  }
}
