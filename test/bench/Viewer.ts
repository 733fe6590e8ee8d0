/** A viewer that is as cheap as can be: it counts the marks of deltas in the bytes of a bare socket. */
import { connect, type Socket } from "node:net"
import { clock, mark, type View } from "./Plan.js"

export interface Viewer {
  readonly attached: Promise<void>
  /** Resolves when so many deltas have come. */
  readonly done: Promise<void>
  readonly count: () => number
  readonly close: () => void
}

export const requestText = (port: number, view: View): string => {
  const headers = Object.entries({ accept: "text/event-stream", ...view.headers })
  const body = view.body ?? ""
  return [
    `${view.method ?? "GET"} ${view.path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body === "" ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
    "",
    body
  ].join("\r\n")
}

export const open = (
  port: number,
  view: View,
  wanted: number,
  onDelta?: (index: number, at: number) => void
): Viewer => {
  let count = 0
  let socket: Socket
  let attach: () => void = () => undefined
  const attached = new Promise<void>((resolve) => {
    attach = resolve
  })
  const done = new Promise<void>((resolve, reject) => {
    socket = connect(port, "127.0.0.1", () => socket.write(requestText(port, view)))
    socket.setNoDelay(true)
    socket.on("data", (bytes) => {
      attach()
      const at = onDelta === undefined ? 0 : clock()
      for (let i = bytes.indexOf(mark); i !== -1; i = bytes.indexOf(mark, i + 1)) {
        onDelta?.(count, at)
        count += 1
      }
      if (count >= wanted) resolve()
    })
    socket.on("error", reject)
    socket.on("close", () => (count >= wanted ? resolve() : reject(new Error(`closed after ${count} of ${wanted}`))))
  })
  // A viewer that nobody waits for may be closed early.
  done.catch(() => undefined)
  return { attached, done, count: () => count, close: () => socket.destroy() }
}
