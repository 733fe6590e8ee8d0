/**
 * How a commit tells other processes what it changed: messages on a channel, which the database delivers when the
 * transaction is committed, and not before. So the events that a message carries are stored by the time that somebody
 * hears of them, in the order in which they were committed, and may be shown as they are. What does not fit into a
 * message is read from the store.
 *
 * Whoever may connect to a database may listen on any channel of it that they know the name of. The name is made at
 * random when the tables are made, and kept in a table: only who may read the events hears them, and stores that share a
 * database do not hear each other.
 *
 * @since 0.1.0
 */

import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type { Appended, Change, StoredEvent, ToldEvent } from "../RunStore.js"
import { codeOf } from "./sqlErrors.js"

/**
 * The table that holds the name of the channel, in the one row that it has.
 *
 * @since 0.1.0
 * @category channels
 */
export const table = "runlet_channel"

/**
 * Chooses the channel of a database that has none, in a transaction that nobody else makes tables in.
 *
 * @since 0.1.0
 * @category channels
 */
export const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> =>
  Effect.zipRight(
    sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (name TEXT NOT NULL)`,
    Effect.asVoid(sql`INSERT INTO ${sql(table)} (name)
      SELECT 'runlet_' || replace(CAST(gen_random_uuid() AS TEXT), '-', '')
      WHERE NOT EXISTS (SELECT 1 FROM ${sql(table)})`)
  )

const isName = (name: unknown): name is string => typeof name === "string" && /^[a-z0-9_]{1,63}$/.test(name)

/**
 * The channel of a database; absent where its tables are older than that.
 *
 * @since 0.1.0
 * @category channels
 */
export const channel = (sql: SqlClient.SqlClient): Effect.Effect<string | undefined, SqlError> =>
  sql<{ readonly name: string }>`SELECT name FROM ${sql(table)}`.pipe(
    Effect.map(([found]) => (isName(found?.name) ? found.name : undefined)),
    Effect.catchIf(
      (error) => codeOf(error) === "42P01",
      () => Effect.succeed(undefined)
    )
  )

/** Events that a commit has added to a run behind `after`, as they are told. */
interface Told {
  readonly key: number
  readonly after: number
  readonly events: ReadonlyArray<Omit<StoredEvent, "seq">>
}

/**
 * What a commit has changed.
 *
 * - `keys`: runs of which no more is told than that they have changed
 * - `appended`: events that were added to runs
 *
 * @since 0.1.0
 * @category models
 */
export interface Notice extends Pick<Change, "work" | "left"> {
  readonly keys?: ReadonlyArray<number> | undefined
  readonly appended?: ReadonlyArray<Told> | undefined
}

/**
 * A message may have less than 8000 bytes in the encoding of the database. This many bytes of UTF-8 are less than that in
 * every encoding that a database may have.
 */
const maxBytes = 5000

const radix = 36
const short = (value: number): string => value.toString(radix)
const long = (text: string): number => Number.parseInt(text, radix)

// JSON has no line breaks but those that are escaped.
const line = ({ createdAt, json, type }: Omit<StoredEvent, "seq">): string => `${short(createdAt)} ${type} ${json}\n`

/** A message while it is put together. */
class Draft {
  private readonly keys: Array<string> = []
  private readonly heads: Array<string> = []
  private body = ""
  private bytes: number

  constructor(private readonly start: string) {
    this.bytes = start.length + 2
  }

  private fits(bytes: number): boolean {
    this.bytes += bytes
    return this.bytes <= maxBytes
  }

  addKey(key: number): boolean {
    const text = short(key)
    const fits = this.fits(text.length + 1)
    if (fits) this.keys.push(text)
    return fits
  }

  addEvents({ after, events, key }: Told, text: string, bytes: number): boolean {
    const head = [key, after + 1, events.length, text.length].map(short).join(":")
    const fits = this.fits(head.length + 1 + bytes)
    if (fits) {
      this.heads.push(head)
      this.body += text
    }
    return fits
  }

  toString(): string {
    return `${this.start} ${this.keys.join(",")} ${this.heads.join(",")}\n${this.body}`
  }
}

/**
 * What is told as messages from `sender`, a word. The events of a run that are too many or too long for a message are
 * left out, and so are those that follow them in `appended`; the run's key is told instead.
 *
 * @since 0.1.0
 * @category messages
 */
export const encode = (sender: string, { appended = [], keys = [], left, work }: Notice): ReadonlyArray<string> => {
  const drafts = [new Draft(`${sender} ${work ? "w" : ""}${left ? "l" : ""}`)]
  const put = (add: (draft: Draft) => boolean): boolean => {
    const last = drafts.at(-1)
    if (last !== undefined && add(last)) return true
    const next = new Draft(`${sender} `)
    const fits = add(next)
    if (fits) drafts.push(next)
    return fits
  }
  const silent = new Set<number>(keys)
  for (const told of appended) {
    if (told.events.length === 0) silent.add(told.key)
    if (silent.has(told.key)) continue
    const text = told.events.map(line).join("")
    const bytes = text.length > maxBytes ? text.length : Buffer.byteLength(text)
    if (!put((draft) => draft.addEvents(told, text, bytes))) silent.add(told.key)
  }
  for (const key of silent) put((draft) => draft.addKey(key))
  return drafts.map(String)
}

/**
 * A message from `sender`, a word, that says only that it is there.
 *
 * @since 0.1.0
 * @category messages
 */
export const greeting = (sender: string): string => `${sender} `

const eventOf = (text: string, seq: number): ToldEvent => {
  const [createdAt = "", type = ""] = text.split(" ", 2)
  return { seq, type, json: text.slice(createdAt.length + type.length + 2), createdAt: long(createdAt) }
}

const runsOf = (heads: string, body: string): ReadonlyArray<Appended> => {
  let start = 0
  return heads.split(",").map((head) => {
    const [key = 0, first = 0, count = 0, length = 0] = head.split(":").map(long)
    const [from, to] = [start, start + length]
    start = to
    return {
      key,
      first,
      count,
      events: () =>
        body
          .slice(from, to - 1)
          .split("\n")
          .map((text, index) => eventOf(text, first + index))
    }
  })
}

/**
 * Who says a message, and what it says when somebody asks. What nobody of this version wrote says that anything may have
 * changed.
 *
 * @since 0.1.0
 * @category messages
 */
export const decode = (message: string): { readonly sender: string; readonly change: () => Change } => {
  const end = message.indexOf(" ")
  return end === -1
    ? { sender: "", change: () => ({ work: true, left: true }) }
    : { sender: message.slice(0, end), change: () => changeOf(message) }
}

const changeOf = (message: string): Change => {
  const end = message.indexOf("\n")
  const [, flags = "", list = "", heads = ""] = (end === -1 ? message : message.slice(0, end)).split(" ")
  return {
    keys: list === "" ? [] : list.split(",").map(long),
    work: flags.includes("w"),
    left: flags.includes("l"),
    ...(heads !== "" && { appended: runsOf(heads, message.slice(end + 1)) })
  }
}

/**
 * Tells of a change when the transaction is committed.
 *
 * @since 0.1.0
 * @category models
 */
export type Announce = (notice: Notice) => Effect.Effect<void, SqlError>

/**
 * Announces nothing: other processes notice by themselves.
 *
 * @since 0.1.0
 * @category constructors
 */
export const silent: Announce = () => Effect.void

const separator = "\u0002"

/**
 * Announces on a channel, as `sender`. Events are told when there are `others` to hear of them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  sql: SqlClient.SqlClient,
  options: { readonly channel: string; readonly sender: string; readonly others: Effect.Effect<number> }
): Announce => {
  const send = (notice: Notice) => {
    const { appended = [], keys = [], left, work } = notice
    if (keys.length === 0 && appended.length === 0 && !work && !left) return Effect.void
    const messages = encode(options.sender, notice).join(separator)
    return Effect.asVoid(sql`SELECT pg_notify(${options.channel}, message)
      FROM unnest(string_to_array(${messages}, chr(2))) AS message`)
  }
  return (notice) =>
    Effect.flatMap(options.others, (count) =>
      send(
        count > 0 || notice.appended === undefined
          ? notice
          : {
              ...notice,
              keys: [...(notice.keys ?? []), ...notice.appended.map(({ key }) => key)],
              appended: []
            }
      )
    )
}
