/**
 * What one would write by hand: node:http, and better-sqlite3 or an array of frames. One transaction a turn of the
 * event loop for all runs, one write a run and turn, and no viewer sees what is not committed.
 */
import { mkdtempSync, statSync } from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { deltaText, type Plan, Source, type Subject } from "../Plan.js"

interface Row {
  readonly run: number
  readonly seq: number
  readonly json: string
  readonly at: number
}

interface Run {
  readonly key: number
  seq: number
  ended: boolean
  readonly frames: Array<string>
  readonly viewers: Set<Http.ServerResponse>
  waiting: Array<Row>
  stop: () => void
}

const pageSize = 2000
const frameOf = (key: number, { at, json, seq }: Omit<Row, "run">): string =>
  `id: ${seq}\ndata: {"runId":"${key}","seq":${seq},"event":${json},"createdAt":${at}}\n\n`

const openDatabase = (synchronous: "FULL" | "NORMAL") => {
  const file = join(mkdtempSync(join(tmpdir(), "bench-plain-")), "log.db")
  const db = new Database(file)
  db.pragma("journal_mode = WAL")
  db.pragma(`synchronous = ${synchronous}`)
  db.exec(`CREATE TABLE events (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, seq INTEGER NOT NULL, json TEXT NOT NULL,
    at INTEGER NOT NULL, UNIQUE (run, seq))`)
  const insert = db.prepare("INSERT INTO events (run, seq, json, at) VALUES (?, ?, ?, ?)")
  const insertAll = db.transaction((rows: ReadonlyArray<Row>) => {
    for (const { at, json, run, seq } of rows) insert.run(run, seq, json, at)
  })
  const page = db.prepare<
    [number, number, number],
    { readonly seq: number; readonly json: string; readonly at: number }
  >("SELECT seq, json, at FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?")
  return {
    insertAll,
    page: (run: number, after: number) => page.all(run, after, pageSize),
    disk: () => {
      db.pragma("wal_checkpoint(TRUNCATE)")
      return statSync(file).size
    }
  }
}

/** Reads a chat-completions stream with the global fetch and `JSON.parse`, as one would by hand. */
const readUpstream = async (
  { deltas, perSecond, upstream }: Plan,
  signal: AbortSignal,
  emit: (texts: ReadonlyArray<string>) => void
): Promise<void> => {
  const response = await fetch(`${upstream}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      stream: true,
      messages: [{ role: "user", content: JSON.stringify({ deltas, perSecond }) }]
    }),
    signal
  })
  if (response.body === null) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  while (true) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n")
    rest = lines.pop() ?? ""
    const texts: Array<string> = []
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue
      const content: unknown = JSON.parse(line.slice(6)).choices?.[0]?.delta?.content
      if (typeof content === "string" && content !== "") texts.push(content)
    }
    if (texts.length > 0) emit(texts)
  }
}

export const make = async (storage: "memory" | "FULL" | "NORMAL"): Promise<Subject> => {
  const db = storage === "memory" ? undefined : openDatabase(storage)
  const runs = new Map<number, Run>()
  const dirty = new Set<Run>()
  let scheduled = false

  const flush = (): void => {
    scheduled = false
    const all = [...dirty]
    dirty.clear()
    db?.insertAll(all.flatMap((run) => run.waiting))
    for (const run of all) {
      let text = ""
      for (const row of run.waiting) {
        const frame = frameOf(run.key, row)
        if (db === undefined) run.frames.push(frame)
        text += frame
      }
      run.waiting = []
      for (const viewer of run.viewers) {
        if (run.ended) viewer.end(text)
        else viewer.write(text)
      }
    }
  }

  const add = (run: Run, event: object): void => {
    run.waiting.push({ run: run.key, seq: ++run.seq, json: JSON.stringify(event), at: Date.now() })
    dirty.add(run)
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }

  const emit = (run: Run, texts: ReadonlyArray<string>): void => {
    for (const delta of texts) add(run, { type: "text-delta", id: "1.0", delta })
  }

  const end = (run: Run, type: "finish" | "cancelled"): void => {
    if (run.ended) return
    run.ended = true
    add(run, { type })
  }

  const produce = (run: Run, plan: Plan): void => {
    if (plan.upstream !== undefined) {
      const controller = new AbortController()
      run.stop = () => controller.abort()
      readUpstream(plan, controller.signal, (texts) => emit(run, texts)).then(
        () => end(run, "finish"),
        () => end(run, "cancelled")
      )
      return
    }
    const source = new Source(plan)
    const next = (): void => {
      run.stop = source.pull((texts) => {
        if (texts === undefined) return end(run, "finish")
        emit(run, texts)
        next()
      })
    }
    next()
  }

  const open = (): Run => {
    const run: Run = {
      key: runs.size + 1,
      seq: 0,
      ended: false,
      frames: [],
      viewers: new Set(),
      waiting: [],
      stop: () => undefined
    }
    runs.set(run.key, run)
    return run
  }

  const view = (run: Run, after: number, response: Http.ServerResponse): void => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
    response.write(":ok\n\n")
    let cursor = after
    const more = (): void => {
      if (response.destroyed) return
      let text = ""
      if (db === undefined) {
        text = run.frames.slice(cursor, cursor + pageSize).join("")
        cursor = Math.min(run.frames.length, cursor + pageSize)
      } else {
        for (const row of db.page(run.key, cursor)) {
          text += frameOf(run.key, row)
          cursor = row.seq
        }
      }
      if (text === "") {
        if (run.ended && run.waiting.length === 0) return void response.end()
        run.viewers.add(response)
        response.once("close", () => run.viewers.delete(response))
        return
      }
      if (response.write(text)) setImmediate(more)
      else response.once("drain", more)
    }
    more()
  }

  const server = Http.createServer((request, response) => {
    const [, , key, action] = (request.url ?? "").split("/")
    const run = runs.get(Number(key))
    if (run === undefined) return void response.writeHead(404).end()
    if (action === "cancel") {
      run.stop()
      end(run, "cancelled")
      return void response.writeHead(202, { "content-type": "application/json" }).end("{}")
    }
    view(run, Number(request.headers["last-event-id"] ?? 0), response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

  const viewOf = (run: Run, after = 0) => ({
    runId: String(run.key),
    path: `/runs/${run.key}/events`,
    headers: { "last-event-id": String(after) }
  })
  return {
    port: (server.address() as AddressInfo).port,
    start: async (plan, count) =>
      Array.from({ length: count }, () => {
        const run = open()
        produce(run, plan)
        return viewOf(run)
      }),
    history: async (events) => {
      const run = open()
      for (let i = 0; i < events; i += 1000) {
        emit(
          run,
          Array.from({ length: Math.min(1000, events - i) }, (_, n) => deltaText(i + n))
        )
        flush()
      }
      end(run, "finish")
      flush()
      return { all: viewOf(run), tail: viewOf(run, events - 100) }
    },
    read: async (plan, count) => {
      const { signal } = new AbortController()
      await Promise.all(Array.from({ length: count }, () => readUpstream(plan, signal, () => undefined)))
    },
    ...(db !== undefined && { disk: db.disk })
  }
}
