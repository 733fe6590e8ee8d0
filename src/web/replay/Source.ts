/**
 * The log of a run as the server has it: all of it, piece by piece, and then what happens. It only ever reads; a
 * connection that is lost is made again from where it was.
 *
 * @since 0.1.0
 */
import type { Api } from "../../client/Api.js"
import { platformTimer, type Timer } from "../../client/Call.js"
import { makeReader } from "../../client/Frames.js"
import { RunletError, unreachable } from "../../client/RunletError.js"
import type { AgentRunCheckpoint } from "../../domain/Checkpoint.js"
import type { Envelope } from "../../domain/Envelope.js"
import type { Snapshot } from "../../domain/Snapshot.js"

/**
 * The calls that the replay makes. None of them changes anything.
 *
 * @since 0.1.0
 * @category models
 */
export type Reads = Pick<Api, "run" | "runs" | "events" | "conversation"> & {
  readonly checkpoint: (runId: string, seq: number, signal?: AbortSignal) => Promise<AgentRunCheckpoint>
}

/**
 * Only the reading calls of a server, and that of a checkpoint.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeReads = (api: Api, fetch: typeof globalThis.fetch = globalThis.fetch.bind(globalThis)): Reads => ({
  run: api.run,
  runs: api.runs,
  events: api.events,
  conversation: api.conversation,
  checkpoint: async (runId, seq, signal) => {
    const path = `/runs/${encodeURIComponent(runId)}/checkpoints/${seq}`
    const response = await fetch(path, {
      credentials: "same-origin",
      cache: "no-store",
      ...(signal && { signal })
    }).catch((error: unknown) => {
      throw unreachable(error)
    })
    const body: unknown = await response.json().catch(() => undefined)
    // The answers of a server are of the shape that its contract gives them.
    if (response.ok) return body as AgentRunCheckpoint
    throw unreachable(undefined, response.status)
  }
})

/**
 * - `loading`: what is stored is arriving; `live`: all of it is here and the run goes on
 * - `ended`: the run is over; `lost`: there is no connection, and it is tried again
 *
 * @since 0.1.0
 * @category models
 */
export type Link = "loading" | "live" | "ended" | "lost"

/**
 * What somebody who watches is told. `removed`: the log up to the snapshot's last event is no more.
 *
 * @since 0.1.0
 * @category models
 */
export interface Watcher {
  readonly link: (link: Link) => void
  readonly snapshot: (snapshot: Snapshot) => void
  readonly removed: (snapshot: Snapshot) => void
  readonly events: (envelopes: ReadonlyArray<Envelope>) => void
  /** The last event that is known. */
  readonly cursor: () => number
  /** Whether nothing is to be expected behind it. */
  readonly over: () => boolean
}

/**
 * How long to wait for more before what came is told, and how long before a lost connection is made again.
 *
 * @since 0.1.0
 * @category options
 */
export interface Pace {
  readonly timer: Timer
  readonly batchMs: number
  readonly retryMs: (failures: number) => number
}

/**
 * Tells once a frame, and tries again after a second, then two, four, up to fifteen.
 *
 * @since 0.1.0
 * @category options
 */
export const pace: Pace = {
  timer: platformTimer,
  batchMs: 16,
  retryMs: (failures) => Math.min(15_000, 1000 * 2 ** failures) * (0.5 + Math.random() / 2)
}

const wait = ({ timer }: Pace, ms: number, signal: AbortSignal) =>
  new Promise<void>((done) => {
    const end = () => {
      cancel()
      signal.removeEventListener("abort", end)
      done()
    }
    const cancel = timer(end, ms)
    signal.addEventListener("abort", end)
  })

/** Reads one connection to its end, and tells what comes a batch at a time. */
const read = async (
  api: Reads,
  runId: string,
  watcher: Watcher,
  until: () => number,
  signal: AbortSignal,
  { batchMs, timer }: Pace
) => {
  const reader = makeReader()
  let batch: Array<Envelope> = []
  let pending: (() => void) | undefined
  const tell = () => {
    pending?.()
    pending = undefined
    const heard = batch
    batch = []
    if (signal.aborted || heard.length === 0) return
    watcher.events(heard)
    watcher.link(watcher.cursor() < until() ? "loading" : "live")
  }
  const more = await api
    .events(
      runId,
      watcher.cursor(),
      (bytes) => {
        for (const envelope of reader(bytes)) batch.push(envelope)
        pending ??= timer(tell, batchMs)
      },
      signal
    )
    .finally(tell)
  return more
}

/**
 * Watches a run until it is over, the signal says that nobody looks any more, or the server refuses, with which it
 * fails.
 *
 * @since 0.1.0
 * @category watching
 */
export const watch = async (
  api: Reads,
  runId: string,
  watcher: Watcher,
  signal: AbortSignal,
  options: Pace = pace
): Promise<void> => {
  let failures = 0
  let stored = 0
  watcher.link("loading")
  while (!signal.aborted) {
    const before = watcher.cursor()
    try {
      const snapshot = await api.run(runId, signal)
      if (signal.aborted) return
      stored = snapshot.lastSeq
      watcher.snapshot(snapshot)
      watcher.link(watcher.cursor() < stored ? "loading" : "live")
      const more = await read(api, runId, watcher, () => stored, signal, options).catch((error: unknown) => {
        if (unreachable(error)._tag !== "Compacted" || signal.aborted) throw error
        watcher.removed(snapshot)
        return false
      })
      if (signal.aborted) return
      if (watcher.over() || !more) return watcher.link("ended")
    } catch (thrown) {
      if (signal.aborted) return
      const error = unreachable(thrown)
      if (!error.transient) throw error
    }
    // A connection that brought something was not in vain.
    failures = watcher.cursor() > before ? 0 : failures + 1
    watcher.link("lost")
    await wait(options, options.retryMs(failures), signal)
    if (!signal.aborted) watcher.link("loading")
  }
}

/**
 * The other answers to the same message, newest first: those that a run was made again for, or again from.
 *
 * @since 0.1.0
 * @category reading
 */
export const versions = async (
  api: Reads,
  run: Pick<Snapshot, "runId" | "conversationId" | "userMessageId">,
  signal?: AbortSignal
): Promise<Awaited<ReturnType<Reads["runs"]>>["items"]> => {
  const found: Array<Awaited<ReturnType<Reads["runs"]>>["items"][number]> = []
  let cursor: string | undefined
  do {
    const page = await api.runs({ conversationId: run.conversationId, limit: 100, cursor })
    if (signal?.aborted) return []
    for (const item of page.items) {
      if (item.userMessageId === run.userMessageId && item.runId !== run.runId) found.push(item)
    }
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}

/**
 * Whether an error says that the server does not know this browser any more.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSignedOut = (error: unknown): boolean => error instanceof RunletError && error.status === 401
