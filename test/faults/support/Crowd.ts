/** Many connections that never come to the point. */
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"

export interface Crowd {
  /** How many were opened, and how many are open still. */
  readonly opened: number
  readonly open: () => number
  readonly leave: () => void
}

/**
 * - `silent`: says nothing
 * - `headers`: one header after the other, without an end
 * - `body`: one byte after the other of a body that was said to be long
 */
export type Manner = "silent" | "headers" | "body"

const beginning = {
  silent: "",
  headers: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
  body: "POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
}

const further = { silent: "", headers: "X-More: 1\r\n", body: " " }

/** Opens so many connections at once, of each manner in turn; resolves when each is open or was refused. */
export const gather = async (url: string, count: number, manners: ReadonlyArray<Manner>): Promise<Crowd> => {
  const { hostname, port } = new URL(url)
  const sockets = new Map<Socket, Manner>()
  const one = (manner: Manner) =>
    new Promise<void>((settled) => {
      const socket = connect(Number(port), hostname, () => {
        if (beginning[manner] !== "") socket.write(beginning[manner])
        settled()
      })
      sockets.set(socket, manner)
      socket.resume()
      socket.on("error", () => undefined)
      socket.on("close", () => {
        sockets.delete(socket)
        settled()
      })
    })
  // A few at a time: what the system's own queue can not hold would look open here and be unknown there.
  for (let n = 0; n < count; n += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, count - n) }, (_, i) => one(manners[(n + i) % manners.length] ?? "silent"))
    )
  }
  const timer = setInterval(() => {
    for (const [socket, manner] of sockets) if (further[manner] !== "") socket.write(further[manner])
  }, 500)
  return {
    opened: count,
    open: () => sockets.size,
    leave: () => {
      clearInterval(timer)
      for (const socket of sockets.keys()) socket.destroy()
    }
  }
}

/** Seconds of processor time that a process has used. */
export const processorSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / 100
}
