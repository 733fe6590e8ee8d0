/**
 * Which connections of a server wait for an answer. Node's own `closeIdleConnections` overlooks connections that never
 * asked anything, and cuts those whose answer is complete but not yet sent.
 *
 * @since 0.1.0
 */
import { readFileSync } from "node:fs"
import type { Server } from "node:http"
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"

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
    open.set(socket, { asked: 0, spent: false })
    socket.once("close", () => open.delete(socket))
  })
  server.on("request", ({ socket }, response) => {
    const connection = open.get(socket)
    if (connection === undefined) return
    connection.asked += 1
    // Emitted when the last byte was handed to the system, or when the connection broke.
    response.once("close", () => {
      connection.asked -= 1
      connection.spent = true
    })
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
