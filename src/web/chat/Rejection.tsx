/**
 * Says no, and why, which the model is told.
 *
 * @since 0.1.0
 */
import { useId, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { CardForm } from "./CardForm.js"

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
  const submit = () => {
    const reason = input.current?.value.trim()
    reject(reason ? { reason } : {})
  }
  return (
    <CardForm class="rejection" busy={busy} cancel={cancel} send={t("approval.reject")} submit={submit}>
      <label for={id}>{t("approval.why")}</label>
      <input ref={input} id={id} type="text" dir="auto" maxLength={1000} />
    </CardForm>
  )
}
