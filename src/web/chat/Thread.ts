/**
 * The conversation on display: its turns, the runs that answer them, and the one that is watched live. What it shows are
 * signals; what it does are calls of the server, whose refusals reject.
 *
 * @since 0.1.0
 */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals"
import type { Accepted, DecideBody, RunSummary, StartBody } from "../../client/Answers.js"
import type { Api } from "../../client/Api.js"
import type { Client } from "../../client/Client.js"
import type { ClientState } from "../../client/ClientState.js"
import { RunletError } from "../../client/RunletError.js"
import * as Snapshot from "../../domain/Snapshot.js"
import type { Send } from "./Sender.js"
import * as Turns from "./Turns.js"

/**
 * What is known of a run: how it stands, or that it was removed. `ended`: what a list said of it, before it is known.
 *
 * @since 0.1.0
 * @category models
 */
export interface Run {
  readonly snapshot?: Snapshot.Snapshot | undefined
  readonly gone?: boolean | undefined
  readonly ended?: boolean | undefined
}

/**
 * How something is asked: everything of a request but the question and its place.
 *
 * @since 0.1.0
 * @category models
 */
export type Manner = Pick<StartBody, "modelId" | "mode" | "enableThinking" | "currentDocument">

/**
 * - `schedule`: does what it is given when the page is drawn next
 * - `waiting`: is told that a request had no answer and is sent again
 * - `ended`: is told that a run that was watched has ended, or goes on
 * - `began`: is told that a run began, or that the conversation has changed in another way
 *
 * @since 0.1.0
 * @category options
 */
export interface ThreadOptions {
  readonly client: Client
  readonly api: Api
  readonly send: Send
  readonly schedule: (work: () => void) => void
  readonly waiting: () => void
  readonly ended: (run: Snapshot.Snapshot) => void
  readonly began: (conversationId: string) => void
  readonly failed: (error: unknown) => void
}

/**
 * The conversation on display.
 *
 * @since 0.1.0
 * @category models
 */
export interface Thread {
  readonly conversationId: ReadonlySignal<string | undefined>
  readonly title: Signal<string>
  readonly turns: ReadonlySignal<ReadonlyArray<Turns.Turn>>
  readonly live: ReadonlySignal<ClientState>
  /** The run that a reader waits for, or the last one. */
  readonly currentId: ReadonlySignal<string | undefined>
  /** Whether something of it has not ended. */
  readonly active: ReadonlySignal<boolean>
  readonly run: (runId: string) => ReadonlySignal<Run>
  /** Puts another conversation on display, or none; its turns come with `load`. */
  readonly enter: (conversationId: string | undefined) => void
  /** Fetches the conversation, with the runs that may have changed. */
  readonly load: () => Promise<void>
  /** Fetches a run, unless it is known and will not change. */
  readonly ensure: (runId: string) => Promise<void>
  /** Gives whether the question is part of the conversation on display. */
  readonly ask: (question: string, manner: Manner) => Promise<boolean>
  readonly stop: (runId: string) => Promise<void>
  readonly goOn: () => Promise<void>
  readonly again: (runId: string, modelId: string | undefined) => Promise<void>
  /** Asks something else in place of a question, in a conversation of its own, whose id it gives. */
  readonly branch: (at: number, question: string, manner: Manner) => Promise<string | undefined>
  readonly decide: (runId: string, approvalId: string, answer: DecideBody) => Promise<void>
}

/** How many runs are asked for at once; browsers open six connections to a server, and one is taken by the live run. */
const atOnce = 4

const isMissing = (error: unknown) => error instanceof RunletError && error._tag === "NotFound"

/**
 * A thread that shows nothing yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeThread = (options: ThreadOptions): Thread => {
  const { api, client, send } = options
  const conversationId = signal<string | undefined>()
  const title = signal("")
  const turns = signal<ReadonlyArray<Turns.Turn>>([])
  const live = signal(client.getSnapshot())
  const runs = new Map<string, Signal<Run>>()
  /** Counts how often another conversation was put on display, so that what comes late does not take its place. */
  let visit = 0
  let loads = 0
  let endSeen = ""

  const run = (runId: string): Signal<Run> => {
    const known = runs.get(runId) ?? signal<Run>({})
    runs.set(runId, known)
    return known
  }
  const put = (snapshot: Snapshot.Snapshot) => {
    const shown = run(snapshot.runId)
    // What was heard is newer than what was asked for before.
    if ((shown.peek().snapshot?.lastSeq ?? 0) <= snapshot.lastSeq) shown.value = { snapshot }
  }
  const over = ({ ended, gone, snapshot }: Run) =>
    gone === true || (snapshot === undefined ? ended === true : Turns.isOver(snapshot))
  const settled = ({ gone, snapshot }: Run) =>
    gone === true || (Turns.isOver(snapshot) && snapshot?.recoverable !== true)

  const currentId = computed(() => Turns.current(turns.value, (runId) => over(run(runId).value)))
  const active = computed(() => currentId.value !== undefined && !over(run(currentId.value).value))

  /** Watches the run that a reader waits for. */
  const advance = () => {
    const next = currentId.peek()
    if (next === undefined || run(next).peek().gone || next === client.getSnapshot().run?.runId) return
    client.attach(next).catch(options.failed)
  }

  const follow = () => {
    const state = client.getSnapshot()
    live.value = state
    const watched = state.run
    if (!watched || watched.seq === 0 || state.error) return
    const snapshot = { ...Snapshot.of(watched), queuePosition: state.queuePosition }
    put(snapshot)
    const end = `${watched.runId} ${watched.seq}`
    if (!Turns.isOver(snapshot) || endSeen === end) return
    endSeen = end
    options.ended(snapshot)
    advance()
  }

  let scheduled = false
  client.subscribe(() => {
    if (scheduled) return
    scheduled = true
    options.schedule(() => {
      scheduled = false
      follow()
    })
  })

  const fetchRun = async (runId: string) => {
    const snapshot = await api.run(runId).catch((error: unknown) => {
      if (!isMissing(error)) throw error
      run(runId).value = { gone: true }
      return undefined
    })
    if (snapshot) put(snapshot)
  }

  const ensure = async (runId: string) => {
    if (!settled(run(runId).peek())) await fetchRun(runId)
  }

  const allRuns = async (id: string): Promise<ReadonlyArray<RunSummary>> => {
    const found: Array<RunSummary> = []
    for (let cursor: string | undefined; ; ) {
      const page = await api.runs({ conversationId: id, limit: 200, cursor })
      found.push(...page.items)
      cursor = page.nextCursor
      if (cursor === undefined) return found
    }
  }

  const load = async () => {
    const [id, from] = [conversationId.peek(), visit]
    if (id === undefined) return
    const mine = ++loads
    const stale = () => visit !== from || mine !== loads
    const before = new Set(turns.peek().flatMap(({ runIds }) => runIds))
    const [conversation, summaries] = await Promise.all([api.conversation(id), allRuns(id)])
    const loaded = Turns.of(conversation.messages, summaries)
    const wanted = loaded.flatMap((turn) => Turns.newest(turn) ?? []).filter((runId) => !settled(run(runId).peek()))
    // The last ones first: they are what is looked at, and the reader should see them at once as they are.
    const queue = wanted.reverse()
    const first = queue.splice(0, atOnce)
    if (stale()) return
    for (const one of summaries) {
      const shown = run(one.runId)
      if (shown.peek().snapshot === undefined && Turns.isOver(one)) shown.value = { ...shown.peek(), ended: true }
    }
    await Promise.all(first.map(fetchRun))
    if (stale()) return
    title.value = conversation.title
    turns.value = Turns.merge(turns.peek(), loaded, before)
    advance()
    while (queue.length > 0 && !stale()) await Promise.all(queue.splice(0, atOnce).map(fetchRun))
  }

  const enter = (id: string | undefined) => {
    visit++
    conversationId.value = id
    title.value = ""
    turns.value = []
    runs.clear()
    client.clear()
  }

  const begin = (what: string, call: (key: string) => Promise<Accepted>) => {
    const from = visit
    return send({ what, call, wanted: () => visit === from, waiting: options.waiting })
  }

  const ask = async (question: string, manner: Manner) => {
    const body: StartBody = { message: question, conversationId: conversationId.peek(), ...manner }
    const accepted = await begin(JSON.stringify(body), (key) => api.start(body, key))
    if (accepted === undefined) return false
    conversationId.value = accepted.conversationId
    if (title.peek() === "") title.value = question
    if (!turns.peek().some(({ runIds }) => runIds.includes(accepted.runId))) {
      turns.value = [...turns.peek(), Turns.begun(question, accepted)]
    }
    advance()
    options.began(accepted.conversationId)
    // One that has to wait is not watched yet.
    if (currentId.peek() !== accepted.runId) fetchRun(accepted.runId).catch(() => {})
    return true
  }

  const again = async (runId: string, modelId: string | undefined) => {
    const accepted = await begin(`again ${runId} ${modelId}`, (key) => api.regenerate(runId, { modelId }, key))
    if (accepted === undefined) return
    turns.value = turns
      .peek()
      .map((turn) =>
        turn.runIds.includes(runId) && !turn.runIds.includes(accepted.runId)
          ? { ...turn, runIds: [...turn.runIds, accepted.runId] }
          : turn
      )
    advance()
    options.began(accepted.conversationId)
    await ensure(runId)
  }

  const branch = async (at: number, question: string, manner: Manner) => {
    const answerOf = (turn: Turns.Turn) => run(Turns.newest(turn) ?? "").peek().snapshot?.text ?? turn.text
    const body: StartBody = { messages: Turns.branch(turns.peek(), at, question, answerOf), ...manner }
    const accepted = await begin(JSON.stringify(body), (key) => api.start(body, key))
    if (accepted !== undefined) options.began(accepted.conversationId)
    return accepted?.conversationId
  }

  return {
    conversationId,
    title,
    turns,
    live,
    currentId,
    active,
    run,
    enter,
    load,
    ensure,
    ask,
    again,
    branch,
    stop: async (runId) => {
      await api.cancel(runId)
      // The run that is watched says so itself.
      if (client.getSnapshot().run?.runId !== runId) await fetchRun(runId)
    },
    goOn: async () => {
      const { conversationId: id } = await client.continue()
      options.began(id)
    },
    decide: async (runId, approvalId, answer) => {
      await api.decide(runId, approvalId, answer)
    }
  }
}
