/** The whole of Runlet as a program would embed it: HTTP server, engine and SQLite, with a scripted model. */
import { mkdtempSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PlatformServer from "@effect/platform/HttpServer"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import Database from "better-sqlite3"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../../../src/agent/Agent.js"
import { encodeEvent } from "../../../src/domain/Envelope.js"
import { RunEngine } from "../../../src/engine/RunEngine.js"
import * as Auth from "../../../src/http/Auth.js"
import * as HttpServer from "../../../src/http/HttpServer.js"
import type { Model, ModelPart } from "../../../src/model/Model.js"
import * as ModelPull from "../../../src/model/ModelPull.js"
import * as OpenAiCompatible from "../../../src/model/OpenAiCompatible.js"
import * as Heap from "../../../src/node/Heap.js"
import * as Runlet from "../../../src/node/Runlet.js"
import { deltaText, type Plan, Source, type Subject } from "../Plan.js"

const decodePlan = Schema.decodeUnknownSync(
  Schema.parseJson(Schema.Struct({ deltas: Schema.Number, perSecond: Schema.Number, burst: Schema.Number }))
)

const planOf = (messages: Parameters<Model["stream"]>[0]["messages"]): Plan => {
  const last = messages.findLast((message) => message.role === "user")
  return decodePlan(last?.content)
}

const scripted: Model = {
  stream: ({ messages }) =>
    ModelPull.stream(
      Effect.gen(function* () {
        const plan = planOf(messages)
        const source = new Source(plan)
        const usage = { inputTokens: 1, outputTokens: plan.deltas, totalTokens: plan.deltas + 1 }
        const finish: ModelPart = { type: "finish", reason: "stop", usage }
        let stop = (): void => undefined
        let ended = false
        yield* Effect.addFinalizer(() => Effect.sync(() => stop()))
        const more = Effect.async<Chunk.Chunk<ModelPart>>((resume) => {
          stop = source.pull((texts) => {
            ended = texts === undefined
            const parts = texts?.map((delta): ModelPart => ({ type: "text-delta", id: "0", delta })) ?? [finish]
            resume(Effect.succeed(Chunk.unsafeFromArray(parts)))
          })
        })
        return Effect.suspend(() => (ended ? Effect.succeed(undefined) : more))
      })
    )
}

/** Puts `events` deltas before the end of a finished run, as if it had produced them. */
const lengthen = (file: string, runId: string, events: number): number => {
  const db = new Database(file)
  const found = db
    .prepare<[string], { readonly key: number; readonly last: number }>(
      `SELECT runs.key AS key, last_seq AS last FROM runs WHERE run_id = ?`
    )
    .get(runId)
  if (found === undefined) throw new Error("no run to lengthen")
  const { key, last } = found
  const insert = db.prepare(
    "INSERT INTO events (run_key, seq, type, json, created_at) VALUES (?, ?, 'text-delta', ?, ?)"
  )
  db.transaction(() => {
    db.prepare("UPDATE events SET seq = seq + ? WHERE run_key = ? AND seq = ?").run(events, key, last)
    for (let i = 0; i < events; i++) {
      insert.run(key, last + i, encodeEvent({ type: "text-delta", id: "1.0", delta: deltaText(i) }), Date.now())
    }
    db.prepare("UPDATE runs SET last_seq = last_seq + ? WHERE key = ?").run(events, key)
  })()
  db.close()
  return last + events
}

export const make = async (options: {
  readonly file?: string | undefined
  readonly upstream?: string | undefined
}): Promise<Subject> => {
  const file = options.file ?? join(mkdtempSync(join(tmpdir(), "bench-runlet-")), "runlet.db")
  const limits = { maxConcurrentRuns: 2000, maxQueuedRuns: 5000, maxStreamsPerUser: 10_000, maxRunsPerUser: 2000 }
  const models = Effect.gen(function* () {
    const { upstream } = options
    if (upstream === undefined) return { scripted }
    const real = yield* OpenAiCompatible.make({
      baseUrl: upstream,
      model: "bench",
      firstChunkTimeoutMs: 60_000,
      chunkTimeoutMs: 60_000
    })
    return { scripted: real }
  })
  const agent = Layer.effect(
    Agent.Agent,
    Effect.map(models, (made) => Agent.make({ models: made, limits }))
  ).pipe(Layer.provide(NodeHttpClient.layerUndici))
  const engine = Layer.provideMerge(Runlet.layer({ filename: file, limitUsers: false }), agent)
  const layer = HttpServer.layer({ port: 0, limits }).pipe(Layer.provide(Auth.layerNone), Layer.provideMerge(engine))
  Effect.runSync(Heap.tune)
  const runtime = ManagedRuntime.make(layer)
  const port = await runtime.runPromise(
    Effect.map(PlatformServer.HttpServer, ({ address }) => (address._tag === "TcpAddress" ? address.port : 0))
  )
  const viewOf = (runId: string, after?: number) => ({
    runId,
    path: `/runs/${runId}/events`,
    ...(after !== undefined && { headers: { "last-event-id": String(after) } })
  })
  const start = (plan: Plan, count: number) =>
    runtime.runPromise(
      Effect.gen(function* () {
        const engine = yield* RunEngine
        const { upstream: _, ...script } = plan
        return yield* Effect.forEach(Array.from({ length: count }), () =>
          Effect.map(engine.start({ message: JSON.stringify(script) }), ({ runId }) => viewOf(runId))
        )
      })
    )
  return {
    port,
    start,
    history: async (events) => {
      const [run] = await start({ deltas: 1, perSecond: 0, burst: 1 }, 1)
      if (run === undefined) throw new Error("no run")
      await runtime.runPromise(Effect.flatMap(RunEngine, (engine) => Stream.runDrain(engine.events(run.runId))))
      const last = lengthen(file, run.runId, events)
      return { all: run, tail: viewOf(run.runId, last - 100) }
    },
    read: ({ upstream: _, ...script }, count) =>
      runtime.runPromise(
        Effect.gen(function* () {
          const { models } = yield* Agent.Agent
          const request = {
            runId: "r",
            conversationId: "c",
            attempt: 1,
            iteration: 1,
            messages: [{ role: "user", content: JSON.stringify(script) } as const],
            tools: [],
            enableThinking: false,
            continueDraft: false
          }
          const model = models.get("scripted")
          if (model === undefined) return
          const all = Array.from({ length: count }, () => Stream.runDrain(model.stream(request)))
          yield* Effect.orDie(Effect.all(all, { concurrency: "unbounded", discard: true }))
        })
      ),
    disk: () => {
      const db = new Database(file)
      db.pragma("wal_checkpoint(TRUNCATE)")
      db.close()
      return statSync(file).size
    }
  }
}
