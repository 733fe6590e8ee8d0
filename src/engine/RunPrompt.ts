/**
 * What a run's prompt is made of, read from the store, and how it is kept within a model's window.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as History from "../agent/History.js"
import type { RunInput } from "../domain/RunInput.js"
import * as Fold from "../domain/RunState.js"
import type { Model, ModelMessage } from "../model/Model.js"
import type { Compaction, RunRow, RunStore, SideRecord, StoreError } from "../store/RunStore.js"
import type { Environment } from "./Environment.js"
import * as RunLog from "./RunLog.js"

const sidesOf = (records: ReadonlyArray<SideRecord>): ReadonlyMap<number, unknown> =>
  new Map(records.map((record) => [record.iteration, record.data]))

/**
 * Only runs that ended are in a prefix, so what is read here does not change any more. What another model wants back of
 * its turns is none of this one's business.
 */
const exchange = (
  store: RunStore["Type"],
  runId: string,
  { model, userId }: Pick<RunRow, "model" | "userId">
): Effect.Effect<Option.Option<History.Exchange>, StoreError> =>
  Effect.gen(function* () {
    const row = yield* store.find({ runId, userId })
    if (Option.isNone(row)) return Option.none()
    const input = yield* store.input(row.value.key)
    const told = Effect.gen(function* () {
      const state = yield* RunLog.load(store, row.value)
      const sides = row.value.model === model ? yield* store.sides(row.value.key) : []
      return { turns: Fold.turns(state), answer: Fold.text(state), sides: sidesOf(sides) }
    })
    // Of a run whose log can not be read the conversation still has the text.
    const { conversationId, ord } = row.value
    const here = { conversationId, userId, after: { part: "runs", at: ord - 1 }, limit: 1 } as const
    const textAlone = Effect.map(store.conversation(here), (found) => {
      const messages = Option.match(found, { onNone: () => [], onSome: (one) => one.messages })
      const answer = messages.find((message) => message.runId === runId && message.role === "assistant")?.content ?? ""
      return { turns: undefined, answer, sides: sidesOf([]) }
    })
    const rest: Omit<History.Exchange, "runId" | "userMessage"> = yield* Effect.catchIf(
      told,
      (error) => error.reason === "corrupt",
      () => textAlone
    )
    return Option.some({ runId, userMessage: input.userMessage, ...rest })
  })

/**
 * The earlier runs that are not wholly covered by what a compaction says, so that a long conversation costs no more than
 * what is still told of it.
 */
const uncovered = (
  prefix: ReadonlyArray<string>,
  compaction: Compaction | undefined,
  runId: string
): ReadonlyArray<string> =>
  compaction === undefined
    ? prefix
    : compaction.uptoRunId === runId
      ? []
      : prefix.slice(Math.max(0, prefix.indexOf(compaction.uptoRunId)))

/**
 * The material of a run's prompts. Notes tell the model that the open document is not what it was when the run began.
 * What a compaction covers is not read.
 *
 * @since 0.1.0
 * @category prompts
 */
export const material = (
  { documents, store }: Pick<Environment, "documents" | "store">,
  row: RunRow,
  input: RunInput,
  state: Fold.RunState
): Effect.Effect<Omit<History.Material, "sides" | "summary">, StoreError> =>
  Effect.gen(function* () {
    const found = applicable(yield* store.compactions(row.conversationId), input, { runId: row.runId, seq: state.seq })
    const earlier = yield* Effect.forEach(uncovered(input.prefix.runs, found, row.runId), (runId) =>
      exchange(store, runId, row)
    )
    const notes = state.attempt > 1 ? yield* documentNotes(documents, input, row.userId) : []
    return { input, earlier: earlier.flatMap(Option.toArray), notes }
  })

const documentNotes = (
  documents: Environment["documents"],
  input: RunInput,
  user: string
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const document = input.currentDocument
    if (document === null) return []
    const found = yield* documents.describe({ id: document.id, user })
    if (Option.isNone(found)) {
      return document.contentHash === undefined
        ? []
        : ["The open document does not exist any more. Do not rely on what was read from it."]
    }
    if (document.contentHash === undefined || found.value.contentHash === document.contentHash) return []
    return [
      `The open document has changed since this answer was begun (its content hash is now ${found.value.contentHash}). Read it again before you rely on it.`
    ]
  })

/**
 * The newest compaction that a prompt at this point of this run may use.
 *
 * @since 0.1.0
 * @category compaction
 */
export const applicable = (
  compactions: ReadonlyArray<Compaction>,
  input: RunInput,
  at: { readonly runId: string; readonly seq: number }
): Compaction | undefined =>
  compactions.findLast((one) =>
    one.madeIn === at.runId ? one.madeAt <= at.seq : input.prefix.runs.includes(one.madeIn)
  )

/** A rough upper bound: four bytes of UTF-8 a token, which is fair to English and generous to CJK. */
const tokens = (messages: ReadonlyArray<ModelMessage>): number =>
  Math.ceil(Buffer.byteLength(JSON.stringify(messages), "utf8") / 4)

/** The window of a model of which none is known, in tokens: what is sent must have a bound. */
const widest = 1_000_000

/** What of the window a prompt may fill before it is compacted, and what it is brought down to. */
const fullAt = 0.75
const shrinkTo = 0.4

/**
 * The prompt of a state. When it outgrows the model's window, the oldest blocks are left out once and for all: a
 * compaction is stored with a note in their place, so that every later prompt, and a checkpoint's
 * `compressedMessages`, is the same.
 *
 * @since 0.1.0
 * @category prompts
 */
export const build = (
  store: RunStore["Type"],
  row: RunRow,
  base: Omit<History.Material, "sides" | "summary">,
  model: Pick<Model, "contextWindow"> | undefined,
  state: Fold.RunState,
  draft: boolean
): Effect.Effect<ReadonlyArray<ModelMessage>, StoreError> =>
  Effect.gen(function* () {
    const sides = sidesOf(yield* store.sides(row.key))
    const compactions = yield* store.compactions(row.conversationId)
    const found = applicable(compactions, base.input, { runId: row.runId, seq: state.seq })
    const withSummary = (compaction: Compaction | undefined): History.Material => ({
      ...base,
      sides,
      ...(compaction !== undefined && {
        summary: {
          text: compaction.summary,
          uptoRunId: compaction.uptoRunId,
          uptoIteration: compaction.uptoIteration
        }
      })
    })
    const full = withSummary(found)
    const prompt = History.prompt(state, full, draft)
    const window = model?.contextWindow ?? widest
    if (tokens(prompt) <= window * fullAt) return prompt
    const last = overflow(History.blocks(state, full, draft), row.runId, window * shrinkTo)
    if (last === undefined) return prompt
    const compaction: Compaction = {
      conversationId: row.conversationId,
      uptoRunId: last.runId,
      uptoIteration: last.iteration,
      summary:
        "older messages were left out to fit the model's context window; ask the user when something from them is needed.",
      madeIn: row.runId,
      madeAt: state.seq
    }
    yield* store.saveCompaction(compaction)
    return History.prompt(state, withSummary(compaction), draft)
  })

/** The last of the oldest blocks that must go. The newest block and the question itself always stay. */
const overflow = (blocks: ReadonlyArray<History.Block>, runId: string, budget: number): History.Block | undefined => {
  let total = blocks.reduce((sum, block) => sum + tokens(block.messages), 0)
  let last: History.Block | undefined
  for (const block of blocks.slice(0, -1)) {
    if (total <= budget) break
    if (block.runId === runId && block.iteration === 0) continue
    total -= tokens(block.messages)
    last = block
  }
  return last
}

/**
 * What was last sent to the model at this point of the log: the prompt of the turn that is open or was closed last.
 * Provider data is not part of it.
 *
 * @since 0.1.0
 * @category prompts
 */
export const sent = (
  store: RunStore["Type"],
  row: RunRow,
  base: Omit<History.Material, "sides" | "summary">,
  state: Fold.RunState
): Effect.Effect<ReadonlyArray<ModelMessage>, StoreError> =>
  Effect.map(store.compactions(row.conversationId), (compactions) => {
    const compaction = applicable(compactions, base.input, { runId: row.runId, seq: state.seq })
    const closed = state.open === undefined ? state.closed.slice(0, -1) : state.closed
    const { open: _, ...before } = state
    return History.prompt(
      { ...before, closed },
      {
        ...base,
        earlier: base.earlier.map((exchange) => ({ ...exchange, sides: new Map() })),
        sides: new Map(),
        ...(compaction !== undefined && {
          summary: {
            text: compaction.summary,
            uptoRunId: compaction.uptoRunId,
            uptoIteration: compaction.uptoIteration
          }
        })
      },
      false
    )
  })
