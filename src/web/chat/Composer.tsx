/**
 * Where a question is written, and how it is to be answered.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import { Manner } from "./Manner.js"

/** Stops the answer that is under way. */
const Stop = () => {
  const { attempt, thread } = usePage()
  const stopping = useSignal(false)
  const runId = thread.currentId.value
  if (!thread.active.value || runId === undefined) return null
  const stop = async () => {
    stopping.value = true
    await attempt(() => thread.stop(runId))
    stopping.value = false
  }
  return (
    <button type="button" class="quiet stop" disabled={stopping.value} title={t("composer.stopKey")} onClick={stop}>
      <Icon name="stop" />
      {t("composer.stop")}
    </button>
  )
}

/**
 * The form at the foot of the page. What is written in it stays until it was accepted.
 *
 * @since 0.1.0
 * @category components
 */
export const Composer = () => {
  const page = usePage()
  const area = useRef<HTMLTextAreaElement>(null)
  const empty = useSignal(true)
  const conversation = page.thread.conversationId.value
  // biome-ignore lint/correctness/useExhaustiveDependencies: another conversation is another place to write in
  useLayoutEffect(() => {
    if (matchMedia("(hover: hover)").matches) area.current?.focus({ preventScroll: true })
  }, [conversation])
  const submit = async (event: Event) => {
    event.preventDefault()
    const written = area.current
    const question = written?.value.trim() ?? ""
    if (written === null || question === "" || page.sending.peek()) return
    if (!(await page.ask(question))) return
    written.value = ""
    empty.value = true
  }
  return (
    <form class="composer" onSubmit={submit}>
      <div class="box">
        <label for="message" class="visually-hidden">
          {t("composer.label")}
        </label>
        <textarea
          ref={area}
          id="message"
          rows={1}
          dir="auto"
          placeholder={t("composer.placeholder")}
          readOnly={page.sending.value}
          onInput={(event) => {
            empty.value = event.currentTarget.value.trim() === ""
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
            event.preventDefault()
            event.currentTarget.form?.requestSubmit()
          }}
        />
        <div class="row">
          <Manner />
          <span class="grow" />
          <Stop />
          <button
            type="submit"
            class="send"
            disabled={empty.value || page.sending.value}
            aria-label={t("composer.send")}
            title={t("composer.send")}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
      <p class="hints">
        <span>
          <kbd>/</kbd> {t("composer.hint.write")}
        </span>
        <span>
          <kbd>⇧</kbd> <kbd>↵</kbd> {t("composer.hint.line")}
        </span>
        <span>
          <kbd>Esc</kbd> {t("composer.hint.stop")}
        </span>
      </p>
    </form>
  )
}
