/**
 * Documents in the store's SQLite file.
 *
 * @since 0.1.0
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { ReadClient, WriteClient } from "../SqlClients.js"
import type { Bounds, Document, Documents } from "./Documents.js"
import * as SqlDocuments from "./SqlDocuments.js"
import * as Seed from "./seed/Seed.js"

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
  ...SqlDocuments.tables("INTEGER")
]

/** A text that matches itself and nothing else. */
const quoted = (term: string): string => `"${term.replaceAll('"', '""').replaceAll("\u0000", "")}"`

const dialect: SqlDocuments.Dialect = {
  prepare: (sql) => Effect.forEach(tables, (statement) => sql.unsafe(statement), { discard: true }),
  // The index holds pieces of three characters; what is shorter is looked for in the texts themselves.
  holds: (sql, terms) => {
    const long = terms.filter((term) => Array.from(term).length >= 3)
    const short = terms.filter((term) => Array.from(term).length < 3).map(SqlDocuments.like)
    return sql.or([
      ...(long.length === 0
        ? []
        : [sql`key IN (SELECT rowid FROM documents_text WHERE documents_text MATCH ${long.map(quoted).join(" OR ")})`]),
      ...short.map((term) => sql`title LIKE ${term} ESCAPE '\\' OR body LIKE ${term} ESCAPE '\\'`)
    ])
  },
  // A file has one writer at a time.
  alone: () => Effect.void,
  retries: 0
}

/**
 * A workspace in the store's database with the given documents for everybody. Creates its tables while it is built, and
 * fails where that can not be done.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWith = (
  seed: ReadonlyArray<Document>,
  bounds?: Bounds
): Layer.Layer<Documents, SqlError, ReadClient | WriteClient> => SqlDocuments.layerWith(dialect, seed, bounds)

/**
 * A workspace in the store's database with the product's documentation.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Documents, SqlError, ReadClient | WriteClient> = layerWith(Seed.documents)
