/**
 * How rows are read from the tables, and the shapes they come in.
 *
 * @since 0.1.0
 */
import type { AgentEvent, RunMode } from "../../domain/AgentEvent.js"
import type { RunStatus } from "../../domain/RunStatus.js"
import type { EncodedRow } from "../Encoded.js"
import type { ConversationRow, MessageRow, StoredEvent } from "../RunStore.js"

/**
 * The columns of a run, named as in `RawRun`.
 *
 * @since 0.1.0
 * @category runs
 */
export const runColumns = `key, run_id AS "runId", user_id AS "userId", conversation_id AS "conversationId",
  user_message_id AS "userMessageId", assistant_message_id AS "assistantMessageId", model, mode, status, recoverable,
  regenerated_from AS "regeneratedFrom", ord, epoch, owner, lease_expires_at AS "leaseExpiresAt",
  last_seq AS "lastSeq", attempt, iteration, usage, error, next_expiry AS "nextExpiry",
  compacted_seq AS "compactedSeq", created_at AS "createdAt", updated_at AS "updatedAt", ended_at AS "endedAt"`

/**
 * A run as the database gives it. Some drivers give large integers as text.
 *
 * @since 0.1.0
 * @category runs
 */
export interface RawRun {
  readonly key: number | string
  readonly runId: string
  readonly userId: string
  readonly conversationId: string
  readonly userMessageId: string
  readonly assistantMessageId: string
  readonly model: string
  readonly mode: RunMode
  readonly status: RunStatus
  readonly recoverable: number | null
  readonly regeneratedFrom: string | null
  readonly ord: number | string
  readonly epoch: number
  readonly owner: string | null
  readonly leaseExpiresAt: number | string | null
  readonly lastSeq: number
  readonly attempt: number
  readonly iteration: number
  readonly usage: string
  readonly error: string | null
  readonly nextExpiry: number | string | null
  readonly compactedSeq: number
  readonly createdAt: number | string
  readonly updatedAt: number | string
  readonly endedAt: number | string | null
}

const optionalNumber = (value: number | string | null): number | undefined =>
  value === null ? undefined : Number(value)

/**
 * A run from its row.
 *
 * @since 0.1.0
 * @category runs
 */
export const toRun = (raw: RawRun): EncodedRow => ({
  ...raw,
  key: Number(raw.key),
  recoverable: raw.recoverable === null ? undefined : raw.recoverable === 1,
  regeneratedFrom: raw.regeneratedFrom ?? undefined,
  ord: Number(raw.ord),
  owner: raw.owner ?? undefined,
  leaseExpiresAt: optionalNumber(raw.leaseExpiresAt),
  error: raw.error ?? undefined,
  nextExpiry: optionalNumber(raw.nextExpiry),
  createdAt: Number(raw.createdAt),
  updatedAt: Number(raw.updatedAt),
  endedAt: optionalNumber(raw.endedAt)
})

/**
 * The run of the first row, if there is one.
 *
 * @since 0.1.0
 * @category runs
 */
export const firstRun = ([row]: ReadonlyArray<RawRun>): EncodedRow | undefined =>
  row === undefined ? undefined : toRun(row)

/**
 * How many runs are executed, as SQL that a condition may be added to.
 *
 * @since 0.1.0
 * @category runs
 */
export const executing = "SELECT COUNT(*) FROM runs WHERE status IN ('running', 'streaming')"

/**
 * An event as the database gives it.
 *
 * @since 0.1.0
 * @category events
 */
export interface RawEvent {
  readonly seq: number
  readonly type: AgentEvent["type"]
  readonly json: string
  readonly createdAt: number | string
}

/**
 * An event from its row.
 *
 * @since 0.1.0
 * @category events
 */
export const toEvent = ({ createdAt, json, seq, type }: RawEvent): StoredEvent => ({
  seq,
  type,
  json,
  createdAt: Number(createdAt)
})

/**
 * A conversation, with the newest run of it.
 *
 * @since 0.1.0
 * @category conversations
 */
export interface RawConversation {
  readonly conversationId: string
  readonly title: string
  readonly createdAt: number | string
  readonly updatedAt: number | string
  readonly lastRunId: string | null
  readonly lastStatus: RunStatus | null
}

/**
 * A conversation from its row.
 *
 * @since 0.1.0
 * @category conversations
 */
export const toConversation = (raw: RawConversation): ConversationRow => ({
  ...raw,
  createdAt: Number(raw.createdAt),
  updatedAt: Number(raw.updatedAt),
  lastRunId: raw.lastRunId ?? undefined,
  lastStatus: raw.lastStatus ?? undefined
})

/**
 * An exchange: the user's message and the answer of the newest run to it.
 *
 * @since 0.1.0
 * @category conversations
 */
export interface RawExchange {
  readonly runId: string
  readonly status: RunStatus
  readonly createdAt: number | string
  readonly questionId: string
  readonly question: string
  readonly askedAt: number | string
  readonly answerId: string
  readonly answer: string
}

/**
 * The two messages of an exchange.
 *
 * @since 0.1.0
 * @category conversations
 */
export const toMessages = (raw: RawExchange): ReadonlyArray<MessageRow> => [
  {
    messageId: raw.questionId,
    role: "user",
    content: raw.question,
    runId: raw.runId,
    status: undefined,
    createdAt: Number(raw.askedAt)
  },
  {
    messageId: raw.answerId,
    role: "assistant",
    content: raw.answer,
    runId: raw.runId,
    status: raw.status,
    createdAt: Number(raw.createdAt)
  }
]
