/**
 * Draws a snapshot. Elements are kept by key and only their texts change, so that what is being read stays put.
 *
 * @since 0.1.0
 */
import * as Status from "../domain/RunStatus.js"
import type { Snapshot, SnapshotToolCall } from "../domain/Snapshot.js"
import { byId, make, setText, show } from "./Dom.js"

type Decide = (approvalId: string, decision: string, previewHash: string) => void

const keyed = (parent: HTMLElement, key: string, create: () => HTMLElement): HTMLElement => {
  for (const child of parent.children) {
    if (child instanceof HTMLElement && child.dataset.key === key) return child
  }
  const element = create()
  element.dataset.key = key
  parent.append(element)
  return element
}

/** Removes what is not among the keys, and puts the rest in their order. */
const arrange = (parent: HTMLElement, keys: ReadonlyArray<string>) => {
  const wanted = new Map(keys.map((key, index) => [key, index]))
  for (const child of [...parent.children]) {
    if (child instanceof HTMLElement && !wanted.has(child.dataset.key ?? "")) child.remove()
  }
  keys.forEach((key, index) => {
    const present = parent.children[index]
    if (present instanceof HTMLElement && present.dataset.key !== key) {
      const element = [...parent.children].find((_) => _ instanceof HTMLElement && _.dataset.key === key)
      if (element !== undefined) parent.insertBefore(element, present)
    }
  })
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

const drawTool = (element: HTMLElement, call: SnapshotToolCall) => {
  const [summary, input, progress, result] = element.children
  if (summary === undefined || input === undefined || progress === undefined || result === undefined) return
  setText(summary, `${call.title ?? call.toolName} — ${states[call.state] ?? call.state}`)
  setText(input, call.input === undefined ? (call.argumentsText ?? "") : show(call.input))
  setText(progress, call.progress ?? "")
  setText(result, call.result === undefined ? "" : show(call.result))
  for (const part of [input, progress, result]) part.toggleAttribute("hidden", part.textContent === "")
}

const newTool = () =>
  make("details", "tool", "", make("summary", "", ""), make("pre", "", ""), make("pre", "", ""), make("pre", "", ""))

const choices = {
  decide: [
    ["Approve", "approve"],
    ["Reject", "reject"]
  ],
  in_doubt: [
    ["Try again", "retry"],
    ["It was applied", "applied"],
    ["Give it up", "abandon"]
  ]
} as const

const newApproval = (request: Snapshot["pendingApprovals"][number], decide: Decide): HTMLElement => {
  const doubt = request.reason === "in_doubt"
  const buttons = (doubt ? choices.in_doubt : choices.decide).map(([label, decision], index) => {
    const button = make("button", index === 0 ? "" : "quiet", label)
    button.addEventListener("click", () => decide(request.approvalId, decision, request.previewHash))
    return button
  })
  const question = doubt
    ? `It is not known whether ${request.toolName} took effect.`
    : `${request.toolName} asks for your approval.`
  const again = request.cause === "conflict" ? " Its target changed since you were asked." : ""
  return make(
    "section",
    "approval",
    "",
    make("strong", "", question + again),
    make("pre", "", show(request.preview ?? request.input)),
    make("div", "row", "", ...buttons)
  )
}

const ending = (run: Snapshot): string => {
  if (run.error !== undefined) return `Failed: ${run.error.message}`
  if (run.cancelled !== undefined) return run.cancelled.by === "limit" ? "Stopped by a limit." : "Stopped."
  if (run.finishReason !== undefined && run.finishReason !== "stop") return `Ended early: ${run.finishReason}.`
  return ""
}

/**
 * Draws the run. `decide` is called with a person's answer to an approval request.
 *
 * @since 0.1.0
 * @category drawing
 */
export const draw = (run: Snapshot, decide: Decide) => {
  const parts = byId("parts", HTMLElement)
  const calls = new Map(run.toolCalls.map((call) => [call.toolCallId, call]))
  const keys = run.parts.map((part) =>
    part.type === "tool-call" ? `call ${part.toolCallId}` : `${part.type} ${part.id}`
  )
  run.parts.forEach((part, index) => {
    const key = keys[index] ?? ""
    if (part.type !== "tool-call") {
      const className = part.type === "text" ? "message" : "reasoning"
      setText(
        keyed(parts, key, () => make("div", className, "")),
        part.text
      )
      return
    }
    const call = calls.get(part.toolCallId)
    if (call !== undefined) drawTool(keyed(parts, key, newTool), call)
  })
  arrange(parts, keys)

  const approvals = byId("approvals", HTMLElement)
  const pending = Status.isEnded(run.status) ? [] : run.pendingApprovals
  for (const request of pending) keyed(approvals, request.approvalId, () => newApproval(request, decide))
  arrange(
    approvals,
    pending.map(({ approvalId }) => approvalId)
  )

  const status = byId("status", HTMLElement)
  status.dataset.status = run.status
  setText(status, run.status.replace("_", " "))
  const end = byId("end", HTMLElement)
  setText(end, ending(run))
  end.hidden = end.textContent === ""
  byId("continue", HTMLElement).hidden = !(run.status === "failed" && run.recoverable === true)
  byId("stop", HTMLElement).hidden = Status.isEnded(run.status)
}
