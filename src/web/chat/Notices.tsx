/**
 * Says when something has come to an end in a conversation that is not on display.
 *
 * @since 0.1.0
 */
import { useEffect } from "preact/hooks"
import type { Conversation } from "../../client/Api.js"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"

/** How long a notice stays; what needs a person stays until it is closed. */
const staysMs = 12_000

const textOf = ({ lastStatus, title }: Conversation): string => {
  const name = title || t("item.untitled")
  switch (lastStatus) {
    case "waiting_approval":
      return t("notice.waiting", name)
    case "failed":
      return t("notice.failed", name)
    case "cancelled":
      return t("notice.cancelled", name)
    default:
      return t("notice.done", name)
  }
}

const Notice = ({ conversation }: { readonly conversation: Conversation }) => {
  const { notices } = usePage()
  const { conversationId, lastStatus } = conversation
  useEffect(() => {
    if (lastStatus === "waiting_approval") return
    const timer = setTimeout(() => {
      notices.value = notices.peek().filter((one) => one !== conversation)
    }, staysMs)
    return () => clearTimeout(timer)
  }, [conversation, lastStatus, notices])
  return (
    <li>
      <a href={`#${encodeURIComponent(conversationId)}`} dir="auto">
        {textOf(conversation)}
      </a>
      <button
        type="button"
        class="plain"
        aria-label={t("common.close")}
        onClick={() => {
          notices.value = notices.peek().filter((one) => one !== conversation)
        }}
      >
        <Icon name="close" />
      </button>
    </li>
  )
}

/**
 * All notices that have not been seen yet.
 *
 * @since 0.1.0
 * @category components
 */
export const Notices = () => (
  <ul class="notices" aria-live="polite" aria-label={t("notice.label")}>
    {usePage().notices.value.map((conversation) => (
      <Notice key={conversation.conversationId} conversation={conversation} />
    ))}
  </ul>
)
