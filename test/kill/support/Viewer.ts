/**
 * A reader of a run's events, as a browser would be one: it remembers what it applied, comes back with its cursor, and
 * finds fault with everything that is not exactly the rest.
 */
import { Agent, get } from "node:http"
import { decodeSync, type Envelope } from "../../../src/domain/Envelope.js"
import * as Fold from "../../../src/domain/RunState.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })

export type Closed = "ended" | "clean" | "cut" | "refused"

export class Viewer {
  /** The JSON of the envelope with seq `i + 1`, as it came over the wire. */
  readonly lines: Array<string> = []
  readonly envelopes: Array<Envelope> = []
  /** When each envelope arrived, epoch milliseconds. */
  readonly seenAt: Array<number> = []
  readonly faults: Array<string> = []
  state: Fold.RunState
  connections = 0
  private disconnect: (() => void) | undefined

  constructor(
    readonly runId: string,
    private readonly onEvent: (envelope: Envelope, viewer: Viewer) => void = () => undefined
  ) {
    this.state = Fold.empty(runId)
  }

  get cursor(): number {
    return this.lines.length
  }

  get final(): boolean {
    return RunStatus.isFinal(this.state)
  }

  /**
   * Reads until the server closes, the connection breaks, or `close` is called. `ended` is a clean close behind a
   * terminal event, `clean` one without.
   */
  connect(url: string): Promise<Closed> {
    this.connections++
    const from = this.cursor
    return new Promise((done) => {
      const request = get(
        `${url}/runs/${this.runId}/events`,
        { agent, headers: { accept: "text/event-stream", ...(from > 0 && { "last-event-id": String(from) }) } },
        (response) => {
          if (response.statusCode === 204) {
            response.resume()
            if (!RunStatus.isEnded(this.state.status))
              this.faults.push(`204 at seq ${from} of a run that has not ended`)
            return done("ended")
          }
          if (response.statusCode !== 200) {
            response.resume()
            this.faults.push(`the events behind ${from} were refused with status ${response.statusCode}`)
            return done("refused")
          }
          let rest = ""
          response.setEncoding("utf8")
          response.on("data", (piece: string) => {
            const frames = (rest + piece).split("\n\n")
            rest = frames.pop() ?? ""
            for (const frame of frames) this.take(frame)
          })
          response.on("end", () => {
            if (response.complete && rest !== "") this.faults.push(`a frame was cut: ${rest.slice(0, 200)}`)
            done(!response.complete ? "cut" : RunStatus.isEnded(this.state.status) ? "ended" : "clean")
          })
          response.on("error", () => done("cut"))
          response.on("close", () => done("cut"))
        }
      )
      request.on("error", () => done("cut"))
      this.disconnect = () => request.destroy()
    })
  }

  close(): void {
    this.disconnect?.()
  }

  private take(frame: string): void {
    const lines = frame.split("\n")
    const data = lines.find((line) => line.startsWith("data: "))?.slice(6)
    if (data === undefined) return
    const id = lines.find((line) => line.startsWith("id: "))?.slice(4)
    if (id === undefined) return
    const seq = Number(id)
    if (seq !== this.cursor + 1) {
      this.faults.push(`seq ${seq} came behind ${this.cursor}`)
      return
    }
    const envelope = decodeSync(JSON.parse(data))
    if (envelope.seq !== seq || envelope.runId !== this.runId) {
      this.faults.push(`frame ${seq} holds seq ${envelope.seq} of ${envelope.runId}`)
      return
    }
    const before = this.state.status
    const standing = RunStatus.next(seq === 1 ? undefined : this.state, envelope.event)
    if (standing === undefined) this.faults.push(`${envelope.event.type} (seq ${seq}) may not follow ${before}`)
    this.lines.push(data)
    this.envelopes.push(envelope)
    this.seenAt.push(Date.now())
    this.state = Fold.reduce(this.state, envelope)
    this.onEvent(envelope, this)
  }
}
