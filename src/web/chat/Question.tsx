/**
 * What the person asked, which can be copied, and asked again in other words.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { Copy } from "../ui/Copy.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"

const Rewording = ({ at, done, text }: { readonly at: number; readonly text: string; readonly done: () => void }) => {
  const page = usePage()
  const area = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => {
    area.current?.focus()
    area.current?.setSelectionRange(text.length, text.length)
  }, [text])
  const submit = async (event: Event) => {
    event.preventDefault()
    const question = area.current?.value.trim() ?? ""
    if (question !== "" && (await page.branch(at, question))) done()
  }
  return (
    <form class="rewording" onSubmit={submit}>
      <textarea
        ref={area}
        dir="auto"
        rows={Math.min(10, text.split("\n").length + 1)}
        aria-label={t("question.edit")}
        defaultValue={text}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation()
            done()
          } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            event.currentTarget.form?.requestSubmit()
          }
        }}
      />
      <p class="soft">{t("question.branch")}</p>
      <div class="row">
        <button type="submit" disabled={page.sending.value}>
          {t("question.send")}
        </button>
        <button type="button" class="quiet" onClick={done}>
          {t("common.cancel")}
        </button>
      </div>
    </form>
  )
}

/**
 * The question at a place of the conversation.
 *
 * @since 0.1.0
 * @category components
 */
export const Question = ({ at, text }: { readonly at: number; readonly text: string }) => {
  const editing = useSignal(false)
  const edit = (on: boolean) => () => {
    editing.value = on
  }
  if (editing.value) return <Rewording at={at} text={text} done={edit(false)} />
  return (
    <div class="question">
      <div class="actions">
        <Copy text={() => text} />
        <button
          type="button"
          class="plain"
          title={t("question.edit")}
          aria-label={t("question.edit")}
          onClick={edit(true)}
        >
          <Icon name="edit" />
        </button>
      </div>
      <div class="bubble" dir="auto">
        {text}
      </div>
    </div>
  )
}
