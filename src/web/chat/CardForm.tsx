/**
 * A small form on a card, which a person sends or leaves.
 *
 * @since 0.1.0
 */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"

/** What is changed most likely: a text rather than the name or the number before it. */
const longest = (fields: Iterable<HTMLInputElement | HTMLTextAreaElement>) =>
  [...fields].sort((a, b) => b.value.length - a.value.length)[0]

/**
 * The form around its fields, of which the longest has the focus. `Escape` leaves it, and nothing else with it.
 *
 * @since 0.1.0
 * @category components
 */
export const CardForm = ({
  busy,
  cancel,
  children,
  class: name,
  send,
  submit
}: {
  readonly busy: boolean
  readonly cancel: () => void
  readonly children: ComponentChildren
  readonly class: string
  readonly send: string
  readonly submit: () => void
}) => {
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => longest(form.current?.querySelectorAll("input, textarea") ?? [])?.focus(), [])
  return (
    <form
      ref={form}
      class={name}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return
        event.stopPropagation()
        cancel()
      }}
    >
      {children}
      <div class="row">
        <button type="submit" disabled={busy}>
          {send}
        </button>
        <button type="button" class="quiet" onClick={cancel}>
          {t("common.cancel")}
        </button>
      </div>
    </form>
  )
}
