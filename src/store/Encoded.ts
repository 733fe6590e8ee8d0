/**
 * What a backend of the store implements: the same operations as the port with everything structured as JSON text.
 * `makeEncoded` does all encoding and decoding once, so that the backends stay thin and agree.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Usage } from "../domain/AgentEvent.js"
import * as Envelope from "../domain/Envelope.js"
import { RunInput, type TextMessage } from "../domain/RunInput.js"
import type { RunState, Turn } from "../domain/RunState.js"
import * as ListCursor from "./ListCursor.js"
import {
  type Append,
  type AppendOutcome,
  type BaseRow,
  type ConversationPage,
  type ConversationQuery,
  type ConversationRow,
  type CreateOutcome,
  type CreateRun,
  type OutlivedQuery,
  type Questions,
  type RowChange,
  type RunQuery,
  type RunRow,
  type RunStore,
  StoreError,
  type TurnRow
} from "./RunStore.js"

/**
 * A run's row; `usage` and `error` are JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedRow extends Omit<RunRow, "usage" | "error"> {
  readonly usage: string
  readonly error: string | undefined
}

/**
 * A change of a row; `usage` and `error` are JSON, `null` clears the error.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedChange extends Omit<RowChange, "usage" | "error"> {
  readonly usage: string | undefined
  readonly error: string | null | undefined
}

/**
 * A closed turn; `turn` and `header` are JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedTurn {
  readonly n: number
  readonly seq: number
  readonly turn: string
  readonly header: string
}

/**
 * A state that stands for the beginning of a log; `state` is JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedBase extends Omit<BaseRow, "state"> {
  readonly state: string
}

/**
 * A provider's own data of a turn; `data` is JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedSide {
  readonly iteration: number
  readonly data: string
}

/**
 * Events to add to one run, with what goes with them as JSON.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedAppend extends Omit<Append, "set" | "turn" | "sides"> {
  readonly set: EncodedChange | undefined
  readonly turn: EncodedTurn | undefined
  readonly sides: ReadonlyArray<EncodedSide>
}

/**
 * A message that a client brought along, with the id it is stored under.
 *
 * @since 0.1.0
 * @category models
 */
export interface BroughtMessage extends TextMessage {
  readonly messageId: string
}

/**
 * A new run. `input` is JSON of the input record with an empty prefix: the prefix is kept beside it.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedCreate extends Omit<CreateRun, "input" | "brought"> {
  readonly input: string
  readonly userMessage: string
  readonly brought: ReadonlyArray<BroughtMessage>
}

/**
 * What became of a new run, before its row is decoded.
 *
 * @since 0.1.0
 * @category models
 */
export type EncodedCreateOutcome =
  | { readonly _tag: "Created" | "Duplicate"; readonly row: EncodedRow }
  | { readonly _tag: "KeyReused" | "New" | "QueueFull" | "StoreFull" | "ConversationsFull" | "ConversationFull" }
  | { readonly _tag: "Unknown" | "Superseded" }
  | { readonly _tag: "Busy"; readonly runId: string }

/**
 * The stored input of a run and the two halves of its prefix: the ids of earlier runs as a JSON array, and the
 * messages that its conversation began with.
 *
 * @since 0.1.0
 * @category models
 */
export interface EncodedInput {
  readonly json: string
  readonly runs: string
  readonly brought: ReadonlyArray<TextMessage>
}

/**
 * Where a page of conversations goes on.
 *
 * @since 0.1.0
 * @category models
 */
export interface ConversationCursor {
  readonly updatedAt: number
  readonly conversationId: string
}

type Store = RunStore["Type"]

/**
 * A backend. Rules of single operations are those of the port. `list` and `conversations` answer up to `limit` rows
 * behind `before`, `undefined` stands for an absent row.
 *
 * @since 0.1.0
 * @category models
 */
export interface Encoded
  extends Pick<
    Store,
    | "now"
    | "renew"
    | "owned"
    | "release"
    | "owners"
    | "events"
    | "checkpoints"
    | "due"
    | "remove"
    | "renameConversation"
    | "removeConversation"
    | "compactions"
    | "saveCompaction"
    | "trim"
    | "expire"
    | "reclaim"
    | "census"
    | "changes"
    | "ready"
  > {
  readonly create: (run: EncodedCreate) => Effect.Effect<EncodedCreateOutcome, StoreError>
  readonly append: (batch: ReadonlyArray<EncodedAppend>) => Effect.Effect<ReadonlyArray<AppendOutcome>, StoreError>
  readonly claimQueued: (
    claim: Parameters<Store["claimQueued"]>[0]
  ) => Effect.Effect<EncodedRow | undefined, StoreError>
  readonly claimAbandoned: (
    claim: Parameters<Store["claimAbandoned"]>[0]
  ) => Effect.Effect<ReadonlyArray<EncodedRow>, StoreError>
  readonly find: (query: Parameters<Store["find"]>[0]) => Effect.Effect<EncodedRow | undefined, StoreError>
  readonly row: (key: number) => Effect.Effect<EncodedRow | undefined, StoreError>
  readonly input: (key: number) => Effect.Effect<EncodedInput | undefined, StoreError>
  readonly turns: (query: Parameters<Store["turns"]>[0]) => Effect.Effect<ReadonlyArray<EncodedTurn>, StoreError>
  readonly base: (key: number) => Effect.Effect<EncodedBase | undefined, StoreError>
  readonly outlived: (query: OutlivedQuery) => Effect.Effect<ReadonlyArray<EncodedRow>, StoreError>
  readonly compact: (run: {
    readonly key: number
    readonly lastSeq: number
    readonly base: EncodedBase
  }) => Effect.Effect<boolean, StoreError>
  readonly sides: (key: number) => Effect.Effect<ReadonlyArray<EncodedSide>, StoreError>
  readonly queuePosition: (key: number) => Effect.Effect<number | undefined, StoreError>
  readonly list: (
    query: Omit<RunQuery, "cursor"> & { readonly before: number | undefined }
  ) => Effect.Effect<ReadonlyArray<EncodedRow>, StoreError>
  readonly supersedable: (
    query: Parameters<Store["supersedable"]>[0]
  ) => Effect.Effect<ReadonlyArray<EncodedRow>, StoreError>
  readonly conversations: (query: {
    readonly userId: string
    readonly limit: number
    readonly before: ConversationCursor | undefined
  }) => Effect.Effect<ReadonlyArray<ConversationRow>, StoreError>
  readonly questions: (query: {
    readonly conversationId: string
    readonly userId: string
  }) => Effect.Effect<Questions | undefined, StoreError>
  readonly conversation: (query: ConversationQuery) => Effect.Effect<ConversationPage | undefined, StoreError>
}

const corrupt = (method: string) => (cause: unknown) => new StoreError({ reason: "corrupt", method, cause })

const encodeInput = Schema.encodeSync(Schema.parseJson(RunInput))
const decodeInput = Schema.decodeUnknown(Schema.parseJson(RunInput))
const decodeIds = Schema.decodeUnknown(Schema.parseJson(Schema.Array(Schema.String)))
const decodeUsage = Schema.decodeUnknownSync(Schema.parseJson(Usage))
const decodeError = Schema.decodeUnknownSync(
  Schema.parseJson(Schema.Struct({ code: Schema.String, message: Schema.String }))
)
const decodeRowSync = (row: EncodedRow): RunRow => ({
  ...row,
  usage: decodeUsage(row.usage),
  error: row.error === undefined ? undefined : decodeError(row.error)
})

const decodeRow = (method: string, row: EncodedRow): Effect.Effect<RunRow, StoreError> =>
  Effect.try({ try: () => decodeRowSync(row), catch: corrupt(method) })

const decodeRows = (method: string, rows: ReadonlyArray<EncodedRow>): Effect.Effect<Array<RunRow>, StoreError> =>
  Effect.try({ try: () => rows.map(decodeRowSync), catch: corrupt(method) })

/** One that can not be read is no reason to leave the others alone. */
const readableRows = (method: string, rows: ReadonlyArray<EncodedRow>): Effect.Effect<Array<RunRow>> =>
  Effect.map(
    Effect.forEach(rows, (row) =>
      decodeRow(method, row).pipe(
        Effect.tapError((error) =>
          Effect.annotateLogs(Effect.logWarning("What is stored of a run can not be read", error), { runId: row.runId })
        ),
        Effect.option
      )
    ),
    Arr.getSomes
  )

const optionalRow = (method: string) => (row: EncodedRow | undefined) =>
  row === undefined ? Effect.succeedNone : Effect.asSome(decodeRow(method, row))

// Field by field: a rest and a spread cost more than everything else that is done with an append of mere deltas.
const encodeAppend = (append: Append): EncodedAppend => ({
  key: append.key,
  epoch: append.epoch,
  expectedSeq: append.expectedSeq,
  raiseEpoch: append.raiseEpoch,
  onlyIfLatest: append.onlyIfLatest,
  events: append.events,
  within: append.within,
  set: append.set && encodeChange(append.set),
  turn: append.turn && encodeTurn(append.turn),
  sides: append.sides?.map(({ data, iteration }) => ({ iteration, data: JSON.stringify(data ?? null) })) ?? []
})

const encodeChange = (set: RowChange): EncodedChange => ({
  ...set,
  usage: set.usage === undefined ? undefined : JSON.stringify(set.usage),
  error: set.error == null ? set.error : JSON.stringify(set.error)
})

const encodeTurn = ({ header, n, seq, turn }: TurnRow): EncodedTurn => ({
  n,
  seq,
  turn: JSON.stringify(turn),
  header: JSON.stringify(header)
})

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null && !Array.isArray(u)

const isNumber = (u: unknown): u is number => typeof u === "number"

// A light look, not a Schema: turns are written by this program alone, can be large, and one that is refused only
// costs a longer fold.
const isTurn = (u: unknown): u is Turn =>
  isRecord(u) &&
  isNumber(u.n) &&
  isNumber(u.text0) &&
  isNumber(u.reasoning0) &&
  isNumber(u.seq0) &&
  Array.isArray(u.parts) &&
  Array.isArray(u.calls) &&
  u.parts.every(isRecord) &&
  u.calls.every((call) => isRecord(call) && typeof call.id === "string" && typeof call.name === "string")

const isHeader = (u: unknown): u is Omit<RunState, "closed" | "open"> =>
  isRecord(u) &&
  typeof u.runId === "string" &&
  typeof u.status === "string" &&
  isNumber(u.seq) &&
  isNumber(u.attempt) &&
  isNumber(u.iteration) &&
  isNumber(u.textLength) &&
  isNumber(u.reasoningLength) &&
  isRecord(u.usage)

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isOpenTurn = (u: unknown): boolean => u === undefined || isTurn(u)

const decodeBase = ({ seq, state: text, turns }: EncodedBase): Option.Option<BaseRow> => {
  const state = parseJson(text)
  return isHeader(state) && state.seq === seq && isOpenTurn("open" in state ? state.open : undefined)
    ? Option.some({ seq, turns, state })
    : Option.none()
}

const decodeTurns = (rows: ReadonlyArray<EncodedTurn>): ReadonlyArray<TurnRow> => {
  const decoded: Array<TurnRow> = []
  for (const { header: headerText, n, seq, turn: turnText } of rows) {
    const turn = parseJson(turnText)
    const header = parseJson(headerText)
    if (!isTurn(turn) || !isHeader(header)) break
    decoded.push({ n, seq, turn, header })
  }
  return decoded
}

// The messages that a client brings along have no ids of their own. They get ones that differ from the id of the
// run's user message only in its last 32 bits, so that they are as hard to guess and need no source of randomness.
const derivedId = (messageId: string, index: number): string => {
  const tail = messageId.slice(-8)
  return /^[0-9a-f]{8}$/.test(tail)
    ? messageId.slice(0, -8) + ((Number.parseInt(tail, 16) ^ (index + 1)) >>> 0).toString(16).padStart(8, "0")
    : `${messageId}-${index + 1}`
}

const encodeCreate = ({ brought, input, ...run }: CreateRun): EncodedCreate => ({
  ...run,
  input: encodeInput({ ...input, prefix: { messages: [], runs: [] } }),
  userMessage: input.userMessage,
  brought: brought.map(({ content, role }, index) => ({
    messageId: derivedId(run.userMessageId, index),
    role,
    content
  }))
})

const decodeStoredInput = (stored: EncodedInput): Effect.Effect<RunInput, StoreError> =>
  Effect.zipWith(decodeInput(stored.json), decodeIds(stored.runs), (input, runs) => ({
    ...input,
    prefix: { messages: stored.brought, runs }
  })).pipe(Effect.mapError(corrupt("input")))

const decodeCursor = <A>(
  cursor: string | undefined,
  { decode }: { readonly decode: (cursor: string) => Option.Option<A> }
): Option.Option<A | undefined> => (cursor === undefined ? Option.some(undefined) : decode(cursor))

// One row more than asked for tells whether there is a next page.
const page = <Row, A>(
  limit: number,
  rows: ReadonlyArray<Row>,
  items: ReadonlyArray<A>,
  cursorOf: (row: Row) => string
) => {
  const last = rows[limit - 1]
  return rows.length > limit && last !== undefined
    ? { items: items.slice(0, limit), nextCursor: cursorOf(last) }
    : { items }
}

/**
 * The port over a backend. A cursor that no page has given out answers an empty page.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeEncoded = (driver: Encoded): Store => ({
  now: driver.now,
  create: (run) =>
    Effect.flatMap(driver.create(encodeCreate(run)), (outcome) =>
      "row" in outcome
        ? Effect.map(decodeRow("create", outcome.row), (row): CreateOutcome => ({ _tag: outcome._tag, row }))
        : Effect.succeed(outcome)
    ),
  append: (batch) => driver.append(batch.map(encodeAppend)),
  claimQueued: (claim) => Effect.flatMap(driver.claimQueued(claim), optionalRow("claimQueued")),
  claimAbandoned: (claim) =>
    Effect.flatMap(driver.claimAbandoned(claim), (rows) => readableRows("claimAbandoned", rows)),
  renew: driver.renew,
  owned: driver.owned,
  release: driver.release,
  owners: driver.owners,
  find: (query) => Effect.flatMap(driver.find(query), optionalRow("find")),
  row: (key) => Effect.flatMap(driver.row(key), optionalRow("row")),
  input: (key) =>
    Effect.flatMap(driver.input(key), (stored) =>
      stored === undefined
        ? Effect.fail(corrupt("input")(new Error("The run has no stored input")))
        : decodeStoredInput(stored)
    ),
  events: driver.events,
  envelopes: ({ runId, ...query }) =>
    Effect.flatMap(driver.events(query), (rows) =>
      Effect.try({
        try: () => rows.map(({ createdAt, json, seq }) => decodeEnvelope(runId, seq, json, createdAt)),
        catch: corrupt("envelopes")
      })
    ),
  checkpoints: driver.checkpoints,
  turns: (query) => Effect.map(driver.turns(query), decodeTurns),
  base: (key) => Effect.map(driver.base(key), (row) => (row === undefined ? Option.none() : decodeBase(row))),
  outlived: (query) => Effect.flatMap(driver.outlived(query), (rows) => decodeRows("outlived", rows)),
  compact: ({ base, ...run }) => driver.compact({ ...run, base: { ...base, state: JSON.stringify(base.state) } }),
  trim: driver.trim,
  expire: driver.expire,
  reclaim: driver.reclaim,
  sides: (key) =>
    Effect.flatMap(driver.sides(key), (rows) =>
      Effect.try({
        try: () =>
          rows.map(({ data, iteration }) => {
            const value: unknown = JSON.parse(data)
            return { iteration, data: value }
          }),
        catch: corrupt("sides")
      })
    ),
  queuePosition: (key) => Effect.map(driver.queuePosition(key), Option.fromNullable),
  list: ({ cursor, ...query }) =>
    Option.match(decodeCursor(cursor, ListCursor.runs), {
      onNone: () => Effect.succeed({ items: [] }),
      onSome: (before) =>
        Effect.flatMap(driver.list({ ...query, limit: query.limit + 1, before }), (rows) =>
          Effect.map(decodeRows("list", rows), (items) =>
            page(query.limit, rows, items, (row) => ListCursor.runs.encode(row.key))
          )
        )
    }),
  due: driver.due,
  supersedable: (query) => Effect.flatMap(driver.supersedable(query), (rows) => decodeRows("supersedable", rows)),
  remove: driver.remove,
  conversations: ({ cursor, ...query }) =>
    Option.match(decodeCursor(cursor, ListCursor.conversations), {
      onNone: () => Effect.succeed({ items: [] }),
      onSome: (position) =>
        Effect.map(
          driver.conversations({
            ...query,
            limit: query.limit + 1,
            before: position && { updatedAt: position[0], conversationId: position[1] }
          }),
          (rows) =>
            page(query.limit, rows, rows, (row) => ListCursor.conversations.encode([row.updatedAt, row.conversationId]))
        )
    }),
  conversation: (query) => Effect.map(driver.conversation(query), Option.fromNullable),
  questions: (query) => Effect.map(driver.questions(query), Option.fromNullable),
  renameConversation: driver.renameConversation,
  removeConversation: driver.removeConversation,
  compactions: driver.compactions,
  saveCompaction: driver.saveCompaction,
  census: driver.census,
  changes: driver.changes,
  ready: driver.ready
})

const decodeEnvelope = (runId: string, seq: number, json: string, createdAt: number): Envelope.Envelope => {
  const event: unknown = JSON.parse(json)
  return Envelope.decodeSync({ runId, seq, event, createdAt })
}
