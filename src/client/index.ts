/**
 * The client for browsers and everything that has `fetch`: plain TypeScript, nothing of Effect in it when it runs.
 *
 * @since 0.1.0
 */

export type { AgentEvent, EventOf, Usage } from "../domain/AgentEvent.js"
export type { Envelope } from "../domain/Envelope.js"
export type { RunStatus } from "../domain/RunStatus.js"
export { isEnded, isFinal } from "../domain/RunStatus.js"
export type { RunView } from "../domain/RunView.js"
export { pendingApprovals, text, turns } from "../domain/RunView.js"
export type { Snapshot } from "../domain/Snapshot.js"
export type {
  Accepted,
  CancelResult,
  DecideBody,
  DecideResult,
  RunSummary,
  StartBody
} from "./Answers.js"
export type { ApiOptions, Timer } from "./Call.js"
export * from "./Client.js"
export type { ClientState, Cursor, Link, Phase } from "./ClientState.js"
export { type ErrorBody, type ErrorTag, RunletError } from "./RunletError.js"
export * from "./Tabs.js"
