/**
 * A conversation in the list, with what can be done to it.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useLayoutEffect, useRef } from "preact/hooks"
import type { Conversation } from "../../client/Api.js"
import { t } from "../i18n/index.js"
import { Dialog } from "../ui/Dialog.js"
import { when } from "../ui/Format.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import { isActive } from "./Conversations.js"

const Renaming = ({ conversation, done }: { readonly conversation: Conversation; readonly done: () => void }) => {
  const { attempt, conversations, thread } = usePage()
  const input = useRef<HTMLInputElement>(null)
  // Taking the field away takes its focus away, which is no wish to save.
  const over = useRef(false)
  useLayoutEffect(() => input.current?.select(), [])
  const end = () => {
    over.current = true
    done()
  }
  const save = async () => {
    if (over.current) return
    const title = input.current?.value.trim() ?? ""
    end()
    if (title === "" || title === conversation.title) return
    const saved = await attempt(() => conversations.rename(conversation.conversationId, title))
    if (saved && thread.conversationId.peek() === conversation.conversationId) thread.title.value = title
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <input
        ref={input}
        type="text"
        dir="auto"
        maxLength={200}
        aria-label={t("item.title")}
        defaultValue={conversation.title}
        onBlur={save}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return
          event.stopPropagation()
          end()
        }}
      />
    </form>
  )
}

const Removal = ({ close, conversation }: { readonly conversation: Conversation; readonly close: () => void }) => {
  const { attempt, conversations, open, thread } = usePage()
  const remove = async () => {
    close()
    const { conversationId } = conversation
    const displayed = thread.conversationId.peek() === conversationId
    if ((await attempt(() => conversations.remove(conversationId))) && displayed) await open(undefined)
  }
  return (
    <Dialog title={t("item.removeTitle")} close={close} class="small">
      <p dir="auto">{t("item.removeText", conversation.title || t("item.untitled"))}</p>
      <div class="row">
        <button type="button" class="quiet danger" onClick={remove}>
          {t("item.remove")}
        </button>
        <button type="button" class="quiet" onClick={close}>
          {t("common.cancel")}
        </button>
      </div>
    </Dialog>
  )
}

/** How the last run of a conversation stands, where that matters from afar; of the one on display it is known best. */
const Mark = ({ conversation: listed }: { readonly conversation: Conversation }) => {
  const { thread } = usePage()
  const runId = thread.conversationId.value === listed.conversationId ? thread.currentId.value : undefined
  const lastStatus = runId === undefined ? listed.lastStatus : thread.run(runId).value.snapshot?.status
  const conversation = { ...listed, lastStatus: lastStatus ?? listed.lastStatus }
  if (isActive(conversation)) return <span class="mark busy" role="img" aria-label={t("item.active")} />
  if (conversation.lastStatus === "waiting_approval") {
    return <span class="mark asks" role="img" aria-label={t("item.waiting")} />
  }
  if (conversation.lastStatus === "failed") return <span class="mark failed" role="img" aria-label={t("item.failed")} />
  return null
}

/**
 * One line of the list.
 *
 * @since 0.1.0
 * @category components
 */
export const ConversationItem = ({ conversation }: { readonly conversation: Conversation }) => {
  const { thread } = usePage()
  const renaming = useSignal(false)
  const removing = useSignal(false)
  const { conversationId, title, updatedAt } = conversation
  const name = title || t("item.untitled")
  const flip = (what: typeof renaming, on: boolean) => () => {
    what.value = on
  }
  if (renaming.value) {
    return (
      <li class="renaming">
        <Renaming conversation={conversation} done={flip(renaming, false)} />
      </li>
    )
  }
  return (
    <li>
      <a
        href={`#${encodeURIComponent(conversationId)}`}
        dir="auto"
        aria-current={thread.conversationId.value === conversationId ? "page" : undefined}
        title={`${name} · ${when(updatedAt)}`}
      >
        <Mark conversation={conversation} />
        <span class="name">{name}</span>
      </a>
      <span class="tools">
        <button
          type="button"
          class="plain"
          title={t("item.rename")}
          aria-label={t("item.renameThis", name)}
          onClick={flip(renaming, true)}
        >
          <Icon name="edit" />
        </button>
        <button
          type="button"
          class="plain"
          title={t("item.remove")}
          aria-label={t("item.removeThis", name)}
          onClick={flip(removing, true)}
        >
          <Icon name="trash" />
        </button>
      </span>
      {removing.value && <Removal conversation={conversation} close={flip(removing, false)} />}
    </li>
  )
}
