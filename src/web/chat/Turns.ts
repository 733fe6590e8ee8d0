/**
 * A conversation as turns: each question with the runs that answer it. Pure.
 *
 * @since 0.1.0
 */

import type { Accepted, RunSummary } from "../../client/Answers.js"
import type { Message } from "../../client/Api.js"
import * as Status from "../../domain/RunStatus.js"

/**
 * A question and its answers, the oldest first: later ones were made because somebody asked for another answer. A
 * question that came with its answer from elsewhere has no runs, and `text` is its answer.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  readonly key: string
  readonly question: string
  readonly text: string
  readonly runIds: ReadonlyArray<string>
}

/** As much of a run as it takes to put it in its place. */
type Placed = Pick<RunSummary, "runId" | "userMessageId" | "createdAt">

const byAge = (a: Placed, b: Placed) => a.createdAt - b.createdAt || (a.runId < b.runId ? -1 : 1)

/**
 * The turns of a conversation, from its messages and its runs.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = (messages: ReadonlyArray<Message>, runs: ReadonlyArray<Placed>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  for (const { content, messageId, role, runId } of messages) {
    const last = turns.at(-1)
    if (role === "user") {
      const versions = runs
        .filter((run) => run.userMessageId === messageId)
        .sort(byAge)
        .map((run) => run.runId)
      // The list of the runs may be older than the messages.
      const runIds = runId === undefined || versions.includes(runId) ? versions : [...versions, runId]
      turns.push({ key: runIds[0] ?? messageId, question: content, text: "", runIds })
    } else if (last === undefined) {
      turns.push({ key: messageId, question: "", text: content, runIds: runId === undefined ? [] : [runId] })
    } else {
      turns[turns.length - 1] = { ...last, text: last.text === "" ? content : `${last.text}\n\n${content}` }
    }
  }
  return turns
}

/**
 * The turns that were loaded, and what began here since `before` (the runs shown when they were asked for) and is not
 * among them yet.
 *
 * @since 0.1.0
 * @category combining
 */
export const merge = (
  shown: ReadonlyArray<Turn>,
  loaded: ReadonlyArray<Turn>,
  before: ReadonlySet<string>
): ReadonlyArray<Turn> => {
  const known = new Set(loaded.flatMap(({ runIds }) => runIds))
  const late = ({ runIds }: Turn) => runIds.filter((runId) => !before.has(runId) && !known.has(runId))
  const same = (turn: Turn) => shown.find(({ key }) => key === turn.key)
  return [
    ...loaded.map((turn) => {
      const more = late(same(turn) ?? turn)
      return more.length === 0 ? turn : { ...turn, runIds: [...turn.runIds, ...more] }
    }),
    ...shown.filter((turn) => late(turn).length > 0 && !loaded.some(({ key }) => key === turn.key))
  ]
}

/**
 * A turn that begins with a question that was accepted.
 *
 * @since 0.1.0
 * @category constructors
 */
export const begun = (question: string, { runId }: Accepted): Turn => ({
  key: runId,
  question,
  text: "",
  runIds: [runId]
})

/**
 * The newest run of a turn, which is the one that counts.
 *
 * @since 0.1.0
 * @category reading
 */
export const newest = ({ runIds }: Turn): string | undefined => runIds.at(-1)

/**
 * The run that a reader waits for: the first that has not ended, or else the last.
 *
 * @since 0.1.0
 * @category reading
 */
export const current = (turns: ReadonlyArray<Turn>, isOver: (runId: string) => boolean): string | undefined => {
  const last = turns.flatMap((turn) => newest(turn) ?? [])
  return last.find((runId) => !isOver(runId)) ?? last.at(-1)
}

interface Said {
  readonly role: "user" | "assistant"
  readonly content: string
}

/**
 * What is sent as the beginning of another conversation that says something else from a turn on: all that was said
 * before it, and the new question.
 *
 * @since 0.1.0
 * @category branching
 */
export const branch = (
  turns: ReadonlyArray<Turn>,
  at: number,
  question: string,
  answerOf: (turn: Turn) => string
): readonly [Said, ...ReadonlyArray<Said>] => {
  const before = turns.slice(0, at).flatMap((turn): ReadonlyArray<Said> => {
    const said: ReadonlyArray<Said> = [
      { role: "user", content: turn.question },
      { role: "assistant", content: answerOf(turn) }
    ]
    return said.filter(({ content }) => content.trim() !== "")
  })
  const last: Said = { role: "user", content: question }
  const [first, ...rest] = before
  return first === undefined ? [last] : [first, ...rest, last]
}

/**
 * Whether nothing more comes of a run unless somebody asks for it.
 *
 * @since 0.1.0
 * @category reading
 */
export const isOver = (run: { readonly status: Status.RunStatus } | undefined): boolean =>
  run !== undefined && Status.isEnded(run.status)
