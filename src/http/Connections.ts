/**
 * Which connections of a server wait for an answer. Node's own `closeIdleConnections` overlooks connections that never
 * asked anything, and cuts those whose answer is complete but not yet sent.
 *
 * @since 0.1.0
 */
import { readFileSync } from "node:fs"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
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
  /** A listener for requests that handles those of one connection in turn, each when the one before it is answered. */
  readonly inTurn: (handle: Handler) => Handler
  /** From now on, connections that are silent close. Those that open later may still ask once. */
  readonly retire: Effect.Effect<void>
  /** Closes every connection that waits for nothing, and counts the rest. */
  readonly sweep: Effect.Effect<number>
  /** Closes all of them. */
  readonly close: Effect.Effect<void>
}

/**
 * What handles a request.
 *
 * @since 0.1.0
 * @category models
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Who asks for more at once, without waiting for answers, is cut off. An answer whose turn never comes is told of nothing
 * by node, not even that the connection broke, so it is not begun before its turn.
 */
const maxWaiting = 32

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
  spent: boolean
  /** The answer that is being made. */
  answer: ServerResponse | undefined
  readonly waiting: Array<() => void>
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
    open.set(socket, { spent: false, answer: undefined, waiting: [] })
    socket.once("close", () => open.delete(socket))
  })

  const inTurn =
    (handle: Handler): Handler =>
    (request, response) => {
      const { socket } = request
      const connection = open.get(socket)
      if (connection === undefined || socket.destroyed) return
      const begin = () => {
        connection.answer = response
        // Emitted when the last byte was handed to the system, or when the connection broke.
        response.once("close", () => {
          connection.answer = undefined
          connection.spent = true
          if (!socket.destroyed) connection.waiting.shift()?.()
        })
        handle(request, response)
      }
      if (connection.answer === undefined) begin()
      else if (connection.waiting.push(begin) > maxWaiting) socket.destroy()
    }

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
    inTurn,
    retire: Effect.sync(() => {
      for (const connection of open.values()) connection.spent = true
    }),
    sweep: Effect.sync(() => {
      for (const [socket, { answer, spent }] of open) {
        if (answer === undefined && spent) socket.destroy()
      }
      return open.size
    }),
    close: Effect.sync(() => {
      server.closeAllConnections()
      for (const socket of open.keys()) socket.destroy()
    })
  }
}
