/**
 * How conversations are read: page by page, since nothing bounds how much was said in one.
 *
 * @since 0.1.0
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type { ConversationPage, ConversationQuery, MessagePlace, MessageRow, Questions } from "../RunStore.js"
import { fitting } from "./messagePages.js"
import { type RawConversation, type RawExchange, toConversation, toMessages } from "./sqlRows.js"

interface Size {
  readonly ord: number | string
  readonly bytes: number | string
}

/**
 * What selects conversations together with the newest run of each, under the names of `RawConversation`.
 *
 * @since 0.1.0
 * @category conversations
 */
export const columns = `conversations.conversation_id AS "conversationId", title,
  conversations.created_at AS "createdAt", conversations.updated_at AS "updatedAt",
  newest.run_id AS "lastRunId", newest.status AS "lastStatus"`
/**
 * Where `columns` come from.
 *
 * @since 0.1.0
 * @category conversations
 */
export const tables = `conversations LEFT JOIN runs AS newest ON newest.key = (
  SELECT key FROM runs WHERE conversation_id = conversations.conversation_id ORDER BY ord DESC, key DESC LIMIT 1)`

/**
 * Makes what reads conversations.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (sql: SqlClient.SqlClient) => {
  type Brought = Omit<MessageRow, "runId" | "status"> & { readonly brought: number }

  const broughtBehind = (conversationId: string, after: number, limit: number) =>
    sql<Brought>`
      SELECT message_id AS "messageId", role, content, created_at AS "createdAt", brought FROM messages
      WHERE conversation_id = ${conversationId} AND brought > ${after} ORDER BY brought LIMIT ${limit}`

  const source = sql.literal(`runs
    JOIN messages AS question ON question.message_id = runs.user_message_id
    JOIN messages AS answer ON answer.message_id = runs.assistant_message_id`)

  /** The newest version of each exchange behind a place. */
  const newest = (conversationId: string, after: number) =>
    sql`runs.conversation_id = ${conversationId} AND runs.ord > ${after} AND NOT EXISTS (
      SELECT 1 FROM runs AS newer WHERE newer.conversation_id = runs.conversation_id
        AND newer.ord = runs.ord AND newer.key > runs.key)`

  const sizes = (conversationId: string, after: number, limit: number) =>
    sql<Size>`
      SELECT runs.ord, octet_length(question.content) + octet_length(answer.content) AS bytes
      FROM ${source} WHERE ${newest(conversationId, after)} ORDER BY runs.ord LIMIT ${limit}`

  const exchanges = (conversationId: string, after: number, upTo: number) =>
    sql<RawExchange>`
      SELECT run_id AS "runId", status, runs.created_at AS "createdAt",
        question.message_id AS "questionId", question.content AS question, question.created_at AS "askedAt",
        answer.message_id AS "answerId",
        CASE WHEN status IN ('completed', 'cancelled', 'failed') THEN answer.content ELSE '' END AS answer
      FROM ${source} WHERE ${newest(conversationId, after)} AND runs.ord <= ${upTo} ORDER BY runs.ord`

  const begin: MessagePlace = { part: "brought", at: -1 }

  const page = (query: ConversationQuery): Effect.Effect<ConversationPage | undefined, SqlError> =>
    Effect.gen(function* () {
      const { after = begin, conversationId, limit, userId } = query
      const [raw] = yield* sql<RawConversation>`SELECT ${sql.literal(columns)} FROM ${sql.literal(tables)}
        WHERE conversations.conversation_id = ${conversationId} AND conversations.user_id = ${userId}`
      if (raw === undefined) return undefined
      const conversation = toConversation(raw)
      const before = after.part === "brought" ? yield* broughtBehind(conversationId, after.at, limit) : []
      const messages = before.map(
        ({ brought: _, createdAt, ...message }): MessageRow => ({
          ...message,
          createdAt: Number(createdAt),
          runId: undefined,
          status: undefined
        })
      )
      const last = before.at(-1)
      if (last !== undefined) return { conversation, messages, next: { part: "brought", at: last.brought } }
      const behind = after.part === "runs" ? after.at : -1
      const measured = yield* sizes(conversationId, behind, limit)
      const end = measured[fitting(measured.map(({ bytes }) => Number(bytes))) - 1]
      if (end === undefined) return { conversation, messages }
      const upTo = Number(end.ord)
      const found = yield* exchanges(conversationId, behind, upTo)
      return { conversation, messages: found.flatMap(toMessages), next: { part: "runs", at: upTo } }
    })

  const questions = (conversationId: string, userId: string): Effect.Effect<Questions | undefined, SqlError> =>
    Effect.map(
      sql<{ readonly count: number | string; readonly last: string | null }>`
        SELECT (SELECT COUNT(*) FROM messages WHERE conversation_id = ${conversationId} AND brought >= 0 AND role = 'user')
          + (SELECT COUNT(DISTINCT ord) FROM runs WHERE conversation_id = ${conversationId}) AS count,
          COALESCE(
            (SELECT content FROM messages WHERE message_id = (SELECT user_message_id FROM runs
              WHERE conversation_id = ${conversationId} ORDER BY ord DESC, key DESC LIMIT 1)),
            (SELECT content FROM messages WHERE conversation_id = ${conversationId} AND brought >= 0 AND role = 'user'
              ORDER BY brought DESC LIMIT 1)
          ) AS last
        FROM conversations WHERE conversation_id = ${conversationId} AND user_id = ${userId}`,
      ([row]) => row && { count: Number(row.count), last: row.last ?? undefined }
    )

  return {
    page,
    questions,
    /** All messages that the first request brought along, which is as much as a request may have. */
    brought: (conversationId: string) => broughtBehind(conversationId, -1, Number.MAX_SAFE_INTEGER)
  }
}
