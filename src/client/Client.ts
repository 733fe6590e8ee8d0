/**
 * A client of one conversation at a time: shows a run, keeps showing it through cuts, sleeps, restarts of the server and
 * reloads of the page, and asks the server to begin, stop, decide and continue. It only ever watches by itself; what
 * costs something begins when it is told to.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import { isFinal } from "../domain/RunStatus.js"
import type { Snapshot } from "../domain/Snapshot.js"
import type * as Answers from "./Answers.js"
import * as Call from "./Call.js"
import * as State from "./ClientState.js"
import { makeReader } from "./Frames.js"
import { RunletError, unreachable } from "./RunletError.js"
import { browserTabs, type Channel, type TabMessage, type Tabs } from "./Tabs.js"

/**
 * - `storage`: where the cursor survives a reload; `sessionStorage` by default, so that each tab has its own
 * - `storageKey`: its name there, `runlet.cursor` by default
 * - `tabs`: how connections are shared; by default with the other tabs of the browser
 * - `wakeups`: calls back when trying again may be worth it; by default when the browser is online again or the page is
 *   looked at. Gives the way to stop
 * - `startRetries`: how often a request to begin work is sent again while the server can not be reached (4)
 * - `maxDelayMs`: the longest wait between two attempts to reach the server (15,000)
 * - `random`: numbers in [0, 1) that spread the attempts of many clients, and make idempotency keys
 *
 * @since 0.1.0
 * @category options
 */
export interface ClientOptions extends Call.ApiOptions {
  readonly storage?: Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined
  readonly storageKey?: string | undefined
  readonly tabs?: Tabs | undefined
  readonly wakeups?: ((wake: () => void) => () => void) | undefined
  readonly startRetries?: number | undefined
  readonly maxDelayMs?: number | undefined
  readonly random?: (() => number) | undefined
}

/**
 * A client. `getSnapshot` gives the same object until something changes, and `subscribe` tells when, which is what user
 * interface libraries ask for. Calls that the server refuses reject with a `RunletError`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Client {
  readonly getSnapshot: () => State.ClientState
  readonly subscribe: (listener: () => void) => () => void
  /** Begins a run and shows it. While the server can not be reached, the same request is sent again. */
  readonly start: (body: Answers.StartBody) => Promise<Answers.Accepted>
  /** Answers the last message again, as a new run, and shows that. */
  readonly regenerate: (body?: { readonly modelId?: string | undefined }) => Promise<Answers.Accepted>
  /** Goes on with the run on display, after a failure that allows it. */
  readonly continue: () => Promise<Answers.Accepted>
  /** Stops the run on display; resolves when it has ended. */
  readonly cancel: (reason?: string) => Promise<Answers.CancelResult>
  /** Answers an approval request of the run on display. */
  readonly decide: (approvalId: string, body: Answers.DecideBody) => Promise<Answers.DecideResult>
  /** Shows a run: as it stands, then live. Resolves when it is shown, with `false` if it can not be. */
  readonly attach: (runId: string) => Promise<boolean>
  /** Shows the latest run of a conversation. */
  readonly open: (conversationId: string) => Promise<boolean>
  /** After a reload: shows the latest run of the conversation that was on display before, if it is the one given. */
  readonly restore: (conversationId?: string) => Promise<boolean>
  /** Says that there is a valid credential again, to all tabs: what the missing one stopped goes on. */
  readonly signedIn: () => void
  /** Shows nothing, and forgets what was shown. */
  readonly clear: () => void
  /** Stops watching. What was shown can be restored. */
  readonly close: () => void
}

const pageWakeups = (wake: () => void): (() => void) => {
  const { addEventListener, document } = globalThis
  const stop = new AbortController()
  addEventListener?.("online", wake, stop)
  document?.addEventListener("visibilitychange", () => document.hidden || wake(), stop)
  return () => stop.abort()
}

/** Pages may be forbidden to store anything, and then even looking throws. */
const attempt = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

/**
 * A client that shows nothing yet. It asks nothing of the server before it is told to.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeClient = (options: ClientOptions = {}): Client => {
  const {
    baseUrl = "",
    heartbeatMs = 15_000,
    maxDelayMs = 15_000,
    random = Math.random,
    startRetries = 4,
    storage = attempt(() => globalThis.sessionStorage),
    storageKey = "runlet.cursor",
    tabs = browserTabs(),
    timer = Call.platformTimer,
    wakeups = pageWakeups
  } = options
  const call = Call.makeCall(options)
  const listeners = new Set<() => void>()
  const sleepers = new Set<() => void>()
  /** Keys of requests to begin work whose fate is unknown: the same one must go under the same key. */
  const keys = new Map<string, string>()
  const nothing = () => {}

  let state = State.initial
  let failures = 0
  /** The right to watch the run on display, had or waited for. Its end is the end of all work for that run. */
  let seat: AbortController | undefined
  let leading = false
  let asking = 0
  /** Counts how often something else was put on display, so that what comes late does not take its place. */
  let visit = 0
  let filling = false
  let hush = nothing
  let channel: Channel | undefined
  let sleep = nothing

  const set = (next: State.ClientState) => {
    if (state === next) return
    state = next
    if (state.cursor) attempt(() => storage?.setItem(storageKey, JSON.stringify(state.cursor)))
    for (const listener of listeners) listener()
  }

  const change = (changes: State.Changes) => set(State.change(state, changes))

  /** Applies what was heard, and tells the other tabs. */
  const hear = (link: State.Link, events: ReadonlyArray<Envelope> = []) => {
    if (events.length || link !== state.link) set(State.hear({ ...state, link }, events))
    const { run } = state
    if (leading && run) channel?.postMessage({ runId: run.runId, link, seq: run.seq, events })
  }

  const pause = (failed: number, leastMs = 0, signal?: AbortSignal) =>
    new Promise<void>((done) => {
      const end = () => {
        cancel()
        sleepers.delete(end)
        signal?.removeEventListener("abort", end)
        done()
      }
      const cancel = timer(end, leastMs + random() * Math.min(maxDelayMs, 1000 * 2 ** failed))
      sleepers.add(end)
      signal?.addEventListener("abort", end)
    })

  /** Does it again until it succeeds, the server refuses, or the signal says that nobody waits for it. */
  const persist = async (signal: AbortSignal, task: () => Promise<void>): Promise<boolean> => {
    while (!signal.aborted) {
      if (failures) hear("resuming")
      try {
        await task()
        return true
      } catch (thrown) {
        if (signal.aborted) break
        const error = unreachable(thrown)
        hear("interrupted")
        if (!error.transient) {
          change({ error })
          break
        }
        await pause(failures++, error.body.retryAfterMs, signal)
      }
    }
    return false
  }

  /** Shows the run as it stands, after what is shown or in place of it. */
  const sync = async (signal?: AbortSignal, instead?: State.ClientState) => {
    if (!state.run) return
    const snapshot = await call<Snapshot>("GET", Call.runPath(state.run.runId), { signal })
    if (!signal?.aborted) set(State.show(instead ?? state, snapshot))
  }

  /** Closes a hole in what was heard. */
  const fill = () => {
    if (filling) return
    filling = true
    sync(seat?.signal)
      .catch(nothing)
      .finally(() => {
        filling = false
      })
  }

  /** Watches the run until it has ended. */
  const watch = async (signal: AbortSignal) => {
    const { run } = state
    if (!run) return
    const read = makeReader()
    let pieces = 0
    try {
      const shown = await call<boolean>("GET", Call.runPath(run.runId, `/events?after=${run.seq}`), {
        signal,
        onBytes: (bytes) => {
          if (signal.aborted) return true
          const heard = read(bytes)
          // A server that only greets and falls silent is no better than none.
          if (heard.length || pieces++) failures = 0
          hear("open", heard)
          if (state.ahead.length) fill()
          return !state.run || isFinal(state.run)
        }
      })
      if (!shown) await sync(signal)
    } catch (error) {
      const { _tag } = unreachable(error)
      if (_tag !== "Compacted" && _tag !== "InvalidCursor") throw error
      // A log that is shorter than what was seen is another one.
      await sync(signal, State.enter(run.runId, { link: "resuming" }))
    }
    if (!State.isOver(state)) throw unreachable()
  }

  /** Silence of the tab that has the connection means that it does not have it any more. */
  const expect = () => {
    hush()
    hush = timer(() => sit(false, true), heartbeatMs * 2.5)
  }

  /** Sees to it that the run is watched, by this tab or another one, unless there is nothing to expect. */
  const sit = (forced = false, steal = false) => {
    const { run } = state
    if (!run || (seat && !steal) || (!forced && State.isOver(state))) return
    seat?.abort()
    const mine = new AbortController()
    seat = mine
    expect()
    const rise = () => {
      if (seat !== mine) return
      stand()
      sit()
    }
    tabs
      .lead(`runlet:${baseUrl}${run.runId}`, mine.signal, steal, async () => {
        let last = false
        if (seat === mine && (forced || !State.isOver(state))) {
          hush()
          leading = true
          last = await persist(mine.signal, () => watch(mine.signal))
        }
        rise()
        return last
      })
      .catch(rise)
    if (!leading) channel?.postMessage({ runId: run.runId })
  }

  const stand = () => {
    hush()
    seat?.abort()
    seat = undefined
    leading = false
  }

  const onTab = ({ events, link, runId, seq = 0 }: TabMessage) => {
    if (!runId) return retry()
    if (runId !== state.run?.runId) return
    if (!link) {
      if (leading) hear(state.link)
    } else if (!leading) {
      hear(link, events)
      if (state.ahead.length || seq > state.run.seq) fill()
      if (State.isOver(state)) return hush()
      expect()
      sit()
    }
  }

  const wake = () => {
    for (const end of sleepers) end()
    retry()
  }

  /** Tries again what needs no person to begin. */
  const retry = () => {
    const { error, run, signedOut } = state
    if (!run || isFinal(run) || (error && !signedOut)) return
    if (error) change({ error: undefined, link: "resuming" })
    sit(true)
  }

  const leave = () => {
    stand()
    channel?.close()
    channel = undefined
    sleep()
    failures = 0
  }

  const enter = (...run: Parameters<typeof State.enter>) => {
    leave()
    set(State.enter(...run))
    channel = tabs.listen(onTab)
    sleep = wakeups(wake)
  }

  const attach = async (runId: string) => {
    if (state.run?.runId === runId && !state.error) return true
    visit++
    enter(runId, { link: "resuming" })
    const mine = new AbortController()
    seat = mine
    const shown = await persist(mine.signal, () => sync(mine.signal))
    if (seat !== mine) return false
    stand()
    sit()
    return shown
  }

  const close = () => {
    visit++
    leave()
    set(State.initial)
  }

  const clear = () => {
    close()
    attempt(() => storage?.removeItem(storageKey))
  }

  const latest = async (conversationId: string) => {
    const path = `/runs?limit=1&conversationId=${encodeURIComponent(conversationId)}`
    const { items } = await call<{ readonly items: ReadonlyArray<Answers.RunSummary> }>("GET", path)
    return items[0]
  }

  const open = async (conversationId: string) => {
    const run = await latest(conversationId)
    return !!run && attach(run.runId)
  }

  const restore = async (conversationId?: string) => {
    const saved: State.Cursor | undefined = attempt(() => JSON.parse(storage?.getItem(storageKey) ?? ""))
    if (!saved?.runId || (conversationId && saved.conversationId !== conversationId)) return false
    const before = state
    // Without an answer the run itself is asked for, which goes on until there is one.
    const run = await latest(saved.conversationId).catch(({ status }: RunletError) =>
      status === 404 ? undefined : saved
    )
    if (state !== before) return false
    const shown = !!run && (await attach(run.runId))
    if (!run || (state.error && !state.signedOut)) clear()
    return shown
  }

  const current = () => {
    if (state.cursor) return state.cursor
    throw new RunletError(0, { _tag: "NotFound", message: "No run is on display." })
  }

  /** Sends a request that may cost something, again while there is no answer: it must be safe to repeat. */
  const ask = async <A>(send: () => Promise<A>): Promise<A> => {
    change({ starting: ++asking > 0 })
    try {
      for (let tries = 0; ; tries++) {
        try {
          return await send()
        } catch (thrown) {
          const error = unreachable(thrown)
          if (!error.transient || error.status === 429 || tries >= startRetries) throw error
          await pause(tries, error.body.retryAfterMs)
        }
      }
    } finally {
      change({ starting: --asking > 0 })
    }
  }

  const begin = async (path: string, body: object) => {
    const from = visit
    const what = path + JSON.stringify(body)
    const key = keys.get(what) ?? `${random()}${random()}`
    keys.set(what, key)
    const accepted = await ask<Answers.Accepted>(() => call("POST", path, { body, key })).catch(
      (error: RunletError) => {
        if (!error.transient) keys.delete(what)
        throw error
      }
    )
    keys.delete(what)
    const { runId } = accepted
    // Twice the same request is one run, and it may be on display already.
    if (visit === from && state.run?.runId !== runId) enter(runId, { cursor: { ...accepted, lastAppliedSeq: 0 } })
    sit()
    return accepted
  }

  return {
    getSnapshot: () => state,
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    start: (body) => begin("/chat", body),
    regenerate: async (body = {}) => begin(Call.runPath(current().runId, "/regenerate"), body),
    continue: async () => {
      const { assistantMessageId, lastAppliedSeq, runId } = current()
      const body = { lastAppliedSeq, assistantMessageId }
      const accepted = await ask<Answers.Accepted>(() => call("POST", Call.runPath(runId, "/resume"), { body }))
      sit(true)
      return accepted
    },
    cancel: async (reason) => {
      const result = await call<Answers.CancelResult>("POST", Call.runPath(current().runId, "/cancel"), {
        body: { reason }
      })
      sit(true)
      return result
    },
    decide: async (approvalId, body) =>
      call("POST", Call.runPath(current().runId, `/approvals/${encodeURIComponent(approvalId)}`), { body }),
    attach,
    open,
    restore,
    signedIn: () => {
      channel?.postMessage({})
      retry()
    },
    clear,
    close
  }
}
