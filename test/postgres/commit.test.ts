/** What is answered when the connection is lost while a transaction commits, and nobody knows whether it has. */
import type { SqlError } from "@effect/sql/SqlError"
import { expect, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { describe } from "vitest"
import * as Fold from "../../src/domain/RunState.js"
import * as Postgres from "../../src/store/Postgres.js"
import { type RunRow, RunStore, type StoreError } from "../../src/store/RunStore.js"
import { append, begin, create, request, started, text, texts } from "../../src/testing/store/fixtures.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import { describePostgres, query, schema } from "./support/Database.js"
import * as Wire from "./support/Wire.js"

type Store = RunStore["Type"]

/** A write, what it is made of, and how often what it writes is there: once, however the connection was lost. */
interface Write {
  readonly name: string
  readonly write: Effect.Effect<
    {
      readonly act: Effect.Effect<unknown, StoreError, RunStore | WriteClient>
      readonly answer: unknown
      /** A statement that counts something, and how much that is afterwards. */
      readonly counted: readonly [statement: string, count: number]
    },
    StoreError | SqlError,
    RunStore | WriteClient
  >
}

const useStore = <A, E>(use: (store: Store) => Effect.Effect<A, E>) => Effect.flatMap(RunStore, use)

/** A run that has ended. */
const ended = Effect.gen(function* () {
  const run = yield* begin()
  yield* append({ key: run.key, epoch: run.epoch, events: texts(1), set: { status: "cancelled", lease: null } })
  return { ...run, lastSeq: run.lastSeq + 1 }
})

const placeOf = ({ key, epoch, owner }: RunRow) => [key, epoch, owner]
const keyOf = Option.map(placeOf)

const writes: ReadonlyArray<Write> = [
  {
    name: "a new run",
    write: Effect.map(request(), (run) => ({
      act: useStore((store) =>
        Effect.map(store.create(run), (outcome) => [outcome._tag, "row" in outcome ? outcome.row.runId : undefined])
      ),
      answer: ["Created", run.runId],
      counted: [`SELECT COUNT(*) AS n FROM runs WHERE run_id = '${run.runId}'`, 1]
    }))
  },
  {
    name: "events",
    write: Effect.map(begin(), ({ epoch, key, lastSeq }) => ({
      act: append({ key, epoch, expectedSeq: lastSeq, events: texts(3), set: { status: "running" } }),
      answer: { _tag: "Appended", lastSeq: lastSeq + 3, epoch },
      counted: [`SELECT COUNT(*) AS n FROM events WHERE run_key = ${key} AND seq > ${lastSeq}`, 3]
    }))
  },
  {
    name: "events that take the run away",
    write: Effect.map(begin(), ({ epoch, key, lastSeq }) => ({
      act: append({
        key,
        expectedSeq: lastSeq,
        raiseEpoch: true,
        events: [text("mine")],
        set: { status: "running", lease: { owner: "p9", ttlMs: 60_000 } }
      }),
      answer: { _tag: "Appended", lastSeq: lastSeq + 1, epoch: epoch + 1 },
      counted: [`SELECT epoch AS n FROM runs WHERE key = ${key} AND owner = 'p9'`, epoch + 1]
    }))
  },
  {
    name: "events with a tool's own statement",
    write: Effect.gen(function* () {
      const sql = yield* WriteClient
      const { epoch, key, lastSeq } = yield* begin()
      yield* sql`CREATE TABLE IF NOT EXISTS counters (n INTEGER NOT NULL)`
      yield* sql`DELETE FROM counters`
      yield* sql`INSERT INTO counters VALUES (0)`
      return {
        act: append({
          key,
          epoch,
          expectedSeq: lastSeq,
          events: texts(1),
          set: { status: "running" },
          within: Effect.orDie(sql`UPDATE counters SET n = n + 1`)
        }),
        answer: { _tag: "Appended", lastSeq: lastSeq + 1, epoch },
        counted: ["SELECT n FROM counters", 1]
      } as const
    })
  },
  {
    name: "a claim from the queue",
    write: Effect.map(create(), (run) => ({
      act: useStore((store) =>
        Effect.map(
          store.claimQueued({ owner: "p9", ttlMs: 60_000, maxConcurrent: 1000, maxPerUser: null, started }),
          keyOf
        )
      ),
      answer: Option.some([run.key, 1, "p9"]),
      counted: [`SELECT last_seq AS n FROM runs WHERE key = ${run.key} AND owner = 'p9'`, run.lastSeq + 1]
    }))
  },
  {
    name: "a claim of what was left behind",
    write: Effect.gen(function* () {
      const store = yield* RunStore
      const runs = [yield* begin(), yield* begin()]
      yield* Effect.forEach(runs, store.release)
      return {
        act: Effect.map(store.claimAbandoned({ owner: "p9", ttlMs: 60_000, limit: 9 }), (rows) => rows.map(placeOf)),
        answer: runs.map(({ epoch, key }) => [key, epoch + 1, "p9"]),
        counted: ["SELECT SUM(epoch) AS n FROM runs WHERE owner = 'p9'", 4]
      } as const
    })
  },
  {
    name: "a lease given up",
    write: Effect.map(begin(), (run) => ({
      act: useStore((store) => store.release(run)),
      answer: undefined,
      counted: [`SELECT COUNT(*) AS n FROM runs WHERE key = ${run.key} AND owner IS NULL`, 1]
    }))
  },
  {
    name: "the removal of a run",
    write: Effect.map(ended, ({ runId, userId }) => ({
      act: useStore((store) => store.remove({ runId, userId })),
      answer: "deleted",
      counted: [`SELECT COUNT(*) AS n FROM runs WHERE run_id = '${runId}'`, 0]
    }))
  },
  {
    name: "the removal of a conversation",
    write: Effect.map(ended, ({ conversationId, userId }) => ({
      act: useStore((store) => store.removeConversation({ conversationId, userId })),
      answer: "deleted",
      counted: [`SELECT COUNT(*) AS n FROM conversations WHERE conversation_id = '${conversationId}'`, 0]
    }))
  },
  {
    name: "a title",
    write: Effect.map(begin(), ({ conversationId, userId }) => ({
      act: useStore((store) => store.renameConversation({ conversationId, userId, title: "other" })),
      answer: true,
      counted: [
        `SELECT COUNT(*) AS n FROM conversations WHERE conversation_id = '${conversationId}' AND title = 'other'`,
        1
      ]
    }))
  },
  {
    name: "a summary",
    write: Effect.map(begin(), ({ conversationId, runId }) => ({
      act: useStore((store) =>
        store.saveCompaction({
          conversationId,
          uptoRunId: runId,
          uptoIteration: 1,
          summary: "short",
          madeIn: runId,
          madeAt: 2
        })
      ),
      answer: undefined,
      counted: [`SELECT COUNT(*) AS n FROM compactions WHERE conversation_id = '${conversationId}'`, 1]
    }))
  },
  {
    name: "a state in the place of events",
    write: Effect.map(ended, ({ key, lastSeq, runId }) => ({
      act: useStore((store) =>
        store.compact({
          key,
          lastSeq,
          base: {
            seq: lastSeq - 1,
            turns: 0,
            state: { ...Fold.empty(runId), seq: lastSeq - 1 }
          }
        })
      ),
      answer: true,
      counted: [`SELECT compacted_seq AS n FROM runs WHERE key = ${key}`, lastSeq - 1]
    }))
  }
]

describePostgres("a connection that is lost while", () => {
  describe.each(writes)("$name is committed", ({ write }) => {
    it.scopedLive.each<Wire.Loss>(["answered", "sent", "late"])(
      "(cut when it is %s): the answer is what is stored",
      (how) =>
        Effect.gen(function* () {
          const url = yield* schema
          const wire = yield* Wire.make(url)
          const context = yield* Layer.build(Layer.fresh(Postgres.layer({ url: Redacted.make(wire.url) })))
          const store: Context.Context<RunStore | WriteClient> = context
          const { act, answer, counted } = yield* Effect.provide(write, store)
          wire.loseAnswerTo("COMMIT", how)
          expect(yield* Effect.provide(act, store)).toEqual(answer)
          const [statement, count] = counted
          const [row] = yield* query<{ readonly n: number | string }>(url, statement)
          expect(Number(row?.n)).toBe(count)
        })
    )
  })
})
