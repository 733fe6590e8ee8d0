/**
 * What waits for a person, as it is shown before the person decides.
 *
 * @since 0.1.0
 */
import type { EventOf } from "../domain/AgentEvent.js"
import * as Text from "./Text.js"

/**
 * A request for a decision.
 *
 * @since 0.1.0
 * @category models
 */
export type Request = Omit<EventOf<"approval-request">, "type">

const wants: Readonly<Record<Request["reason"], string>> = {
  write: "wants to write",
  effectful: "wants to act",
  in_doubt: "was cut off: it is not known whether it took effect"
}

const causes: Readonly<Record<NonNullable<Request["cause"]>, string>> = {
  edit: "a new preview for the edited input",
  conflict: "a new preview, since the target has changed",
  retry: "a new preview"
}

const field = (value: unknown, name: string): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const found: unknown = Reflect.get(value, name)
  return typeof found === "string" ? found : undefined
}

const diffLine =
  ({ bad, good }: Text.Style) =>
  (text: string): string =>
    text.startsWith("+") ? good(text) : text.startsWith("-") ? bad(text) : text

const indented = (text: string): ReadonlyArray<string> =>
  Text.inert(text)
    .split("\n")
    .map((line) => `    ${line}`)

const titled = (preview: unknown): ReadonlyArray<string> => {
  const title = field(preview, "title")
  const before = field(preview, "titleBefore")
  if (title === undefined) return []
  return [`  ${Text.line(before === undefined || before === title ? title : `${before} → ${title}`)}`]
}

/** A change as a tool describes it: what it differs in, or what it comes to; anything else as it is. */
const previewLines = (preview: unknown, style: Text.Style): ReadonlyArray<string> => {
  const diff = field(preview, "diff")
  const after = field(preview, "after")
  if (diff !== undefined) {
    return [
      ...titled(preview),
      "  Change:",
      ...Text.inert(diff)
        .split("\n")
        .map((line) => `    ${diffLine(style)(line)}`)
    ]
  }
  if (after !== undefined) return [...titled(preview), "  Text:", ...indented(after)]
  return preview === null || preview === undefined ? [] : ["  Preview:", ...indented(Text.show(preview))]
}

/**
 * A request with its input and its preview, in lines that are inert.
 *
 * @since 0.1.0
 * @category formatting
 */
export const lines = (request: Request, style: Text.Style): ReadonlyArray<string> => {
  const { approvalId, cause, expiresAt, input, preview, reason, toolName } = request
  return [
    style.notice(`${Text.line(toolName)} ${wants[reason]}${cause === undefined ? "" : ` (${causes[cause]})`}`),
    style.dim(`  ${Text.line(approvalId)}, until ${Text.moment(expiresAt)}`),
    "  Input:",
    ...indented(Text.show(input)),
    ...previewLines(preview, style)
  ]
}
