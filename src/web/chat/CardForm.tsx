/**
 * A small form on a card, which a person sends or leaves.
 *
 * @since 0.1.0
 */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"

/**
 * The form around its fields, of which the first has the focus. `Escape` leaves it, and nothing else with it.
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
  useLayoutEffect(() => form.current?.querySelector<HTMLElement>("input, textarea")?.focus(), [])
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
