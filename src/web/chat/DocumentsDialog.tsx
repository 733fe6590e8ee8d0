/**
 * The documents that this conversation has written, to be read, copied, and asked about.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Markdown } from "../markdown/Markdown.js"
import { Copy } from "../ui/Copy.js"
import { Dialog } from "../ui/Dialog.js"
import { usePage } from "./Context.js"

/**
 * The list, and the document that is looked at.
 *
 * @since 0.1.0
 * @category components
 */
export const DocumentsDialog = ({ close }: { readonly close: () => void }) => {
  const { documents, settings } = usePage()
  const chosen = useSignal<string | undefined>(undefined)
  const all = documents.value
  const shown = all.find(({ id }) => id === chosen.value) ?? all[0]
  return (
    <Dialog title={t("documents.title")} close={close} class="documents">
      {all.length > 1 && (
        <ul>
          {all.map((document) => (
            <li key={document.id}>
              <button
                type="button"
                class="plain"
                aria-current={document === shown}
                onClick={() => {
                  chosen.value = document.id
                }}
              >
                <bdi>{document.title}</bdi>
              </button>
            </li>
          ))}
        </ul>
      )}
      {shown !== undefined && (
        <article>
          <h3 dir="auto">{shown.title}</h3>
          <Markdown key={shown.id} text={shown.text} />
          <div class="row">
            <button
              type="button"
              class="quiet"
              onClick={() => {
                settings.document.value = shown
                close()
              }}
            >
              {t("documents.ask")}
            </button>
            <Copy text={() => shown.text} />
          </div>
        </article>
      )}
    </Dialog>
  )
}
