/** Puts logs into a store, as runs that have ended, before a server opens it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Envelope from "../../../src/domain/Envelope.js"
import { encodeEvent } from "../../../src/domain/Envelope.js"
import * as RunState from "../../../src/domain/RunState.js"
import * as Retention from "../../../src/engine/Retention.js"
import { layerStore } from "../../../src/node/Runlet.js"
import { RunStore } from "../../../src/store/RunStore.js"

export interface Seeded {
  readonly log: ReadonlyArray<Envelope.Envelope>
  readonly question: string
  /** Another answer to the message of this run, which stands before it in the list. */
  readonly again?: boolean
  readonly user?: string
  /** Its events are removed again, as they are some time after its end. */
  readonly compacted?: boolean
}

const stored = ({ createdAt, event }: Envelope.Envelope) => ({ type: event.type, json: encodeEvent(event), createdAt })

/** Pieces that end where a turn does, and are not too long for a transaction. */
const batches = function* (log: ReadonlyArray<Envelope.Envelope>): Generator<ReadonlyArray<Envelope.Envelope>> {
  let batch: Array<Envelope.Envelope> = []
  for (const envelope of log) {
    batch.push(envelope)
    if (batch.length < 500 && envelope.event.type !== "iteration-end") continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

const put = (
  { again, compacted, log, question, user = "local" }: Seeded,
  before: { readonly key: number; readonly runId: string; readonly ord: number } | undefined
) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const end = RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log)
    const { start } = end
    if (start === undefined) throw new Error("A log begins with its start.")
    const created = yield* store.create({
      runId: end.runId,
      userId: user,
      conversationId: start.conversationId,
      existing: again === true,
      title: question,
      userMessageId: start.userMessageId,
      assistantMessageId: start.assistantMessageId,
      model: start.model,
      mode: start.mode,
      regeneratedFrom: again === true ? before : undefined,
      brought: [],
      input: {
        userMessage: question,
        prefix: { messages: [], runs: [] },
        instructions: "You are a test.",
        tools: [],
        limits: { maxIterations: 8, maxTokens: null, maxCostUsd: null, runTimeoutMs: 900_000 },
        enableThinking: true,
        currentDocument: null
      },
      events: log.slice(0, 1).map(stored),
      rejectIfBusy: false,
      maxQueued: 10,
      maxConcurrent: 10,
      placeForEach: false
    })
    if (!("row" in created)) throw new Error(`The run was not created: ${created._tag}`)
    const { key, ord, runId } = created.row
    let state = RunState.reduceAll(RunState.empty(runId), log.slice(0, 1))
    for (const events of batches(log.slice(1))) {
      state = RunState.reduceAll(state, events)
      const last = state.seq === end.seq
      const { closed, open: _, ...header } = state
      const turn = closed.at(-1)
      const closes = events.at(-1)?.event.type === "iteration-end" && turn !== undefined
      const [outcome] = yield* store.append([
        {
          key,
          events: events.map(stored),
          ...(closes && { turn: { n: turn.n, seq: state.seq, turn, header } }),
          set: {
            status: last ? end.status : "queued",
            recoverable: end.recoverable,
            attempt: end.attempt,
            iteration: end.iteration,
            usage: end.usage,
            lease: null,
            ...(last && { assistantText: RunState.text(end) })
          }
        }
      ])
      if (outcome?._tag !== "Appended") throw new Error(`The events were not stored: ${outcome?._tag}`)
    }
    const row = compacted === true ? Option.getOrUndefined(yield* store.row(key)) : undefined
    if (row !== undefined) {
      yield* Retention.compact({ store, now: Effect.orDie(store.now), retention: { eventsMs: 1, runsMs: 1 } }, row)
      while (yield* store.trim(1000));
    }
    return { key, ord, runId }
  })

/** Creates the file, with these runs in it. */
export const seed = (filename: string, runs: ReadonlyArray<Seeded>): Promise<void> =>
  Effect.gen(function* () {
    let before: { readonly key: number; readonly runId: string; readonly ord: number } | undefined
    for (const run of runs) before = yield* put(run, before)
  }).pipe(Effect.provide(layerStore({ filename })), Effect.scoped, Effect.runPromise)
