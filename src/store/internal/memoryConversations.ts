/**
 * The conversations of a memory store, as they are read.
 *
 * @since 0.1.0
 */
import type { Encoded } from "../Encoded.js"
import type { ConversationPage, ConversationQuery, ConversationRow, MessageRow, Questions } from "../RunStore.js"
import { type Conversation, type Data, isActive, type Run } from "./memory.js"
import { fitting } from "./messagePages.js"

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

const exchange = (data: Data, { row }: Run): ReadonlyArray<MessageRow> => {
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
}

/**
 * A conversation of a user and a page of its messages, of the newest versions.
 *
 * @since 0.1.0
 * @category reading
 */
export const page = (data: Data, query: ConversationQuery): ConversationPage | undefined => {
  const { after = { part: "brought", at: -1 }, limit } = query
  const found = data.userConversation(query.conversationId, query.userId)
  if (found === undefined) return undefined
  const conversation = conversationRow(data, found)
  const brought = after.part === "brought" ? found.brought.slice(after.at + 1, after.at + 1 + limit) : []
  if (after.part === "brought" && brought.length > 0) {
    const messages = brought.map((message) => ({
      ...message,
      runId: undefined,
      status: undefined,
      createdAt: found.createdAt
    }))
    return { conversation, messages, next: { part: "brought", at: after.at + brought.length } }
  }
  const runs = data
    .exchanges(query.conversationId)
    .filter(({ row }) => after.part === "brought" || row.ord > after.at)
    .slice(0, limit)
    .map((run) => ({ place: run.row.ord, messages: exchange(data, run) }))
  const count = fitting(runs.map(({ messages }) => messages.reduce((sum, { content }) => sum + content.length, 0)))
  const taken = runs.slice(0, count)
  const last = taken.at(-1)
  return {
    conversation,
    messages: taken.flatMap(({ messages }) => messages),
    ...(last !== undefined && { next: { part: "runs", at: last.place } })
  }
}

/**
 * What a user has asked in a conversation of theirs.
 *
 * @since 0.1.0
 * @category reading
 */
export const questions = (data: Data, conversationId: string, userId: string): Questions | undefined => {
  const found = data.userConversation(conversationId, userId)
  if (found === undefined) return undefined
  const brought = found.brought.filter(({ role }) => role === "user").map(({ content }) => content)
  const asked = data.exchanges(conversationId).map(({ row }) => data.messages.get(row.userMessageId)?.content ?? "")
  const all = [...brought, ...asked]
  return { count: all.length, last: all.at(-1) }
}

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
