/**
 * Whether there is room for one more run: in the queue, in its conversation, and among what its user has stored.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import type { EncodedCreate, EncodedCreateOutcome } from "../Encoded.js"
import { executing } from "./sqlRows.js"

/**
 * What there is no room in.
 *
 * @since 0.1.0
 * @category models
 */
export interface Full {
  readonly _tag: Extract<EncodedCreateOutcome["_tag"], `${string}Full`>
}

/** What is counted for a run, of which `added` (0 or 1) rows are there already. */
interface Counted {
  readonly run: EncodedCreate
  readonly beginsConversation: boolean
  readonly added: 0 | 1
  readonly user: Fragment
  readonly conversation: Fragment
}

/**
 * Makes the two forms of the question.
 *
 * - `full`: what there is no room in for a run that is to be written
 * - `isTooMuch`: the SQL condition that there was no room for a run that has been written
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (sql: SqlClient.SqlClient) => {
  const number = (value: number): Fragment => sql.literal(String(value))

  const question = ({ added, beginsConversation, conversation, run, user }: Counted) => {
    const { maxConcurrent, maxConversations, maxInConversation, maxQueued, maxStored, placeForEach } = run
    /** Whether there are more of these rows, which are in the order of an index, than may be. */
    const areMore = (most: number | undefined, rows: Fragment): Fragment =>
      most === undefined
        ? sql.literal("1 = 0")
        : sql`EXISTS (SELECT 1 FROM ${rows} LIMIT 1 OFFSET ${number(most + added - 1)})`
    const executed = sql.literal(`(${executing})`)
    // Who has nothing in the queue finds a place there.
    const isFirst =
      placeForEach && maxQueued > 0
        ? sql`COALESCE(SUM(CASE WHEN user_id = ${user} THEN 1 ELSE 0 END), 0) = ${number(added)}`
        : sql.literal("1 = 0")
    return sql`SELECT CASE
      WHEN ${areMore(maxInConversation, sql`runs WHERE conversation_id = ${conversation} ORDER BY ord, key`)} THEN 'ConversationFull'
      WHEN ${areMore(maxStored, sql`runs WHERE user_id = ${user} ORDER BY key`)} THEN 'StoreFull'
      WHEN ${areMore(
        beginsConversation ? maxConversations : undefined,
        sql`conversations WHERE user_id = ${user} ORDER BY updated_at, conversation_id`
      )} THEN 'ConversationsFull'
      WHEN COUNT(*) - ${number(added)} >= ${number(maxQueued)} + CASE
          WHEN ${executed} < ${number(maxConcurrent)} THEN ${number(maxConcurrent)} - ${executed} ELSE 0
        END AND NOT (${isFirst}) THEN 'QueueFull'
      END AS tag FROM runs WHERE status = 'queued'`
  }

  const full = (run: EncodedCreate, beginsConversation: boolean): Effect.Effect<Full | undefined, SqlError> => {
    const { conversationId, userId } = run
    const asked = question({
      run,
      beginsConversation,
      added: 0,
      user: sql`${userId}`,
      conversation: sql`${conversationId}`
    })
    return Effect.map(sql<{ readonly tag: Full["_tag"] | null }>`${asked}`, ([found]) =>
      found === undefined || found.tag === null ? undefined : { _tag: found.tag }
    )
  }

  const isTooMuch = (run: EncodedCreate, beginsConversation: boolean, key: number): string => {
    const of = (column: string) => sql.literal(`(SELECT me.${column} FROM runs AS me WHERE me.key = ${key})`)
    const asked = question({
      run,
      beginsConversation,
      added: 1,
      user: of("user_id"),
      conversation: of("conversation_id")
    })
    return sql`(${asked}) IS NOT NULL`.compile()[0]
  }

  return { full, isTooMuch }
}
