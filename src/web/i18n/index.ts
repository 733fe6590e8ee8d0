/**
 * The language of the pages. It is the browser's, until a person chooses another one.
 *
 * @since 0.1.0
 */
import { effect, signal } from "@preact/signals"
import { stored } from "../Stored.js"
import type { Texts } from "./en.js"
import { bestOf, isLanguage, type Language, tables } from "./Languages.js"

export { languages } from "./Languages.js"

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
