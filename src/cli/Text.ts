/**
 * Text that others wrote, made fit for a terminal: nothing in it moves the cursor, changes colours or hides what stands
 * there, and its width is known.
 *
 * @since 0.1.0
 */
import { styleText } from "node:util"

// Controls, separators that break lines, marks that turn the direction of writing, and halves of characters.
const harmful = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/gu

const picture = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd"
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`
}

/**
 * The text with every character that a terminal would obey replaced by one that can be seen. Line feeds and tabs stay.
 *
 * @since 0.1.0
 * @category cleaning
 */
export const inert = (text: string): string => text.replace(/\r\n/g, "\n").replace(harmful, picture)

/**
 * The text as one line, inert as well.
 *
 * @since 0.1.0
 * @category cleaning
 */
export const line = (text: string): string =>
  inert(
    text
      .trim()
      .replace(/\s*\n\s*/g, " ⏎ ")
      .replace(/\s+/g, " ")
  )

const segmenter = new Intl.Segmenter()
const wide =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u
const empty = /^[\p{M}\p{Cf}\p{Cc}]/u

const widthOf = (segment: string): number => (wide.test(segment) ? 2 : empty.test(segment) ? 0 : 1)

/**
 * How many columns of a terminal a line of text takes. Characters of East Asia take two.
 *
 * @since 0.1.0
 * @category measuring
 */
export const width = (text: string): number => {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let columns = 0
  for (const { segment } of segmenter.segment(text)) columns += widthOf(segment)
  return columns
}

/**
 * The text, or as much of it as fits into so many columns, with an ellipsis.
 *
 * @since 0.1.0
 * @category measuring
 */
export const fit = (text: string, columns: number): string => {
  if (text.length <= columns && width(text) <= columns) return text
  let kept = ""
  let used = 1
  for (const { segment } of segmenter.segment(text)) {
    used += widthOf(segment)
    if (used > columns) break
    kept += segment
  }
  return `${kept}…`
}

/**
 * The text with blanks behind it, up to so many columns.
 *
 * @since 0.1.0
 * @category measuring
 */
export const pad = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - width(text)))

/**
 * How parts of a text are set off from each other, if at all.
 *
 * @since 0.1.0
 * @category styling
 */
export interface Style {
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
  readonly good: (text: string) => string
  readonly bad: (text: string) => string
  readonly notice: (text: string) => string
}

const plain = (text: string): string => text
const styled =
  (format: Parameters<typeof styleText>[0]) =>
  (text: string): string =>
    styleText(format, text)

/**
 * Styles for a terminal that has colours, or none at all.
 *
 * @since 0.1.0
 * @category styling
 */
export const style = (isStyled: boolean): Style =>
  isStyled
    ? {
        dim: styled("dim"),
        bold: styled("bold"),
        good: styled("green"),
        bad: styled("red"),
        notice: styled("yellow")
      }
    : { dim: plain, bold: plain, good: plain, bad: plain, notice: plain }

/**
 * Any value as text for people: a text as it is, everything else as JSON. Not inert.
 *
 * @since 0.1.0
 * @category text
 */
export const show = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "")

/**
 * A moment in the local time of the reader.
 *
 * @since 0.1.0
 * @category text
 */
export const moment = (ms: number): string => new Date(ms).toLocaleString("sv-SE")

/**
 * A duration: `320 ms`, `4.2 s`, `3 min 20 s`.
 *
 * @since 0.1.0
 * @category text
 */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes} min ${Math.floor(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
