/**
 * Draws a turn: the question and the run that answers it, live or long ended alike. Elements are kept by key and only
 * their texts change, so that what is being read stays put.
 *
 * @since 0.1.0
 */
import * as Status from "../domain/RunStatus.js"
import type { Snapshot, SnapshotToolCall } from "../domain/Snapshot.js"
import * as Approval from "./Approval.js"
import { arrange, keyed, make, setText, show } from "./Dom.js"

/**
 * A question and its run. Without a snapshot the answer is known as text alone.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  runId: string
  readonly question: string
  answer: string
  /** The run was removed. */
  gone?: boolean
  snapshot?: Snapshot | undefined
}

const states: { readonly [state: string]: string } = {
  streaming: "being written",
  ready: "ready",
  running: "running…",
  waiting: "waits for you",
  done: "done",
  applied: "applied",
  rejected: "rejected",
  interrupted: "interrupted",
  in_doubt: "outcome unknown",
  invalid: "invalid",
  expired: "expired"
}

/** What a failed call says of itself. */
const failure = ({ ok, result }: SnapshotToolCall): string => {
  if (ok !== false || typeof result !== "object" || result === null || !("error" in result)) return ""
  return typeof result.error === "string" ? result.error : ""
}

const drawTool = (element: HTMLElement, call: SnapshotToolCall) => {
  const [summary, error, input, progress, result] = element.children
  if (!summary || !error || !input || !progress || !result) return
  const failed = call.ok === false && call.state === "done"
  const state = failed ? "failed" : (states[call.state] ?? call.state)
  element.classList.toggle("failed", call.ok === false && call.state !== "rejected")
  // "Searching…" is for as long as it does.
  const name = call.ok === undefined ? (call.title ?? call.toolName) : call.toolName
  setText(summary, `${name} — ${state}${failed && failure(call) ? `: ${failure(call)}` : ""}`)
  setText(error, failed ? "" : failure(call))
  setText(input, call.input === undefined ? (call.argumentsText ?? "") : show(call.input))
  setText(progress, call.progress ?? "")
  setText(result, call.result === undefined ? "" : show(call.result))
  for (const part of [error, input, progress, result]) part.toggleAttribute("hidden", part.textContent === "")
}

const newTool = () =>
  make(
    "details",
    "tool",
    "",
    make("summary", "", ""),
    make("p", "bad", ""),
    ...["", "", ""].map(() => make("pre", "", ""))
  )

/** Open while it is being written, and closed in what ended before it was looked at. */
const newReasoning = (open: boolean) => {
  const details = make("details", "reasoning", "", make("summary", "", "Thinking"), make("div", "", ""))
  details.toggleAttribute("open", open)
  return details
}

const ending = (run: Snapshot): string => {
  if (run.error !== undefined) return `Failed: ${run.error.message}`
  if (run.cancelled?.by === "limit") return "Stopped by a limit."
  if (run.cancelled?.by === "superseded") return "Given up for a newer answer."
  if (run.cancelled !== undefined) return "Stopped."
  if (run.finishReason !== undefined && run.finishReason !== "stop") return `Ended early: ${run.finishReason}.`
  return ""
}

const newTurn = (question: string) => {
  const approvals = make("div", "approvals", "")
  approvals.ariaLive = "assertive"
  return make(
    "section",
    "turn",
    "",
    make("article", "message user", question),
    make("div", "parts", ""),
    approvals,
    make("p", "note", "")
  )
}

const drawParts = (parts: Element, run: Snapshot) => {
  const calls = new Map(run.toolCalls.map((call) => [call.toolCallId, call]))
  const keys = run.parts.map((part) =>
    part.type === "tool-call" ? `call ${part.toolCallId}` : `${part.type} ${part.id}`
  )
  run.parts.forEach((part, index) => {
    const key = keys[index] ?? ""
    if (part.type === "tool-call") {
      const call = calls.get(part.toolCallId)
      if (call !== undefined) drawTool(keyed(parts, key, newTool), call)
    } else if (part.type === "text") {
      setText(
        keyed(parts, key, () => make("div", "message", "")),
        part.text
      )
    } else {
      const body = keyed(parts, key, () => newReasoning(!Status.isEnded(run.status))).lastElementChild
      if (body) setText(body, part.text)
    }
  })
  arrange(parts, keys)
}

/**
 * Draws a turn at its place in the list. `waits`: an answer before it is not complete. Gives the approval requests that
 * were not there before.
 *
 * @since 0.1.0
 * @category drawing
 */
export const draw = (
  list: Element,
  turn: Turn,
  waits: boolean,
  decide: Approval.Decide
): ReadonlyArray<HTMLElement> => {
  const element = keyed(list, turn.runId, () => newTurn(turn.question))
  const [, parts, approvals, note] = element.children
  const run = turn.snapshot
  if (!parts || !approvals || !note) return []
  const fresh: Array<HTMLElement> = []
  if (run === undefined) {
    const text = keyed(parts, "plain", () => make("div", "message", ""))
    setText(text, turn.answer)
  } else {
    drawParts(parts, run)
    const pending = Status.isEnded(run.status) ? [] : run.pendingApprovals
    for (const request of pending) {
      keyed(approvals, request.approvalId, () => {
        const made = Approval.make(request, (answer) => decide(run.runId, request.approvalId, answer))
        fresh.push(made)
        return made
      })
    }
    arrange(
      approvals,
      pending.map(({ approvalId }) => approvalId)
    )
  }
  setText(note, waits ? "Waiting for the answer before." : run === undefined ? "" : ending(run))
  note.classList.toggle("bad", run?.status === "failed")
  note.toggleAttribute("hidden", note.textContent === "")
  return fresh
}
