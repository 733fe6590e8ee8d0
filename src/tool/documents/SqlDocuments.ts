/**
 * Documents in the store's database, whatever its dialect. Reading goes through `ReadClient`; changes happen inside the
 * store's own transactions.
 *
 * @since 0.1.0
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { ReadClient, WriteClient } from "../SqlClients.js"
import type { ToolConflict } from "../Tool.js"
import {
  type Act,
  type Bounds,
  type Change,
  conflicts,
  type Document,
  Documents,
  type Driver,
  fromDriver,
  keptActs
} from "./Documents.js"

/**
 * A document as the database gives it. Some drivers give large integers as text.
 *
 * @since 0.1.0
 * @category models
 */
export interface Row {
  readonly id: string
  readonly user_id: string | null
  readonly title: string
  readonly body: string
  readonly version: number | string
  readonly content_hash: string
  readonly updated_at: number | string
}

const documentOf = (row: Row): Document => ({
  id: row.id,
  title: row.title,
  text: row.body,
  version: Number(row.version),
  contentHash: row.content_hash,
  readOnly: row.user_id === null,
  updatedAt: Number(row.updated_at)
})

const insert = (sql: SqlClient, user: string | null, document: Document) =>
  sql`INSERT INTO documents ${sql.insert({
    id: document.id,
    user_id: user,
    title: document.title,
    body: document.text,
    version: document.version,
    content_hash: document.contentHash,
    updated_at: document.updatedAt
  })}`

/** The product's documentation as it is in this version of the product. */
const plant = (sql: SqlClient, seed: ReadonlyArray<Document>) =>
  Effect.gen(function* () {
    const ids = sql.in(
      "id",
      seed.map(({ id }) => id)
    )
    yield* sql`DELETE FROM documents WHERE user_id IS NULL AND NOT (${ids})`
    const rows = yield* sql<Pick<Row, "id" | "content_hash" | "title">>`
      SELECT id, content_hash, title FROM documents WHERE user_id IS NULL`
    const present = new Map(rows.map((row) => [row.id, row]))
    for (const document of seed) {
      const row = present.get(document.id)
      if (row === undefined) {
        yield* insert(sql, null, document)
      } else if (row.content_hash !== document.contentHash || row.title !== document.title) {
        yield* sql`UPDATE documents SET title = ${document.title}, body = ${document.text},
          content_hash = ${document.contentHash}, version = version + 1 WHERE id = ${document.id}`
      }
    }
  })

const migrate = (sql: SqlClient, dialect: Dialect, seed: ReadonlyArray<Document>): Effect.Effect<void, SqlError> =>
  sql.withTransaction(Effect.zipRight(dialect.prepare(sql), plant(sql, seed))).pipe(
    // Processes that start at the same time get in each other's way.
    Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(100)))
  )

/** How many of the user's are in a table. */
const count = (sql: SqlClient, table: "documents" | "memories", user: string) =>
  Effect.map(
    sql<{ readonly n: number | string }>`SELECT COUNT(*) AS n FROM ${sql(table)} WHERE user_id = ${user}`,
    ([row]) => Number(row?.n ?? 0)
  )

/** Conflicts unless there is room for one more. */
const room = (sql: SqlClient, dialect: Dialect, table: "documents" | "memories", user: string, most: number) =>
  most === Number.MAX_SAFE_INTEGER
    ? Effect.void
    : Effect.flatMap(Effect.zipRight(dialect.alone(sql, user), count(sql, table, user)), (n) =>
        n < most ? Effect.void : conflicts.full
      )

const unless = (conflict: ToolConflict, rows: ReadonlyArray<unknown>) => (rows.length === 0 ? conflict : Effect.void)

/** Removes the oldest records of acts where a user has more than are kept, whatever a clock says of the present one. */
const forgetActs = (sql: SqlClient, { key, user }: Act) =>
  sql`DELETE FROM document_acts WHERE user_id = ${user} AND act_key <> ${key} AND created_at < (
    SELECT created_at FROM document_acts WHERE user_id = ${user} ORDER BY created_at DESC LIMIT 1 OFFSET ${keptActs - 1})`

const write = (sql: SqlClient, dialect: Dialect, change: Change): Effect.Effect<void, ToolConflict> =>
  Effect.gen(function* () {
    const recorded = yield* sql`INSERT INTO document_acts ${sql.insert({
      user_id: change.user,
      act_key: change.key,
      result: change.result,
      created_at: change.at
    })} ON CONFLICT DO NOTHING RETURNING act_key`
    if (recorded.length === 0) {
      return
    }
    yield* forgetActs(sql, change)
    switch (change.type) {
      case "create":
        yield* room(sql, dialect, "documents", change.user, change.most)
        yield* insert(sql, change.user, change.document)
        return
      case "update": {
        const { contentHash, id, text, title, updatedAt, version } = change.document
        const updated = yield* sql`UPDATE documents
          SET title = ${title}, body = ${text}, content_hash = ${contentHash}, version = ${version},
            updated_at = ${updatedAt}
          WHERE id = ${id} AND user_id = ${change.user} AND version = ${version - 1} RETURNING id`
        return yield* unless(conflicts.changed, updated)
      }
      case "delete":
        return yield* unless(
          conflicts.changed,
          yield* sql`DELETE FROM documents
            WHERE id = ${change.id} AND user_id = ${change.user} AND version = ${change.version} RETURNING id`
        )
      case "forget":
        return yield* unless(
          conflicts.forgotten,
          yield* sql`DELETE FROM memories WHERE id = ${change.id} AND user_id = ${change.user} RETURNING id`
        )
      case "remember":
        yield* room(sql, dialect, "memories", change.user, change.most)
        yield* sql`INSERT INTO memories ${sql.insert({
          id: change.memory.id,
          user_id: change.user,
          body: change.memory.text,
          created_at: change.memory.createdAt
        })}`
    }
  }).pipe(Effect.catchTag("SqlError", Effect.die), Effect.withTracerEnabled(false))

const makeDriver = (read: SqlClient, writer: SqlClient, dialect: Dialect): Driver => {
  const query = <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A> =>
    effect.pipe(
      // A connection that was lost is another one the next time.
      Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(dialect.retries))),
      Effect.orDie,
      Effect.withTracerEnabled(false)
    )
  const rows = (effect: Effect.Effect<ReadonlyArray<Row>, SqlError>) =>
    query(Effect.map(effect, (found) => found.map(documentOf)))

  return {
    visible: (user) => rows(read<Row>`SELECT * FROM documents WHERE user_id = ${user} OR user_id IS NULL`),
    find: ({ id, user }) =>
      Effect.map(
        rows(read<Row>`SELECT * FROM documents WHERE id = ${id} AND (user_id = ${user} OR user_id IS NULL)`),
        ([document]) => Option.fromNullable(document)
      ),
    candidates: ({ terms, user }) =>
      terms.length === 0
        ? Effect.succeed([])
        : rows(
            read<Row>`SELECT * FROM documents WHERE (user_id = ${user} OR user_id IS NULL)
              AND (${dialect.holds(read, terms)}) ORDER BY user_id IS NULL, updated_at DESC LIMIT ${maxCandidates}`
          ),
    memories: (user) =>
      query(
        Effect.map(
          read<{ readonly id: string; readonly body: string; readonly created_at: number | string }>`
            SELECT id, body, created_at FROM memories WHERE user_id = ${user}
            ORDER BY created_at DESC, id DESC LIMIT 500`,
          (found) => found.map((row) => ({ id: row.id, text: row.body, createdAt: Number(row.created_at) }))
        )
      ),
    counts: (user) =>
      query(Effect.all({ documents: count(read, "documents", user), memories: count(read, "memories", user) })),
    applied: ({ key, user }) =>
      query(
        Effect.map(
          read<{ readonly result: string }>`
            SELECT result FROM document_acts WHERE user_id = ${user} AND act_key = ${key}`,
          ([row]) => Option.map(Option.fromNullable(row), ({ result }) => result)
        )
      ),
    write: (change) => write(writer, dialect, change)
  }
}

const maxCandidates = 100

/**
 * The statements that make what is the same in every database, behind the table of the documents themselves. `integer` is
 * the name of integers of 64 bits.
 *
 * @since 0.1.0
 * @category tables
 */
export const tables = (integer: "INTEGER" | "BIGINT"): ReadonlyArray<string> => [
  "CREATE INDEX IF NOT EXISTS documents_user ON documents (user_id)",
  `CREATE TABLE IF NOT EXISTS document_acts (
    user_id TEXT NOT NULL,
    act_key TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at ${integer} NOT NULL,
    PRIMARY KEY (user_id, act_key)
  )`,
  "CREATE INDEX IF NOT EXISTS document_acts_user ON document_acts (user_id, created_at)",
  `CREATE TABLE IF NOT EXISTS memories (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at ${integer} NOT NULL
  )`,
  "CREATE INDEX IF NOT EXISTS memories_user ON memories (user_id, created_at)"
]

/**
 * What differs between databases.
 *
 * - `prepare`: makes the tables that are missing
 * - `holds`: the condition that a document may hold one of some terms, which are not empty
 * - `alone`: until the transaction ends nobody else changes how much a user has
 * - `retries`: how often a question is asked again
 *
 * @since 0.1.0
 * @category models
 */
export interface Dialect {
  readonly prepare: (sql: SqlClient) => Effect.Effect<void, SqlError>
  readonly holds: (sql: SqlClient, terms: ReadonlyArray<string>) => Fragment
  readonly alone: (sql: SqlClient, user: string) => Effect.Effect<void, SqlError>
  readonly retries: number
}

/**
 * A pattern of `LIKE` for texts that hold a term; its escape character is the backslash.
 *
 * @since 0.1.0
 * @category queries
 */
export const like = (term: string): string => `%${term.replace(/[\\%_]/g, "\\$&")}%`

/**
 * A workspace with the given documents for everybody. Creates its tables while it is built, and fails where that can not
 * be done.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWith = (
  dialect: Dialect,
  seed: ReadonlyArray<Document>,
  bounds?: Bounds
): Layer.Layer<Documents, SqlError, ReadClient | WriteClient> =>
  Layer.effect(
    Documents,
    Effect.gen(function* () {
      const [read, writer] = [yield* ReadClient, yield* WriteClient]
      yield* Effect.withTracerEnabled(migrate(writer, dialect, seed), false)
      return fromDriver(makeDriver(read, writer, dialect), bounds)
    })
  )
