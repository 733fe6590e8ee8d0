/**
 * What the pages say, in English: the table that the other languages follow. An entry is a text, or a function of what
 * the text tells.
 *
 * @since 0.1.0
 */

const counted = (count: number, one: string, other: string) => `${count} ${count === 1 ? one : other}`

/**
 * The English texts.
 *
 * @since 0.1.0
 * @category texts
 */
export const en = {
  "app.name": "Runlet",
  "language.switch": "Language",
  "theme.switch": "Appearance",
  "theme.auto": "As the system",
  "theme.light": "Light",
  "theme.dark": "Dark",
  "common.close": "Close",
  "common.cancel": "Cancel",
  "common.copy": "Copy",
  "common.copied": "Copied",
  "common.loading": "Loading…",
  "common.tokens": (count: number) => counted(count, "token", "tokens")
}

/**
 * A table of texts: each key of the English one, with an entry that is used in the same way.
 *
 * @since 0.1.0
 * @category models
 */
export type Texts = {
  readonly [Key in keyof typeof en]: (typeof en)[Key] extends (...told: infer Told) => string
    ? (...told: Told) => string
    : string
}
