/**
 * How a commit tells other processes what it changed: a message on one channel, which its database delivers when the
 * transaction is committed, and not before.
 *
 * @since 0.1.0
 */

import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type { Change } from "../RunStore.js"

/**
 * The channel of all stores in a database.
 *
 * @since 0.1.0
 * @category constants
 */
export const channel = "runlet"

/** A message may have 8000 bytes. */
const maxKeys = 500

const radix = 36

/**
 * A change as messages from `sender`, a word.
 *
 * @since 0.1.0
 * @category messages
 */
export const encode = (sender: string, { keys = [], left, work }: Change): ReadonlyArray<string> => {
  const flags = `${work ? "w" : ""}${left ? "l" : ""}`
  const messages: Array<string> = []
  for (let start = 0; start === 0 || start < keys.length; start += maxKeys) {
    const some = keys.slice(start, start + maxKeys).map((key) => key.toString(radix))
    messages.push(`${sender} ${start === 0 ? flags : ""} ${some.join(",")}`)
  }
  return messages
}

/**
 * A message from `sender`, a word, that says only that it is there.
 *
 * @since 0.1.0
 * @category messages
 */
export const greeting = (sender: string): string => `${sender}  `

/**
 * What a message says. One that nobody of this version wrote says that anything may have changed.
 *
 * @since 0.1.0
 * @category messages
 */
export const decode = (message: string): { readonly sender: string; readonly change: Change } => {
  const [sender = "", flags, list, ...more] = message.split(" ")
  if (flags === undefined || list === undefined || more.length > 0) {
    return { sender: "", change: { work: true, left: true } }
  }
  const keys = list === "" ? [] : list.split(",").map((key) => Number.parseInt(key, radix))
  return { sender, change: { keys, work: flags.includes("w"), left: flags.includes("l") } }
}

/**
 * Tells of a change when the transaction is committed.
 *
 * @since 0.1.0
 * @category models
 */
export type Announce = (change: Change) => Effect.Effect<void, SqlError>

/**
 * Announces nothing: other processes notice by themselves.
 *
 * @since 0.1.0
 * @category constructors
 */
export const silent: Announce = () => Effect.void

/**
 * Announces on the channel, as `sender`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make =
  (sql: SqlClient.SqlClient, sender: string): Announce =>
  (change) =>
    change.keys?.length === 0 && !change.work && !change.left
      ? Effect.void
      : Effect.forEach(encode(sender, change), (message) => sql`SELECT pg_notify(${channel}, ${message})`, {
          discard: true
        })
