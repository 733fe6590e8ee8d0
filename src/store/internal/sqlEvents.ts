/**
 * The insertion of events, so made that every statement is prepared once.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type { StoredEvent } from "../RunStore.js"

/**
 * A run's events and the seq before the first of them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Placed {
  readonly key: number
  readonly after: number
  readonly events: ReadonlyArray<Omit<StoredEvent, "seq">>
}

/**
 * Makes the function that inserts events: in one statement of columns where a database takes arrays, and otherwise in
 * statements of fixed sizes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (sql: SqlClient.SqlClient): InsertEvents =>
  sql.onDialectOrElse({ pg: () => insertColumnsOf(sql), orElse: () => insertRowsOf(sql) })

type InsertEvents = (connection: Connection, placed: ReadonlyArray<Placed>) => Effect.Effect<void, SqlError>

const insertColumnsOf = (sql: SqlClient.SqlClient): InsertEvents => {
  const text = sql`INSERT INTO events (run_key, seq, type, json, created_at) SELECT * FROM unnest(
    CAST(${""} AS BIGINT[]), CAST(${""} AS BIGINT[]), CAST(${""} AS TEXT[]), CAST(${""} AS TEXT[]), CAST(${""} AS BIGINT[])
  )`.compile()[0]
  return (connection, placed) => {
    const rows = placed.flatMap(({ after, events, key }) =>
      events.map((event, index) => ({ ...event, key, seq: after + index + 1 }))
    )
    if (rows.length === 0) return Effect.void
    const columns = [
      rows.map(({ key }) => key),
      rows.map(({ seq }) => seq),
      rows.map(({ type }) => type),
      rows.map(({ json }) => json),
      rows.map(({ createdAt }) => createdAt)
    ]
    return Effect.asVoid(connection.execute(text, columns, undefined))
  }
}

const insertSizes = [500, 50, 5, 1] as const
const insertWidth = 5

const insertRowsOf = (sql: SqlClient.SqlClient): InsertEvents => {
  const blank = { run_key: 0, seq: 0, type: "", json: "", created_at: 0 }
  const statements = insertSizes.map((size) => {
    const rows = Array.from({ length: size }, () => blank)
    return { size, text: sql`INSERT INTO events ${sql.insert(rows)}`.compile()[0] }
  })
  return (connection, placed) => {
    const values: Array<string | number> = []
    for (const { after, events, key } of placed) {
      for (const [index, event] of events.entries()) {
        values.push(key, after + index + 1, event.type, event.json, event.createdAt)
      }
    }
    const inserts: Array<Effect.Effect<unknown, SqlError>> = []
    let start = 0
    for (const { size, text } of statements) {
      const width = size * insertWidth
      for (; values.length - start >= width; start += width) {
        inserts.push(connection.execute(text, values.slice(start, start + width), undefined))
      }
    }
    return Effect.all(inserts, { discard: true })
  }
}
