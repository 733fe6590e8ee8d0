/**
 * Two runs side by side, as they stood at some moment: their turns one beside the other, and in them what both have in
 * common and what differs, down to the word.
 *
 * @since 0.1.0
 */
import { diffArrays, diffWordsWithSpace } from "diff"
import * as RunState from "../../domain/RunState.js"

/**
 * A piece of a turn of one run, the other, or both.
 *
 * @since 0.1.0
 * @category models
 */
export type Row = { readonly iteration: number } & (
  | {
      readonly is: "text" | "reasoning"
      readonly left?: string | undefined
      readonly right?: string | undefined
    }
  | {
      readonly is: "call"
      readonly left?: RunState.Call | undefined
      readonly right?: RunState.Call | undefined
    }
)

type Piece =
  | { readonly is: "text" | "reasoning"; readonly text: string }
  | { readonly is: "call"; readonly call: RunState.Call }

/** The parts of a turn, with adjacent ones of the same kind as one. */
const piecesOf = (turn: RunState.Turn | undefined): ReadonlyArray<Piece> => {
  const pieces: Array<Piece> = []
  for (const part of turn?.parts ?? []) {
    const last = pieces.at(-1)
    if (part.type === "tool-call") {
      const call = turn?.calls.find(({ id }) => id === part.toolCallId)
      if (call !== undefined) pieces.push({ is: "call", call })
    } else if (last?.is === part.type) {
      pieces[pieces.length - 1] = { is: part.type, text: last.text + part.text }
    } else {
      pieces.push({ is: part.type, text: part.text })
    }
  }
  return pieces
}

/** Pieces that may stand beside each other: of one kind, and calls of one tool. */
const alike = (a: Piece, b: Piece): boolean =>
  a.is === "call" || b.is === "call" ? a.is === "call" && b.is === "call" && a.call.name === b.call.name : a.is === b.is

const rowOf = (iteration: number, left: Piece | undefined, right: Piece | undefined): Row | undefined => {
  const some = left ?? right
  if (some === undefined) return undefined
  if (some.is === "call") {
    return {
      is: "call",
      iteration,
      ...(left?.is === "call" && { left: left.call }),
      ...(right?.is === "call" && { right: right.call })
    }
  }
  return {
    is: some.is,
    iteration,
    ...(left !== undefined && left.is !== "call" && { left: left.text }),
    ...(right !== undefined && right.is !== "call" && { right: right.text })
  }
}

/**
 * The rows that show both states. Turns stand beside each other by their number, the pieces of a turn in the order that
 * leaves the fewest alone.
 *
 * @since 0.1.0
 * @category comparing
 */
export const align = (left: RunState.RunState, right: RunState.RunState): ReadonlyArray<Row> => {
  const lefts = RunState.turns(left)
  const rights = RunState.turns(right)
  return Array.from({ length: Math.max(lefts.length, rights.length) }, (_, index) => {
    const iteration = (lefts[index] ?? rights[index])?.n ?? index + 1
    const a = piecesOf(lefts[index])
    const b = piecesOf(rights[index])
    let inLeft = 0
    let inRight = 0
    return diffArrays([...a], [...b], { comparator: alike })
      .flatMap(({ added, count, removed }) =>
        Array.from({ length: count }, () =>
          rowOf(iteration, added ? undefined : a[inLeft++], removed ? undefined : b[inRight++])
        )
      )
      .filter((row) => row !== undefined)
  }).flat()
}

/**
 * A piece of two texts: of both, or of one of them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Change {
  readonly in: "both" | "left" | "right"
  readonly text: string
}

/** How many words may differ before the texts are taken to have nothing in common, which bounds the time it takes. */
const mostEdits = 1000

/**
 * What must be taken from the left text and put into it to get the right one, word by word; in languages that write
 * without blanks, character by character.
 *
 * @since 0.1.0
 * @category comparing
 */
export const words = (left: string, right: string): ReadonlyArray<Change> => {
  const changes = diffWordsWithSpace(left, right, { maxEditLength: mostEdits })
  if (changes !== undefined) {
    return changes.map(({ added, removed, value }) => ({
      in: added ? "right" : removed ? "left" : "both",
      text: value
    }))
  }
  const whole: ReadonlyArray<Change> = [
    { in: "left", text: left },
    { in: "right", text: right }
  ]
  return whole.filter(({ text }) => text !== "")
}

const wordOf = /\p{Script=Han}|(?:(?!\p{Script=Han})[\p{L}\p{N}])+/gu

/**
 * How alike two texts are: the share of their words that is in both, whatever their order, from 0 to 1.
 *
 * @since 0.1.0
 * @category comparing
 */
export const likeness = (left: string, right: string): number => {
  const counts = new Map<string, number>()
  let all = 0
  let both = 0
  for (const [word] of left.matchAll(wordOf)) {
    counts.set(word, (counts.get(word) ?? 0) + 1)
    all++
  }
  for (const [word] of right.matchAll(wordOf)) {
    const count = counts.get(word) ?? 0
    if (count > 0) {
      counts.set(word, count - 1)
      both += 2
    }
    all++
  }
  return all === 0 ? 1 : both / all
}
