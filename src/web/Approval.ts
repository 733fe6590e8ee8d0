/**
 * What a person is asked before something is changed: what will happen, in words and as a diff, and the answers.
 *
 * @since 0.1.0
 */
import type { DecideBody } from "../client/Api.js"
import type { Snapshot } from "../domain/Snapshot.js"
import * as Dom from "./Dom.js"

/**
 * A request that waits for a person.
 *
 * @since 0.1.0
 * @category models
 */
export type Request = Snapshot["pendingApprovals"][number]

/**
 * Sends the answer to a request. Resolves when it was taken or refused.
 *
 * @since 0.1.0
 * @category models
 */
export type Decide = (runId: string, approvalId: string, answer: DecideBody) => Promise<void>

const choices = [
  ["Approve", "approve"],
  ["Reject", "reject"]
] as const

const doubts = [
  ["Try again", "retry"],
  ["It was applied", "applied"],
  ["Give it up", "abandon"]
] as const

const marks: { readonly [mark: string]: string } = { "+": "added", "-": "removed" }

const diffOf = (diff: string): HTMLElement =>
  Dom.make(
    "pre",
    "diff",
    "",
    ...diff.split("\n").map((line) => Dom.make("span", marks[line.slice(0, 1)] ?? "", `${line}\n`))
  )

/** What will happen, in words where the tool gave them, and all that is known of it folded away. */
const shown = ({ input, preview }: Request): ReadonlyArray<HTMLElement> => {
  const of = (name: string) => Dom.field(preview, name)
  const [action, diff, title, titleBefore] = [of("action"), of("diff"), of("title"), of("titleBefore")]
  const raw = Dom.make("pre", "", Dom.show(preview ?? input))
  if (action === undefined && title === undefined && diff === undefined) return [raw]
  const heading = [action, title === undefined ? "" : `“${title}”`, titleBefore && `(was “${titleBefore}”)`]
  return [
    Dom.make("p", "what", heading.filter(Boolean).join(" ")),
    ...(diff === undefined ? [] : [diffOf(diff)]),
    Dom.make("details", "", "", Dom.make("summary", "", "All of it, as JSON"), raw)
  ]
}

/** Another input in place of the proposed one, as JSON. */
const editor = (request: Request, send: (answer: DecideBody) => void) => {
  const text = document.createElement("textarea")
  text.value = Dom.show(request.input)
  text.rows = Math.min(14, text.value.split("\n").length + 1)
  text.ariaLabel = "Input as JSON"
  const wrong = Dom.make("p", "bad", "")
  const form = Dom.make("div", "editor", "", text, wrong)
  form.hidden = true
  const save = Dom.button("Use this instead", "", () => {
    try {
      const input: unknown = JSON.parse(text.value)
      Dom.setText(wrong, "")
      send({ decision: "edit", previewHash: request.previewHash, input })
    } catch (error) {
      Dom.setText(wrong, `This is not JSON: ${error instanceof Error ? error.message : ""}`)
    }
  })
  form.append(Dom.make("div", "row", "", save))
  const open = Dom.button("Edit…", "quiet", () => {
    form.hidden = !form.hidden
    if (!form.hidden) text.focus()
  })
  return { form, open }
}

/**
 * A new request with its buttons.
 *
 * @since 0.1.0
 * @category drawing
 */
export const make = (request: Request, decide: (answer: DecideBody) => Promise<void>): HTMLElement => {
  const doubt = request.reason === "in_doubt"
  const send = (answer: DecideBody) => {
    const buttons = section.querySelectorAll("button")
    for (const button of buttons) button.disabled = true
    decide(answer).finally(() => {
      for (const button of buttons) button.disabled = false
    })
  }
  const buttons = (doubt ? doubts : choices).map(([label, decision], index) =>
    Dom.button(label, index === 0 ? "" : "quiet", () => send({ decision, previewHash: request.previewHash }))
  )
  const question = doubt
    ? `It is not known whether ${request.toolName} took effect.`
    : `${request.toolName} asks for your approval.`
  const again = request.cause === "conflict" ? " Its target changed since you were asked." : ""
  const edit = doubt ? undefined : editor(request, send)
  const section = Dom.make(
    "section",
    "approval",
    "",
    Dom.make("strong", "", question + again),
    ...shown(request),
    Dom.make("div", "row", "", ...buttons, ...(edit ? [edit.open] : [])),
    ...(edit ? [edit.form] : [])
  )
  section.role = "group"
  section.ariaLabel = question
  return section
}
