/**
 * A tool call: what it does or did, how it stands, and, folded away, what went in and came out.
 *
 * @since 0.1.0
 */
import type { SnapshotToolCall } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { duration } from "../ui/Format.js"
import { Icon, type IconName } from "../ui/Icon.js"
import { Scroll } from "../ui/Scroll.js"
import { Change } from "./Change.js"
import { field, show } from "./Preview.js"

type Look = "busy" | "good" | "bad" | "plain" | "doubt"

/** How a call stands for a person: one that was decided on has its answer, while others of its turn still wait. */
type Standing = SnapshotToolCall["state"] | "approved"

const decided: { readonly [decision: string]: Standing } = {
  approved: "approved",
  rejected: "rejected",
  expired: "expired"
}

const standingOf = ({ approval, state }: SnapshotToolCall): Standing =>
  (state === "ready" && decided[approval?.decision?.decision ?? ""]) || state

const looks: { readonly [state in Standing]: readonly [Look, IconName] } = {
  streaming: ["busy", "tool"],
  ready: ["busy", "tool"],
  approved: ["busy", "tool"],
  running: ["busy", "tool"],
  waiting: ["doubt", "question"],
  done: ["good", "check"],
  applied: ["good", "check"],
  rejected: ["plain", "close"],
  interrupted: ["plain", "stop"],
  in_doubt: ["doubt", "alert"],
  invalid: ["bad", "alert"],
  expired: ["plain", "clock"]
}

const lookOf = (call: SnapshotToolCall): readonly [Look, IconName] =>
  call.state === "done" && call.ok === false ? ["bad", "alert"] : looks[standingOf(call)]

/** The tool's own words while it is at work; afterwards they are no promise any more, and lose their dots. */
const nameOf = ({ ok, title, toolName }: SnapshotToolCall) =>
  ok === undefined ? (title ?? toolName) : (title?.replace(/\s*(…|\.{3})$/, "") ?? toolName)

/** What a call is about, in a few words: the first text of its input. */
const subjectOf = ({ input, proposedInput }: SnapshotToolCall): string => {
  const given = input ?? proposedInput
  const values: ReadonlyArray<unknown> = typeof given === "object" && given !== null ? Object.values(given) : []
  const text = values.find((value) => typeof value === "string")
  return typeof text === "string" ? text.slice(0, 160) : ""
}

const Part = ({ label, text }: { readonly label: string; readonly text: string }) =>
  text === "" ? null : (
    <div>
      <p class="label">{label}</p>
      <Scroll label={label}>
        <pre dir="auto">{text}</pre>
      </Scroll>
    </div>
  )

/**
 * The card of a call.
 *
 * @since 0.1.0
 * @category components
 */
export const ToolCard = ({ call }: { readonly call: SnapshotToolCall }) => {
  const { approval, durationMs, ok, progress = "", result, state } = call
  const [look, icon] = lookOf(call)
  const failed = ok === false && (state === "done" || state === "invalid")
  const wrong = failed ? (field(result, "error") ?? "") : ""
  const busy = look === "busy"
  const standing = standingOf(call)
  const stands = failed ? t("tool.failed") : t(`tool.${standing}`)
  return (
    <details class={`tool ${look}`} data-state={failed ? "failed" : standing}>
      <summary>
        <Icon name={icon} />
        <span class="what">
          <bdi class="name">{nameOf(call)}</bdi> <bdi class="subject">{subjectOf(call)}</bdi>
        </span>
        <span class="stands">
          {stands}
          {durationMs !== undefined && durationMs >= 100 && ` · ${duration(durationMs)}`}
        </span>
        {wrong !== "" && <bdi class="wrong">{wrong}</bdi>}
        {busy && progress !== "" && <bdi class="progress">{progress.trimEnd().split("\n").at(-1)}</bdi>}
      </summary>
      <div class="inside">
        <p class="soft">
          <code>{call.toolName}</code>
        </p>
        {approval !== undefined && <Change input={approval.input} preview={approval.preview} />}
        {approval === undefined && (
          <Part
            label={t("tool.input")}
            text={call.input === undefined ? (call.argumentsText ?? "") : show(call.input)}
          />
        )}
        <Part label={t("tool.progress")} text={progress} />
        <Part label={t("tool.result")} text={result === undefined ? "" : show(result)} />
        {approval?.decision?.reason && <Part label={t("tool.reason")} text={approval.decision.reason} />}
      </div>
    </details>
  )
}
