/**
 * Group commit. One statement moves the rows of all runs of a batch that may be moved; what does not come back was
 * refused and drops out alone. The events of the others follow in inserts of many rows. In a SQLite file, the rows of
 * appends that are nothing but more of an answer are moved one by one.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Status from "../../domain/RunStatus.js"
import type { ToolConflict } from "../../tool/Tool.js"
import type { EncodedAppend, EncodedChange } from "../Encoded.js"
import type { AppendOutcome } from "../RunStore.js"
import { program, type SqlClock } from "./sqlClock.js"
import * as SqlEvents from "./sqlEvents.js"
import * as Locks from "./sqlLocks.js"
import type { Announce, Notice } from "./sqlNotices.js"
import * as Repeat from "./sqlRepeat.js"
import type { Find, Transaction } from "./sqlTransaction.js"

/** The names of the fields of a batch's element, by their place in it. */
const fields = [
  "key",
  "epoch",
  "expected_seq",
  "raise",
  "only_if_latest",
  "n",
  "at",
  "now",
  "status",
  "recoverable",
  "attempt",
  "iteration",
  "usage",
  "error_set",
  "error",
  "expiry_set",
  "expiry",
  "lease_set",
  "owner",
  "lease",
  "executing",
  "ended"
] as const

const flag = (value: boolean): 0 | 1 => (value ? 1 : 0)

const element = (append: EncodedAppend, now: number | null): ReadonlyArray<string | number | null> => {
  const set: Partial<EncodedChange> = append.set ?? {}
  return [
    append.key,
    append.epoch ?? null,
    append.expectedSeq ?? null,
    flag(append.raiseEpoch === true),
    flag(append.onlyIfLatest === true),
    append.events.length,
    append.events.at(-1)?.createdAt ?? null,
    now,
    set.status ?? null,
    set.recoverable === undefined ? null : flag(set.recoverable),
    set.attempt ?? null,
    set.iteration ?? null,
    set.usage ?? null,
    flag(set.error !== undefined),
    set.error ?? null,
    flag(set.nextExpiry !== undefined),
    set.nextExpiry ?? null,
    flag(set.lease !== undefined),
    set.lease?.owner ?? null,
    set.lease?.ttlMs ?? null,
    set.status === undefined ? null : flag(Status.isExecuting(set.status)),
    set.status === undefined ? null : flag(Status.isEnded(set.status))
  ]
}

/** Whether an append leaves the row alone, so that no index of its columns has to be touched. */
const isPlain = ({ onlyIfLatest, raiseEpoch, set }: EncodedAppend): boolean =>
  set === undefined && raiseEpoch !== true && onlyIfLatest !== true

const plainFields = ["key", "epoch", "expected_seq", "n", "at", "now"] as const

const plainElement = ({ epoch, events, expectedSeq, key }: EncodedAppend, now: number | null) => [
  key,
  epoch ?? null,
  expectedSeq ?? null,
  events.length,
  events.at(-1)?.createdAt ?? null,
  now
]

/** An append that says where the log must stand, as those of a run's writer do. */
interface PlacedAppend extends EncodedAppend {
  readonly epoch: number
  readonly expectedSeq: number
}

const isPlaced = (append: EncodedAppend): append is PlacedAppend =>
  isPlain(append) && append.epoch !== undefined && append.expectedSeq !== undefined

const placedMoveText = `UPDATE runs SET last_seq = ?, updated_at = ?
  WHERE key = ? AND epoch = ? AND last_seq = ? AND status NOT IN ('completed', 'cancelled', 'failed')`

const placedParams = ({ epoch, events, expectedSeq, key }: PlacedAppend, now: number | null) => [
  expectedSeq + events.length,
  events.at(-1)?.createdAt ?? now,
  key,
  epoch,
  expectedSeq
]

const texts: ReadonlySet<string> = new Set(["status", "usage", "error", "owner"])

/** A batch as a table `b`, from its one parameter: a JSON array of an array for each append. */
const batchSource = (sql: SqlClient.SqlClient, names: ReadonlyArray<string>): Fragment => {
  const columns = (type: (name: string, value: string) => string): Fragment =>
    sql.literal(names.map((name, index) => `${type(name, `value ->> ${index}`)} AS ${name}`).join(", "))
  return sql.onDialectOrElse({
    pg: () =>
      sql`(SELECT ${columns((name, value) => (texts.has(name) ? value : `CAST(${value} AS BIGINT)`))}
        FROM jsonb_array_elements(CAST(${""} AS JSONB))) AS b`,
    orElse: () => sql`(SELECT ${columns((_, value) => value)} FROM json_each(${""})) AS b`
  })
}

/** An append whose row was moved. */
interface Accepted extends SqlEvents.Placed {
  readonly append: EncodedAppend
}

interface Moved {
  readonly key: number | string
  readonly lastSeq: number
  readonly epoch: number
}

interface Standing {
  readonly status: Status.RunStatus
  readonly recoverable: number | null
  readonly epoch: number
  readonly lastSeq: number
}

const fenced: AppendOutcome = { _tag: "Fenced" }

const refusal = (append: EncodedAppend, row: Standing | undefined): AppendOutcome => {
  if (row === undefined || Status.isFinal({ status: row.status, recoverable: row.recoverable === 1 })) return fenced
  if (row.status === "failed" && append.raiseEpoch !== true) return fenced
  if (append.epoch !== undefined && append.epoch !== row.epoch) return fenced
  return { _tag: "Moved", lastSeq: row.lastSeq }
}

interface Placing {
  readonly index: number
  readonly append: EncodedAppend
}

/**
 * Parts of a batch that can go through as one: no run twice in a round, and an append with `within` alone. One that asks
 * how other runs stand begins a round, so that it sees what came before it.
 */
interface Group {
  readonly within: Effect.Effect<void, ToolConflict> | undefined
  readonly rounds: Array<Array<Placing>>
}

const split = (batch: ReadonlyArray<EncodedAppend>): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  let keys = new Set<number>()
  for (const [index, append] of batch.entries()) {
    const last = groups.at(-1)
    if (append.within !== undefined || last === undefined || last.within !== undefined) {
      groups.push({ within: append.within, rounds: [[{ index, append }]] })
      keys = new Set([append.key])
    } else if (keys.has(append.key) || append.onlyIfLatest === true) {
      last.rounds.push([{ index, append }])
      keys = new Set([append.key])
    } else {
      last.rounds.at(-1)?.push({ index, append })
      keys.add(append.key)
    }
  }
  return groups
}

const quiet = Effect.withTracerEnabled(false)

const isSqlError = (defect: unknown): defect is SqlError => defect instanceof SqlError

/**
 * The text of the statement that moves the rows of a batch, which is its one parameter.
 *
 * @since 0.1.0
 * @category statements
 */
export const moveStatement = (sql: SqlClient.SqlClient, clock: SqlClock = program): string => {
  const executes = sql.literal("CASE WHEN runs.status IN ('running', 'streaming') THEN 1 ELSE 0 END")
  const hasEnded = sql.literal("CASE WHEN runs.status IN ('completed', 'cancelled', 'failed') THEN 1 ELSE 0 END")
  const now = sql.literal(clock.text ?? "b.now")
  const at = sql.literal(`COALESCE(b.at, ${clock.text ?? "b.now"})`)
  return sql`
    UPDATE runs SET
      last_seq = runs.last_seq + b.n,
      epoch = runs.epoch + b.raise,
      status = COALESCE(b.status, runs.status),
      recoverable = CASE WHEN COALESCE(b.status, runs.status) = 'failed' THEN COALESCE(b.recoverable, runs.recoverable) END,
      attempt = COALESCE(b.attempt, runs.attempt),
      iteration = COALESCE(b.iteration, runs.iteration),
      usage = COALESCE(b.usage, runs.usage),
      error = CASE WHEN b.error_set = 1 THEN b.error ELSE runs.error END,
      next_expiry = CASE WHEN b.expiry_set = 1 THEN b.expiry ELSE runs.next_expiry END,
      owner = CASE WHEN COALESCE(b.executing, ${executes}) = 0 THEN NULL WHEN b.lease_set = 1 THEN b.owner
        WHEN b.raise = 1 THEN NULL ELSE runs.owner END,
      lease_expires_at = CASE WHEN COALESCE(b.executing, ${executes}) = 0 THEN NULL WHEN b.lease_set = 1 THEN ${now} + b.lease
        WHEN b.raise = 1 THEN NULL ELSE runs.lease_expires_at END,
      updated_at = ${at},
      ended_at = CASE WHEN COALESCE(b.ended, ${hasEnded}) = 1 THEN ${at} END
    FROM ${batchSource(sql, fields)}
    WHERE runs.key = b.key
      AND (b.epoch IS NULL OR runs.epoch = b.epoch)
      AND (b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)
      AND runs.status NOT IN ('completed', 'cancelled')
      AND (runs.status <> 'failed' OR (runs.recoverable = 1 AND b.raise = 1))
      AND (b.only_if_latest = 0 OR NOT EXISTS (
        SELECT 1 FROM runs AS later WHERE later.conversation_id = runs.conversation_id
          AND (later.ord > runs.ord OR (later.ord = runs.ord AND later.key > runs.key))
      ) AND NOT EXISTS (
        SELECT 1 FROM runs AS active WHERE active.conversation_id = runs.conversation_id AND active.key <> runs.key
          AND active.status IN ('queued', 'running', 'streaming', 'waiting_approval')
      ))
    RETURNING runs.key, runs.last_seq AS "lastSeq", runs.epoch`.compile()[0]
}

/**
 * The same for appends that leave the rows alone.
 *
 * @since 0.1.0
 * @category statements
 */
export const plainMoveStatement = (sql: SqlClient.SqlClient, clock: SqlClock = program): string =>
  sql`
    UPDATE runs SET last_seq = runs.last_seq + b.n, updated_at = COALESCE(b.at, ${sql.literal(clock.text ?? "b.now")})
    FROM ${batchSource(sql, plainFields)}
    WHERE runs.key = b.key
      AND (b.epoch IS NULL OR runs.epoch = b.epoch)
      AND (b.expected_seq IS NULL OR runs.last_seq = b.expected_seq)
      AND runs.status NOT IN ('completed', 'cancelled', 'failed')
    RETURNING runs.key, runs.last_seq AS "lastSeq", runs.epoch`.compile()[0]

/**
 * Makes the store's `append` from its transactions.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (sql: SqlClient.SqlClient, transaction: Transaction, clock: SqlClock, announce: Announce) => {
  const moveText = moveStatement(sql, clock)
  const plainMoveText = plainMoveStatement(sql, clock)
  const insertEvents = SqlEvents.make(sql)
  const extrasOf = makeExtras(sql)

  const refused = (append: EncodedAppend) =>
    Effect.map(
      sql<Standing>`SELECT status, recoverable, epoch, last_seq AS "lastSeq" FROM runs WHERE key = ${append.key}`,
      (rows) => refusal(append, rows[0])
    )

  const move = (connection: Connection, round: ReadonlyArray<Placing>, outcomes: Array<AppendOutcome>) =>
    Effect.gen(function* () {
      // A database that tells the time is not told it.
      const now = clock.text === undefined ? yield* Clock.currentTimeMillis : null
      const latest = round.flatMap(({ append }) => (append.onlyIfLatest === true ? [append.key] : []))
      if (latest.length > 0) yield* Locks.conversationsOf(sql, { keys: latest })
      const moved = new Map<number, Moved>()
      const all = (text: string, batch: ReadonlyArray<ReadonlyArray<string | number | null>>) =>
        batch.length === 0
          ? Effect.void
          : Effect.map(connection.execute(text, [JSON.stringify(batch)], undefined), (rows: ReadonlyArray<Moved>) => {
              for (const row of rows) moved.set(Number(row.key), row)
            })
      const repeat = Repeat.of(connection)
      const [rest, placed] = Arr.partition(
        round.map(({ append }) => append),
        (append): append is PlacedAppend => repeat !== undefined && isPlaced(append)
      )
      if (repeat !== undefined && placed.length > 0) {
        const changes = yield* repeat(
          placedMoveText,
          placed.map((append) => placedParams(append, now))
        )
        for (const [index, { epoch, events, expectedSeq, key }] of placed.entries()) {
          if (changes[index] === 1) moved.set(key, { key, epoch, lastSeq: expectedSeq + events.length })
        }
      }
      const [others, plain] = Arr.partition(rest, isPlain)
      yield* all(
        plainMoveText,
        plain.map((append) => plainElement(append, now))
      )
      yield* all(
        moveText,
        others.map((append) => element(append, now))
      )
      const accepted: Array<Accepted> = []
      for (const { append, index } of round) {
        const row = moved.get(append.key)
        if (row === undefined) {
          outcomes[index] = yield* refused(append)
        } else {
          outcomes[index] = { _tag: "Appended", lastSeq: row.lastSeq, epoch: row.epoch }
          const { events, key } = append
          accepted.push({ key, after: row.lastSeq - events.length, events, append })
        }
      }
      return accepted
    })

  const store = (connection: Connection, accepted: ReadonlyArray<Accepted>) =>
    Effect.zipRight(
      insertEvents(connection, accepted),
      Effect.zipRight(
        Effect.all(
          accepted.flatMap(({ append }) => extrasOf(connection, append)),
          { discard: true }
        ),
        announce(noticeOf(accepted))
      )
    )

  /**
   * A batch is stored as a whole or not at all, so one event of it tells: there is no other that says the same, was made
   * at the same moment and, where the append takes the run, leaves it with the same owner.
   */
  const stored =
    (rounds: ReadonlyArray<ReadonlyArray<Placing>>, outcomes: ReadonlyArray<AppendOutcome>): Find<void> =>
    () =>
      Effect.gen(function* () {
        const accepted = rounds.flat().flatMap(({ append, index }) => {
          const outcome = outcomes[index]
          return outcome?._tag === "Appended" ? [{ append, last: append.events.at(-1), seq: outcome.lastSeq }] : []
        })
        if (accepted.length === 0) return Option.some(undefined)
        const witness = accepted.find(({ last }) => last !== undefined)
        if (witness?.last === undefined) return Option.none()
        const { append, last, seq } = witness
        // Whoever still writes it holds the row.
        const [row] = yield* sql<{ readonly owner: string | null }>`
          SELECT owner FROM runs WHERE key = ${append.key} FOR UPDATE`
        const [event] = yield* sql<{ readonly json: string; readonly createdAt: number | string }>`
          SELECT json, created_at AS "createdAt" FROM events WHERE run_key = ${append.key} AND seq = ${seq}`
        const taken = append.set?.lease == null || append.set.lease.owner === row?.owner
        const isSame = taken && event?.json === last.json && Number(event.createdAt) === last.createdAt
        return isSame ? Option.some(undefined) : Option.none()
      })

  const plain = (rounds: ReadonlyArray<ReadonlyArray<Placing>>, outcomes: Array<AppendOutcome>) =>
    transaction<void, SqlError>(
      (connection) =>
        Effect.forEach(
          rounds,
          (round) => Effect.flatMap(move(connection, round, outcomes), (accepted) => store(connection, accepted)),
          { discard: true }
        ),
      stored(rounds, outcomes)
    ).pipe(quiet)

  const together = (
    rounds: ReadonlyArray<ReadonlyArray<Placing>>,
    within: Effect.Effect<void, ToolConflict>,
    outcomes: Array<AppendOutcome>
  ) =>
    transaction<void, SqlError | ToolConflict>(
      (connection) =>
        Effect.forEach(
          rounds,
          (round) =>
            Effect.flatMap(quiet(move(connection, round, outcomes)), (accepted) =>
              accepted.length === 0 ? Effect.void : Effect.zipRight(within, quiet(store(connection, accepted)))
            ),
          { discard: true }
        ),
      stored(rounds, outcomes)
    ).pipe(
      // What the database itself says to a statement of a tool is no fault of the tool.
      Effect.catchSomeDefect((defect) => (isSqlError(defect) ? Option.some(Effect.fail(defect)) : Option.none())),
      Effect.catchTag("ToolConflict", (conflict) =>
        Effect.sync(() => {
          for (const { index } of rounds.flat()) outcomes[index] = { _tag: "Rejected", conflict }
        })
      )
    )

  return (batch: ReadonlyArray<EncodedAppend>): Effect.Effect<ReadonlyArray<AppendOutcome>, SqlError> =>
    Effect.suspend(() => {
      const outcomes: Array<AppendOutcome> = []
      return Effect.as(
        Effect.forEach(
          split(batch),
          ({ rounds, within }) => (within === undefined ? plain(rounds, outcomes) : together(rounds, within, outcomes)),
          { discard: true }
        ),
        outcomes
      )
    })
}

/** Whether an append makes work for somebody: it queues a run, or makes room for one. */
const makesWork = ({ set }: EncodedAppend): boolean => set !== undefined && !Status.isExecuting(set.status)

const noticeOf = (accepted: ReadonlyArray<Accepted>): Notice => ({
  appended: accepted,
  work: accepted.some(({ append }) => makesWork(append)),
  left: accepted.some(({ append: { set } }) => set?.lease === null && Status.isExecuting(set.status))
})

/** What beside a run's row and events is stored with an append: a turn, sides, the text of its message, its end. */
const makeExtras = (sql: SqlClient.SqlClient) => {
  const turnText = sql`INSERT INTO turns ${sql.insert({ run_key: 0, n: 0, seq: 0, turn: "", header: "" })}
    ON CONFLICT (run_key, n) DO UPDATE SET seq = excluded.seq, turn = excluded.turn, header = excluded.header`.compile()[0]
  const sideText = sql`INSERT INTO sides ${sql.insert({ run_key: 0, iteration: 0, data: "" })}
    ON CONFLICT (run_key, iteration) DO UPDATE SET data = excluded.data`.compile()[0]
  const messageText = sql`UPDATE messages SET content = ${""}
    WHERE message_id = (SELECT assistant_message_id FROM runs WHERE key = ${0})`.compile()[0]
  const endText = sql`UPDATE conversations SET updated_at = (SELECT updated_at FROM runs WHERE key = ${0})
    WHERE conversation_id = (SELECT conversation_id FROM runs WHERE key = ${0})`.compile()[0]
  return (
    connection: Connection,
    { key, set, sides, turn }: EncodedAppend
  ): ReadonlyArray<Effect.Effect<unknown, SqlError>> => {
    const all: Array<Effect.Effect<unknown, SqlError>> = []
    if (turn !== undefined) {
      all.push(connection.executeRaw(turnText, [key, turn.n, turn.seq, turn.turn, turn.header]))
    }
    for (const { data, iteration } of sides) all.push(connection.executeRaw(sideText, [key, iteration, data]))
    if (set?.assistantText !== undefined) all.push(connection.executeRaw(messageText, [set.assistantText, key]))
    if (set !== undefined && Status.isEnded(set.status)) all.push(connection.executeRaw(endText, [key, key]))
    return all
  }
}
