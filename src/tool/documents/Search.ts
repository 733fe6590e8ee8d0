/**
 * Finds texts for a question: what to look for, which text answers best, and which part of it to show. Pure, and the
 * same for every store.
 *
 * @since 0.1.0
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}"
const pieces = new RegExp(`[${cjk}]+|[^\\s\\p{P}\\p{S}${cjk}]+`, "gu")
const isCjk = new RegExp(`^[${cjk}]`, "u")

const idle = new Set(
  (
    "a about all also am an and any are as at be been but by can could did do does for from get give go had has have " +
    "he her his how i if in into is it its just know like may me more my need no not of on one or our please she so " +
    "some tell than that the their them then there these they this to up us use was we were what when where which " +
    "who why will with would you your 什么 怎么 如何 可以 一个 请问 怎样 哪些 为什 是什 么是"
  ).split(" ")
)

/** Endings that hide that two words are the same one. */
const stem = (word: string): string =>
  word.length > 5 ? word.replace(/(ing|ed|es|s)$/, "") : word.length > 3 ? word.replace(/s$/, "") : word

const grams = (run: string, size: number): ReadonlyArray<string> => {
  const characters = Array.from(run)
  return characters.length <= size
    ? [run]
    : characters.slice(0, characters.length - size + 1).map((_, at) => characters.slice(at, at + size).join(""))
}

const normal = (text: string): string => text.normalize("NFKC").toLowerCase()

/**
 * The words of a question that are worth looking for, in lower case and without their endings, at most 24. Scripts that
 * do not part words are taken in overlapping pieces of `size` characters.
 *
 * @since 0.1.0
 * @category queries
 */
export const terms = (question: string, size = 2): ReadonlyArray<string> => {
  const words = (normal(question.slice(0, 500)).match(pieces) ?? []).flatMap((piece) =>
    isCjk.test(piece) ? grams(piece, size) : [piece]
  )
  const telling = words.filter((word) => !idle.has(word))
  return [...new Set((telling.length > 0 ? telling : words).map(stem))].slice(0, 24)
}

const count = (text: string, term: string): number => text.split(term).length - 1

/**
 * The texts that hold any of the terms, best first. A term counts the more the rarer it is, and most in a title.
 *
 * @since 0.1.0
 * @category queries
 */
export const rank = <A extends { readonly id: string; readonly title: string; readonly text: string }>(
  documents: ReadonlyArray<A>,
  wanted: ReadonlyArray<string>
): ReadonlyArray<A> => {
  const read = documents.map((document) => ({
    document,
    title: normal(document.title),
    text: normal(document.text)
  }))
  const scores = new Map<A, number>()
  for (const term of wanted) {
    const holders = read.filter(({ text, title }) => title.includes(term) || text.includes(term))
    const rarity = Math.log(1 + documents.length / Math.max(1, holders.length))
    for (const { document, text, title } of holders) {
      const weight = (title.includes(term) ? 4 : 0) + 1 + Math.min(count(text, term), 8) / 4
      scores.set(document, (scores.get(document) ?? 0) + rarity * weight)
    }
  }
  return [...scores].sort(([a, x], [b, y]) => y - x || (a.id < b.id ? -1 : 1)).map(([document]) => document)
}

const sentences = /[^.!?。！？\n]+[.!?。！？]*/gu

/**
 * The part of a text that holds most of the terms, about `length` characters of whole sentences.
 *
 * @since 0.1.0
 * @category queries
 */
export const excerpt = (text: string, wanted: ReadonlyArray<string>, length = 240): string => {
  const all = (text.match(sentences) ?? []).map((sentence) => sentence.trim()).filter((sentence) => sentence !== "")
  const points = all.map((sentence) => wanted.filter((term) => normal(sentence).includes(term)).length)
  const best = points.reduce((at, value, index) => (value > (points[at] ?? 0) ? index : at), 0)
  let kept = all[best] ?? ""
  for (const next of all.slice(best + 1)) {
    if (kept.length + next.length > length) {
      break
    }
    kept = `${kept} ${next}`
  }
  return kept.length > length * 2 ? `${Array.from(kept.slice(0, length * 2)).join("")}…` : kept
}
