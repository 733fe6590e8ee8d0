/**
 * Asks for the access token of a server that wants one.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { usePage } from "./Context.js"

/**
 * The form. The token goes to the server once, which gives a cookie for it; nothing on the page keeps it.
 *
 * @since 0.1.0
 * @category components
 */
export const SignIn = () => {
  const { signIn } = usePage()
  const input = useRef<HTMLInputElement>(null)
  const busy = useSignal(false)
  useEffect(() => input.current?.focus(), [])
  const submit = async (event: Event) => {
    event.preventDefault()
    const token = input.current?.value ?? ""
    if (token === "") return
    busy.value = true
    const done = await signIn(token)
    busy.value = false
    if (!done) input.current?.select()
  }
  return (
    <form class="sign-in" onSubmit={submit}>
      <h2>{t("signIn.title")}</h2>
      <p class="soft">{t("signIn.text")}</p>
      <label for="token">{t("signIn.token")}</label>
      <input ref={input} id="token" type="password" autocomplete="current-password" required />
      <button type="submit" disabled={busy.value}>
        {t("signIn.submit")}
      </button>
    </form>
  )
}
