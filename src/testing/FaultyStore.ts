/**
 * A store that misbehaves by plan: it fails, answers late or not at all, loses its answer, or takes its process down,
 * before or after the nth operation of a kind.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { FaultyStore, Stores } from "runlet/testing"
 *
 * const store = Effect.map(Effect.flatten(Stores.memory), (store) =>
 *   FaultyStore.make(store, new FaultyStore.Control([{ operation: "append", nth: 3, kind: "lose" }]))
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { RunStore, StoreError } from "../store/RunStore.js"

/**
 * What is counted: each of the writing operations by itself, all reading ones together.
 *
 * @since 0.1.0
 * @category models
 */
export type Operation =
  | "create"
  | "append"
  | "claimQueued"
  | "claimAbandoned"
  | "renew"
  | "release"
  | "saveCompaction"
  | "compact"
  | "read"

/**
 * - `fail`: nothing is done, the answer is an error. `lose`: it is done, and the answer is an error
 * - `delay`: it is done `ms` late. `late`: it is done, and the answer comes `ms` late. `hang`: nothing is done, and the
 *   error comes `ms` late
 * - `freeze`: it is done, and for `ms` the process hears nothing of its store, as when it is stopped and goes on later
 * - `crash-before`, `crash-after`: the process ends before, or after, it is done
 *
 * @since 0.1.0
 * @category models
 */
export type FaultKind = "fail" | "lose" | "delay" | "late" | "hang" | "freeze" | "crash-before" | "crash-after"

/**
 * What happens at the `nth` (1, 2, …) operation of its kind. `times`: and at how many after it (default: at that one
 * alone).
 *
 * @since 0.1.0
 * @category models
 */
export interface Fault {
  readonly operation: Operation
  readonly nth: number
  readonly kind: FaultKind
  readonly ms?: number | undefined
  readonly times?: number | undefined
}

/**
 * The life of the process that uses the store. `crash` ends it at once; when it is `down`, the store does nothing for
 * it any more. The counts go on when it is started again.
 *
 * @since 0.1.0
 * @category models
 */
export class Control {
  private readonly counts = new Map<Operation, number>()
  private readonly waiting = new Set<Deferred.Deferred<void>>()
  private isDown = false
  private frozen: Deferred.Deferred<void> | undefined
  /** Whether faults happen at all. */
  enabled = true

  constructor(
    readonly plan: ReadonlyArray<Fault>,
    private readonly onCrash: () => void = () => undefined
  ) {}

  get down(): boolean {
    return this.isDown
  }

  get isFrozen(): boolean {
    return this.frozen !== undefined
  }

  /** The process is started, or started again. */
  revive(): void {
    this.isDown = false
  }

  /** From this moment on the process can do nothing. */
  crash(): void {
    if (this.isDown) return
    this.isDown = true
    this.frozen = undefined
    for (const one of this.waiting) Deferred.unsafeDone(one, Effect.void)
    this.onCrash()
  }

  /** Counts an operation. */
  next(operation: Operation): Fault | undefined {
    const n = (this.counts.get(operation) ?? 0) + 1
    this.counts.set(operation, n)
    if (!this.enabled) return undefined
    return this.plan.find(
      (fault) => fault.operation === operation && n >= fault.nth && n < fault.nth + (fault.times ?? 1)
    )
  }

  /** Waits while the process is frozen. */
  readonly thawed: Effect.Effect<void> = Effect.suspend(() =>
    this.frozen === undefined ? Effect.void : Deferred.await(this.frozen)
  )

  /** Freezes the process for a while. */
  freeze(ms: number): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      if (this.frozen !== undefined) return
      const thaw = yield* Deferred.make<void>()
      this.frozen = thaw
      this.waiting.add(thaw)
      yield* this.pause(ms)
      if (this.frozen === thaw) this.frozen = undefined
      this.waiting.delete(thaw)
      yield* Deferred.succeed(thaw, undefined)
    })
  }

  /** Waits, but not beyond the life of the process; also where nothing can be interrupted. */
  pause(ms: number): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const over = yield* Deferred.make<void>()
      this.waiting.add(over)
      yield* Effect.forkDaemon(
        Effect.interruptible(Effect.zipRight(Effect.sleep(Duration.millis(ms)), Deferred.succeed(over, undefined)))
      )
      yield* Deferred.await(over)
      this.waiting.delete(over)
    })
  }
}

const defaultMs = 100

/**
 * The store as a process under `control` sees it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (store: RunStore["Type"], control: Control): RunStore["Type"] => {
  const broken = (method: string, reason: StoreError["reason"]) =>
    new StoreError({ reason, method, cause: new Error("The store was told to fail.") })
  const gone = (method: string) => Effect.fail(broken(method, "corrupt"))

  const around = <A>(
    operation: Operation,
    method: string,
    effect: Effect.Effect<A, StoreError>
  ): Effect.Effect<A, StoreError> =>
    Effect.suspend(() => {
      if (control.down) return gone(method)
      if (control.isFrozen) return Effect.zipRight(control.thawed, around(operation, method, effect))
      const fault = control.next(operation)
      if (fault === undefined) return Effect.zipLeft(effect, control.thawed)
      const unavailable = Effect.fail(broken(method, "unavailable"))
      const late = control.pause(fault.ms ?? defaultMs)
      const alive = Effect.suspend(() => (control.down ? gone(method) : effect))
      switch (fault.kind) {
        case "fail":
          return unavailable
        case "lose":
          return Effect.zipRight(effect, unavailable)
        case "delay":
          return Effect.zipRight(late, alive)
        case "late":
          return Effect.zipLeft(effect, late)
        case "freeze":
          return Effect.zipLeft(effect, control.freeze(fault.ms ?? defaultMs))
        case "hang":
          return Effect.zipRight(late, unavailable)
        case "crash-before":
          return Effect.suspend(() => {
            control.crash()
            return gone(method)
          })
        case "crash-after":
          return Effect.flatMap(effect, () => {
            control.crash()
            return gone(method)
          })
      }
    })
  const read = <A>(method: string, effect: Effect.Effect<A, StoreError>) => around("read", method, effect)

  return {
    now: Effect.suspend(() => (control.down ? gone("now") : store.now)),
    create: (run) => around("create", "create", store.create(run)),
    append: (batch) => around("append", "append", store.append(batch)),
    claimQueued: (claim) => around("claimQueued", "claimQueued", store.claimQueued(claim)),
    claimAbandoned: (claim) => around("claimAbandoned", "claimAbandoned", store.claimAbandoned(claim)),
    renew: (claim) => around("renew", "renew", store.renew(claim)),
    release: (run) => around("release", "release", store.release(run)),
    saveCompaction: (compaction) => around("saveCompaction", "saveCompaction", store.saveCompaction(compaction)),
    owned: (owner) => read("owned", store.owned(owner)),
    owners: read("owners", store.owners),
    find: (query) => read("find", store.find(query)),
    row: (key) => read("row", store.row(key)),
    input: (key) => read("input", store.input(key)),
    events: (query) => read("events", store.events(query)),
    envelopes: (query) => read("envelopes", store.envelopes(query)),
    checkpoints: (key) => read("checkpoints", store.checkpoints(key)),
    turns: (query) => read("turns", store.turns(query)),
    sides: (key) => read("sides", store.sides(key)),
    queuePosition: (key) => read("queuePosition", store.queuePosition(key)),
    list: (query) => read("list", store.list(query)),
    due: (limit) => read("due", store.due(limit)),
    supersedable: (query) => read("supersedable", store.supersedable(query)),
    remove: (query) => read("remove", store.remove(query)),
    conversations: (query) => read("conversations", store.conversations(query)),
    conversation: (query) => read("conversation", store.conversation(query)),
    questions: (query) => read("questions", store.questions(query)),
    renameConversation: (query) => read("renameConversation", store.renameConversation(query)),
    removeConversation: (query) => read("removeConversation", store.removeConversation(query)),
    compactions: (conversationId) => read("compactions", store.compactions(conversationId)),
    base: (key) => read("base", store.base(key)),
    outlived: (query) => read("outlived", store.outlived(query)),
    compact: (run) => around("compact", "compact", store.compact(run)),
    trim: (limit) => around("compact", "trim", store.trim(limit)),
    expire: (run) => around("compact", "expire", store.expire(run)),
    reclaim: (bytes) => around("compact", "reclaim", store.reclaim(bytes)),
    census: read("census", store.census),
    changes: Stream.takeWhile(store.changes, () => !control.down),
    ready: Effect.suspend(() => (control.down ? Effect.succeed(false) : store.ready))
  }
}

/**
 * Puts the faults between a store and its users.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (control: Control): Layer.Layer<RunStore, never, RunStore> =>
  Layer.effect(
    RunStore,
    Effect.map(RunStore, (store) => make(store, control))
  )
