/**
 * Copying all that the tables of one database hold into those of another, of whatever dialect, and telling whether two
 * databases hold the same.
 *
 * @since 0.1.0
 */
import { createHash } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"

/**
 * A database while it is copied. Statements of two clients must not meet in one transaction: `within` is around each
 * effect that uses `sql`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Side {
  readonly sql: SqlClient.SqlClient
  readonly within: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * A database of which no transaction is under way.
 *
 * @since 0.1.0
 * @category constructors
 */
export const plain = (sql: SqlClient.SqlClient): Side => ({ sql, within: (effect) => effect })

/**
 * What is known of a table: the columns of its key, by which it is read in pages, and the one of them that the database
 * counts up by itself.
 *
 * @since 0.1.0
 * @category models
 */
export interface Table {
  readonly name: string
  readonly key: ReadonlyArray<string>
  readonly counted?: true
  /** It is there only where documents are. */
  readonly ofDocuments?: true
}

/**
 * The tables, each behind those that it refers to.
 *
 * @since 0.1.0
 * @category tables
 */
export const tables: ReadonlyArray<Table> = [
  { name: "conversations", key: ["conversation_id"] },
  { name: "runs", key: ["key"], counted: true },
  { name: "inputs", key: ["run_key"] },
  { name: "events", key: ["id"], counted: true },
  { name: "turns", key: ["run_key", "n"] },
  { name: "sides", key: ["run_key", "iteration"] },
  { name: "messages", key: ["message_id"] },
  { name: "idempotency", key: ["user_id", "key"] },
  { name: "compactions", key: ["id"], counted: true },
  { name: "bases", key: ["run_key"] },
  { name: "documents", key: ["key"], counted: true, ofDocuments: true },
  { name: "document_acts", key: ["user_id", "act_key"], ofDocuments: true },
  { name: "memories", key: ["id"], ofDocuments: true }
]

type Value = string | number | bigint | boolean | null
type Row = Readonly<Record<string, Value>>

interface Column {
  readonly name: string
  readonly isNumber: boolean
}

/** Rows of one statement. A row is at most some megabytes, nearly always far less than a kilobyte. */
const pageSize = 200

const isOurs = new Set([...tables.map(({ name }) => name), "runlet_migrations", "runlet_channel"])

/** The tables of a database, without those that the database keeps for itself. */
const allTables = ({ sql, within }: Side): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  within(
    sql.onDialectOrElse({
      pg: () => sql<{ readonly name: string }>`
        SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`,
      orElse: () => sql<{ readonly name: string }>`
        SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
          AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`
    })
  ).pipe(Effect.map((rows) => rows.map(({ name }) => name)))

/**
 * The tables of a database that are not Runlet's own, for example those of somebody's tools.
 *
 * @since 0.1.0
 * @category tables
 */
export const foreign = (side: Side): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(allTables(side), (names) => names.filter((name) => !isOurs.has(name) && name !== "documents_text"))

/**
 * Those of `tables` that a database has.
 *
 * @since 0.1.0
 * @category tables
 */
export const present = (side: Side): Effect.Effect<ReadonlyArray<Table>, SqlError> =>
  Effect.map(allTables(side), (names) => tables.filter(({ name }) => names.includes(name)))

/**
 * Whether nobody has put anything into a database. The documents that come with the program do not count.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isEmpty = (side: Side): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    const { sql, within } = side
    for (const { name } of yield* present(side)) {
      const where = name === "documents" ? sql`WHERE user_id IS NOT NULL` : sql``
      const rows = yield* within(sql`SELECT 1 FROM ${sql(name)} ${where} LIMIT 1`)
      if (rows.length > 0) return false
    }
    return true
  })

const columnsOf = ({ sql, within }: Side, table: string): Effect.Effect<ReadonlyArray<Column>, SqlError> =>
  within(
    sql.onDialectOrElse({
      pg: () => sql<{ readonly name: string; readonly type: string }>`
        SELECT column_name AS name, data_type AS type FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = ${table} AND is_generated = 'NEVER'`,
      orElse: () => sql<{ readonly name: string; readonly type: string }>`
        SELECT name, type FROM pragma_table_info(${table})`
    })
  ).pipe(
    Effect.map((rows) =>
      rows.map(({ name, type }) => ({ name, isNumber: /int/i.test(type) })).sort((a, b) => (a.name < b.name ? -1 : 1))
    )
  )

/** The values of a row in the order of its columns. Some drivers give large integers as text. */
const valuesOf = (columns: ReadonlyArray<Column>, row: Row): ReadonlyArray<Value> =>
  columns.map(({ isNumber, name }) => {
    const value = row[name] ?? null
    return isNumber && value !== null ? Number(value) : value
  })

/**
 * All rows of a table without regard to their order, as a number of them and a sum: two tables that differ in anything
 * have different ones.
 *
 * @since 0.1.0
 * @category comparing
 */
export class Sum {
  rows = 0
  private readonly words = new BigUint64Array(4)

  add(values: ReadonlyArray<Value>): void {
    this.rows++
    const digest = createHash("sha256").update(JSON.stringify(values)).digest()
    for (let i = 0; i < 4; i++) this.words[i] = (this.words[i] ?? 0n) + digest.readBigUInt64LE(i * 8)
  }

  equals(other: Sum): boolean {
    return this.rows === other.rows && this.words.every((word, i) => word === other.words[i])
  }
}

/** Calls `each` with every page of a table, and answers the sum of its rows. */
const pages = <E, R>(
  { sql, within }: Side,
  { key, name }: Table,
  columns: ReadonlyArray<Column>,
  each: (rows: ReadonlyArray<ReadonlyArray<Value>>, soFar: number) => Effect.Effect<void, E, R>
): Effect.Effect<Sum, SqlError | E, R> =>
  Effect.gen(function* () {
    const sum = new Sum()
    const order = sql.csv(key.map((column) => sql`${sql(column)}`))
    const selected = sql.csv(columns.map((column) => sql`${sql(column.name)}`))
    let last: Row | undefined
    while (true) {
      const after = last
      const rest =
        after === undefined
          ? sql``
          : sql`WHERE (${order}) > (${sql.csv(key.map((column) => sql`${after[column] ?? null}`))})`
      const rows = yield* within(
        sql<Row>`SELECT ${selected} FROM ${sql(name)} ${rest} ORDER BY ${order} LIMIT ${pageSize}`
      )
      const values = rows.map((row) => valuesOf(columns, row))
      for (const row of values) sum.add(row)
      if (rows.length > 0) yield* each(values, sum.rows)
      last = rows.at(-1)
      if (rows.length < pageSize) return sum
      // Whoever else has something to do comes in between.
      yield* Effect.yieldNow()
    }
  })

/** Inserts rows as they are, also into columns that the database would count up by itself. */
const insert = (
  { sql, within }: Side,
  table: string,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<Value>>
): Effect.Effect<void, SqlError> => {
  const names = columns.map(({ name }) => `"${name}"`).join(", ")
  const overriding = sql.onDialectOrElse({ pg: () => " OVERRIDING SYSTEM VALUE", orElse: () => "" })
  const place = sql.onDialectOrElse({ pg: () => (n: number) => `$${n}`, orElse: () => () => "?" })
  const places = rows.map((row, r) => `(${row.map((_, c) => place(r * columns.length + c + 1)).join(", ")})`).join(", ")
  return Effect.asVoid(
    within(sql.unsafe(`INSERT INTO "${table}" (${names})${overriding} VALUES ${places}`, rows.flat()))
  )
}

/** The largest number that a database has given out for a table, also to a row that is gone. */
const counter = ({ sql, within }: Side, { key: [column = ""], name }: Table): Effect.Effect<number, SqlError> =>
  within(
    sql.onDialectOrElse({
      pg: () => sql<{ readonly n: number | string | null }>`
        SELECT pg_sequence_last_value(pg_get_serial_sequence(${name}, ${column})::regclass) AS n`,
      orElse: () => sql<{ readonly n: number | null }>`
        SELECT MAX(seq) AS n FROM (SELECT seq FROM sqlite_sequence WHERE name = ${name}
          UNION ALL SELECT MAX(${sql(column)}) FROM ${sql(name)})`
    })
  ).pipe(Effect.map((rows) => Number(rows[0]?.n ?? 0)))

const setCounter = (
  { sql, within }: Side,
  { key: [column = ""], name }: Table,
  value: number
): Effect.Effect<void, SqlError> =>
  value === 0
    ? Effect.void
    : Effect.asVoid(
        within(
          sql.onDialectOrElse({
            pg: () => sql`SELECT setval(pg_get_serial_sequence(${name}, ${column})::regclass, ${value})`,
            // The other tables go on behind their last row.
            orElse: () =>
              Effect.zipRight(
                sql`DELETE FROM sqlite_sequence WHERE name = ${name}`,
                sql`INSERT INTO sqlite_sequence (name, seq)
                  SELECT ${name}, ${value} WHERE EXISTS (SELECT 1 FROM sqlite_master
                    WHERE type = 'table' AND name = ${name} AND sql LIKE '%AUTOINCREMENT%')`
              )
          })
        )
      )

/**
 * How far a copy is: `done` of `total` rows of a table are there.
 *
 * @since 0.1.0
 * @category models
 */
export interface Progress {
  readonly table: string
  readonly done: number
  readonly total: number
}

/**
 * Copies every row of every table that `from` has into the same tables of `to`, which are empty, in statements of bounded
 * size, and reads the copy back. Answers what is there now, by table, and the tables that do not hold the same.
 *
 * @since 0.1.0
 * @category copying
 */
export const copy = (
  from: Side,
  to: Side,
  tell: (progress: Progress) => Effect.Effect<void>
): Effect.Effect<
  { readonly rows: Readonly<Record<string, number>>; readonly different: ReadonlyArray<string> },
  SqlError
> =>
  Effect.gen(function* () {
    const rows: Record<string, number> = {}
    const different: Array<string> = []
    if ((yield* present(to)).some(({ name }) => name === "documents")) yield* to.within(to.sql`DELETE FROM documents`)
    for (const table of yield* present(from)) {
      const { name } = table
      const columns = yield* columnsOf(from, name)
      const theirs = yield* columnsOf(to, name)
      const [count] = yield* from.within(
        from.sql<{ readonly n: number | string }>`SELECT COUNT(*) AS n FROM ${from.sql(name)}`
      )
      const total = Number(count?.n ?? 0)
      if (total === 0) yield* tell({ table: name, done: 0, total })
      const given = yield* pages(from, table, columns, (page, done) =>
        Effect.zipRight(insert(to, name, columns, page), tell({ table: name, done, total }))
      )
      if (table.counted === true) {
        const last = yield* counter(from, table)
        if ((yield* counter(to, table)) !== last) yield* setCounter(to, table, last)
      }
      const got = yield* pages(to, table, theirs, () => Effect.void)
      rows[name] = got.rows
      if (!got.equals(given)) different.push(name)
    }
    return { rows, different }
  })
