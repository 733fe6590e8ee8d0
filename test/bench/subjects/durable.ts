/** The Node reference server of Durable Streams, in memory: one stream a run, deltas appended as JSON messages. */
import { clock, deltaText, type Plan, Source, type Subject } from "../Plan.js"

interface DurableStreams {
  readonly DurableStreamTestServer: new (options: {
    readonly port: number
    readonly host: string
  }) => { readonly start: () => Promise<string> }
}

const name = "@durable-streams/server"

export const make = async (): Promise<Subject> => {
  const module: DurableStreams = await import(name)
  const url = await new module.DurableStreamTestServer({ port: 0, host: "127.0.0.1" }).start()
  const { port } = new URL(url)
  const json = { "content-type": "application/json" }
  const frame = (delta: string) => ({ type: "text-delta", id: "1.0", delta })
  let count = 0

  const open = async (): Promise<string> => {
    const path = `/v1/stream/run-${++count}-${Math.floor(clock())}`
    const response = await fetch(url + path, { method: "PUT", headers: json })
    if (!response.ok) throw new Error(`PUT answered ${response.status}`)
    return path
  }
  // An append is a request of its own, so what comes while one is under way goes with the next.
  const writer = (path: string) => {
    let waiting: Array<object> = []
    let busy: Promise<void> | undefined
    const send = async (): Promise<void> => {
      while (waiting.length > 0) {
        const body = JSON.stringify(waiting)
        waiting = []
        const response = await fetch(url + path, { method: "POST", headers: json, body })
        await response.arrayBuffer()
        if (!response.ok) throw new Error(`POST answered ${response.status}`)
      }
      busy = undefined
    }
    return (events: ReadonlyArray<object>): Promise<void> => {
      waiting.push(...events)
      busy ??= send()
      return busy
    }
  }
  const viewOf = (path: string, offset = "-1") => ({ runId: path, path: `${path}?offset=${offset}&live=sse` })

  const produce = (path: string, plan: Plan): void => {
    const source = new Source(plan)
    const write = writer(path)
    const next = (): void => {
      source.pull((texts) => {
        if (texts === undefined) return
        void write(texts.map(frame))
        next()
      })
    }
    next()
  }

  return {
    port: Number(port),
    start: async (plan, runs) => {
      const views: Array<ReturnType<typeof viewOf>> = []
      for (let i = 0; i < runs; i++) {
        const path = await open()
        produce(path, plan)
        views.push(viewOf(path))
      }
      return views
    },
    history: async (events) => {
      const path = await open()
      let offset = "-1"
      for (let i = 0; i < events; i += 100) {
        const response = await fetch(url + path, {
          method: "POST",
          headers: json,
          body: JSON.stringify(Array.from({ length: 100 }, (_, n) => frame(deltaText(i + n))))
        })
        await response.arrayBuffer()
        if (i + 100 < events) offset = response.headers.get("stream-next-offset") ?? offset
      }
      return { all: viewOf(path), tail: viewOf(path, offset) }
    }
  }
}
