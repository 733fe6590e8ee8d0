/**
 * The one writer of a run: keeps what waits to be stored, in order, and the folded state behind what is stored. It
 * stores nothing by itself; `GroupCommit` asks all writers for their appends and tells them the outcome.
 *
 * Plain mutable code on purpose: it runs once for every event of every run.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../domain/AgentEvent.js"
import * as Metrics from "../domain/Metrics.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import type { Secrets } from "../domain/Secrets.js"
import type { Append, AppendOutcome, RowChange, SideRecord, TurnRow } from "../store/RunStore.js"
import type { ToolConflict } from "../tool/Tool.js"
import { frameOf } from "./Frames.js"
import type { LiveTails } from "./LiveTail.js"
import * as Numbering from "./Numbering.js"
import type { Frame } from "./RunEngine.js"
import { Sanitizer } from "./Sanitizer.js"

/**
 * This process may not write to the run any more: somebody else took it, it has ended, or the store is lost.
 *
 * @since 0.1.0
 * @category errors
 */
export class WriterClosed extends Schema.TaggedError<WriterClosed>()("WriterClosed", { message: Schema.String }) {}

/**
 * A decision about a state, made at the moment of writing with everything before it folded in.
 *
 * @since 0.1.0
 * @category models
 */
export interface Decision {
  readonly events: ReadonlyArray<AgentEvent>
  readonly raiseEpoch?: boolean | undefined
  /** Gives up the run together with these events. */
  readonly giveUp?: boolean | undefined
}

/**
 * Decides about a state at a moment (epoch milliseconds), which is the time that the events will carry. `undefined`: the
 * state does not allow it, nothing is written.
 *
 * @since 0.1.0
 * @category models
 */
export type Decide = (state: Fold.RunState, now: number) => Decision | undefined

/**
 * What became of a decision: `state` is the state behind it, or the one that did not allow it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Decided {
  readonly written: boolean
  readonly state: Fold.RunState
}

interface Entry {
  readonly decide: Decide
  readonly side?: SideRecord | undefined
  readonly within?: Effect.Effect<void, ToolConflict> | undefined
  readonly onConflict?: ((conflict: ToolConflict) => AgentEvent) | undefined
  size: number
  readonly done?: Deferred.Deferred<Decided, WriterClosed> | undefined
}

interface Prepared {
  readonly append: Append
  readonly state: Fold.RunState
  readonly deltas: number
  readonly frames: ReadonlyArray<Frame>
  readonly entries: number
  readonly decided: ReadonlyArray<Decided>
}

/** Events of one append: enough to be cheap, few enough to leave the event loop air. */
const maxEvents = 1000
/** A producer that is further ahead waits. */
const maxWaiting = 5000

/** Whether the run's row shows nothing of such an event. */
const isQuiet = (type: AgentEvent["type"]): boolean =>
  type === "text-delta" ||
  type === "reasoning-delta" ||
  type === "tool-call-delta" ||
  type === "tool-result-delta" ||
  type === "checkpoint"

/**
 * The row as a state shows it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const rowChange = (state: Fold.RunState): RowChange => {
  const pending = Fold.pendingApprovals(state)
  return {
    status: state.status,
    recoverable: state.recoverable,
    attempt: state.attempt,
    iteration: state.iteration,
    usage: state.usage,
    error: state.end?.type === "error" ? { code: state.end.code, message: state.end.message } : null,
    nextExpiry: pending.length === 0 ? null : Math.min(...pending.map((request) => request.expiresAt)),
    ...(RunStatus.isEnded(state.status) && { assistantText: Fold.text(state) })
  }
}

/**
 * What a numbered batch is in the store: the row, and a turn row where a turn was closed.
 *
 * @since 0.1.0
 * @category conversions
 */
export const appendOf = (
  numbered: Numbering.Numbered
): Pick<Append, "events" | "turn"> & { readonly set: RowChange } => {
  const turn = turnRow(numbered)
  return { events: numbered.events, set: rowChange(numbered.state), ...(turn !== undefined && { turn }) }
}

const turnRow = ({ closed }: Numbering.Numbered): TurnRow | undefined => {
  if (closed === undefined) return undefined
  const { closed: _, open: __, ...header } = closed.state
  return { n: closed.turn.n, seq: closed.state.seq, turn: closed.turn, header }
}

/**
 * The one way to the log of a run that this process executes: it numbers, joins, cleans and folds what is to be stored.
 *
 * @since 0.1.0
 * @category models
 */
export class RunWriter {
  private queue: Array<Entry> = []
  /** The last entry of the queue, if it is made of facts that nobody waits for and may still grow. */
  private growing: { readonly entry: Entry; readonly events: Array<AgentEvent> } | undefined
  private waiting = 0
  private deltas = 0
  private prepared: Prepared | undefined
  /** What was refused because the log had moved. */
  private unsure: Prepared | undefined
  private closed: WriterClosed | undefined
  private readonly sanitizer: Sanitizer
  /** Others have written to the log: read it before the next append. */
  stale = false

  constructor(
    readonly key: number,
    readonly runId: string,
    readonly epoch: number,
    /** Everything that is stored, folded. */
    public state: Fold.RunState,
    private readonly options: {
      readonly tails: LiveTails
      readonly checkpointEvery: number
      readonly secrets: Secrets["Type"]
      readonly lease: { readonly owner: string; readonly ttlMs: number }
      readonly notify: (writer: RunWriter) => void
      /** Called once, when the writer may write no more. */
      readonly onClose: (writer: RunWriter) => void
    }
  ) {
    this.sanitizer = new Sanitizer(options.secrets)
    options.tails.open(key, state.seq)
  }

  get isClosed(): boolean {
    return this.closed !== undefined
  }

  get hasWork(): boolean {
    return this.closed === undefined && (this.queue.length > 0 || this.stale)
  }

  private push(entry: Entry): void {
    this.growing = undefined
    this.queue.push(entry)
    this.waiting += entry.size
    this.options.notify(this)
  }

  private sanitized(events: ReadonlyArray<AgentEvent>, out: Array<AgentEvent> = []): Array<AgentEvent> {
    for (const event of events) for (const clean of this.sanitizer.push(event)) out.push(clean)
    return out
  }

  private add(events: ReadonlyArray<AgentEvent>): void {
    const { growing } = this
    if (growing !== undefined && growing.events.length < maxEvents) {
      const before = growing.events.length
      const added = this.sanitized(events, growing.events).length - before
      growing.entry.size += added
      this.waiting += added
      this.options.notify(this)
      return
    }
    const clean = this.sanitized(events)
    if (clean.length === 0) return
    const entry: Entry = { decide: () => ({ events: clean }), size: clean.length }
    this.push(entry)
    this.growing = { entry, events: clean }
  }

  /** Adds facts, and waits only when the store is far behind. */
  offer(events: ReadonlyArray<AgentEvent>): Effect.Effect<void, WriterClosed> {
    return Effect.suspend(() => {
      if (this.closed !== undefined) return Effect.fail(this.closed)
      this.add(events)
      return this.waiting > maxWaiting ? Effect.asVoid(this.settled) : Effect.void
    })
  }

  /** Adds facts and waits until they are stored. */
  commit(
    events: ReadonlyArray<AgentEvent>,
    more?: Pick<Entry, "side" | "within" | "onConflict">
  ): Effect.Effect<Decided, WriterClosed> {
    return Effect.suspend(() => {
      const clean = this.sanitized(events)
      const side = more?.side && { ...more.side, data: this.options.secrets.said.json(more.side.data) }
      return this.enqueue({ decide: () => ({ events: clean }), size: clean.length, ...more, side })
    })
  }

  /** Writes what `decide` makes of the state as it will be when everything before it is stored. */
  transact(decide: Decide): Effect.Effect<Decided, WriterClosed> {
    return this.enqueue({
      decide: (state, now) => {
        const decision = decide(state, now)
        return decision === undefined ? undefined : { ...decision, events: this.sanitized(decision.events) }
      },
      size: 1
    })
  }

  /** The state when everything that waits now is stored. */
  get settled(): Effect.Effect<Fold.RunState, WriterClosed> {
    return Effect.map(this.enqueue({ decide: () => undefined, size: 0 }), (decided) => decided.state)
  }

  private enqueue(entry: Entry): Effect.Effect<Decided, WriterClosed> {
    return Effect.suspend(() => {
      if (this.closed !== undefined) return Effect.fail(this.closed)
      const done = Deferred.unsafeMake<Decided, WriterClosed>(FiberId.none)
      this.push({ ...entry, done })
      return Deferred.await(done)
    })
  }

  /** The next append, or `undefined` when there is nothing to store. Answers waiting decisions that write nothing. */
  prepare(now: number): Append | undefined {
    this.growing = undefined
    let state = this.state
    let deltas = this.deltas
    const events: Array<Numbering.Numbered["events"][number]> = []
    const frames: Array<Frame> = []
    const decided: Array<Decided> = []
    const sides: Array<SideRecord> = []
    let turn: Append["turn"]
    let within: Entry["within"]
    let raiseEpoch = false
    let giveUp = false
    let entries = 0
    for (const entry of this.queue) {
      const alone = entry.within !== undefined
      // A closed turn is one row, a transaction of a tool stands alone: what follows them waits for the next append.
      if (entries > 0 && (alone || turn !== undefined || giveUp || raiseEpoch || events.length >= maxEvents)) break
      const decision = entry.decide(state, now)
      entries++
      if (decision === undefined) {
        decided.push({ written: false, state })
        continue
      }
      const numbered = Numbering.number(state, decision.events, now, deltas, this.options.checkpointEvery)
      for (const event of numbered.events) {
        events.push(event)
        frames.push(frameOf(this.runId, event))
      }
      turn = turnRow(numbered)
      state = numbered.state
      deltas = numbered.deltas
      decided.push({ written: true, state })
      if (entry.side !== undefined) sides.push(entry.side)
      within = entry.within
      raiseEpoch = decision.raiseEpoch === true
      giveUp = decision.giveUp === true
      if (alone) break
    }
    if (events.length === 0) {
      this.prepared = undefined
      this.complete(entries, decided)
      return undefined
    }
    const append: Append = {
      key: this.key,
      epoch: this.epoch,
      expectedSeq: this.state.seq,
      events,
      set:
        giveUp || raiseEpoch || !events.every(({ type }) => isQuiet(type))
          ? { ...rowChange(state), lease: giveUp || RunStatus.isEnded(state.status) ? null : this.options.lease }
          : undefined,
      ...(raiseEpoch && { raiseEpoch }),
      ...(turn !== undefined && { turn }),
      ...(sides.length > 0 && { sides }),
      ...(within !== undefined && { within })
    }
    this.prepared = { append, state, deltas, frames, entries, decided }
    return append
  }

  /** Takes the outcome of the append that was prepared last. */
  settle(outcome: AppendOutcome): void {
    const prepared = this.prepared
    this.prepared = undefined
    if (prepared === undefined || this.closed !== undefined) return
    if (outcome._tag !== "Appended") Metrics.appendRefused(outcome._tag)
    switch (outcome._tag) {
      case "Appended":
        Metrics.transition(this.state, prepared.state)
        this.state = prepared.state
        this.deltas = prepared.deltas
        this.options.tails.publish(this.key, prepared.frames)
        this.written(prepared)
        return
      case "Moved":
        this.stale = true
        this.unsure = prepared
        return
      case "Rejected": {
        const [entry, ...rest] = this.queue
        if (entry === undefined) return
        const event = entry.onConflict?.(outcome.conflict)
        this.queue = [
          {
            decide: () => ({ events: event === undefined ? [] : this.sanitized([event]) }),
            size: entry.size,
            done: entry.done
          },
          ...rest
        ]
        return
      }
      case "Fenced":
        this.close("Another process has taken over this run, or it has ended.")
    }
  }

  /**
   * Folds and shows what others have written; or this writer itself, when the answer to its append was lost. Then it
   * stands in the log just as it was prepared, and must not be written again.
   */
  absorb(state: Fold.RunState, frames: ReadonlyArray<Frame>): void {
    if (this.closed !== undefined) return
    const unsure = this.unsure
    this.stale = false
    this.unsure = undefined
    this.state = state
    this.options.tails.publish(this.key, frames)
    if (unsure === undefined || unsure.frames.some((frame, index) => frames[index]?.json !== frame.json)) return
    this.deltas = unsure.deltas
    this.written(unsure)
  }

  private written(prepared: Prepared): void {
    this.complete(prepared.entries, prepared.decided)
    if (RunStatus.isEnded(this.state.status) || prepared.append.set?.lease === null) {
      this.close("The run has ended or was given up.")
    }
  }

  /** From now on nothing is written; who waits is told. */
  close(message: string): void {
    if (this.closed !== undefined) return
    this.closed = new WriterClosed({ message })
    const queue = this.queue
    this.queue = []
    this.growing = undefined
    for (const entry of queue) {
      if (entry.done !== undefined) Deferred.unsafeDone(entry.done, Effect.fail(this.closed))
    }
    this.options.tails.close(this.key)
    this.options.onClose(this)
  }

  private complete(count: number, decided: ReadonlyArray<Decided>): void {
    const entries = this.queue.splice(0, count)
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]
      const answer = decided[i]
      if (entry === undefined || answer === undefined) continue
      this.waiting -= entry.size
      if (entry.done !== undefined) Deferred.unsafeDone(entry.done, Effect.succeed(answer))
    }
  }
}
