/**
 * A run as the answer that it is: thoughts, text, tools and questions in the order in which they came.
 *
 * @since 0.1.0
 */
import type { Snapshot, SnapshotToolCall } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { Markdown } from "../markdown/Markdown.js"
import { ApprovalCard } from "./ApprovalCard.js"
import { usePage } from "./Context.js"
import { joined } from "./Parts.js"
import { Reasoning } from "./Reasoning.js"
import { ToolCard } from "./ToolCard.js"
import * as Turns from "./Turns.js"

const Call = ({ call, run }: { readonly call: SnapshotToolCall; readonly run: Snapshot }) => {
  const request = run.pendingApprovals.find(({ toolCallId }) => toolCallId === call.toolCallId)
  return request !== undefined && !Turns.isOver(run) ? (
    <ApprovalCard key={request.approvalId} request={request} runId={run.runId} />
  ) : (
    <ToolCard call={call} />
  )
}

const Parts = ({ run }: { readonly run: Snapshot }) => {
  const calls = new Map(run.toolCalls.map((call) => [call.toolCallId, call]))
  const arriving = run.status === "streaming"
  const parts = joined(run.parts)
  return (
    <>
      {parts.map((part, index) => {
        // Parts are only ever added and cut off at the end.
        const key = `${index} ${part.type}`
        const last = arriving && index === parts.length - 1
        if (part.type === "tool-call") {
          const call = calls.get(part.toolCallId)
          return call && <Call key={key} call={call} run={run} />
        }
        return part.type === "reasoning" ? (
          <Reasoning key={key} part={part} arriving={last} />
        ) : (
          <Markdown key={key} class="text" text={part.text} arriving={last} />
        )
      })}
    </>
  )
}

/** What stands there while there is nothing to show yet, as high as the first line of what comes. */
const Expected = ({ run }: { readonly run: Snapshot | undefined }) => {
  const before = run?.queuePosition
  const text =
    run?.status === "queued" ? (before ? t("answer.queued", before) : t("answer.next")) : t("answer.expected")
  return (
    <p class="expected">
      <span class="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      {text}
    </p>
  )
}

/**
 * The answer of a run. Until the run is known, and when it is gone, it is the text that the conversation has of it.
 *
 * @since 0.1.0
 * @category components
 */
export const Answer = ({ runId, text }: { readonly runId: string | undefined; readonly text: string }) => {
  const { thread } = usePage()
  const known = runId === undefined ? undefined : thread.run(runId).value
  const run = known?.snapshot
  if (run === undefined) {
    if (text !== "") return <Markdown class="text" text={text} />
    return known?.gone === true ? <p class="soft">{t("answer.gone")}</p> : <Expected run={undefined} />
  }
  const over = Turns.isOver(run)
  const quiet = run.parts.length === 0 || (run.status === "running" && !run.toolCalls.some(isAtWork))
  return (
    <div class="answer" aria-busy={!over && run.status !== "waiting_approval"}>
      <Parts run={run} />
      {!over && quiet && <Expected run={run} />}
    </div>
  )
}

const isAtWork = ({ ok }: SnapshotToolCall) => ok === undefined
