/**
 * Documents in the store's SQLite file. Reading goes through `ReadClient`; changes happen inside the store's own
 * transactions.
 *
 * @since 0.1.0
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { ReadClient, WriteClient } from "../SqlClients.js"
import { ToolConflict } from "../Tool.js"
import { type Change, type Document, Documents, type Driver, fromDriver } from "./Documents.js"
import * as Seed from "./seed/Seed.js"

interface Row {
  readonly id: string
  readonly user_id: string | null
  readonly title: string
  readonly body: string
  readonly version: number
  readonly content_hash: string
  readonly updated_at: number
}

const documentOf = (row: Row): Document => ({
  id: row.id,
  title: row.title,
  text: row.body,
  version: row.version,
  contentHash: row.content_hash,
  readOnly: row.user_id === null,
  updatedAt: row.updated_at
})

// An external-content index keeps each text once; its triggers keep it true.
const tables = [
  `CREATE TABLE IF NOT EXISTS documents (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user_id TEXT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    updated_at INTEGER NOT NULL
  )`,
  "CREATE INDEX IF NOT EXISTS documents_user ON documents (user_id)",
  `CREATE VIRTUAL TABLE IF NOT EXISTS documents_text
    USING fts5 (title, body, content = 'documents', content_rowid = 'key', tokenize = 'trigram')`,
  `CREATE TRIGGER IF NOT EXISTS documents_inserted AFTER INSERT ON documents BEGIN
    INSERT INTO documents_text (rowid, title, body) VALUES (new.key, new.title, new.body);
  END`,
  `CREATE TRIGGER IF NOT EXISTS documents_deleted AFTER DELETE ON documents BEGIN
    INSERT INTO documents_text (documents_text, rowid, title, body) VALUES ('delete', old.key, old.title, old.body);
  END`,
  `CREATE TRIGGER IF NOT EXISTS documents_updated AFTER UPDATE ON documents BEGIN
    INSERT INTO documents_text (documents_text, rowid, title, body) VALUES ('delete', old.key, old.title, old.body);
    INSERT INTO documents_text (rowid, title, body) VALUES (new.key, new.title, new.body);
  END`,
  `CREATE TABLE IF NOT EXISTS document_acts (
    user_id TEXT NOT NULL,
    act_key TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, act_key)
  )`,
  `CREATE TABLE IF NOT EXISTS memories (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  )`,
  "CREATE INDEX IF NOT EXISTS memories_user ON memories (user_id, created_at)"
]

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
    const ids = JSON.stringify(seed.map(({ id }) => id))
    yield* sql`DELETE FROM documents WHERE user_id IS NULL AND id NOT IN (SELECT value FROM json_each(${ids}))`
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

const migrate = (sql: SqlClient, seed: ReadonlyArray<Document>): Effect.Effect<void, SqlError> =>
  sql
    .withTransaction(
      Effect.zipRight(
        Effect.forEach(tables, (statement) => sql.unsafe(statement), { discard: true }),
        plant(sql, seed)
      )
    )
    .pipe(Effect.retry(Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(100))))

const write = (sql: SqlClient, change: Change): Effect.Effect<void, ToolConflict> =>
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
    switch (change.type) {
      case "create":
        yield* insert(sql, change.user, change.document)
        return
      case "update": {
        const { contentHash, id, text, title, updatedAt, version } = change.document
        const updated = yield* sql`UPDATE documents
          SET title = ${title}, body = ${text}, content_hash = ${contentHash}, version = ${version},
            updated_at = ${updatedAt}
          WHERE id = ${id} AND user_id = ${change.user} AND version = ${version - 1} RETURNING id`
        return updated.length === 0
          ? yield* new ToolConflict({ message: "The document has changed since." })
          : undefined
      }
      case "remember":
        yield* sql`INSERT INTO memories ${sql.insert({
          id: change.memory.id,
          user_id: change.user,
          body: change.memory.text,
          created_at: change.memory.createdAt
        })}`
    }
  }).pipe(Effect.catchTag("SqlError", Effect.die), Effect.withTracerEnabled(false))

/** A text that matches itself and nothing else. */
const quoted = (term: string): string => `"${term.replaceAll('"', '""').replaceAll("\u0000", "")}"`

const like = (term: string): string => `%${term.replace(/[\\%_]/g, "\\$&")}%`

const maxCandidates = 100

const makeDriver = (read: SqlClient, writer: SqlClient): Driver => {
  const query = <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A> =>
    Effect.withTracerEnabled(Effect.orDie(effect), false)
  const rows = (effect: Effect.Effect<ReadonlyArray<Row>, SqlError>) =>
    query(Effect.map(effect, (found) => found.map(documentOf)))

  return {
    visible: (user) => rows(read<Row>`SELECT * FROM documents WHERE user_id = ${user} OR user_id IS NULL`),
    find: ({ id, user }) =>
      Effect.map(
        rows(read<Row>`SELECT * FROM documents WHERE id = ${id} AND (user_id = ${user} OR user_id IS NULL)`),
        ([document]) => Option.fromNullable(document)
      ),
    // The index holds pieces of three characters; what is shorter is looked for in the texts themselves.
    candidates: ({ terms, user }) => {
      const long = terms.filter((term) => Array.from(term).length >= 3)
      const short = terms.filter((term) => Array.from(term).length < 3)
      return terms.length === 0
        ? Effect.succeed([])
        : rows(
            read<Row>`SELECT * FROM documents WHERE (user_id = ${user} OR user_id IS NULL) AND (${read.or([
              ...(long.length === 0
                ? []
                : [
                    read`key IN (SELECT rowid FROM documents_text WHERE documents_text MATCH ${long.map(quoted).join(" OR ")})`
                  ]),
              ...short.map((term) => read`title LIKE ${like(term)} ESCAPE '\\' OR body LIKE ${like(term)} ESCAPE '\\'`)
            ])}) ORDER BY user_id IS NULL, updated_at DESC LIMIT ${maxCandidates}`
          )
    },
    memories: (user) =>
      query(
        Effect.map(
          read<{ readonly id: string; readonly body: string; readonly created_at: number }>`
            SELECT id, body, created_at FROM memories WHERE user_id = ${user}
            ORDER BY created_at DESC, id DESC LIMIT 500`,
          (found) => found.map((row) => ({ id: row.id, text: row.body, createdAt: row.created_at }))
        )
      ),
    applied: ({ key, user }) =>
      query(
        Effect.map(
          read<{ readonly result: string }>`
            SELECT result FROM document_acts WHERE user_id = ${user} AND act_key = ${key}`,
          ([row]) => Option.map(Option.fromNullable(row), ({ result }) => result)
        )
      ),
    write: (change) => write(writer, change)
  }
}

/**
 * A workspace in the store's database with the given documents for everybody. Creates its tables while it is built, and
 * fails where that can not be done.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWith = (seed: ReadonlyArray<Document>): Layer.Layer<Documents, SqlError, ReadClient | WriteClient> =>
  Layer.effect(
    Documents,
    Effect.gen(function* () {
      const [read, writer] = [yield* ReadClient, yield* WriteClient]
      yield* Effect.withTracerEnabled(migrate(writer, seed), false)
      return fromDriver(makeDriver(read, writer))
    })
  )

/**
 * A workspace in the store's database with the product's documentation.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Documents, SqlError, ReadClient | WriteClient> = layerWith(Seed.documents)
