/**
 * Another input in place of the proposed one: a field for each of its parts.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useId } from "preact/hooks"
import { t } from "../i18n/index.js"
import { CardForm } from "./CardForm.js"
import { type Field, fieldsOf, inputOf } from "./Preview.js"

const rows = (text: string) => Math.min(14, Math.max(1, text.split("\n").length, Math.ceil(text.length / 70)))

/**
 * Edits an input. What is saved is checked by the server, and shown again before it is done.
 *
 * @since 0.1.0
 * @category components
 */
export const Editor = ({
  busy,
  cancel,
  input,
  save
}: {
  readonly input: unknown
  readonly busy: boolean
  readonly cancel: () => void
  readonly save: (input: unknown) => void
}) => {
  const id = useId()
  const fields = useSignal<ReadonlyArray<Field>>(fieldsOf(input))
  const wrong = useSignal("")
  const submit = () => {
    try {
      const edited = inputOf(fields.value)
      wrong.value = ""
      save(edited)
    } catch (error) {
      wrong.value = t("editor.wrong", error instanceof Error ? error.message : "")
    }
  }
  const change = (at: number, value: string) => {
    fields.value = fields.value.map((field, index) => (index === at ? { ...field, value } : field))
  }
  return (
    <CardForm class="editor" busy={busy} cancel={cancel} send={t("editor.save")} submit={submit}>
      {fields.value.map((field, index) => (
        <div key={field.name ?? ""}>
          <label for={`${id}-${index}`}>
            {field.name ?? t("tool.input")}
            {!field.isText && <span class="soft"> JSON</span>}
          </label>
          <textarea
            id={`${id}-${index}`}
            name={field.name}
            dir="auto"
            class={field.isText ? "" : "code"}
            rows={rows(field.value)}
            value={field.value}
            onInput={(event) => change(index, event.currentTarget.value)}
          />
        </div>
      ))}
      {wrong.value !== "" && (
        <p class="bad" role="alert">
          {wrong.value}
        </p>
      )}
    </CardForm>
  )
}
