/** A run that another process executes, as its row shows it. */
import type { RunRow } from "../../src/store/RunStore.js"

export const row: RunRow = {
  key: 7,
  runId: "run_1",
  userId: "local",
  conversationId: "conv_1",
  userMessageId: "msg_1",
  assistantMessageId: "msg_2",
  model: "m",
  mode: "chat",
  status: "running",
  recoverable: undefined,
  regeneratedFrom: undefined,
  ord: 1,
  epoch: 1,
  owner: "other",
  leaseExpiresAt: undefined,
  lastSeq: 0,
  attempt: 1,
  iteration: 0,
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  error: undefined,
  nextExpiry: undefined,
  compactedSeq: 0,
  createdAt: 0,
  updatedAt: 0,
  endedAt: undefined
}
