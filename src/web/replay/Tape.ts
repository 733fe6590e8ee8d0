/**
 * A recording that is being made: from the server, as long as the run goes on, or from a file. What a page draws of it
 * are signals.
 *
 * @since 0.1.0
 */
import { batch, type ReadonlySignal, signal } from "@preact/signals"
import { type RunletError, unreachable } from "../../client/RunletError.js"
import * as RunState from "../../domain/RunState.js"
import * as Status from "../../domain/RunStatus.js"
import type * as Snapshot from "../../domain/Snapshot.js"
import * as Recording from "./Recording.js"
import * as Source from "./Source.js"
import * as Trace from "./Trace.js"

/**
 * Why there is no recording, or not all of it.
 *
 * @since 0.1.0
 * @category models
 */
export type Trouble =
  | { readonly is: "refused"; readonly error: RunletError }
  | { readonly is: "unsound"; readonly problem: Trace.Problem }
  | { readonly is: "unreadable" }

/**
 * - `name`: the run's id, or the file's name; `file`: which of the two
 * - `stored`: how many events are known to exist; `link`: how they come in
 * - `removed`: the server has removed the events, and what they came to is all there is
 * - `snapshot`, `question`: what the server says besides the log
 * - `revive`: looks for what may have changed since it ended; `close`: takes in nothing more
 *
 * @since 0.1.0
 * @category models
 */
export interface Tape {
  readonly name: string
  readonly file: boolean
  readonly recording: ReadonlySignal<Recording.Recording>
  readonly link: ReadonlySignal<Source.Link>
  readonly stored: ReadonlySignal<number>
  readonly removed: ReadonlySignal<boolean>
  readonly trouble: ReadonlySignal<Trouble | undefined>
  readonly snapshot: ReadonlySignal<Snapshot.Snapshot | undefined>
  readonly question: ReadonlySignal<string>
  readonly revive: () => void
  readonly close: () => void
}

/**
 * Whether more events may come.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isOpen = ({ link, trouble }: Tape): boolean => link.value !== "ended" && trouble.value === undefined

/**
 * The recording of a run that the server has.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofRun = (api: Source.Reads, runId: string): Tape => {
  const recording = signal(Recording.empty(runId))
  const link = signal<Source.Link>("loading")
  const stored = signal(0)
  const removed = signal(false)
  const trouble = signal<Trouble>()
  const snapshot = signal<Snapshot.Snapshot>()
  const question = signal("")
  const abort = new AbortController()

  /** The message that was answered is no part of the run's log. */
  const ask = async ({ conversationId, userMessageId }: Snapshot.Snapshot) => {
    const { messages } = await api.conversation(conversationId)
    question.value = messages.find(({ messageId }) => messageId === userMessageId)?.content ?? ""
  }

  const watcher: Source.Watcher = {
    link: (now) => {
      link.value = now
    },
    snapshot: (now) =>
      batch(() => {
        // Without the question a replay is as good.
        if (snapshot.value === undefined) ask(now).catch(() => {})
        snapshot.value = now
        stored.value = Math.max(stored.value, now.lastSeq)
      }),
    removed: (now) =>
      batch(() => {
        recording.value = Recording.from(RunState.ofSnapshot(now))
        removed.value = true
      }),
    events: (envelopes) =>
      batch(() => {
        recording.value = Recording.append(recording.value, envelopes)
        stored.value = Math.max(stored.value, recording.value.end.seq)
      }),
    cursor: () => recording.value.end.seq,
    over: () => Status.isEnded(recording.value.end.status)
  }

  let watching = false
  const watch = () => {
    if (watching || abort.signal.aborted) return
    watching = true
    trouble.value = undefined
    Source.watch(api, runId, watcher, abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted) trouble.value = { is: "refused", error: unreachable(error) }
      })
      .finally(() => {
        watching = false
      })
  }
  watch()

  return {
    name: runId,
    file: false,
    recording,
    link,
    stored,
    removed,
    trouble,
    snapshot,
    question,
    revive: () => {
      const refused = trouble.value?.is === "refused"
      if (refused || (link.value === "ended" && !Status.isFinal(recording.value.end))) watch()
    },
    close: () => abort.abort()
  }
}

/**
 * The recording that a trace file has. It is read a piece at a time, so that the page stays alive meanwhile.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofFile = (file: File): Tape => {
  const recording = signal(Recording.empty(file.name))
  const link = signal<Source.Link>("loading")
  const trouble = signal<Trouble>()
  const stored = signal(0)
  let open = true

  const take = ({ envelopes, problem }: Trace.Trace) =>
    batch(() => {
      const [first] = envelopes
      if (first !== undefined) {
        const before = recording.value.end.seq === 0 ? Recording.empty(first.runId) : recording.value
        recording.value = Recording.append(before, envelopes)
        stored.value = recording.value.end.seq
      }
      if (problem !== undefined) trouble.value = { is: "unsound", problem }
    })

  const read = async () => {
    const reader = Trace.makeReader()
    const pieces = file.stream().getReader()
    const decoder = new TextDecoder()
    while (open && trouble.value === undefined) {
      const { done, value } = await pieces.read()
      if (done) break
      take(reader.push(decoder.decode(value, { stream: true })))
    }
    if (open) take(reader.end())
  }
  read()
    .catch(() => {
      trouble.value = { is: "unreadable" }
    })
    .finally(() => {
      link.value = "ended"
    })

  return {
    name: file.name,
    file: true,
    recording,
    link,
    stored,
    removed: signal(false),
    trouble,
    snapshot: signal(undefined),
    question: signal(""),
    revive: () => {},
    close: () => {
      open = false
    }
  }
}
