/**
 * What is on display and how it stands.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import { DocumentsDialog } from "./DocumentsDialog.js"

/**
 * How the run stands that a reader waits for, and whether it can be heard.
 *
 * @since 0.1.0
 * @category components
 */
const Status = () => {
  const { loading, thread } = usePage()
  const { phase, run: watched } = thread.live.value
  const runId = thread.currentId.value
  const run = runId === undefined ? undefined : thread.run(runId).value.snapshot
  const cut = watched?.runId === runId && watched?.seq !== 0 && (phase === "interrupted" || phase === "resuming")
  const stands = runId === undefined ? (loading.value ? "loading" : "idle") : cut ? "cut" : (run?.status ?? "loading")
  return (
    <span class="status" data-status={stands}>
      {stands === "idle" || stands === "completed" ? "" : t(`status.${stands}`)}
    </span>
  )
}

/**
 * The line at the head of the page.
 *
 * @since 0.1.0
 * @category components
 */
export const Header = ({ menu }: { readonly menu: () => void }) => {
  const { documents, thread } = usePage()
  const open = useSignal(false)
  const count = documents.value.length
  return (
    <header class="head">
      <button type="button" class="plain menu" aria-label={t("sidebar.label")} onClick={menu}>
        <Icon name="menu" />
      </button>
      <h1 dir="auto">{thread.title.value || t("app.name")}</h1>
      <Status />
      {count > 0 && (
        <button
          type="button"
          class="plain"
          onClick={() => {
            open.value = true
          }}
        >
          <Icon name="document" />
          {t("documents.open", count)}
        </button>
      )}
      {open.value && (
        <DocumentsDialog
          close={() => {
            open.value = false
          }}
        />
      )}
    </header>
  )
}
