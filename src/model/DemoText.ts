/**
 * What the demo model knows of language: where words end, and which sentences of a text speak about a question. Pure.
 *
 * @since 0.1.0
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}"
const hasCjk = new RegExp(`[${cjk}]`, "u")
const pieces = new RegExp(`\\s*(?:[${cjk}\\u3000-\\u303F\\uFF00-\\uFFEF]{1,2}|[^\\s${cjk}]+)|\\s+$`, "gu")

/**
 * Whether a text is written in Chinese, Japanese or Korean.
 *
 * @since 0.1.0
 * @category language
 */
export const isEastAsian = (text: string): boolean => hasCjk.test(text)

/**
 * A text in the pieces in which it is spoken: words with the blanks before them, or two characters where a script does
 * not part words. Joined they are the text.
 *
 * @since 0.1.0
 * @category language
 */
export const words = (text: string): ReadonlyArray<string> => text.match(pieces) ?? []

const idle = new Set(
  "about and are can does did for from get has have how into its know like may please should tell that the their them there these they this was were what when where which who why will with would you your".split(
    " "
  )
)

const clues = (question: string): ReadonlyArray<string> =>
  (question.toLowerCase().match(new RegExp(`[${cjk}]+|[\\p{L}\\p{N}]+`, "gu")) ?? []).flatMap((word) => {
    if (hasCjk.test(word)) {
      const characters = Array.from(word)
      return characters
        .slice(0, Math.max(1, characters.length - 1))
        .map((_, at) => characters.slice(at, at + 2).join(""))
    }
    return word.length < 3 || idle.has(word) ? [] : [word.length > 5 ? word.slice(0, -2) : word]
  })

/** Prose without the marks of its headings and lists, and without code. */
const plain = (markdown: string): string =>
  markdown
    .replace(/```[\s\S]*?(```|$)/g, "\n")
    .replace(/^#{1,6} .*$/gm, "\n")
    .replace(/^[^\S\n]*(?:[-*+]|\d+\.)\s+/gm, "")

const sentences = (text: string): ReadonlyArray<string> =>
  plain(text)
    .split("\n")
    .flatMap((line) => line.match(/[^。！？]*?(?:[.!?](?=\s|$)|[。！？]|$)/gu) ?? [])
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length > 12 || (hasCjk.test(sentence) && sentence.length > 5))

/**
 * Up to `count` sentences of a text that speak about a question, in the order of the text.
 *
 * @since 0.1.0
 * @category language
 */
export const relevant = (text: string, question: string, count: number): ReadonlyArray<string> => {
  const wanted = [...new Set(clues(question))]
  return sentences(text)
    .map((sentence, at) => {
      const lower = sentence.toLowerCase()
      return { sentence, at, points: wanted.filter((clue) => lower.includes(clue)).length }
    })
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points || a.at - b.at)
    .slice(0, count)
    .sort((a, b) => a.at - b.at)
    .map(({ sentence }) => sentence)
}

/**
 * The first sentences of a text.
 *
 * @since 0.1.0
 * @category language
 */
export const opening = (text: string, count: number): ReadonlyArray<string> => sentences(text).slice(0, count)
