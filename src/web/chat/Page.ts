/**
 * The page as a whole: what is on display, what went wrong, what happened elsewhere, and where the address leads. The
 * address names the conversation.
 *
 * @since 0.1.0
 */
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals"
import type { Api, Conversation } from "../../client/Api.js"
import type { Client } from "../../client/Client.js"
import { RunletError } from "../../client/RunletError.js"
import { t } from "../i18n/index.js"
import { stored } from "../Stored.js"
import { type Conversations, makeConversations } from "./Conversations.js"
import { type Document, written } from "./Documents.js"
import { type Failure, ofError } from "./Failure.js"
import { makeSender } from "./Sender.js"
import { makeSettings, type Settings } from "./Settings.js"
import { makeThread, type Thread } from "./Thread.js"
import * as Turns from "./Turns.js"

/**
 * Something that did not work. `again` tries it once more.
 *
 * @since 0.1.0
 * @category models
 */
export interface Problem extends Failure {
  readonly again?: (() => void) | undefined
}

/**
 * The page: its parts, how it stands, and what can be done on it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page {
  readonly thread: Thread
  readonly conversations: Conversations
  readonly settings: Settings
  readonly documents: ReadonlySignal<ReadonlyArray<Document>>
  readonly problem: Signal<Problem | undefined>
  readonly signedOut: ReadonlySignal<boolean>
  /** Whether this browser was signed in, so that it can be signed out. */
  readonly signedIn: ReadonlySignal<boolean>
  /** Conversations elsewhere in which something has come to an end, the newest last. */
  readonly notices: Signal<ReadonlyArray<Conversation>>
  readonly loading: ReadonlySignal<boolean>
  readonly sending: ReadonlySignal<boolean>
  /** Whether the end of the page is kept in view. */
  readonly following: Signal<boolean>
  /** What a screen reader is told. */
  readonly said: ReadonlySignal<string>
  /** Does it, and shows what the server refused. Gives whether it was done. */
  readonly attempt: (work: () => Promise<unknown>) => Promise<boolean>
  /** Puts a conversation on display, or the empty page. */
  readonly open: (conversationId: string | undefined) => Promise<void>
  readonly ask: (question: string) => Promise<boolean>
  readonly branch: (at: number, question: string) => Promise<boolean>
  readonly signIn: (token: string) => Promise<boolean>
  readonly signOut: () => Promise<void>
  /** The conversation that the address names. */
  readonly place: () => string | undefined
}

const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("")

const pause = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds))

/** Pages that nobody looks at are not drawn, and then there would be no next frame. */
const schedule = (work: () => void) => {
  let done = false
  const once = () => {
    if (done) return
    done = true
    work()
  }
  requestAnimationFrame(once)
  setTimeout(once, 250)
}

const place = () => {
  try {
    return decodeURIComponent(location.hash.slice(1)) || undefined
  } catch {
    return undefined
  }
}

/**
 * The page around a client and the calls of the server. It does nothing before a conversation, or none, is opened.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makePage = (client: Client, api: Api): Page => {
  const problem = signal<Problem | undefined>()
  const signedOut = signal(false)
  const session = stored("runlet.session")
  const signedIn = signal(session.get() === "yes")
  const notices = signal<ReadonlyArray<Conversation>>([])
  const loading = signal(false)
  const sending = signal(false)
  const following = signal(true)
  const said = signal("")
  const settings = makeSettings()
  const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("runlet.page") : undefined

  const report = (error: unknown, again?: () => void) => {
    const unknown = error instanceof RunletError && error._tag === "Unauthorized"
    if (unknown) signedOut.value = true
    problem.value = unknown ? undefined : { ...ofError(error), again }
  }

  const attempt = async (work: () => Promise<unknown>) => {
    problem.value = undefined
    try {
      await work()
      return true
    } catch (error) {
      report(error)
      return false
    }
  }

  const quietly = (work: () => Promise<unknown>) => void work().catch(() => {})

  const thread = makeThread({
    client,
    api,
    send: makeSender({ tries: 5, pause, newKey }),
    schedule,
    waiting: () => {
      problem.value = { text: "send.waiting" }
    },
    // The page may know less than the server by now; without an answer it knows enough.
    ended: () => quietly(() => Promise.all([thread.load(), conversations.refresh()])),
    began: (conversationId) => {
      channel?.postMessage(conversationId)
      quietly(conversations.refresh)
    },
    failed: report
  })
  const conversations = makeConversations({
    api,
    displayed: () => thread.conversationId.peek(),
    later: setTimeout,
    noticed: (conversation) => {
      const others = notices.peek().filter((one) => one.conversationId !== conversation.conversationId)
      notices.value = [...others, conversation]
    }
  })

  /** Counts what is opened, so that what comes late is let go. */
  let visit = 0

  const enter = (conversationId: string | undefined) => {
    thread.enter(conversationId)
    following.value = true
    settings.document.value = undefined
    notices.value = notices.peek().filter((one) => one.conversationId !== conversationId)
    const hash = conversationId === undefined ? location.pathname : `#${encodeURIComponent(conversationId)}`
    if (place() !== conversationId) history.pushState(undefined, "", hash)
  }

  const refuse = (error: unknown): boolean => {
    if (!(error instanceof RunletError) || error._tag !== "NotFound") return false
    enter(undefined)
    problem.value = { text: "refused.noConversation" }
    return true
  }

  /** Loads until there is an answer; a network that is away comes back by itself. */
  const open = async (conversationId: string | undefined): Promise<void> => {
    const mine = ++visit
    problem.value = undefined
    if (conversationId !== thread.conversationId.peek() || conversationId === undefined) enter(conversationId)
    loading.value = conversationId !== undefined && thread.turns.peek().length === 0
    for (let tried = 1; mine === visit; tried++) {
      try {
        const models = api.models().then(({ items }) => {
          settings.models.value = items
        })
        await Promise.all([thread.load(), conversations.refresh(), models])
        if (mine === visit) problem.value = undefined
        break
      } catch (error) {
        if (mine !== visit || refuse(error)) break
        report(error, () => open(conversationId))
        if (!(error instanceof RunletError) || !error.transient) break
        await pause(Math.min(15_000, 1000 * 2 ** tried))
      }
    }
    if (mine === visit) loading.value = false
  }

  const asking = async (work: () => Promise<boolean>): Promise<boolean> => {
    if (sending.peek()) return false
    following.value = true
    sending.value = true
    let done = false
    const told = await attempt(async () => {
      done = await work()
    })
    sending.value = false
    if (told && done) problem.value = undefined
    return done
  }

  client.subscribe(() => {
    const { error, signedOut: out } = client.getSnapshot()
    if (error) report(error)
    else if (!out) signedOut.value = false
  })

  // A queue moves without a word to those who stand in it.
  const queued = computed(() =>
    thread.turns.value
      .flatMap((turn) => Turns.newest(turn) ?? [])
      .filter((runId) => thread.run(runId).value.snapshot?.status === "queued")
      .join(" ")
  )
  effect(() => {
    const waiting = queued.value.split(" ").filter(Boolean)
    if (waiting.length === 0) return
    const timer = setInterval(() => {
      for (const runId of waiting) quietly(() => thread.ensure(runId))
    }, 3000)
    return () => clearInterval(timer)
  })

  // What is worth saying aloud: turns of events, never the words of an answer as they come.
  let heard = ""
  effect(() => {
    const runId = thread.currentId.value
    const run = runId === undefined ? undefined : thread.run(runId).value.snapshot
    const running = run?.toolCalls.find(({ state }) => state === "running")
    const waiting = run?.pendingApprovals.find(({ toolCallId }) => toolCallId !== "")
    const now = `${run?.runId} ${run?.status} ${running?.toolCallId} ${waiting?.approvalId}`
    if (run === undefined || now === heard) return
    const first = heard === "" || !heard.startsWith(run.runId)
    heard = now
    if (running) said.value = running.title ?? running.toolName
    else if (waiting) said.value = t("approval.asks", waiting.toolName)
    else if (!first || !Turns.isOver(run)) said.value = t(`status.${run.status}`)
  })

  window.addEventListener("popstate", () => void open(place()))
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !signedOut.peek()) quietly(() => Promise.all([thread.load(), conversations.refresh()]))
  })
  channel?.addEventListener("message", ({ data }) => {
    quietly(conversations.refresh)
    if (data === thread.conversationId.peek()) quietly(thread.load)
  })

  return {
    thread,
    conversations,
    settings,
    documents: computed(() => {
      const runs = thread.turns.value.flatMap(({ runIds }) =>
        runIds.flatMap((runId) => thread.run(runId).value.snapshot ?? [])
      )
      return written(runs)
    }),
    problem,
    signedOut,
    signedIn,
    place,
    notices,
    loading,
    sending,
    following,
    said,
    attempt,
    open,
    ask: (question) =>
      asking(async () => {
        const fresh = thread.conversationId.peek() === undefined
        const shown = await thread.ask(question, settings.manner.peek())
        if (shown && fresh) {
          history.pushState(undefined, "", `#${encodeURIComponent(thread.conversationId.peek() ?? "")}`)
        }
        return shown
      }),
    branch: (at, question) =>
      asking(async () => {
        const conversationId = await thread.branch(at, question, settings.manner.peek())
        if (conversationId === undefined) return false
        await open(conversationId)
        return true
      }),
    signIn: (token) =>
      attempt(async () => {
        await api.signIn(token).catch((error: unknown) => {
          throw error instanceof RunletError && error.status === 401 ? new Error(t("signIn.wrong")) : error
        })
        client.signedIn()
        signedOut.value = false
        signedIn.value = true
        session.set("yes")
        void open(thread.conversationId.peek() ?? place())
      }),
    signOut: async () => {
      await api.signOut()
      session.set(undefined)
      location.assign(location.pathname)
    }
  }
}
