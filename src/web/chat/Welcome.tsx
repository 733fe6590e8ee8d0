/**
 * What stands on the page before anything was asked: what can be done here, and what is still under way.
 *
 * @since 0.1.0
 */
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import { isActive } from "./Conversations.js"

/**
 * The empty page.
 *
 * @since 0.1.0
 * @category components
 */
export const Welcome = () => {
  const { ask, conversations, settings } = usePage()
  const unfinished = conversations.all.value.filter((one) => isActive(one) || one.lastStatus === "waiting_approval")
  const demo = settings.models.value.find(({ isDefault }) => isDefault)?.modelId === "demo"
  return (
    <section class="welcome">
      <h2>{t("welcome.title")}</h2>
      <p class="soft">{demo ? t("welcome.demo") : t("welcome.text")}</p>
      {demo && (
        <ul class="examples">
          {[t("welcome.one"), t("welcome.two"), t("welcome.three")].map((example) => (
            <li key={example}>
              <button type="button" class="quiet" onClick={() => ask(example)}>
                {example}
              </button>
            </li>
          ))}
        </ul>
      )}
      {unfinished.length > 0 && (
        <>
          <h3>{t("welcome.unfinished")}</h3>
          <ul class="unfinished">
            {unfinished.map((one) => (
              <li key={one.conversationId}>
                <a href={`#${encodeURIComponent(one.conversationId)}`} dir="auto">
                  <Icon name={isActive(one) ? "clock" : "question"} />
                  {one.title || t("item.untitled")}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
