/**
 * The page, put together.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { Composer } from "./Composer.js"
import { PageContext } from "./Context.js"
import { useFollowing } from "./Following.js"
import { Header } from "./Header.js"
import { useKeys } from "./Keys.js"
import { Notices } from "./Notices.js"
import type { Page } from "./Page.js"
import { ProblemNote } from "./ProblemNote.js"
import { Sidebar } from "./Sidebar.js"
import { SignIn } from "./SignIn.js"
import { Turn } from "./Turn.js"
import { Welcome } from "./Welcome.js"

const Conversation = ({ page }: { readonly page: Page }) => {
  const turns = page.thread.turns.value
  if (page.signedOut.value) return <SignIn />
  if (page.thread.conversationId.value === undefined) return <Welcome />
  if (page.loading.value && turns.length === 0) return <p class="soft loading">{t("common.loading")}</p>
  return (
    <>
      {turns.map((turn, at) => (
        <Turn key={turn.key} turn={turn} at={at} last={at === turns.length - 1} />
      ))}
    </>
  )
}

/** Leads back to the end while something is written there. */
const ToEnd = ({ page: { following, thread } }: { readonly page: Page }) =>
  following.value || !thread.active.value ? null : (
    <button
      type="button"
      class="quiet to-end"
      onClick={() => {
        following.value = true
      }}
    >
      <Icon name="down" />
      {t("thread.toEnd")}
    </button>
  )

/** The title of the window says what a person would come back for. */
const useTitle = ({ thread }: Page) => {
  const runId = thread.currentId.value
  const status = runId === undefined ? undefined : thread.run(runId).value.snapshot?.status
  const mark = status === "waiting_approval" ? "? " : thread.active.value ? "… " : ""
  const title = thread.title.value
  useEffect(() => {
    document.title = `${mark}${title === "" ? "" : `${title} · `}${t("app.name")}`
  }, [mark, title])
}

/**
 * Everything that is seen.
 *
 * @since 0.1.0
 * @category components
 */
export const App = ({ page }: { readonly page: Page }) => {
  const menu = useSignal(false)
  useFollowing(page.following)
  useKeys(page)
  useTitle(page)
  const conversation = page.thread.conversationId.value
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever went somewhere has seen enough of the menu
  useEffect(() => {
    menu.value = false
  }, [conversation])
  const close = () => {
    menu.value = false
  }
  return (
    <PageContext.Provider value={page}>
      <div class={`layout ${menu.value ? "menu-open" : ""}`}>
        <Sidebar close={close} />
        {menu.value && <button type="button" class="veil" aria-label={t("common.close")} onClick={close} />}
        <div class="body">
          <Header
            menu={() => {
              menu.value = true
            }}
          />
          <main class="thread" aria-label={t("thread.label")}>
            <Conversation page={page} />
          </main>
          <section class="foot-of-page" aria-label={t("composer.region")}>
            <ToEnd page={page} />
            <div>
              <ProblemNote />
            </div>
            {!page.signedOut.value && <Composer />}
          </section>
        </div>
      </div>
      <Notices />
      <p class="visually-hidden" role="status">
        {page.said.value}
      </p>
    </PageContext.Provider>
  )
}
