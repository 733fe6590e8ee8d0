/**
 * The client for browsers and everything that has `fetch`: plain TypeScript, nothing of Effect in it when it runs.
 *
 * @since 0.1.0
 */

export type { AgentEvent, EventOf, Usage } from "../domain/AgentEvent.js"
export type { Envelope } from "../domain/Envelope.js"
export type { RunState } from "../domain/RunState.js"
export { pendingApprovals, text, turns } from "../domain/RunState.js"
export type { RunStatus } from "../domain/RunStatus.js"
export { isEnded, isFinal } from "../domain/RunStatus.js"
export type { Snapshot } from "../domain/Snapshot.js"
export * from "./Api.js"
export * from "./Client.js"
export type { ClientState, Cursor, Link, Phase } from "./ClientState.js"
export { type ErrorBody, type ErrorTag, RunletError } from "./RunletError.js"
export * from "./Tabs.js"
