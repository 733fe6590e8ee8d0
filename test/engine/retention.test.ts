import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Closing from "../../src/agent/Closing.js"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as RunState from "../../src/domain/RunState.js"
import * as RunStatus from "../../src/domain/RunStatus.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import * as Numbering from "../../src/engine/Numbering.js"
import * as Retention from "../../src/engine/Retention.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as RunLog from "../../src/engine/RunLog.js"
import { appendOf } from "../../src/engine/RunWriter.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { type RunRow, RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import * as Events from "../../src/testing/EventArbitraries.js"
import * as Script from "../../src/testing/ScriptedModel.js"
import { append, begin, end, newRunId, request, texts } from "../../src/testing/store/fixtures.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import type { Tool } from "../../src/tool/Tool.js"
import { databaseFile } from "../store/support.js"
import { alone } from "./support.js"

/** A database that does not wait for the disk: these cases are about what is in it. */
const sqlite = Layer.unwrapScoped(
  Effect.map(databaseFile, (filename) => Sqlite.layer({ filename, synchronous: "normal" }))
)

/** Writes a log as an engine does: numbered, with a row for each closed turn. */
const write = (events: ReadonlyArray<AgentEvent>) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const [start] = events
    if (start?.type !== "run-start") return yield* Effect.dieMessage("A log begins with run-start")
    const runId = yield* newRunId
    let state = RunState.empty(runId)
    let deltas = 0
    let row: RunRow | undefined
    for (const [index, event] of events.entries()) {
      const numbered = Numbering.number(state, [event], index, deltas, 3)
      const { set, turn } = appendOf(numbered)
      if (row === undefined) {
        const created = yield* store.create({ ...(yield* request({ runId })), events: numbered.events })
        row = "row" in created ? created.row : yield* Effect.dieMessage("The run was not created")
      } else {
        const outcome = yield* append({ key: row.key, raiseEpoch: true, events: numbered.events, set, turn })
        if (outcome._tag !== "Appended") return yield* Effect.dieMessage(`${event.type}: ${outcome._tag}`)
      }
      deltas = numbered.deltas
      state = numbered.state
    }
    return yield* Effect.flatten(store.row(row?.key ?? 0))
  })

/** The events of a log, with an end if it has none. */
const whole = (envelopes: ReadonlyArray<{ readonly event: AgentEvent; readonly seq: number }>) => {
  const events = envelopes.map(({ event }) => event).filter(({ type }) => type !== "checkpoint")
  const state = Numbering.number(RunState.empty("run"), events, 0, 0, 3).state
  return RunStatus.isEnded(state.status) ? events : [...events, ...(Closing.cancellation(state, "user") ?? [])]
}

const env = Effect.map(RunStore, (store) => ({ store, retention: { eventsMs: 1, runsMs: 2 }, now: Effect.succeed(0) }))

const trimAll = Effect.flatMap(RunStore, (store) => Effect.repeat(store.trim(3), { while: (more) => more }))

describe.each([
  ["memory", MemoryStore.layer, 120],
  ["SQLite", sqlite, 40]
] as const)("compaction in %s", (_, layer, samples) => {
  it.effect("changes nothing of what a run has come to, and what follows it folds on", () =>
    Effect.gen(function* () {
      const { store } = yield* env
      let withOpenTurn = 0
      let withTurns = 0
      for (const sample of FastCheck.sample(Events.log, { numRuns: samples, seed: 11 })) {
        const row = yield* write(whole(sample))
        const { key, lastSeq, runId } = row
        const before = yield* RunLog.load(store, row)
        const events = yield* store.events({ key, after: 0, limit: 10_000 })
        const checkpoints = yield* store.checkpoints(key)

        expect(yield* Retention.compact(yield* env, row)).toBe(true)
        expect(yield* RunLog.load(store, row)).toEqual(before)
        yield* trimAll
        const after = yield* RunLog.load(store, row)
        expect(after).toEqual(before)
        expect(Snapshot.of(after)).toEqual(Snapshot.of(before))

        // The end stays, and the last checkpoint with what belongs to it.
        const left = yield* store.events({ key, after: 0, limit: 10_000 })
        expect(left).toEqual(events.slice(-left.length))
        expect(left.length).toBeGreaterThan(0)
        expect(left.length).toBeLessThanOrEqual(3)
        const [last] = yield* store.checkpoints(key)
        if (last !== undefined) {
          expect(last).toEqual(checkpoints.at(-1))
          expect((yield* RunLog.load(store, row, last.seq)).seq).toBe(last.seq)
        }
        const compactedSeq = lastSeq - left.length
        expect(Option.getOrThrow(yield* store.row(key))).toEqual({ ...row, compactedSeq })
        if (before.open !== undefined) withOpenTurn++
        if (before.closed.length > 0) withTurns++

        const cancelled = Closing.cancellation(before, "user")
        if (cancelled === undefined) continue
        const numbered = Numbering.number(before, cancelled, 99, 0, 3)
        yield* append({ key, raiseEpoch: true, ...appendOf(numbered) })
        expect(yield* RunLog.load(store, { key, runId })).toEqual(numbered.state)
      }
      expect(withOpenTurn).toBeGreaterThan(5)
      expect(withTurns).toBeGreaterThan(5)
    }).pipe(Effect.provide(layer))
  )

  it.effect("gives a true state or none when a turn that it counts on is not there", () =>
    Effect.gen(function* () {
      const { store } = yield* env
      let refused = 0
      for (const sample of FastCheck.sample(Events.log, { numRuns: 30, seed: 5 })) {
        const row = yield* write(whole(sample))
        const { key, lastSeq } = row
        const before = yield* RunLog.load(store, row)
        const { closed, ...rest } = before
        const base = { seq: lastSeq - 1, turns: closed.length + 1, state: { ...rest, seq: lastSeq - 1 } }
        expect(yield* store.compact({ key, lastSeq, base })).toBe(true)
        yield* trimAll
        const loaded = yield* Effect.either(RunLog.load(store, row))
        if (loaded._tag === "Right") expect(loaded.right).toEqual(before)
        else {
          expect(loaded.left).toMatchObject({ _tag: "StoreError", reason: "corrupt" })
          refused++
        }
      }
      expect(refused).toBeGreaterThan(10)
    }).pipe(Effect.provide(layer))
  )
})

describe("a log that lacks a part", () => {
  it.effect("is corrupt, and is not compacted", () =>
    Effect.gen(function* () {
      const { store } = yield* env
      const sql = yield* WriteClient
      const [sample = []] = FastCheck.sample(Events.log, { numRuns: 1, seed: 3 })
      const row = yield* write(whole(sample))
      yield* sql`DELETE FROM turns`
      yield* sql`DELETE FROM events WHERE seq = 2`
      expect(yield* Effect.flip(RunLog.load(store, row))).toMatchObject({ reason: "corrupt" })
      expect(yield* Effect.flip(Retention.compact(yield* env, row))).toMatchObject({ reason: "corrupt" })
      expect((yield* store.events({ key: row.key, after: 0, limit: 1000 })).length).toBe(row.lastSeq - 1)
    }).pipe(Effect.provide(sqlite))
  )
})

/** A second stands for a day here. */
const eventsMs = 1_000
const runsMs = 5_000

const save: Tool = {
  name: "save",
  description: "Saves",
  kind: "write",
  parameters: { type: "object" },
  check: Effect.succeed,
  preview: () => Effect.succeed({ will: 1 }),
  commit: () => Effect.succeed({ result: "saved" })
}

const script = Script.make((asked) => {
  const last = asked.messages.at(-1)
  const question = last?.role === "user" ? last.content : ""
  if (question.includes("hang")) return Script.turn(Script.text("Hm"), Script.hang)
  if (question.includes("save")) return Script.turn(Script.text("Hm"), Script.call("save", { a: 1 }, "c1"))
  if (question.includes("fail")) return Script.turn(Script.text("Well, "), Script.truncate)
  return Script.turn(Script.reasoning("let me see"), Script.text("Hello", ", world"))
})

const stack = alone({
  model: script,
  tools: [save],
  limits: { approvalTtlMs: 1_000_000, runTimeoutMs: 1_000_000, chunkTimeoutMs: 1_000_000 },
  engine: { sweepMs: 250, retention: { eventsMs, runsMs } }
})

/** Lets time pass, a little at a time. */
const pass = (ms: number) => Effect.repeatN(TestClock.adjust("100 millis"), Math.ceil(ms / 100) - 1)

const started = (message: string, status: RunStatus.RunStatus, conversationId?: string) =>
  Effect.gen(function* () {
    const engine = yield* RunEngine
    const run = yield* engine.start({ message, conversationId })
    for (let i = 0; i < 200; i++) {
      if ((yield* engine.snapshot(run.runId)).status === status) return run
      yield* pass(100)
    }
    return yield* Effect.dieMessage(`${message} did not become ${status}`)
  })

describe("the sweep", () => {
  it.scoped("compacts in time, and what is asked of the run afterwards has a clear answer", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* started("hello", "completed")
      const before = yield* engine.snapshot(run.runId)
      const whole = yield* Stream.runCollect(engine.events(run.runId))
      expect(before.expiresAt).toBe(before.updatedAt + eventsMs)
      yield* pass(eventsMs - 400)
      expect([...(yield* Stream.runCollect(engine.events(run.runId)))]).toEqual([...whole])
      yield* pass(2_000)

      expect(yield* engine.snapshot(run.runId)).toEqual(before)
      for (const after of [0, 3, before.lastSeq - 3]) {
        const gone = { _tag: "Compacted", snapshot: `/runs/${run.runId}`, message: expect.stringContaining("/runs/") }
        expect(yield* Effect.flip(engine.view(run.runId, after))).toMatchObject(gone)
        const resumed = yield* engine.resume(run.runId, { lastAppliedSeq: after })
        expect(resumed).toMatchObject({ _tag: "unavailable", recoverable: false })
      }
      const rest = yield* Stream.runCollect(engine.events(run.runId, { after: before.lastSeq - 1 }))
      expect([...rest]).toEqual([...whole].slice(-1))
      expect(yield* engine.resume(run.runId, { lastAppliedSeq: before.lastSeq - 1 })).toMatchObject({
        _tag: "attached"
      })
      expect(yield* engine.cancel(run.runId)).toMatchObject({ status: "completed", lastSeq: before.lastSeq })
      expect(yield* Effect.flip(engine.decide(run.runId, "apr_1", { decision: "approve" }))).toMatchObject({
        _tag: "NotFound"
      })
      const checkpoints = yield* engine.checkpoints(run.runId)
      expect(checkpoints.map(({ kind }) => kind)).toEqual(["run_finished"])
      const { resumeState } = yield* engine.checkpoint(run.runId, checkpoints[0]?.seq ?? 0)
      expect(resumeState.assistantDraft).toEqual({ text: "Hello, world", reasoning: "let me see" })
      const { messages } = yield* engine.conversation(run.conversationId)
      const said = yield* Stream.runCollect(messages)
      expect(Array.from(said, ({ content }) => content)).toEqual(["hello", "Hello, world"])

      // The conversation goes on as if nothing had been removed.
      const next = yield* started("and now?", "completed", run.conversationId)
      const asked = script.requests.at(-1)?.messages ?? []
      expect(JSON.stringify(asked)).toContain("Hello, world")
      const again = yield* engine.regenerate(next.runId)
      expect(again.created).toBe(true)
    }).pipe(Effect.provide(stack))
  )

  it.scoped("what failed recoverably is shown as before, and can not be continued any more", () =>
    Effect.gen(function* () {
      const engine = yield* RunEngine
      const run = yield* started("fail", "failed")
      const before = yield* engine.snapshot(run.runId)
      expect(before.recoverable).toBe(true)
      yield* pass(eventsMs + 1_500)
      expect(yield* engine.snapshot(run.runId)).toEqual(before)
      for (const lastAppliedSeq of [0, before.lastSeq - 1, before.lastSeq]) {
        const resumed = yield* engine.resume(run.runId, { lastAppliedSeq })
        expect(resumed).toMatchObject({
          _tag: "unavailable",
          recoverable: false,
          reason: expect.stringMatching(/egenerate/)
        })
      }
      expect((yield* engine.snapshot(run.runId)).attempt).toBe(1)
      expect(yield* engine.cancel(run.runId)).toMatchObject({ status: "cancelled", lastSeq: before.lastSeq + 1 })
      expect((yield* engine.snapshot(run.runId)).text).toBe("Well, ")
    }).pipe(Effect.provide(stack))
  )

  it.scoped(
    "runs that are active or wait for a person stay whole, however old, and so does what is said before them",
    () =>
      Effect.gen(function* () {
        const engine = yield* RunEngine
        const store = yield* RunStore
        const first = yield* started("hello", "completed")
        const waiting = yield* started("save", "waiting_approval", first.conversationId)
        const busy = yield* started("hang", "streaming")
        const queued = yield* engine.start({ message: "hello", conversationId: busy.conversationId })
        const alone = yield* started("hello", "completed")
        yield* pass(runsMs + 3_000)
        for (const { runId } of [waiting, busy, queued]) {
          const { lastSeq } = yield* engine.snapshot(runId)
          const row = Option.getOrThrow(yield* store.find({ runId, userId: "local" }))
          expect(row.compactedSeq).toBe(0)
          expect((yield* store.events({ key: row.key, after: 0, limit: 100 })).length).toBe(lastSeq)
        }
        expect((yield* engine.snapshot(first.runId)).text).toBe("Hello, world")
        expect(yield* Effect.flip(engine.snapshot(alone.runId))).toMatchObject({ _tag: "NotFound" })
        expect(yield* Effect.flip(engine.conversation(alone.conversationId))).toMatchObject({ _tag: "NotFound" })

        const [asked] = (yield* engine.snapshot(waiting.runId)).pendingApprovals
        yield* engine.decide(waiting.runId, asked?.approvalId ?? "", { decision: "reject" })
        yield* pass(500)
        expect((yield* engine.snapshot(waiting.runId)).status).toBe("completed")
        yield* pass(2_000)
        // Nothing of the conversation is active any more, and its first run is long over.
        expect(yield* Effect.flip(engine.snapshot(first.runId))).toMatchObject({ _tag: "NotFound" })
        const { messages } = yield* engine.conversation(waiting.conversationId)
        expect(Array.from(yield* Stream.runCollect(messages), ({ role }) => role)).toEqual(["user", "assistant"])
        yield* pass(runsMs)
        expect(yield* Effect.flip(engine.snapshot(waiting.runId))).toMatchObject({ _tag: "NotFound" })
      }).pipe(Effect.provide(stack))
  )

  it.live("does a bounded part at a time, and comes to its end", () =>
    Effect.gen(function* () {
      const { store } = yield* env
      const place = { log: undefined, run: undefined, unreadable: new Set<number>() }
      for (let i = 0; i < 120; i++) {
        const events = Array.from({ length: 9 }, (_, n) => n)
        const run = yield* begin()
        yield* append({ key: run.key, epoch: run.epoch, events: texts(events.length), set: { status: "running" } })
        yield* end(run)
      }
      const left = Effect.map(store.outlived({ what: "log", endedBefore: 1e15, limit: 1000 }), (rows) => rows.length)
      const sweep = Retention.sweep({ ...(yield* env), now: Effect.succeed(1e15) }, place)
      const sizes: Array<number> = []
      for (let more = true; more; ) {
        more = yield* sweep
        sizes.push(yield* left)
      }
      expect(sizes).toEqual([70, 20, 0])
    }).pipe(Effect.provide(MemoryStore.layer))
  )
})
