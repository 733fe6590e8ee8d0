/**
 * Says no, and why, which the model is told.
 *
 * @since 0.1.0
 */
import { useId, useLayoutEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"

/**
 * Asks for the reason, which may be left out.
 *
 * @since 0.1.0
 * @category components
 */
export const Rejection = ({
  busy,
  cancel,
  reject
}: {
  readonly busy: boolean
  readonly cancel: () => void
  readonly reject: (reason: { readonly reason?: string }) => void
}) => {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => input.current?.focus(), [])
  const submit = (event: Event) => {
    event.preventDefault()
    const reason = input.current?.value.trim()
    reject(reason ? { reason } : {})
  }
  return (
    <form
      class="rejection"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return
        event.stopPropagation()
        cancel()
      }}
    >
      <label for={id}>{t("approval.why")}</label>
      <input ref={input} id={id} type="text" dir="auto" maxLength={1000} />
      <div class="row">
        <button type="submit" disabled={busy}>
          {t("approval.reject")}
        </button>
        <button type="button" class="quiet" onClick={cancel}>
          {t("common.cancel")}
        </button>
      </div>
    </form>
  )
}
