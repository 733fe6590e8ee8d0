/**
 * A `RunEngine` without an agent: logs are what the test writes into them. It keeps the promises of the port that a
 * server builds on (owners, cursors, waiting, ends) and nothing else.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as Envelope from "../../src/domain/Envelope.js"
import { CurrentUser } from "../../src/domain/Owner.js"
import { Compacted, Conflict, InvalidCursor, NotFound, Unavailable, Unprocessable } from "../../src/domain/RunError.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Status from "../../src/domain/RunStatus.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import { frameOf } from "../../src/engine/Frames.js"
import type { Accepted, Frame, Pull, Resumed, StartRequest, View } from "../../src/engine/RunEngine.js"
import { RunEngine } from "../../src/engine/RunEngine.js"

interface Log {
  readonly user: string
  readonly runId: string
  readonly frames: Array<Frame>
  state: RunState.RunState
  wake: Deferred.Deferred<void>
  compacted: boolean
}

export const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
export const finish: AgentEvent = {
  type: "finish",
  finishReason: "stop",
  model: "demo",
  usage,
  timing: { queuedMs: 0, timeToFirstTokenMs: 1, durationMs: 2 }
}
export const text = (delta: string): AgentEvent => ({ type: "text-delta", id: "t1", delta })

const id = (prefix: string, n: number) => `${prefix}_01890a5d-ac96-774b-bcce-${n.toString(16).padStart(12, "0")}`

export const make = (options: { readonly heartbeatMs: number }) =>
  Effect.gen(function* () {
    const logs = new Map<string, Log>()
    const started: Array<StartRequest> = []
    const keys = new Map<string, string>()
    const decided: Array<unknown> = []
    let resume: Resumed | undefined
    let count = 0
    const drained = yield* Deferred.make<void>()

    const mine = (runId: string) =>
      Effect.flatMap(CurrentUser, (user) => {
        const log = logs.get(runId)
        return log === undefined || log.user !== user
          ? new NotFound({ message: "There is no such run." })
          : Effect.succeed(log)
      })

    const write = (log: Log, events: ReadonlyArray<AgentEvent>) =>
      Effect.gen(function* () {
        for (const event of events) {
          const seq = log.frames.length + 1
          const { type } = event
          const frame = frameOf(log.runId, { seq, type, json: Envelope.encodeEvent(event), createdAt: 1000 + seq })
          log.frames.push(frame)
          log.state = RunState.reduce(log.state, Envelope.decodeSync(JSON.parse(frame.json)))
        }
        const { wake } = log
        log.wake = yield* Deferred.make<void>()
        yield* Deferred.succeed(wake, undefined)
      })

    const create = (request: StartRequest) =>
      Effect.gen(function* () {
        const user = yield* CurrentUser
        count += 1
        const runId = id("run", count)
        const log: Log = {
          user,
          runId,
          frames: [],
          state: RunState.empty(runId),
          wake: yield* Deferred.make<void>(),
          compacted: false
        }
        logs.set(runId, log)
        yield* write(log, [
          {
            type: "run-start",
            runId,
            seq: 1,
            conversationId: request.conversationId ?? id("conv", count),
            userMessageId: id("msg", count * 2),
            assistantMessageId: id("msg", count * 2 + 1),
            model: request.modelId ?? "demo",
            mode: request.mode ?? "chat"
          },
          { type: "run-status", status: "running" }
        ])
        return log
      })

    const accepted = (log: Log, created: boolean): Accepted => ({
      runId: log.runId,
      conversationId: log.state.start?.conversationId ?? "",
      userMessageId: log.state.start?.userMessageId ?? "",
      assistantMessageId: log.state.start?.assistantMessageId ?? "",
      status: log.state.status,
      created
    })

    const look = (log: Log, after: number): Effect.Effect<Pull> =>
      Effect.suspend(() => {
        const frames = log.frames.slice(after, after + 256)
        if (frames.length > 0) return Effect.succeed<Pull>({ _tag: "frames", frames })
        if (Status.isEnded(log.state.status)) return Effect.succeed<Pull>({ _tag: "end" })
        return Effect.timeoutTo(Deferred.await(log.wake), {
          duration: options.heartbeatMs,
          onSuccess: () => true,
          onTimeout: () => false
        }).pipe(Effect.flatMap((woken) => (woken ? look(log, after) : Effect.succeed<Pull>({ _tag: "idle" }))))
      })

    const view = (runId: string, after: number) =>
      Effect.gen(function* () {
        const log = yield* mine(runId)
        if (log.compacted) {
          return yield* new Compacted({ message: "These events are gone.", snapshot: `/runs/${runId}` })
        }
        if (after > log.frames.length) {
          return yield* new InvalidCursor({ message: "The cursor lies beyond the log." })
        }
        const opened: View = {
          runId,
          lastSeq: log.frames.length,
          ended: Status.isEnded(log.state.status),
          pull: (cursor) => look(log, cursor),
          poll: () => undefined
        }
        return opened
      })

    const snapshot = (runId: string) => Effect.map(mine(runId), (log) => Snapshot.of(log.state))

    const engine: RunEngine["Type"] = {
      start: (request) =>
        Effect.gen(function* () {
          started.push(request)
          if (request.modelId === "unknown")
            return yield* new Unprocessable({ message: "No such model.", path: "modelId" })
          if (request.modelId === "broken") return yield* Effect.die(new Error("SELECT secret FROM /etc/passwd"))
          const key = request.idempotencyKey
          const earlier = key === undefined ? undefined : logs.get(keys.get(key) ?? "")
          if (earlier !== undefined) return accepted(earlier, false)
          const log = yield* create(request)
          if (key !== undefined) keys.set(key, log.runId)
          return accepted(log, true)
        }),
      stream: () => Stream.die("not used by a server"),
      events: () => Stream.die("not used by a server"),
      view,
      snapshot,
      cancel: (runId) =>
        Effect.gen(function* () {
          const log = yield* mine(runId)
          if (!Status.isEnded(log.state.status)) yield* write(log, [{ type: "cancelled", by: "user", usage }])
          return { runId, status: log.state.status, lastSeq: log.frames.length }
        }),
      decide: (runId, approvalId, request) =>
        Effect.gen(function* () {
          yield* mine(runId)
          decided.push(request)
          if (approvalId === "apr_late") return yield* new Conflict({ message: "Decided already.", runId })
          return { approvalId, decision: request.decision, by: yield* CurrentUser, seq: 7 }
        }),
      regenerate: (runId, options) =>
        Effect.gen(function* () {
          yield* mine(runId)
          return accepted(yield* create({ modelId: options?.modelId }), true)
        }),
      resume: (runId) => Effect.map(mine(runId), (log) => resume ?? { _tag: "attached", run: accepted(log, false) }),
      list: () =>
        Effect.map(CurrentUser, (user) => ({
          items: [...logs.values()].filter((log) => log.user === user).map((log) => Snapshot.of(log.state))
        })),
      checkpoints: (runId) =>
        Effect.map(mine(runId), () => [{ runId, seq: 2, kind: "run_started" as const, createdAt: 1 }]),
      checkpoint: () => new NotFound({ message: "There is no such checkpoint." }),
      remove: (runId) =>
        Effect.flatMap(mine(runId), (log) =>
          Status.isEnded(log.state.status)
            ? Effect.sync(() => void logs.delete(runId))
            : new Conflict({ message: "The run has not ended.", runId })
        ),
      models: [
        { modelId: "demo", isDefault: true },
        { modelId: "other", isDefault: false }
      ],
      conversations: () => Effect.succeed({ items: [], nextCursor: undefined }),
      conversation: () => new NotFound({ message: "There is no such conversation." }),
      questions: () => new NotFound({ message: "There is no such conversation." }),
      renameConversation: () => Effect.void,
      removeConversation: () => new NotFound({ message: "There is no such conversation." }),
      census: Effect.succeed({ queued: 1, running: 2, streaming: 3, waiting_approval: 4, executing: 5, bytes: 8192 }),
      ready: Effect.succeed(true),
      drain: Effect.asVoid(Deferred.succeed(drained, undefined))
    }

    return {
      engine,
      started,
      decided,
      drained,
      runs: () => [...logs.keys()],
      push: (runId: string, ...events: ReadonlyArray<AgentEvent>) => {
        const log = logs.get(runId)
        return log === undefined ? Effect.die(`no run ${runId}`) : write(log, events)
      },
      compact: (runId: string) =>
        Effect.sync(() => {
          const log = logs.get(runId)
          if (log !== undefined) log.compacted = true
        }),
      answerResume: (answer: Resumed | undefined) =>
        Effect.sync(() => {
          resume = answer
        }),
      unavailable: new Unavailable({ message: "Try again.", retryAfterMs: 1500 })
    }
  })

export type FakeEngine = Effect.Effect.Success<ReturnType<typeof make>>

export const layer = (fake: FakeEngine): Layer.Layer<RunEngine> => Layer.succeed(RunEngine, fake.engine)
