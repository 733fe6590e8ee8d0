import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import { expect } from "vitest"
import * as RunState from "../../src/domain/RunState.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import { type Append, type CreateOutcome, type CreateRun, RunStore, type StoreError } from "../../src/store/RunStore.js"
import { ending, request, started, texts } from "../../src/testing/store/fixtures.js"
import { ToolConflict } from "../../src/tool/Tool.js"

const pick = Schema.Int.pipe(Schema.between(0, 9))
const Status = Schema.Literal(
  ...(["running", "running", "streaming", "waiting_approval", "waiting_approval", "queued", "queued"] as const),
  ...(["failed", "failed", "completed", "cancelled"] as const)
)

const AppendCommand = Schema.Struct({
  run: pick,
  epoch: Schema.Literal("own", "none", "none", "stale"),
  expected: Schema.Literal("own", "wrong", "none", "none"),
  raise: Schema.Boolean,
  latest: Schema.Boolean,
  count: Schema.Int.pipe(Schema.between(0, 7)),
  set: Schema.Boolean,
  status: Status,
  recoverable: Schema.Boolean,
  lease: Schema.Literal("take", "give", "none", "none"),
  expiry: Schema.Literal("past", "future", "clear", "none"),
  text: Schema.Boolean,
  within: Schema.Literal("none", "none", "none", "succeed", "conflict")
})
type AppendCommand = typeof AppendCommand.Type

const Create = Schema.TaggedStruct("create", {
  user: pick,
  place: pick,
  again: Schema.Boolean,
  busy: Schema.Boolean,
  key: pick
})

// What is named twice comes twice as often.
const Command = Schema.Union(
  Create,
  Create,
  Create,
  Schema.TaggedStruct("append", { batch: Schema.Array(AppendCommand).pipe(Schema.maxItems(5)) }),
  Schema.TaggedStruct("append", { batch: Schema.Array(AppendCommand).pipe(Schema.maxItems(2)) }),
  Schema.TaggedStruct("claim", { limit: pick, each: pick }),
  Schema.TaggedStruct("claim", { limit: Schema.Literal(9), each: Schema.Literal(9) }),
  Schema.TaggedStruct("recover", { dead: Schema.Boolean, limit: Schema.Int.pipe(Schema.between(1, 3)) }),
  Schema.TaggedStruct("renew", {}),
  Schema.TaggedStruct("release", { run: pick }),
  Schema.TaggedStruct("pass", { time: pick }),
  Schema.TaggedStruct("remove", { run: pick }),
  Schema.TaggedStruct("forget", { run: pick }),
  Schema.TaggedStruct("compact", { run: pick, by: pick }),
  Schema.TaggedStruct("retire", { run: pick, left: pick, late: Schema.Boolean }),
  Schema.TaggedStruct("expire", { run: pick, age: pick })
)
type Command = typeof Command.Type

/** What is done to two stores. */
export const commands = Arbitrary.make(Schema.Array(Command).pipe(Schema.minItems(40), Schema.maxItems(60)))

interface Known {
  readonly key: number
  readonly runId: string
  readonly userId: string
  readonly conversationId: string
  readonly userMessageId: string
  readonly ord: number
}

type Store = RunStore["Type"]

const toAppend = (store: Store, known: ReadonlyArray<Known>, command: AppendCommand) =>
  Effect.gen(function* () {
    const run = known[command.run % known.length]
    const row = Option.getOrUndefined(yield* store.row(run?.key ?? 0))
    const now = yield* store.now
    const epoch = row?.epoch ?? 0
    const lease = command.lease === "take" ? { owner: "p1", ttlMs: 5000 } : command.lease === "give" ? null : undefined
    const expiry = { past: now, future: now + 4000, clear: null, none: undefined }[command.expiry]
    const append: Append = {
      key: run?.key ?? 0,
      epoch: command.epoch === "none" ? undefined : command.epoch === "own" ? epoch : epoch + 1,
      expectedSeq: command.expected === "none" ? undefined : (row?.lastSeq ?? 0) + (command.expected === "own" ? 0 : 1),
      raiseEpoch: command.raise,
      onlyIfLatest: command.latest,
      events: texts(command.count, now),
      set: command.set
        ? {
            status: command.status,
            recoverable: command.recoverable,
            lease,
            nextExpiry: expiry,
            ...(command.status === "failed" && { error: ending.failed(true).set?.error }),
            ...(command.text && { assistantText: `text of ${now}`, iteration: command.count })
          }
        : undefined,
      within:
        command.within === "none"
          ? undefined
          : command.within === "conflict"
            ? Effect.fail(new ToolConflict({ message: "no" }))
            : Effect.void
    }
    return append
  })

const toCreate = (known: ReadonlyArray<Known>, command: Extract<Command, { _tag: "create" }>) =>
  Effect.gen(function* () {
    const beside = command.place < 7 ? known[command.place % Math.max(1, known.length)] : undefined
    const run = yield* request({
      userId: beside !== undefined && command.user < 9 ? beside.userId : command.user % 2 === 0 ? "alice" : "bob",
      rejectIfBusy: command.busy,
      maxQueued: 4,
      ...(command.key < 2 && { idempotency: { key: `k${command.key}`, bodyHash: String(command.user % 2) } }),
      ...(beside !== undefined && { conversationId: beside.conversationId }),
      ...(beside !== undefined && command.again && { regeneratedFrom: beside, userMessageId: beside.userMessageId }),
      brought: [{ role: "user", content: "before" }]
    })
    return run
  })

/** Everything that can be read of a store. */
const look = (store: Store, known: ReadonlyArray<Known>) =>
  Effect.gen(function* () {
    const runs = yield* Effect.forEach(known, ({ conversationId, key, ord, runId, userId }) =>
      Effect.all({
        row: store.row(key),
        found: store.find({ runId, userId }),
        events: store.events({ key, after: 0, limit: 1000 }),
        position: store.queuePosition(key),
        input: Effect.option(store.input(key)),
        supersedable: store.supersedable({ conversationId, before: { key, ord } }),
        conversation: store.conversation({ conversationId, userId, limit: 2 }),
        rest: store.conversation({ conversationId, userId, limit: 100, after: { part: "runs", at: ord - 1 } }),
        questions: store.questions({ conversationId, userId }),
        compactions: store.compactions(conversationId),
        base: store.base(key)
      })
    )
    const users = yield* Effect.forEach(["alice", "bob"], (userId) =>
      Effect.all({
        list: store.list({ userId, limit: 100 }),
        page: store.list({ userId, limit: 2 }),
        queued: store.list({ userId, status: "queued", limit: 100 }),
        conversations: store.conversations({ userId, limit: 100 }),
        some: store.conversations({ userId, limit: 2 })
      })
    )
    const owners = yield* store.owners
    const owned = yield* store.owned("p1")
    const due = yield* store.due(100)
    const { bytes: _, freeBytes: __, ...census } = yield* store.census
    const outlived = yield* Effect.forEach(["log", "run"] as const, (what) =>
      store.outlived({ what, endedBefore: 1e9, limit: 100 })
    )
    const byKey = (a: { readonly key: number }, b: { readonly key: number }) => a.key - b.key
    return {
      runs,
      users,
      owners: owners.toSorted(),
      owned: owned.toSorted(byKey),
      due: due.toSorted(),
      census,
      outlived
    }
  })

const perform = (
  store: Store,
  known: ReadonlyArray<Known>,
  command: Command,
  create: CreateRun | undefined,
  batch: ReadonlyArray<Append>
): Effect.Effect<unknown, StoreError> => {
  const nth = (n: number) =>
    known[n % Math.max(1, known.length)] ?? { key: 0, runId: "", userId: "", conversationId: "" }
  switch (command._tag) {
    case "create":
      return create === undefined ? Effect.void : store.create(create)
    case "append":
      return store.append(batch)
    case "claim":
      return store.claimQueued({
        owner: command.limit % 2 === 0 ? "p1" : "p2",
        ttlMs: 3000,
        maxConcurrent: command.limit,
        maxPerUser: command.each === 9 ? null : command.each,
        started
      })
    case "recover":
      return store.claimAbandoned({ owner: "p1", ttlMs: 3000, dead: command.dead ? ["p2"] : [], limit: command.limit })
    case "renew":
      return store.renew({ owner: "p1", ttlMs: 3000 })
    case "release":
      return Effect.flatMap(store.row(nth(command.run).key), (row) =>
        Option.isSome(row) ? store.release(row.value) : Effect.void
      )
    case "pass":
      return TestClock.adjust(command.time * 100)
    case "remove":
      return store.remove(nth(command.run))
    case "forget":
      return store.removeConversation(nth(command.run))
    case "compact":
      return store.saveCompaction({
        conversationId: nth(command.run).conversationId,
        uptoRunId: nth(command.run).runId,
        uptoIteration: 1,
        summary: "s",
        madeIn: nth(command.by).runId,
        madeAt: 1
      })
    case "retire":
      return Effect.flatMap(store.row(nth(command.run).key), (found) => {
        if (Option.isNone(found)) return Effect.void
        const { key, lastSeq, runId } = found.value
        const { closed: _, ...state } = RunState.empty(runId)
        const seq = Math.max(0, lastSeq - command.left)
        const compacted = store.compact({
          key,
          lastSeq: command.late ? lastSeq - 1 : lastSeq,
          base: { seq, turns: 0, state: { ...state, seq } }
        })
        return Effect.zipLeft(compacted, Effect.repeat(store.trim(3), { while: (more) => more }))
      })
    case "expire":
      return Effect.flatMap(store.now, (now) =>
        store.expire({ key: nth(command.run).key, endedBefore: now - command.age * 100, limit: 1000 })
      )
  }
}

const isOutcome = (u: unknown): u is CreateOutcome => typeof u === "object" && u !== null && "_tag" in u

/** A store does the same as the one in memory. */
export const agrees = (layer: Layer.Layer<RunStore, StoreError>, script: ReadonlyArray<Command>) =>
  Effect.gen(function* () {
    const store = (layer: Layer.Layer<RunStore, StoreError>) =>
      Effect.flatMap(Layer.build(Layer.fresh(layer)), (context) => Effect.provide(RunStore, context))
    const memory = yield* store(MemoryStore.layer)
    const sql = yield* store(layer)
    const known: Array<Known> = []
    for (const command of script) {
      const create = command._tag === "create" ? yield* toCreate(known, command) : undefined
      const batch =
        command._tag === "append" && known.length > 0
          ? yield* Effect.forEach(command.batch, (one) => toAppend(memory, known, one))
          : []
      const expected = yield* perform(memory, known, command, create, batch)
      // Time is one for both.
      const actual = command._tag === "pass" ? expected : yield* perform(sql, known, command, create, batch)
      expect(actual).toEqual(expected)
      if (command._tag === "create" && isOutcome(expected) && "row" in expected) known.push(expected.row)
      expect(yield* look(sql, known)).toEqual(yield* look(memory, known))
    }
    for (const { key } of known) {
      const seqs = (yield* sql.events({ key, after: 0, limit: 10_000 })).map(({ seq }) => seq)
      const first = Option.match(yield* sql.row(key), { onNone: () => 0, onSome: (row) => row.compactedSeq + 1 })
      expect(seqs).toEqual(seqs.map((_, index) => index + first))
    }
  })
