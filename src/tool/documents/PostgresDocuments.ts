/**
 * Documents in the store's PostgreSQL database.
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

const tables = [
  `CREATE TABLE IF NOT EXISTS documents (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user_id TEXT,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    updated_at BIGINT NOT NULL
  )`,
  ...SqlDocuments.tables("BIGINT")
]

/** With this extension the patterns below have an index; without it every text is read. */
const indexes = [
  "CREATE INDEX IF NOT EXISTS documents_title_text ON documents USING gin (title gin_trgm_ops)",
  "CREATE INDEX IF NOT EXISTS documents_body_text ON documents USING gin (body gin_trgm_ops)"
]

/** A database of the locale C knows the cases of A to Z alone; others are written as they mostly are. */
const spellings = (term: string): ReadonlyArray<string> => {
  const [first = "", ...others] = Array.from(term)
  const capital = first.toUpperCase() + others.join("")
  const isPlain = Array.from(term).every((letter) => letter < "\u0080" || letter === letter.toUpperCase())
  return isPlain ? [term] : [term, capital, term.toUpperCase()]
}

const dialect: SqlDocuments.Dialect = {
  prepare: (sql) =>
    Effect.gen(function* () {
      // Two processes that make the same table at the same time both fail.
      yield* sql`SELECT pg_advisory_xact_lock(hashtextextended('runlet documents', 0))`
      for (const statement of tables) yield* sql.unsafe(statement)
      const found = yield* sql`SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'`
      if (found.length > 0) for (const statement of indexes) yield* sql.unsafe(statement)
    }),
  holds: (sql, terms) =>
    sql.or(
      terms
        .flatMap(spellings)
        .map(SqlDocuments.like)
        .map((term) => sql`title ILIKE ${term} OR body ILIKE ${term}`)
    ),
  alone: (sql, user) =>
    Effect.asVoid(
      sql`SELECT pg_advisory_xact_lock(hashtextextended(${user}, hashtextextended('runlet documents', 0)))`
    ),
  retries: 20
}

/**
 * A workspace in the store's database with the given documents for everybody. Creates its tables while it is built, and
 * fails where that can not be done. Where the extension `pg_trgm` is installed, searching uses an index.
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
