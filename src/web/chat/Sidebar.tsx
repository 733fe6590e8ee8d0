/**
 * The conversations: found, begun, opened, renamed and removed.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import type { Conversation } from "../../client/Api.js"
import { language, languages, setLanguage, t } from "../i18n/index.js"
import { setTheme, theme, themes } from "../Theme.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import { ConversationItem } from "./ConversationItem.js"

type Age = "today" | "week" | "older"

const day = 86_400_000

const ageOf = (time: number, now: number): Age => {
  const midnight = new Date(now).setHours(0, 0, 0, 0)
  return time >= midnight ? "today" : time >= midnight - 6 * day ? "week" : "older"
}

const Group = ({ age, items }: { readonly age: Age; readonly items: ReadonlyArray<Conversation> }) =>
  items.length === 0 ? null : (
    <section>
      <h2>{t(`sidebar.${age}`)}</h2>
      <ul>
        {items.map((conversation) => (
          <ConversationItem key={conversation.conversationId} conversation={conversation} />
        ))}
      </ul>
    </section>
  )

const Choices = () => (
  <div class="choices">
    <label>
      <span class="visually-hidden">{t("language.switch")}</span>
      <select value={language.value} onChange={(event) => setLanguage(event.currentTarget.value)}>
        {Object.entries(languages).map(([tag, name]) => (
          <option key={tag} value={tag} lang={tag}>
            {name}
          </option>
        ))}
      </select>
    </label>
    <label>
      <span class="visually-hidden">{t("theme.switch")}</span>
      <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value)}>
        {themes.map((name) => (
          <option key={name} value={name}>
            {t(`theme.${name}`)}
          </option>
        ))}
      </select>
    </label>
  </div>
)

/**
 * The list at the side. `close` puts it away where it lies over the page.
 *
 * @since 0.1.0
 * @category components
 */
export const Sidebar = ({ close }: { readonly close: () => void }) => {
  const { attempt, conversations, open, signedIn, signOut } = usePage()
  const searching = useSignal(false)
  const { more, search, shown } = conversations
  const now = Date.now()
  const of = (age: Age) => shown.value.filter(({ updatedAt }) => ageOf(updatedAt, now) === age)
  /** A search looks through all of them, not only through those that happen to be here. */
  const find = async (text: string) => {
    search.value = text
    if (searching.peek() || text.trim() === "") return
    searching.value = true
    await attempt(async () => {
      while (more.peek() && search.peek().trim() !== "") await conversations.loadMore()
    })
    searching.value = false
  }
  return (
    <nav class="sidebar" aria-label={t("sidebar.label")}>
      <div class="top">
        <span class="brand">{t("app.name")}</span>
        <button type="button" class="plain closer" aria-label={t("common.close")} onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <button
        type="button"
        class="quiet fresh"
        onClick={() => {
          close()
          void open(undefined)
        }}
      >
        <Icon name="plus" />
        {t("sidebar.fresh")}
      </button>
      <label class="search">
        <span class="visually-hidden">{t("sidebar.search")}</span>
        <Icon name="search" />
        <input
          type="search"
          dir="auto"
          placeholder={t("sidebar.search")}
          value={search.value}
          onInput={(event) => find(event.currentTarget.value)}
        />
      </label>
      <div class="list">
        {(["today", "week", "older"] as const).map((age) => (
          <Group key={age} age={age} items={of(age)} />
        ))}
        {shown.value.length === 0 && (
          <p class="soft">{search.value.trim() === "" ? t("sidebar.empty") : t("sidebar.none")}</p>
        )}
        {more.value && !searching.value && (
          <button type="button" class="plain" onClick={() => attempt(conversations.loadMore)}>
            {t("sidebar.more")}
          </button>
        )}
      </div>
      <div class="bottom">
        <Choices />
        <div class="row">
          <a href="/docs">{t("sidebar.reference")}</a>
          <span class="grow" />
          {signedIn.value && (
            <button type="button" class="plain" onClick={() => attempt(signOut)}>
              {t("sidebar.signOut")}
            </button>
          )}
        </div>
      </div>
    </nav>
  )
}
