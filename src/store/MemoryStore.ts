/**
 * The store in memory: for tests, and for programs whose runs need not outlive them. It keeps every rule of the port.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { ToolConflict } from "../tool/Tool.js"
import { type Encoded, type EncodedAppend, makeEncoded } from "./Encoded.js"
import * as Memory from "./internal/memory.js"
import * as Conversations from "./internal/memoryConversations.js"
import * as MemoryQueue from "./internal/memoryQueue.js"
import * as Retention from "./internal/memoryRetention.js"
import { type AppendOutcome, RunStore } from "./RunStore.js"

/**
 * What several processes share when they share one memory store: make it once, and a store for each process from it.
 *
 * @since 0.1.0
 * @category services
 */
export class Shared extends Context.Tag("runlet/MemoryStore/Shared")<Shared, SharedMemory>() {}

/**
 * The contents of a memory store.
 *
 * @since 0.1.0
 * @category models
 */
export interface SharedMemory {
  /** Held while something changes; only an append with `within` holds it across an effect. */
  readonly exclusive: Effect.Semaphore
  /** Wakes each process that did not make a change itself. */
  readonly watchers: Set<{ readonly process: object; readonly queue: Queue.Queue<void> }>
  readonly data: Memory.Data
}

const makeDriver = ({ data, exclusive, watchers }: SharedMemory, process: object): Encoded => {
  const tell = Effect.sync(() => {
    for (const watcher of watchers) if (watcher.process !== process) watcher.queue.unsafeOffer(undefined)
  })
  const read = <A>(f: (now: number) => A): Effect.Effect<A> => Effect.map(Clock.currentTimeMillis, f)
  const write = <A>(f: (now: number) => A): Effect.Effect<A> =>
    exclusive.withPermits(1)(Effect.uninterruptible(Effect.zipLeft(read(f), tell)))
  // Who finds nothing to claim has changed nothing. Told of it, the others would look too, and tell back, for ever.
  const claim = <A>(f: (now: number) => A, isNothing: (claimed: A) => boolean): Effect.Effect<A> =>
    exclusive.withPermits(1)(
      Effect.uninterruptible(Effect.tap(read(f), (claimed) => (isNothing(claimed) ? Effect.void : tell)))
    )
  const appendOne = (append: EncodedAppend, within: Effect.Effect<void, ToolConflict>) =>
    Effect.suspend((): Effect.Effect<AppendOutcome> => {
      const refused = Memory.refuse(data, append)
      if (refused !== undefined) return Effect.succeed(refused)
      return within.pipe(
        Effect.matchEffect({
          onFailure: (conflict): Effect.Effect<AppendOutcome> => Effect.succeed({ _tag: "Rejected", conflict }),
          onSuccess: () => read((now) => Memory.change(data, append, now))
        })
      )
    })
  return {
    now: Clock.currentTimeMillis,
    create: (run) => write((now) => Memory.create(data, run, now)),
    append: (batch) =>
      exclusive.withPermits(1)(
        Effect.uninterruptibleMask((restore) =>
          Effect.ensuring(
            Effect.forEach(batch, (append) => appendOne(append, restore(append.within ?? Effect.void))),
            tell
          )
        )
      ),
    claimQueued: (who) => claim((now) => MemoryQueue.claimQueued(data, who, now), Predicate.isUndefined),
    claimAbandoned: (who) => claim((now) => MemoryQueue.claimAbandoned(data, who, now), Arr.isEmptyReadonlyArray),
    renew: ({ owner, ttlMs }) =>
      write((now) => {
        for (const run of data.filter((row) => Memory.isExecuting(row) && row.owner === owner)) {
          run.row = { ...run.row, leaseExpiresAt: now + ttlMs }
        }
      }),
    owned: (owner) =>
      read(() =>
        data
          .filter((row) => Memory.isExecuting(row) && row.owner === owner)
          .map(({ row: { epoch, key, lastSeq } }) => ({ key, epoch, lastSeq }))
      ),
    release: ({ epoch, key }) =>
      write(() => {
        const run = data.runs.get(key)
        if (run?.row.epoch === epoch) run.row = { ...run.row, owner: undefined, leaseExpiresAt: undefined }
      }),
    owners: read(() => {
      const owners = data.filter(Memory.isExecuting).flatMap(({ row }) => row.owner ?? [])
      return Array.from(new Set(owners))
    }),
    find: ({ runId, userId }) => read(() => data.userRun(runId, userId)?.row),
    row: (key) => read(() => data.runs.get(key)?.row),
    input: (key) =>
      read(() => {
        const run = data.runs.get(key)
        if (run === undefined) return undefined
        const brought = data.conversations.get(run.row.conversationId)?.brought ?? []
        return {
          json: run.input,
          runs: JSON.stringify(run.prefix),
          brought: brought.map(({ content, role }) => ({ role, content }))
        }
      }),
    events: ({ after, key, limit }) => read(() => Memory.eventsOf(data, key, after, limit)),
    checkpoints: (key) => read(() => data.runs.get(key)?.events.filter(({ type }) => type === "checkpoint") ?? []),
    turns: ({ key, upTo = Number.POSITIVE_INFINITY }) =>
      read(() =>
        Array.from(data.runs.get(key)?.turns.values() ?? [])
          .filter((turn) => turn.seq <= upTo)
          .sort((a, b) => a.n - b.n)
      ),
    sides: (key) =>
      read(() => Array.from(data.runs.get(key)?.sides.values() ?? []).sort((a, b) => a.iteration - b.iteration)),
    queuePosition: (key) => read(() => MemoryQueue.queuePosition(data, key)),
    list: ({ before = Number.POSITIVE_INFINITY, conversationId, limit, status, userId }) =>
      read(() =>
        data
          .filter((row) => row.userId === userId && row.key < before)
          .map(({ row }) => row)
          .filter((row) => conversationId === undefined || row.conversationId === conversationId)
          .filter((row) => status === undefined || row.status === status)
          .sort((a, b) => b.key - a.key)
          .slice(0, limit)
      ),
    due: (limit) =>
      read((now) =>
        data
          .filter((row) => row.status === "waiting_approval" && row.nextExpiry !== undefined && row.nextExpiry <= now)
          .sort((a, b) => (a.row.nextExpiry ?? 0) - (b.row.nextExpiry ?? 0))
          .slice(0, limit)
          .map(({ row }) => row.key)
      ),
    supersedable: ({ before, conversationId }) =>
      read(() =>
        data
          .filter((row) => row.conversationId === conversationId && Memory.isBefore(row, before))
          .map(({ row }) => row)
          .filter((row) => row.status === "failed" && row.recoverable === true)
          .sort((a, b) => (Memory.isBefore(a, b) ? -1 : 1))
      ),
    remove: ({ runId, userId }) => write(() => Retention.remove(data, runId, userId)),
    conversations: (query) => read(() => Conversations.conversations(data, query)),
    conversation: (query) => read(() => Conversations.page(data, query)),
    questions: ({ conversationId, userId }) => read(() => Conversations.questions(data, conversationId, userId)),
    renameConversation: ({ conversationId, title, userId }) =>
      write(() => {
        const conversation = data.userConversation(conversationId, userId)
        if (conversation !== undefined) conversation.title = title
        return conversation !== undefined
      }),
    removeConversation: ({ conversationId, userId }) =>
      write(() => Retention.removeConversation(data, conversationId, userId)),
    compactions: (conversationId) => read(() => data.conversations.get(conversationId)?.compactions.slice() ?? []),
    saveCompaction: (compaction) =>
      write(() => {
        const names = new Set(
          data.filter((row) => row.conversationId === compaction.conversationId).map(({ row }) => row.runId)
        )
        if (names.has(compaction.uptoRunId) && names.has(compaction.madeIn)) {
          data.conversations.get(compaction.conversationId)?.compactions.push(compaction)
        }
      }),
    base: (key) => read(() => data.runs.get(key)?.base),
    outlived: (query) => read(() => Retention.outlived(data, query)),
    compact: ({ base, key, lastSeq }) => write(() => Retention.compact(data, key, lastSeq, base)),
    trim: () => Effect.succeed(false),
    expire: ({ endedBefore, key }) => write(() => Retention.expire(data, key, endedBefore)),
    reclaim: () => Effect.succeed(0),
    census: read(() => Memory.census(data)),
    changes: Stream.unwrapScoped(
      Effect.map(
        Effect.acquireRelease(
          Effect.map(Queue.sliding<void>(1), (queue) => {
            const watcher = { process, queue }
            watchers.add(watcher)
            return watcher
          }),
          (watcher) =>
            Effect.suspend(() => {
              watchers.delete(watcher)
              return watcher.queue.shutdown
            })
        ),
        ({ queue }) => Stream.map(Stream.fromQueue(queue), () => ({ work: true, left: false }))
      )
    ),
    ready: Effect.succeed(true)
  }
}

/**
 * Empty contents, to be shared by the stores made from them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeShared: Effect.Effect<SharedMemory> = Effect.sync(() => ({
  exclusive: Effect.unsafeMakeSemaphore(1),
  watchers: new Set(),
  data: new Memory.Data()
}))

/**
 * The store of one more process that shares the same contents. Its `changes` tell of what the others do.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<RunStore["Type"], never, Shared> = Effect.map(Shared, (shared) =>
  makeEncoded(makeDriver(shared, {}))
)

/**
 * Empty contents for `layerProcess`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerShared: Layer.Layer<Shared> = Layer.effect(Shared, makeShared)

/**
 * One process of several: provide the same built `Shared` to each, and use `Layer.fresh` for more than one in a
 * program.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerProcess: Layer.Layer<RunStore, never, Shared> = Layer.effect(RunStore, make)

/**
 * A store of its own, empty.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<RunStore> = Layer.provide(layerProcess, layerShared)
