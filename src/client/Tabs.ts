/**
 * How the tabs of one browser share a connection: for each run one of them has it and tells the others what it hears.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import type { Link } from "./ClientState.js"

/**
 * What tabs say to each other. With `link`: how the tab with the connection stands, how far it is, and what it just
 * heard. Without: a tab that has none asks how things are. Without a run: somebody signed in.
 *
 * @since 0.1.0
 * @category models
 */
export interface TabMessage {
  readonly runId?: string | undefined
  readonly link?: Link | undefined
  readonly seq?: number | undefined
  readonly events?: ReadonlyArray<Envelope> | undefined
}

/**
 * The way to speak to the other tabs, and to stop hearing them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Channel {
  readonly postMessage: (message: TabMessage) => void
  readonly close: () => void
}

/**
 * - `listen`: begins to hear the others
 * - `lead`: does the task as the only tab that does it, once it is this tab's turn, or at once, taking it away from
 *   another (`steal`). Rejects when it is taken away from this one, or when the signal gives up waiting. A task that
 *   resolves with `true` has nothing left for the others to do, once they have heard so
 *
 * @since 0.1.0
 * @category models
 */
export interface Tabs {
  readonly listen: (hear: (message: TabMessage) => void) => Channel
  readonly lead: (name: string, signal: AbortSignal, steal: boolean, task: () => Promise<boolean>) => Promise<unknown>
}

/**
 * No other tabs: everybody has a connection of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const alone: Tabs = {
  listen: () => ({ postMessage: () => {}, close: () => {} }),
  lead: (_name, _signal, _steal, task) => task()
}

/**
 * The tabs of this browser, by Web Locks and a broadcast channel. Where one of the two is missing: none.
 *
 * @since 0.1.0
 * @category constructors
 */
export const browserTabs = (): Tabs => {
  const locks = globalThis.navigator?.locks
  if (!locks || !globalThis.BroadcastChannel) return alone
  return {
    listen: (hear) => {
      const channel = new BroadcastChannel("runlet")
      channel.onmessage = ({ data }) => hear(data)
      return channel
    },
    lead: (name, signal, steal, task) =>
      locks.request<Promise<unknown>>(name, steal ? { steal } : { signal }, async () => {
        // A lock may overtake the message that says why it is free.
        if (await task()) await new Promise((done) => setTimeout(done, 200))
      })
  }
}
