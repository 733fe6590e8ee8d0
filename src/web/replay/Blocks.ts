/**
 * A Markdown text in pieces that can be drawn by themselves, so that of a long one only what is in view need be drawn,
 * and of a growing one only its end.
 *
 * @since 0.1.0
 */

/**
 * A piece of a text. `opening` is what must stand before it, when it begins within a block of code.
 *
 * @since 0.1.0
 * @category models
 */
export interface Block {
  readonly text: string
  readonly opening: string
}

/** A longer piece is cut, even if that shows. */
const longest = 6000

const fenceOf = (line: string): string | undefined => /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
const isItem = (line: string): boolean => /^\s*([-*+]|\d{1,9}[.)])\s/.test(line)
/** What a growing text ends with may become one: it stays with its list until that is known. */
const mayBecomeItem = (line: string): boolean => /^\s*([-*+]|\d{1,9}[.)]?)$/.test(line)

/**
 * The pieces of a text, which together are the text: paragraphs, lists, tables, blocks of code.
 *
 * @since 0.1.0
 * @category parsing
 */
export const split = (text: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let begin = 0
  let opening = ""
  let fence = ""
  let fenceLine = ""
  let list = false
  let blank = false

  const cut = (end: number) => {
    if (end > begin) blocks.push({ text: text.slice(begin, end), opening })
    begin = end
    opening = fence === "" ? "" : `${fenceLine}\n`
    list = false
    blank = false
  }

  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf("\n", at)
    const end = newline === -1 ? text.length : newline + 1
    const line = text.slice(at, newline === -1 ? end : newline)
    const marker = fenceOf(line)
    if (fence !== "") {
      if (marker?.startsWith(fence) === true && line.trim() === marker) fence = ""
    } else if (line.trim() === "") {
      blank = true
    } else {
      const goesOn = list && (isItem(line) || /^\s/.test(line) || (newline === -1 && mayBecomeItem(line)))
      if (blank && !goesOn) cut(at)
      blank = false
      if (at === begin) list = isItem(line)
      if (marker !== undefined) {
        fence = marker
        fenceLine = line
      }
    }
    // A surrogate pair and a fence's own line stay whole.
    while (end - begin > longest) {
      const to = Math.max(begin + longest, fence !== "" && fenceLine === line ? end : 0)
      const code = text.charCodeAt(to)
      cut(code >= 0xdc00 && code < 0xe000 ? to + 1 : to)
    }
    at = end
  }
  cut(text.length)
  return blocks
}
