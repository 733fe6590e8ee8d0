/**
 * What changes between two texts, line by line.
 *
 * @since 0.1.0
 */

const maxCells = 250_000

/** The length of the longest common subsequence of every pair of tails. */
const table = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Uint32Array> => {
  const rows = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const below = rows[i + 1]
      const here = rows[i]
      if (below !== undefined && here !== undefined) {
        here[j] = a[i] === b[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, here[j + 1] ?? 0)
      }
    }
  }
  return rows
}

const changed = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => {
  const removed = (line: string) => `- ${line}`
  const added = (line: string) => `+ ${line}`
  if (a.length * b.length > maxCells) {
    return [...a.map(removed), ...b.map(added)]
  }
  const rows = table(a, b)
  const out: Array<string> = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const [left, right] = [a[i], b[j]]
    if (left !== undefined && left === right) {
      out.push(`  ${left}`)
      i++
      j++
    } else if (right === undefined || (left !== undefined && (rows[i + 1]?.[j] ?? 0) >= (rows[i]?.[j + 1] ?? 0))) {
      out.push(removed(left ?? ""))
      i++
    } else {
      out.push(added(right))
      j++
    }
  }
  return out
}

/**
 * The lines of both texts: `- ` those that go, `+ ` those that come, two blanks before those that stay. Of what stays
 * at the beginning and the end only `context` lines are kept, with `…` for the rest.
 *
 * @since 0.1.0
 * @category comparing
 */
export const lines = (before: string, after: string, context = 3): string => {
  const a = before === "" ? [] : before.split("\n")
  const b = after === "" ? [] : after.split("\n")
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head++
  }
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) {
    tail++
  }
  const stays = (line: string) => `  ${line}`
  return [
    ...(head > context ? ["…"] : []),
    ...a.slice(Math.max(0, head - context), head).map(stays),
    ...changed(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail, a.length - tail + context).map(stays),
    ...(tail > context ? ["…"] : [])
  ].join("\n")
}
