/**
 * The list of conversations, and what happens in those that are not on display.
 *
 * @since 0.1.0
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals"
import type { Api, Conversation } from "../../client/Api.js"
import * as Status from "../../domain/RunStatus.js"

/**
 * - `displayed`: the conversation on display, whose own view tells what happens in it
 * - `later`: does something after so many milliseconds
 * - `noticed`: is told of a conversation elsewhere whose run has ended, or needs a person
 *
 * @since 0.1.0
 * @category options
 */
export interface ConversationsOptions {
  readonly api: Pick<Api, "conversations" | "rename" | "removeConversation">
  readonly displayed: () => string | undefined
  readonly later: (work: () => void, milliseconds: number) => void
  readonly noticed: (conversation: Conversation) => void
}

/**
 * The list. `search` narrows it to the titles with these words.
 *
 * @since 0.1.0
 * @category models
 */
export interface Conversations {
  readonly all: ReadonlySignal<ReadonlyArray<Conversation>>
  readonly shown: ReadonlySignal<ReadonlyArray<Conversation>>
  readonly search: Signal<string>
  readonly more: ReadonlySignal<boolean>
  readonly refresh: () => Promise<void>
  readonly loadMore: () => Promise<void>
  readonly rename: (conversationId: string, title: string) => Promise<void>
  readonly remove: (conversationId: string) => Promise<void>
}

/**
 * Whether somebody works on the conversation at the moment.
 *
 * @since 0.1.0
 * @category reading
 */
export const isActive = ({ lastStatus }: Conversation): boolean =>
  lastStatus !== undefined && !Status.isEnded(lastStatus) && lastStatus !== "waiting_approval"

/**
 * Those whose title has every word of the search, whatever its case.
 *
 * @since 0.1.0
 * @category reading
 */
export const matching = (all: ReadonlyArray<Conversation>, search: string): ReadonlyArray<Conversation> => {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean)
  return all.filter(({ title }) => words.every((word) => title.toLocaleLowerCase().includes(word)))
}

const pageSize = 50

/** How often conversations elsewhere are looked at, while somebody works on one of them. */
const everyMs = 4000

/**
 * A list that is empty until it is refreshed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeConversations = ({ api, displayed, later, noticed }: ConversationsOptions): Conversations => {
  const all = signal<ReadonlyArray<Conversation>>([])
  const search = signal("")
  const cursor = signal<string | undefined>()
  let looking = false

  const look = () => {
    if (looking || !all.peek().some((one) => isActive(one) && one.conversationId !== displayed())) return
    looking = true
    later(() => {
      looking = false
      refresh().catch(look)
    }, everyMs)
  }

  const notice = (before: ReadonlyArray<Conversation>, after: ReadonlyArray<Conversation>) => {
    const were = new Set(before.filter(isActive).map((one) => one.conversationId))
    for (const one of after) {
      if (were.has(one.conversationId) && !isActive(one) && one.conversationId !== displayed()) noticed(one)
    }
  }

  const refresh = async () => {
    const before = all.peek()
    const page = await api.conversations({ limit: Math.min(200, Math.max(pageSize, before.length)) })
    const fresh = new Set(page.items.map(({ conversationId }) => conversationId))
    const oldest = page.items.at(-1)?.updatedAt ?? 0
    // What was loaded from later pages stays, unless it should have been on this one and was not.
    const rest =
      page.nextCursor === undefined
        ? []
        : before.filter((one) => !fresh.has(one.conversationId) && one.updatedAt < oldest)
    if (rest.length === 0) cursor.value = page.nextCursor
    all.value = [...page.items, ...rest]
    notice(before, page.items)
    look()
  }

  const loadMore = async () => {
    if (cursor.peek() === undefined) return
    const page = await api.conversations({ limit: pageSize, cursor: cursor.peek() })
    const known = new Set(all.peek().map(({ conversationId }) => conversationId))
    all.value = [...all.peek(), ...page.items.filter(({ conversationId }) => !known.has(conversationId))]
    cursor.value = page.nextCursor
  }

  return {
    all,
    shown: computed(() => matching(all.value, search.value)),
    search,
    more: computed(() => cursor.value !== undefined),
    refresh,
    loadMore,
    rename: async (conversationId, title) => {
      await api.rename(conversationId, title)
      all.value = all.peek().map((one) => (one.conversationId === conversationId ? { ...one, title } : one))
    },
    remove: async (conversationId) => {
      await api.removeConversation(conversationId)
      all.value = all.peek().filter((one) => one.conversationId !== conversationId)
    }
  }
}
