/**
 * The conversations of a memory store, as they are read.
 *
 * @since 0.1.0
 */
import type { Encoded } from "../Encoded.js"
import type { ConversationRow, MessageRow } from "../RunStore.js"
import { type Conversation, type Data, isActive } from "./memory.js"

/**
 * A conversation as lists show it.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversationRow = (data: Data, conversation: Conversation): ConversationRow => {
  const last = data.exchanges(conversation.conversationId).at(-1)?.row
  const { conversationId, createdAt, title, updatedAt } = conversation
  return { conversationId, title, createdAt, updatedAt, lastRunId: last?.runId, lastStatus: last?.status }
}

/**
 * The messages of a conversation, of the newest versions.
 *
 * @since 0.1.0
 * @category reading
 */
export const messagesOf = (
  data: Data,
  { brought, conversationId, createdAt }: Conversation
): ReadonlyArray<MessageRow> => [
  ...brought.map((message) => ({ ...message, runId: undefined, status: undefined, createdAt })),
  ...data.exchanges(conversationId).flatMap(({ row }): ReadonlyArray<MessageRow> => {
    const question = data.messages.get(row.userMessageId)
    const answer = data.messages.get(row.assistantMessageId)
    return [
      {
        messageId: row.userMessageId,
        role: "user",
        content: question?.content ?? "",
        runId: row.runId,
        status: undefined,
        createdAt: question?.createdAt ?? row.createdAt
      },
      {
        messageId: row.assistantMessageId,
        role: "assistant",
        content: isActive(row) ? "" : (answer?.content ?? ""),
        runId: row.runId,
        status: row.status,
        createdAt: row.createdAt
      }
    ]
  })
]

const isBeforeCursor = (
  row: { readonly updatedAt: number; readonly conversationId: string },
  before: { readonly updatedAt: number; readonly conversationId: string }
): boolean =>
  row.updatedAt < before.updatedAt || (row.updatedAt === before.updatedAt && row.conversationId < before.conversationId)

/**
 * A page of a user's conversations, newest first.
 *
 * @since 0.1.0
 * @category reading
 */
export const conversations = (
  data: Data,
  query: Parameters<Encoded["conversations"]>[0]
): ReadonlyArray<ConversationRow> =>
  Array.from(data.conversations.values())
    .filter((row) => row.userId === query.userId)
    .filter((row) => query.before === undefined || isBeforeCursor(row, query.before))
    .sort((a, b) => (isBeforeCursor(b, a) ? -1 : 1))
    .slice(0, query.limit)
    .map((conversation) => conversationRow(data, conversation))
