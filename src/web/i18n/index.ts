/**
 * The language of the pages. It is the browser's, until a person chooses another one.
 *
 * @since 0.1.0
 */
import { effect, signal } from "@preact/signals"
import { stored } from "../Stored.js"
import { en, type Texts } from "./en.js"
import { zhCN } from "./zh-CN.js"

/**
 * The languages that there are, each under its own name.
 *
 * @since 0.1.0
 * @category models
 */
export const languages = { en: "English", "zh-CN": "简体中文" } as const

/**
 * The tag of a language that there is.
 *
 * @since 0.1.0
 * @category models
 */
export type Language = keyof typeof languages

const tables: { readonly [language in Language]: Texts } = { en, "zh-CN": zhCN }

const isLanguage = (tag: string | undefined): tag is Language => tag !== undefined && Object.hasOwn(languages, tag)

/**
 * The first of the wanted languages that there is, whatever its region; English when there is none.
 *
 * @since 0.1.0
 * @category languages
 */
export const bestOf = (wanted: ReadonlyArray<string>): Language => {
  for (const tag of wanted) {
    const primary = tag.toLowerCase().split("-")[0]
    const found = Object.keys(languages).find((known) => known.toLowerCase().split("-")[0] === primary)
    if (isLanguage(found)) return found
  }
  return "en"
}

const choice = stored("runlet.language")
const chosen = choice.get()

/**
 * The language in use. What is drawn with `t` is drawn anew when it changes.
 *
 * @since 0.1.0
 * @category languages
 */
export const language = signal<Language>(isLanguage(chosen) ? chosen : bestOf(navigator.languages))

/**
 * Changes the language, here and at the next visit.
 *
 * @since 0.1.0
 * @category languages
 */
export const setLanguage = (next: string) => {
  if (!isLanguage(next)) return
  choice.set(next)
  language.value = next
}

effect(() => {
  document.documentElement.lang = language.value
})

type Told<Key extends keyof Texts> = Texts[Key] extends (...told: infer Told) => string ? Told : []

/**
 * The text of a key in the language in use; what it tells, such as a count, comes behind the key.
 *
 * @since 0.1.0
 * @category texts
 */
export const t = <Key extends keyof Texts>(key: Key, ...told: Told<Key>): string => {
  const entry: string | ((...told: Told<Key>) => string) = tables[language.value][key]
  return typeof entry === "string" ? entry : entry(...told)
}
